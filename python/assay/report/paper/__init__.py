"""The paper of one or several runs: a document that a purchase or a go-live is defended with.

runs -> sources (facts, renamed, lettered) -> sections by templates (document) -> HTML, PDF, Markdown
"""

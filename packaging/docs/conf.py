"""The documents as a site, by Sphinx: `make docs`. It needs no network when read, and its search works from files."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

project = "Assay"
extensions = ["myst_parser"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Assay"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
# Blocks are in the language of a shell without a lexer of its own, or in none.
suppress_warnings = ["misc.highlighting_failure"]

SECTIONS = {
    "First steps": [
        "recipes", "tour", "install", "kubernetes", "command-line", "python", "other-tools", "troubleshooting",
        "glossary",
    ],
    "Storage": ["plans", "integrity", "mailbox", "hosts", "safety"],
    "Databases": ["databases", "oltp", "brokerage", "sql", "oltp-results", "dss", "layouts"],
    "Models": [
        "models", "model-files", "models-flash", "models-host-flash", "models-cloud", "calibration", "arrays-served",
        "studies", "reliability", "size",
    ],
    "Watch and diagnose": ["record", "diagnose", "check", "import"],
    "Results": ["results", "compare", "history", "paper", "ui", "exit-codes"],
    "Reference": ["options", "options/*", "rules/*", "decisions/*"],
}  # fmt: skip
"""Pages in the order of the menu."""


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the menu to the first page; of links that leave the documents keep the text."""
    del app
    depth = page.count("/")
    leaves = re.compile(rf"\[([^\]]+)\]\((?:\.\./){{{depth + 1}}}[^)]*\)")
    source[0] = leaves.sub(r"\1", source[0])
    if page == "index":
        for title, pages in SECTIONS.items():
            glob = ":glob:\n" if any("*" in name for name in pages) else ""
            listed = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n{glob}\n{listed}\n```\n"


def setup(app: Sphinx) -> None:
    """Change pages as they are read."""
    app.connect("source-read", _read)

"""A mail server's databases, derived from what Jetstress does: a load, a backup, a recovery (docs/mailbox.md)."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Verb

DECLARATION = Declaration(
    kind="mailbox",
    place="assay.workloads.mailbox.workload:MailboxWorkload",
    verbs=(
        Verb(
            name="mailbox",
            place="assay.apps.cli.workloads.mailbox:mailbox",
            help="Run mailboxes on databases of checksummed pages, derived from what Jetstress does.",
        ),
    ),
)

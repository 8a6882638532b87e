"""A mail server's databases, derived from what Jetstress does: a load, a backup, a recovery (docs/mailbox.md)."""

"""What is asked of targets: I/O access, and later transactions, queries and mailboxes."""

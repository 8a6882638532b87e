"""Workloads of targets: I/O, verified pages, transactions, queries, mailboxes."""

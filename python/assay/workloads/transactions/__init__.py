"""What kinds of transactions on databases share: each kind is an application of its own."""

from __future__ import annotations

from assay.workloads.declaration import Group

GROUP = Group(name="oltp", help="Run transactions on real databases: embedded PostgreSQL, or servers of yours.")
"""The verb that kinds of transactions are verbs of."""

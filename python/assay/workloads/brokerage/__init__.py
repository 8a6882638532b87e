"""The TPC-E-like workload: a brokerage, its customers' orders, and the market exchange that answers them."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Verb
from assay.workloads.transactions import GROUP

DECLARATION = Declaration(
    kind="brokerage",
    place="assay.workloads.brokerage.workload:BrokerageWorkload",
    verbs=(
        Verb(
            group=GROUP,
            name="brokerage",
            place="assay.apps.cli.workloads.brokerage:brokerage",
            help="Load, run and check a TPC-E-like workload on real databases.",
        ),
    ),
)

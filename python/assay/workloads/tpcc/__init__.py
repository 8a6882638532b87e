"""The TPC-C-like workload on databases, derived and not compliant."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Verb
from assay.workloads.transactions import GROUP

DECLARATION = Declaration(
    kind="tpcc",
    place="assay.workloads.tpcc.workload:TpccWorkload",
    verbs=(
        Verb(
            group=GROUP,
            name="tpcc",
            place="assay.apps.cli.workloads.oltp:tpcc",
            help="Load, run and check a TPC-C-like workload on real databases.",
        ),
    ),
)

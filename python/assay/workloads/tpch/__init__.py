"""The TPC-H-like workload: 22 queries, power and throughput, on row and column stores."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Group, Verb

GROUP = Group(name="dss", help="Run decision-support queries on real databases: scans, joins, sorts, streams of them.")

DECLARATION = Declaration(
    kind="tpch",
    place="assay.workloads.tpch.workload:TpchWorkload",
    verbs=(
        Verb(
            group=GROUP,
            name="tpch",
            place="assay.apps.cli.workloads.dss:tpch",
            help="Load, run and check a TPC-H-like workload on real databases.",
        ),
    ),
)

"""The I/O workload: activities on volumes, measured on storage or on a modelled array."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Verb

DECLARATION = Declaration(
    kind="io",
    place="assay.workloads.io.workload:IoWorkload",
    verbs=(
        Verb(
            name="profile",
            place="assay.apps.cli.workloads.profile:profile",
            help="Find how much load files, devices or volumes hold within latency limits.",
        ),
        Verb(
            name="sqlio",
            place="assay.apps.cli.workloads.sqlio:app",
            help="Take SQLIO's flags (-k -s -f -o -b -i -t -L -B -S -F ...), print SQLIO's output.",
        ),
    ),
)

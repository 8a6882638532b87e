"""The integrity workload: what `assay verify` runs."""

from __future__ import annotations

from assay.workloads.declaration import Declaration, Verb

DECLARATION = Declaration(
    kind="integrity",
    place="assay.workloads.integrity.workload:IntegrityWorkload",
    verbs=(
        Verb(
            name="verify",
            place="assay.apps.cli.workloads.verify:verify",
            help="Prove that files, devices or volumes keep what they acknowledged, under a database's I/O.",
        ),
    ),
)

"""The verbs of each kind of workload; a kind that has none here gets one of its own name."""

from __future__ import annotations

from assay.apps.cli.declared import ON_DATABASES, ON_STORAGE, Group, Verb

_OLTP = Group(name="oltp", help="Run transactions on real databases: embedded PostgreSQL, or servers of yours.")
_DSS = Group(name="dss", help="Run decision-support queries on real databases: scans, joins, sorts, streams of them.")

VERBS: dict[str, tuple[Verb, ...]] = {
    "io": (
        Verb(
            name="profile",
            short="Find the load that storage holds within latency limits.",
            uses=ON_STORAGE,
            place="assay.apps.cli.workloads.profile:profile",
            help="Find how much load files, devices or volumes hold within latency limits.",
            typed=("fio", "diskspd", "iometer", "vdbench", "elbencho"),
        ),
        Verb(
            name="sqlio",
            short="Take SQLIO's flags, print SQLIO's output.",
            place="assay.apps.cli.workloads.sqlio:app",
            help="Take SQLIO's flags (-k -s -f -o -b -i -t -L -B -S -F ...), print SQLIO's output.",
        ),
    ),
    "integrity": (
        Verb(
            name="verify",
            short="Prove that storage keeps all that it acknowledged.",
            uses=ON_STORAGE,
            place="assay.apps.cli.workloads.verify:verify",
            question="Does it lose data?",
            answer="assay verify DIR",
            help="Prove that files, devices or volumes keep what they acknowledged, under a database's I/O.",
            typed=("sqliosim",),
        ),
    ),
    "tpcc": (
        Verb(
            group=_OLTP,
            name="tpcc",
            uses=ON_DATABASES,
            place="assay.apps.cli.workloads.oltp:tpcc",
            question="What does a database get?",
            answer="assay oltp tpcc embedded:DIR",
            help="Load, run and check a TPC-C-like workload on real databases.",
            typed=("hammerdb", "sysbench", "tpcc", "tpc-c"),
        ),
    ),
    "brokerage": (
        Verb(
            group=_OLTP,
            name="brokerage",
            uses=ON_DATABASES,
            place="assay.apps.cli.workloads.brokerage:brokerage",
            help="Load, run and check a TPC-E-like workload on real databases.",
            typed=("tpce", "tpc-e"),
        ),
    ),
    "sql": (
        Verb(
            group=_OLTP,
            name="sql",
            uses=ON_DATABASES,
            place="assay.apps.cli.workloads.sql:sql",
            help="Run your own SQL, in scripts for pgbench, on real databases.",
            typed=("pgbench", "sql"),
        ),
    ),
    "sqllog": (
        Verb(
            group=_OLTP,
            name="replay",
            uses=ON_DATABASES,
            place="assay.apps.cli.workloads.sqllog:replay",
            help="Replay the statements that a server logged on another database, and tell which became slower.",
            typed=("pgreplay", "pt-upgrade", "percona-playback"),
        ),
    ),
    "tpch": (
        Verb(
            group=_DSS,
            name="tpch",
            uses=(*ON_DATABASES, "duckdb", "nanoarrow", "sqlglot", "pyspark", "java"),
            place="assay.apps.cli.workloads.dss:tpch",
            help="Load, run and check a TPC-H-like workload on real databases.",
            typed=("tpch", "tpc-h"),
        ),
    ),
    "mailbox": (
        Verb(
            name="mailbox",
            short="Run mailboxes on databases of checksummed pages.",
            uses=ON_STORAGE,
            place="assay.apps.cli.workloads.mailbox:mailbox",
            help="Run mailboxes on databases of checksummed pages, derived from what Jetstress does.",
            typed=("jetstress",),
        ),
    ),
    "replay": (
        Verb(
            name="replay",
            short="Replay a trace on other storage, at its times or faster.",
            uses=ON_STORAGE,
            place="assay.apps.cli.workloads.replay:replay",
            help="Replay the I/Os of traces on other storage, and find how much more of such a load it holds.",
            typed=("blkreplay", "btreplay", "hfplayer"),
        ),
    ),
}

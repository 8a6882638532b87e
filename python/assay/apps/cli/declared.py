"""What lists say of a verb before it is imported."""

from __future__ import annotations

from dataclasses import dataclass


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
        Programs and rights of the host that some of its options or targets need, as `assay doctor` names them.
    """

    name: str
    place: str
    help: str
    group: Group | None = None
    hidden: bool = False
    uses: tuple[str, ...] = ()


SERVING = ("fusermount3", "mkfs.ext4", "mounting FUSE")
"""What modelled arrays need that are served."""
ON_STORAGE = (*SERVING, "ssh")
"""What verbs can use that measure storage, on other hosts, too."""
ON_DATABASES = (*ON_STORAGE, "embedded PostgreSQL")

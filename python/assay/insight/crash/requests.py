"""What a process that shows states is asked, and what it answers: lines of JSON over its standard streams."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from assay.base.tables import Record
from assay.insight.crash.file_systems import NAMES
from assay.insight.crash.subject import CrashFinding, Kind

SubjectKind = Literal["command", "postgresql", "mariadb"]
"""Kinds of programs."""


@dataclass(frozen=True, kw_only=True)
class SubjectRequest:
    """The program that is tried.

    Attributes
    ----------
    kind
        A user's own command, or a server that Assay initialises on the volume.
    load, check, prepare
        Commands of the user; of servers empty.
    cwd
        Where the commands run.
    patience_s
        How long the check of one state may take.
    settings
        Settings of the server, `name=value`.
    transactions, clients
        Length of the load.
    checks_pages
        Whether a server's pages and indexes are all checked.
    user
        As whom the program runs; empty: the user of the server's package, or who runs Assay.
    plan
        A plan of transactions that are the load of a server, JSON; empty: a ledger.
    conditions
        Queries that must return no row after a crash.
    count
        A query that counts commits, which must not be fewer than clients were told of.
    """

    kind: SubjectKind
    load: str = ""
    check: str = ""
    prepare: str = ""
    cwd: str = "/"
    patience_s: float = 60.0
    settings: tuple[str, ...] = ()
    transactions: int = 600
    clients: int = 4
    checks_pages: bool = True
    user: str = ""
    plan: str = ""
    conditions: tuple[str, ...] = ()
    count: str = ""


@dataclass(frozen=True, kw_only=True)
class VolumeRequest:
    """The volume and its file system.

    Attributes
    ----------
    file_system
        One of `assay.insight.crash.file_systems.NAMES`.
    options
        Options of the mount, with commas.
    mkfs
        Options of the program that makes the file system.
    """

    size_bytes: int
    file_system: str = "ext4"
    options: str = ""
    mkfs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StageRequest:
    """Where a process shows states."""

    base: str
    log: str
    work: str
    volume: VolumeRequest
    checks_file_system: bool = True


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The recording of a load.

    Attributes
    ----------
    title
        Program, version and settings.
    load_s
        How long the load took.
    told
        How much clients were told.
    """

    title: str
    load_s: float
    told: int


@dataclass(frozen=True, kw_only=True)
class LostWrite:
    """A write that a state lacks, whole or in part; `place` names the file, where one is known."""

    request: int
    at_ns: int
    offset_bytes: int
    length_bytes: int
    lost_bytes: int
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckedState:
    """The check of one state.

    Attributes
    ----------
    seconds
        By the clock.
    cpu_seconds
        Of the process that shows the state and of all that it started, the kernel's work for them included.
    """

    name: str
    finding: CrashFinding | None
    seconds: float
    cpu_seconds: float = 0.0


def to_line(value: SubjectRequest | StageRequest | Recorded | CheckedState | LostWrite) -> dict[str, object]:
    """A value as JSON."""
    return asdict(value)


def stage_of(text: str) -> tuple[StageRequest, SubjectRequest]:
    """The first line that a process is sent."""
    found = json.loads(text)
    volume = volume_of(found["stage"]["volume"])
    return StageRequest(**{**found["stage"], "volume": volume}), subject_of(found["subject"])


def volume_of(found: Record) -> VolumeRequest:
    """A volume as JSON has it.

    Raises
    ------
    ValueError, TypeError, KeyError
        It is none.
    """
    if found["file_system"] not in NAMES:
        raise ValueError
    return VolumeRequest(**{**found, "size_bytes": int(found["size_bytes"]), "mkfs": tuple(found["mkfs"])})


def subject_of(found: Record) -> SubjectRequest:
    """A program as JSON has it.

    Raises
    ------
    ValueError, TypeError, KeyError
        It is none.
    """
    lists = {name: tuple(found[name]) for name in ("settings", "conditions")}
    return SubjectRequest(**{**found, **lists})


def checked_of(found: dict[str, object]) -> CheckedState:
    """The answer about one state."""
    finding = found["finding"]
    kind: Kind
    if isinstance(finding, dict):
        kind = finding["kind"]
        told = CrashFinding(kind=kind, message=str(finding["message"]))
    else:
        told = None
    return CheckedState(
        name=str(found["name"]),
        finding=told,
        seconds=float(str(found["seconds"])),
        cpu_seconds=float(str(found["cpu_seconds"])),
    )


def log_path(folder: Path) -> Path:
    """The log of writes in the folder of a trial."""
    return folder / "writes.log"


def base_path(folder: Path) -> Path:
    """The volume as it was when the load began."""
    return folder / "base.img"

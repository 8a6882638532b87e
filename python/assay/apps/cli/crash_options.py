"""Options that the commands of `assay crash` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.base.errors import UsageError
from assay.base.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from assay.insight.crash.promises import Promises
    from assay.insight.crash.requests import SubjectKind

PROMISES = "Promises of the storage"
SERVERS: dict[str, SubjectKind] = {"postgresql": "postgresql", "embedded:": "postgresql", "mariadb": "mariadb"}
"""Servers that Assay runs itself, as they are named."""

At = Annotated[Path, typer.Option("--at", metavar="DIR", help="Folder of the volume, its log and the results.")]
Atomic = Annotated[
    str,
    typer.Option("--atomic", help="Size that survives whole: 512, 4K, 8K, 16K, or write.", rich_help_panel=PROMISES),
]
InOrder = Annotated[
    bool, typer.Option("--in-order", help="Later writes never survive earlier ones.", rich_help_panel=PROMISES)
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Completed writes are durable.", rich_help_panel=PROMISES)]
States = Annotated[int, typer.Option("--states", min=1, max=1_000_000, help="States to try.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Which states are chosen.")]
Check = Annotated[str, typer.Option("--check", metavar="COMMAND", help="Exits with 0 if the volume is right.")]
Prepare = Annotated[str, typer.Option("--prepare", metavar="COMMAND", help="Runs before the load, unrecorded.")]
Size = Annotated[str, typer.Option("--size", help="Size of the volume (256M; with xfs 320M).")]
FileSystem = Annotated[str, typer.Option("--fs", help="ext4, xfs (need root), or none: the volume is one file.")]
Mkfs = Annotated[str, typer.Option("--mkfs", metavar="OPTIONS", help="Options of mkfs, as '-O bigalloc -C 16384'.")]
Mount = Annotated[str, typer.Option("--mount", metavar="OPTIONS", help="Options of the mount, as data=journal.")]
Fsck = Annotated[bool, typer.Option("--fsck/--no-fsck", help="Check the file system of each state.")]
Setting = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Setting of the server.")]
Vary = Annotated[
    list[str] | None, typer.Option("--vary", metavar="NAME=VALUE", help="Another row, with this setting, too.")
]
Matrix = Annotated[bool, typer.Option("--matrix", help="Try all atomic sizes and the order of writes, too.")]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="WORKLOAD",
        help="Load of a server: a workload, or scripts FILE@WEIGHT (a ledger).",
    ),
]
Init = Annotated[list[str] | None, typer.Option("--init", metavar="FILE", help="SQL that makes the scripts' tables.")]
Condition = Annotated[
    list[str] | None, typer.Option("--condition", metavar="SQL", help="Query that returns no row if all is right.")
]
Count = Annotated[str, typer.Option("--count", metavar="SQL", help="Query that counts the scripts' commits.")]
Again = Annotated[int, typer.Option("--again", min=0, max=1000, help="States whose recovery is cut, too.")]
Transactions = Annotated[int, typer.Option("--transactions", min=1, max=1_000_000, help="Load of a server.")]
Clients = Annotated[int, typer.Option("--clients", min=1, max=16, help="Clients of a server.")]
Pages = Annotated[
    bool, typer.Option("--pages/--no-pages", help="Check all pages and indexes of a server: amcheck, innochecksum.")
]
As = Annotated[str, typer.Option("--as", metavar="USER", help="User who runs the program (the server's own).")]
Patience = Annotated[str, typer.Option("--patience", help="How long the check of a state may take.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, max=64, help="Processes (one a core).")]
Drive = Annotated[str, typer.Option("--drive", metavar="DEVICE", help="Say what this drive claims of atomic writes.")]
Proof = Annotated[
    list[Path] | None,
    typer.Option("--proof", metavar="RUN", help="Checks after power cuts on --drive: runs, or a folder of them."),
]
Page = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page (DIR/crash.html).")]
Withdraw = Annotated[
    list[str] | None,
    typer.Option("--withdraw", help="A promise that is not kept: flush, fua, discard.", rich_help_panel=PROMISES),
]


def promises_of(atomic: str, in_order: bool, no_cache: bool, withdraw: list[str] | None) -> Promises:
    """The promises that options name.

    Raises
    ------
    UsageError
        A value is not accepted.
    """
    from assay.insight.crash.promises import ATOMIC_BYTES, Promises

    size = None if atomic == "write" else parse_bytes(atomic, what="--atomic")
    if size is not None and size not in ATOMIC_BYTES:
        accepted = ", ".join(format_bytes(one) for one in ATOMIC_BYTES)
        raise UsageError(f"--atomic: {atomic} is not accepted; accepted: {accepted}, write")
    promises = Promises(volatile_cache=not no_cache, order="submitted" if in_order else "any", atomic_bytes=size)
    return promises.without(withdraw or ())

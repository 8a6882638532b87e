"""`assay crash explain`: whether promises of storage allow what a disk has after a power cut."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import crash_options as of_crash
from assay.apps.cli import options as opt
from assay.apps.cli.console import print_json
from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.insight.crash.explanation import CrashExplanation

EXAMPLES = """
Examples:

`assay crash explain /dev/sdb --log writes.log --base before.img`

`assay crash explain after.img --log writes.log --atomic 16K`

`assay crash explain after.img --at crash-pg`
"""

SHOWN_MAX = 12
"""Writes that are printed; `--json` has all."""


def crash_explain(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="The disk after the power cut, or a copy of it.")],
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Log of its writes: of Assay, dm-log-writes or blklogwrites."),
    ] = None,
    base: Annotated[
        Path | None, typer.Option("--base", metavar="FILE", help="The disk when the log began (zeroes).")
    ] = None,
    at: Annotated[Path | None, typer.Option("--at", metavar="DIR", help="Take log and base of this run.")] = None,
    row: Annotated[int, typer.Option("--row", min=0, max=999, help="Row of the matrix.")] = 0,
    atomic: of_crash.Atomic = "512",
    in_order: of_crash.InOrder = False,
    no_cache: of_crash.NoCache = False,
    withdraw: of_crash.Withdraw = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Say whether what a disk has after a power cut is among the states that its promises allow.

    If it is not, names the writes that are lost or torn, and the promise that the storage broke (exit code 4).
    """
    del debug
    from assay.insight.crash.explanation import explain
    from assay.insight.crash.folder import known_trial
    from assay.insight.crash.requests import base_path, log_path

    promises = of_crash.promises_of(atomic, in_order, no_cache, withdraw)
    if (log is None) == (at is None) or (at is not None and base is not None):
        raise UsageError("--log, --base and --at are not accepted together: give --log FILE, or --at DIR")
    if at is not None:
        folder = known_trial(at, row).folder
        log, base = log_path(folder), base_path(folder)
    assert log is not None
    found = explain(log, image, promises, base=base)
    if json:
        told = asdict(found) | {"membership": _membership(found), "is_allowed": found.is_allowed}
        print(print_json({"schema_version": 1, "verb": "crash", "explanation": told}))
    else:
        _tell(found, image)
    sys.exit(ExitCode.DONE if found.is_allowed else ExitCode.INTEGRITY_FAILED)


def _membership(found: CrashExplanation) -> dict[str, object]:
    """The counts of a judgement."""
    of = found.membership
    return {
        "outstanding": of.outstanding,
        "kept": of.kept,
        "torn": of.torn,
        "wrong_sectors": len(of.wrong),
        "overtaken": of.overtaken,
    }


def _tell(found: CrashExplanation, image: Path) -> None:
    """Print the answer."""
    name, promises = printable(image), found.promises.words
    if found.is_allowed:
        print(f"{name} is a state that these promises allow: {promises}")
        print(found.counts)
        return
    print(f"{name} is no state that these promises allow: {promises}")
    for one in found.broken[:SHOWN_MAX]:
        print(f"  {one.words}")
    if len(found.broken) > SHOWN_MAX:
        print(f"  and {len(found.broken) - SHOWN_MAX:,} more (--json)")
    if found.membership.overtaken is not None:
        earlier, later = found.membership.overtaken
        print(f"  write {later} is there, and write {earlier} before it is not, or not all of it")
    if found.withdrawn is None:
        print("no promises allow it: something else wrote to the disk, or the log or --base does not belong to it")
    else:
        print(f"the storage broke a promise: {', '.join(found.withdrawn)}. Without that promise the state is allowed")

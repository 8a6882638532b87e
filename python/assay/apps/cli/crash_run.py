"""`assay crash run`: record a load, and try the states that a crash may leave."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import crash_options as of_crash
from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import print_json, say
from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable
from assay.base.units import parse_bytes, parse_duration

if TYPE_CHECKING:
    from assay.insight.crash.examination import CrashAnswer, CrashExamination
    from assay.insight.crash.requests import SubjectRequest

EXAMPLES = """
Examples:

`assay crash run postgresql --at crash-pg --states 5000`

`assay crash run postgresql --at crash-matrix --matrix --vary fsync=off`

`assay crash run './load {}' --check './check {}' --at crash-mine`

`assay crash run './store {}' --check './store --verify {}' --fs none --size 16M --at crash-store`
"""

EVERY_S = 5.0


@usual("--at", "--check", "--states", "--matrix", "--vary", "--json", "--output")
def crash_run(
    subject: Annotated[
        str, typer.Argument(metavar="PROGRAM", help="postgresql, or a command that prints a line for each commit.")
    ],
    at: of_crash.At,
    check: of_crash.Check = "",
    prepare: of_crash.Prepare = "",
    states: of_crash.States = 1000,
    seed: of_crash.Seed = 1,
    size: of_crash.Size = "256M",
    fs: of_crash.FileSystem = "ext4",
    mount: of_crash.Mount = "",
    fsck: of_crash.Fsck = True,
    atomic: of_crash.Atomic = "512",
    in_order: of_crash.InOrder = False,
    no_cache: of_crash.NoCache = False,
    withdraw: of_crash.Withdraw = None,
    setting: of_crash.Setting = None,
    vary: of_crash.Vary = None,
    matrix: of_crash.Matrix = False,
    transactions: of_crash.Transactions = 600,
    clients: of_crash.Clients = 4,
    patience: of_crash.Patience = "60s",
    jobs: of_crash.Jobs = None,
    output: of_crash.Page = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Try thousands of states that a crash may leave, and say which promises of storage a program needs.

    Runs a load on a volume of its own in DIR, records all its writes, and shows each state to the program's own
    recovery and check. The same command goes on where it was broken off.
    """
    del debug
    from assay.insight.crash.examination import CrashExamination

    size_bytes = _size_bytes(size, fs)
    promises = of_crash.promises_of(atomic, in_order, no_cache, withdraw)
    rows = _rows(subject, check, fs, setting or (), vary or ())
    program = _program(subject, check, prepare, patience, transactions, clients)
    stage = _Stage(
        at=at, size_bytes=size_bytes, fs=fs, mount=mount, fsck=fsck, seed=seed, jobs=jobs or os.cpu_count() or 1
    )
    examination = CrashExamination(promises=promises, states=states, matrix=matrix, say=say)
    answer = _examined(examination, stage, program, rows)
    _tell(answer, output or at / "crash.html", json=json)
    sys.exit(_code(answer))


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Where and how states are shown."""

    at: Path
    size_bytes: int
    fs: str
    mount: str
    fsck: bool
    seed: int
    jobs: int


def _size_bytes(size: str, fs: str) -> int:
    from assay.insight.crash.stage import FILE_SYSTEMS

    if fs not in FILE_SYSTEMS:
        raise UsageError(f"--fs: {fs!r} is unknown; accepted: {', '.join(FILE_SYSTEMS)}")
    size_bytes = parse_bytes(size, what="--size") // 4096 * 4096
    if not 1 << 20 <= size_bytes <= 64 << 30:
        raise UsageError(f"--size: {size} is not accepted; accepted: 1M to 64G")
    return size_bytes


def _program(subject: str, check: str, prepare: str, patience: str, transactions: int, clients: int) -> SubjectRequest:
    from assay.insight.crash.requests import SubjectRequest

    is_server = subject in of_crash.SERVERS
    return SubjectRequest(
        kind="postgresql" if is_server else "command",
        load="" if is_server else subject,
        check=check,
        prepare=prepare,
        cwd=os.getcwd(),
        patience_s=parse_duration(patience, what="--patience") / 1e9,
        transactions=transactions,
        clients=clients,
    )


def _examined(
    examination: CrashExamination, stage: _Stage, program: SubjectRequest, rows: Sequence[tuple[str, ...]]
) -> CrashAnswer:
    """Record and try each row."""
    from assay.insight.crash.examination import CrashAnswer
    from assay.insight.crash.folder import trial_folder
    from assay.insight.crash.trial import Trial

    found = []
    for number, settings in enumerate(rows):
        subject = replace(program, settings=settings)
        folder = trial_folder(
            stage.at, number, subject, size_bytes=stage.size_bytes, file_system=stage.fs, options=stage.mount
        )
        trial = Trial(
            folder=folder,
            subject=subject,
            size_bytes=stage.size_bytes,
            file_system=stage.fs,
            options=stage.mount,
            checks=stage.fsck,
            seed=stage.seed,
            jobs=stage.jobs,
            progress=_Progress(),
        )
        must_fail = number > 0 and "fsync=off" in settings
        found.append(examination.examine(trial, settings, must_fail=must_fail))
    return CrashAnswer(
        rows=tuple(found), file_system=stage.fs, size_bytes=stage.size_bytes, seed=stage.seed, jobs=stage.jobs
    )


def _tell(answer: CrashAnswer, page: Path, *, json: bool) -> None:
    """Write the page and print the answer."""
    from assay import _core
    from assay.document.terminal import show
    from assay.report.files import replace_file
    from assay.report.html import html_report
    from assay.report.sections.crash import answer_blocks, crash_document

    document = crash_document(answer, str(_core.build_info()["version"]))
    replace_file(page, html_report(document, {}).encode())
    if json:
        told = {"schema_version": 1, "verb": "crash", **asdict(answer), "passing_controls": answer.passing_controls}
        print(print_json(told))
        return
    show(answer_blocks(answer))
    print(f"page: {printable(page)}")


class _Progress:
    """A line of progress every few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY_S

    def __call__(self, words: str, tried: int, planned: int, failed: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            say(f"{words}: {tried:,} of {planned:,} states, {failed:,} fail")


def _rows(subject: str, check: str, fs: str, settings: Sequence[str], vary: Sequence[str]) -> list[tuple[str, ...]]:
    """The settings of each row."""
    is_server = subject in of_crash.SERVERS
    if is_server and fs == "none":
        raise UsageError(f"--fs: {subject} needs a file system; give --fs ext4")
    if is_server and check:
        raise UsageError(f"--check: {subject} is checked by Assay; leave --check out")
    if not is_server and not check:
        raise UsageError(
            f"{subject!r}: a command needs --check, a command that exits with 0 if the volume is right; servers that"
            f" Assay runs itself: {', '.join(of_crash.SERVERS)}"
        )
    for one in (*settings, *vary):
        name, equals, _ = one.partition("=")
        if not is_server or not equals or not name.replace("_", "").isalnum():
            raise UsageError(f"--set, --vary: {one!r} is not accepted; accepted: NAME=VALUE, of a server")
    return [tuple(settings), *((*settings, one) for one in vary)]


def _code(answer: CrashAnswer) -> ExitCode:
    """The exit code: 4 if a state under the promises that were asked for fails, 3 if a control does not fail."""
    if answer.passing_controls:
        return ExitCode.TARGET_FAILED
    return ExitCode.INTEGRITY_FAILED if answer.rows[0].tried[0].outcome.failed else ExitCode.DONE

"""`assay crash run`: record a load, and try the states that a crash may leave."""

from __future__ import annotations

import os
import shlex
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
    from assay.insight.crash.drive import DriveClaim
    from assay.insight.crash.examination import CrashAnswer, CrashExamination
    from assay.insight.crash.requests import SubjectRequest, VolumeRequest
    from assay.record.power_cut import DriveCut

EXAMPLES = """
Examples:

`assay crash run postgresql --at crash-pg --states 5000`

`assay crash run postgresql --at crash-matrix --matrix --vary fsync=off`

`assay crash run './load {}' --check './check {}' --at crash-mine`

`assay crash run './store {}' --check './store --verify {}' --fs none --size 16M --at crash-store`
"""

EVERY_S = 5.0
WORKLOAD_SIZE = "512M"
"""Volume of a workload's tables at their smallest scale, with the log of loading them."""


@usual("--at", "--check", "--states", "--matrix", "--vary", "--json", "--output")
def crash_run(
    subject: Annotated[
        str,
        typer.Argument(metavar="PROGRAM", help="postgresql, mariadb, or a command that prints a line for each commit."),
    ],
    at: of_crash.At,
    check: of_crash.Check = "",
    prepare: of_crash.Prepare = "",
    states: of_crash.States = 1000,
    again: of_crash.Again = 0,
    seed: of_crash.Seed = 1,
    size: of_crash.Size = "",
    fs: of_crash.FileSystem = "ext4",
    mkfs: of_crash.Mkfs = "",
    mount: of_crash.Mount = "",
    fsck: of_crash.Fsck = True,
    atomic: of_crash.Atomic = "512",
    in_order: of_crash.InOrder = False,
    no_cache: of_crash.NoCache = False,
    withdraw: of_crash.Withdraw = None,
    setting: of_crash.Setting = None,
    vary: of_crash.Vary = None,
    matrix: of_crash.Matrix = False,
    load: of_crash.Load = None,
    init: of_crash.Init = None,
    condition: of_crash.Condition = None,
    count: of_crash.Count = "",
    transactions: of_crash.Transactions = 600,
    clients: of_crash.Clients = 4,
    pages: of_crash.Pages = True,
    as_user: of_crash.As = "",
    patience: of_crash.Patience = "60s",
    jobs: of_crash.Jobs = None,
    drive: of_crash.Drive = "",
    proof: of_crash.Proof = None,
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

    plan = _load_plan(subject, load or (), init or (), [*(condition or ()), *([count] if count else [])])
    volume = _volume(size or (WORKLOAD_SIZE if plan else ""), fs, mkfs, mount)
    promises = of_crash.promises_of(atomic, in_order, no_cache, withdraw)
    rows = _rows(subject, check, fs, setting or (), vary or (), matrix=matrix)
    program = _program(subject, check, prepare, patience, transactions, clients)
    program = replace(
        program, checks_pages=pages, user=_user(as_user, fs), plan=plan, conditions=tuple(condition or ()), count=count
    )
    stage = _Stage(at=at, volume=volume, fsck=fsck, seed=seed, jobs=jobs or os.cpu_count() or 1)
    examination = CrashExamination(promises=promises, states=states, matrix=matrix, again=again, say=say)
    answer = _examined(examination, stage, program, rows, _evidence(drive, proof or ()))
    _tell(answer, output or at / "crash.html", json=json)
    sys.exit(_code(answer))


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Where and how states are shown."""

    at: Path
    volume: VolumeRequest
    fsck: bool
    seed: int
    jobs: int


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """A drive that is to hold the database, and power cuts on it."""

    drive: DriveClaim | None = None
    cuts: tuple[DriveCut, ...] = ()


def _evidence(drive: str, proof: Sequence[Path]) -> _Evidence:
    """The drive that is named, and the cuts of the runs that are named."""
    from assay.insight.crash.drive import drive_claim
    from assay.insight.crash.proof import read_cuts

    if proof and not drive:
        raise UsageError("--proof: proves what a drive claims; name it with --drive")
    return _Evidence(drive=drive_claim(drive), cuts=read_cuts(proof)) if drive else _Evidence()


def _volume(size: str, fs: str, mkfs: str, mount: str) -> VolumeRequest:
    """The volume and its file system."""
    from assay.insight.crash.file_systems import FILE_SYSTEMS, NAMES
    from assay.insight.crash.requests import VolumeRequest

    if fs not in NAMES:
        raise UsageError(f"--fs: {fs!r} is unknown; accepted: {', '.join(NAMES)}")
    kind = FILE_SYSTEMS.get(fs)
    if kind is None and (mkfs or mount):
        raise UsageError("--mkfs, --mount: --fs none has no file system; leave them out")
    usual_bytes, least_bytes = (256 << 20, 1 << 20) if kind is None else (kind.size_bytes, kind.size_min_bytes)
    size_bytes = parse_bytes(size, what="--size") // 4096 * 4096 if size else usual_bytes
    if not least_bytes <= size_bytes <= 64 << 30:
        raise UsageError(f"--size: {size} is not accepted; accepted: {least_bytes >> 20}M to 64G")
    try:
        more = tuple(shlex.split(mkfs))
    except ValueError as error:
        raise UsageError(f"--mkfs: {mkfs!r}: {error}; quote it as for a shell") from None
    return VolumeRequest(size_bytes=size_bytes, file_system=fs, options=mount, mkfs=more)


def _program(subject: str, check: str, prepare: str, patience: str, transactions: int, clients: int) -> SubjectRequest:
    from assay.insight.crash.requests import SubjectRequest

    return SubjectRequest(
        kind=of_crash.SERVERS.get(subject, "command"),
        load="" if subject in of_crash.SERVERS else subject,
        check=check,
        prepare=prepare,
        cwd=os.getcwd(),
        patience_s=parse_duration(patience, what="--patience") / 1e9,
        transactions=transactions,
        clients=clients,
    )


def _load_plan(subject: str, load: Sequence[str], init: Sequence[str], queries: Sequence[str]) -> str:
    """The plan of a server's load, JSON; empty: a ledger."""
    from assay.workloads.registry import workloads
    from assay.workloads.transactions.workload import TransactionsWorkload

    if not load and (init or queries):
        raise UsageError("--init, --condition, --count: the ledger has its own tables and conditions; give --load, too")
    if not load:
        return ""
    server = of_crash.SERVERS.get(subject)
    if server is None:
        raise UsageError(f"--load: {subject!r} is a load itself; leave --load out")
    known = {one.kind: one for one in workloads() if isinstance(one, TransactionsWorkload) and one.table_set.keys}
    workload = known.get(load[0])
    if workload is None:
        takes = next(one for one in workloads() if isinstance(one, TransactionsWorkload) and one.takes_scripts)
        return str(takes.scripts_plan(load, init, server).model_dump_json())
    if len(load) > 1 or init:
        raise UsageError(f"--load: {load[0]} has its own transactions and tables; leave other scripts and --init out")
    plan = workload.load_plan({workload.table_set.scale: workload.table_set.size.step}, source="--load")
    return str(plan.model_dump_json())


def _user(name: str, fs: str) -> str:
    """The user of `--as`, looked up."""
    from assay.insight.crash.own_user import named_user

    if name and fs == "none":
        raise UsageError("--as: a file that is served belongs to the user who runs Assay; give --fs ext4")
    if name:
        named_user(name)
    return name


def _examined(
    examination: CrashExamination,
    stage: _Stage,
    program: SubjectRequest,
    rows: Sequence[tuple[str, ...]],
    evidence: _Evidence,
) -> CrashAnswer:
    """Record and try each row."""
    from assay.insight.crash.examination import CrashAnswer, rated
    from assay.insight.crash.folder import trial_folder
    from assay.insight.crash.servers import control_of
    from assay.insight.crash.trial import Trial

    found, trials = [], []
    for number, settings in enumerate(rows):
        subject = replace(program, settings=settings)
        trial = Trial(
            folder=trial_folder(stage.at, number, subject, stage.volume),
            subject=subject,
            volume=stage.volume,
            checks=stage.fsck,
            seed=stage.seed,
            jobs=stage.jobs,
            progress=_Progress(),
        )
        control = control_of(program.kind, settings, examination.promises)
        with trial:
            found.append(examination.examine(trial, settings, control=control))
        trials.append(trial)
    return CrashAnswer(
        rows=tuple(rated(found, trials, seed=stage.seed, say=examination.say)),
        volume=stage.volume,
        seed=stage.seed,
        jobs=stage.jobs,
        drive=evidence.drive,
        cuts=evidence.cuts,
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
        told = {
            "schema_version": 1,
            "verb": "crash",
            **asdict(answer),
            "passing_controls": answer.passing_controls,
            "atomic_writes": _atomic_writes(answer),
        }
        print(print_json(told))
        return
    show(answer_blocks(answer))
    print(f"page: {printable(page)}")


def _atomic_writes(answer: CrashAnswer) -> list[dict[str, object]]:
    """What is known of the drive's atomic writes, by size."""
    from assay.insight.crash.promises import ATOMIC_BYTES
    from assay.insight.crash.proof import atomic_proof

    if answer.drive is None:
        return []
    drive, cuts = answer.drive, answer.cuts
    return [{"size_bytes": size, **asdict(atomic_proof(drive, cuts, size))} for size in ATOMIC_BYTES[1:]]


class _Progress:
    """A line of progress every few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY_S

    def __call__(self, words: str, tried: int, planned: int, failed: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            say(f"{words}: {tried:,} of {planned:,} states, {failed:,} fail")


def _rows(
    subject: str, check: str, fs: str, settings: Sequence[str], vary: Sequence[str], *, matrix: bool
) -> list[tuple[str, ...]]:
    """The settings of each row; a matrix has those that must fail, too."""
    from assay.insight.crash.servers import control_settings

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
    if matrix and is_server:
        vary = list(dict.fromkeys((*vary, *control_settings(of_crash.SERVERS[subject]))))
    return [tuple(settings), *((*settings, one) for one in vary if one not in settings)]


def _code(answer: CrashAnswer) -> ExitCode:
    """The exit code: 4 if a state under the promises that were asked for fails in any row, 3 if a control passes."""
    if answer.passing_controls:
        return ExitCode.TARGET_FAILED
    return ExitCode.INTEGRITY_FAILED if answer.has_failed else ExitCode.DONE

"""`assay assess`: the whole examination of the storage under a folder, report included."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import say
from assay.apps.cli.need import Need, NeedFrom, asked_need
from assay.apps.cli.repeating import start
from assay.apps.cli.verb import Given, measuring
from assay.base.errors import AssayError, NotSupported, RefusedTarget, UsageError
from assay.base.units import format_bytes, parse_duration
from assay.run.request import ONLY_VERIFY, refuse_model
from assay.run.targets import lacking
from assay.targets.databases import is_database
from assay.targets.host import memory_bytes
from assay.workloads.capabilities import Examining, MeasuresIo
from assay.workloads.examination import FULL_FROM_S, Examination
from assay.workloads.options import OUTPUT, TIME
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.registry import DEFAULT_KIND, workload_named, workload_of, workloads

if TYPE_CHECKING:
    from assay.insight.rules.outputs import CheckDocument
    from assay.record.shapes.manifest import Check

EXAMPLES = """
Examples:

`assay assess /var/lib/data --quick`

`assay assess /data --budget 1h --limit "read.p99<=5ms"`

`assay assess /data --only log,database`

`assay assess /data --need "5000 iops 8k 70/30 read.p99<2ms"`
"""

PRECONDITIONING = ("--precondition", "--purge", "--over-provisioning")
"""Options of the state that the storage is brought into once, before the first part that measures it."""
ON_FOLDER: opt.Declared = {
    **{name: opt.ON_STORAGE[name] for name in ("size", "cache_size", "overwrite")},
    **opt.WRITES_MUCH,
    **opt.REPEATED,
}
BUDGET_DEFAULT_S = 30 * 60
BUDGET_QUICK_S = 90


def parts_known() -> list[ExaminationPart]:
    """The parts of every kind of workload, in the order in which they run; their shares divide the budget."""
    return [part for part in parts_of_all() if not part.of_need]


def parts_of_all() -> list[ExaminationPart]:
    """Those that measure a need, too."""
    return [part for one in workloads() if isinstance(one, Examining) for part in one.examination]


@usual(
    "--quick", "--budget", "--only", "--skip", "--limit", "--need", "--size", "--overwrite", "--paper", "--json",
)  # fmt: skip
@measuring(
    "assess",
    workload_named(DEFAULT_KIND).plan_type,
    on=ON_FOLDER,
    only=("--io-timeout", "--backend", "--seed", *PRECONDITIONING),
)
def assess(
    given: Given,
    directory: Annotated[
        str | None, typer.Argument(metavar="DIR", help="A folder on the storage to examine.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Finish in about two minutes.")] = False,
    budget: Annotated[
        str | None, typer.Option(help="Time budget, without layout and report (30m).", rich_help_panel=TIME)
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help=f"Only these parts: {', '.join(part.name for part in parts_known())}.", rich_help_panel=TIME),
    ] = None,
    skip: Annotated[str | None, typer.Option(help="All but these parts.", rich_help_panel=TIME)] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="Limits of every part, instead of the presets'.", rich_help_panel=TIME)
    ] = None,
    need: Need = None,
    need_from: NeedFrom = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Also make a paper: HTML, PDF and Markdown.", rich_help_panel=OUTPUT)
    ] = False,
    hosts: Annotated[list[str] | None, typer.Option("--hosts", hidden=True)] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", hidden=True)] = None,
) -> None:
    """Examine the storage under a folder: I/O of all kinds, integrity, a real database; and write the report."""
    del paper  # `Given` has it
    for option, value in (("--hosts", hosts), ("--cluster", cluster)):
        if value:
            raise UsageError(
                f"{option}: assess examines the storage of the host it runs on; the commands of single workloads take"
                f" {option}"
            )
    folder = _examinable(directory)
    budget_s = _budget_s(budget, quick=quick)
    asked = asked_need(need, need_from)
    direct = takes_direct(folder)
    of_need = [part for part in parts_of_all() if part.of_need and asked is not None]
    chosen = [*of_need, *chosen_parts(only, skip)]
    wanted = given.take("precondition")
    timeout_s = given.values.pop(("timing", "io_timeout_s"), None)
    parts = [
        part.part(
            Examination(
                directory=folder,
                budget_s=budget_s,
                planned_s=budget_s * part.share / sum(one.share for one in chosen),
                limits=limit,
                timeout_s=timeout_s,
                is_direct=direct,
                is_alone=len(chosen) == 1,
                need=asked,
                given={path[0]: value for path, value in given.values.items()},
            )
        )
        for part in chosen
    ]
    parts = preconditioned_once(parts, wanted)
    told_need = None if asked is None else {**asked, "limits": limit or asked["limits"]}
    given.shown.notices += [*_leave_out(parts), *(part.notice for part in parts if part.notice)]
    request = given.request([folder])
    if budget_s < FULL_FROM_S:
        request.size_most_bytes = 1 << 30
    if not direct and request.size is None:
        # Through the page cache only a file twice its size is read from the device.
        request.size = str(2 * memory_bytes())
        given.shown.notices.append(
            f"{folder} takes no direct I/O: measured through the page cache on {format_bytes(2 * memory_bytes())}"
        )
    start("assess", request, parts, given.shown, told=lambda: {"check": checked(folder), "need": told_need})


def _budget_s(text: str | None, *, quick: bool) -> float:
    """The time that measuring may take.

    Raises
    ------
    UsageError
        It is too short.
    """
    if text is None:
        return BUDGET_QUICK_S if quick else BUDGET_DEFAULT_S
    seconds = parse_duration(text, what="--budget") / 1e9
    if seconds < 20:
        raise UsageError(f"--budget: {text} is too short to measure anything; give at least 20s")
    return seconds


def preconditioned_once(parts: Sequence[Part[Any]], wanted: Mapping[str, object]) -> list[Part[Any]]:
    """The parts, of which the first that measures the storage itself brings it into the state that was asked for.

    Raises
    ------
    UsageError
        No part measures the storage itself.
    """
    if not wanted:
        return list(parts)
    first = next((one for one in parts if isinstance(workload_of(one.plan), MeasuresIo)), None)
    if first is None:
        raise UsageError("--precondition: no part of this examination measures the storage itself; leave it out")
    workload = workload_of(first.plan)
    data = first.plan.model_dump(mode="json", exclude_unset=True) | {"precondition": dict(wanted)}
    plan = workload.load_plan(data, source="--precondition")
    return [replace(one, plan=plan) if one is first else one for one in parts]


def _leave_out(parts: list[Part[Any]]) -> list[str]:
    """Take out what needs packages that are not installed, and say so, before anything begins.

    Raises
    ------
    NotSupported
        No part is left.
    """
    said = [(part, text) for part in parts if part.optional and (text := lacking(part))]
    for part, text in said:
        parts.remove(part)
        if not parts:
            raise NotSupported(text)
        say(f"note: {part.title}: left out: {text}")
    return [f"{part.title}: left out: {text}" for part, text in said]


def _examinable(directory: str | None) -> str:
    """The folder to examine.

    Raises
    ------
    UsageError, RefusedTarget
        It is none.
    """
    if directory is None:
        raise UsageError("assess: give the folder to examine")
    if directory.startswith("faulty:"):
        raise UsageError(ONLY_VERIFY)
    refuse_model([directory])
    if is_database(directory):
        raise UsageError(
            "assess: examines a folder's storage, with a database of its own in it; give a folder; `assay --help` lists"
            " the verbs that take a server"
        )
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise RefusedTarget(
            f"{directory}: is no folder; assess writes files of its own into a folder on the storage; a file or device"
            f" alone is measured by `assay profile {directory}`"
        )
    if not os.path.isdir(directory):
        raise RefusedTarget(f"{directory}: is not a folder; make it with: mkdir -p {directory}")
    return directory


def checked(directory: str) -> CheckDocument | Check:
    """What best practice finds of this host and the folder's storage: the document of `assay check`."""
    from assay.insight.rules.gather import subjects_of
    from assay.insight.rules.outputs import document
    from assay.insight.rules.registry import RULES
    from assay.insight.rules.rule import check

    targets = ["host", directory]
    try:
        subjects, notices = subjects_of(targets)
    except (AssayError, OSError) as error:
        return {"notices": [f"best practice was not checked: {error}"]}
    return document(check(subjects, RULES), targets, notices)


def chosen_parts(only: str | None, skip: str | None) -> list[ExaminationPart]:
    """The parts to run.

    Raises
    ------
    UsageError
        A name is unknown, or nothing is left.
    """
    known = {part.name: part for part in parts_known()}
    for option, text in (("--only", only), ("--skip", skip)):
        unknown = [name for name in (text or "").split(",") if name and name not in known]
        if unknown:
            raise UsageError(f"{option}: unknown part {unknown[0]!r}; known: {', '.join(known)}")
    wanted = only.split(",") if only else known
    left = [part for name, part in known.items() if name in wanted and name not in (skip or "").split(",")]
    if not left:
        raise UsageError("--only and --skip leave no part")
    return left


def takes_direct(directory: str) -> bool:
    """Whether files in a folder can be opened past the page cache."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        # Where unnamed files are not known, the open of the real file will tell.
        return error.errno != 22
    os.close(descriptor)
    return True

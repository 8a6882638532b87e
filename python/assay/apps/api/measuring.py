"""Verbs that measure, from Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from assay.apps.api.calling import Options, PathLike, Texts, finished, run_of
from assay.apps.cli.taken import taking
from assay.record.load import Run
from assay.run.request import TargetRequest
from assay.workloads.plan import AnyPlan, Part
from assay.workloads.registry import DEFAULT_KIND, workload_named

Verb = TypeVar("Verb", bound=Callable[..., Run])

_PARAMETERS = {
    "size": 'Size of each file: `"10G"`.',
    "overwrite": "Existing files or devices that may be written to.",
    "output": "Where the run folder is made.",
    "report": "Whether to write report.html and report.pdf.",
    "options": "Other options of the command, with underscores: `seed=2` (docs/options/{page}.md).",
}
"""Parameters that most verbs have, as their documentation tells them."""

__all__ = ["assess", "contract_test", "dss", "mailbox", "oltp", "profile", "replay", "study", "verify"]


def _shared(page: str) -> Callable[[Verb], Verb]:
    """Add to a verb's documentation those parameters that most verbs have; `page` has the others of the command."""

    def documented(verb: Verb) -> Verb:
        text = inspect.cleandoc(verb.__doc__ or "")
        head, mark, rest = text.partition("\n\nReturns\n")
        known = set(re.findall(r"^\**(\w+)$", head.replace(", ", "\n"), re.MULTILINE))
        # What takes any keyword comes last.
        head, stars, last = head.partition("\n**")
        for name in inspect.signature(verb).parameters:
            if name in _PARAMETERS and name not in known:
                before = "**" if name == "options" else ""
                head += f"\n{before}{name}\n    {_PARAMETERS[name].format(page=page)}"
        verb.__doc__ = head + stars + last + mark + rest
        return verb

    return documented


def _run(words: Texts, arguments: Sequence[PathLike], given: Options, *positional: str) -> Run:
    """Run a verb with what its function was called with; `positional` stands on the command line without an option."""
    named = {name.rstrip("_"): value for name, value in given.items() if name not in (*positional, "options")}
    return run_of(words, arguments, {**named, **cast("Options", given["options"])})


@_shared("assess")
def assess(
    directory: PathLike,
    *,
    quick: bool = False,
    budget: str | None = None,
    only: Texts = (),
    skip: Texts = (),
    limit: Texts = (),
    need: str | None = None,
    size: str | None = None,
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Examine the storage under a folder: I/O of all kinds, integrity, a real database; as `assay assess` does.

    Parameters
    ----------
    directory
        A folder on the storage.
    quick
        Whether to finish in about two minutes.
    budget
        Time, without layout and report: `"1h"`.
    only, skip
        Parts to run, or to leave out: `["log", "database"]`.
    limit
        Limits of every part: `["read.p99<=5ms"]`.
    need
        What must be held: `"5000 iops 8k 70/30 read.p99<2ms"`.

    Returns
    -------
    Run
        The finished run; a notebook shows the first page of its report.

    Raises
    ------
    AssayError
        What the command line would report; what was measured until then is in the run folder.
    """
    return _run(["assess"], [directory], locals(), "directory")


@_shared("verify")
def verify(
    *paths: PathLike,
    duration: str | None = None,
    size: str | None = None,
    overwrite: Texts = (),
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Prove that files, devices or volumes keep what they acknowledged, as `assay verify` does.

    Parameters
    ----------
    *paths
        Files, folders, devices, or `faulty:PATH`.
    duration
        Time under load: `"10m"`.

    Returns
    -------
    Run
        Its `manifest["integrity"]` counts what was found.
    """
    return _run(["verify"], paths, locals(), "paths")


@_shared("contract")
def contract_test(
    contract: PathLike,
    *paths: PathLike,
    quick: bool = False,
    size: str | None = None,
    overwrite: Texts = (),
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Test a target against a contract, clause by clause, as `assay contract test` does.

    Parameters
    ----------
    contract
        A contract in TOML.
    *paths
        Files, folders, devices, `array:` or `model:NAME`.
    quick
        Whether points are short: a first look, no acceptance.

    Returns
    -------
    Run
        Its `manifest["contract"]` has every clause: met, missed (false) or unknown (None), with its measurements.
    """
    return _run(["contract", "test"], [contract, *paths], locals(), "contract", "paths")


@_shared("oltp")
def oltp(
    *targets: PathLike,
    actions: Texts = (),
    workload: str = "tpcc",
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Run transactions on real databases, as `assay oltp` does.

    Parameters
    ----------
    *targets
        Databases: `"embedded:DIR"`, `"postgresql://USER@HOST/DATABASE"`; for `"sql"` the scripts behind them.
    actions
        What to do, in that order: `["load", "run", "check"]`.
    workload
        `"tpcc"`, `"brokerage"` or `"sql"`.

    Returns
    -------
    Run
        The finished run.
    """
    return _run(["oltp", workload], [*targets, *actions], locals(), "targets", "actions", "workload")


@_shared("dss")
def dss(
    *targets: PathLike,
    actions: Texts = (),
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Run decision-support queries on real databases, as `assay dss tpch` does.

    Parameters
    ----------
    *targets
        Databases: `"duckdb:PATH"`, `"embedded:DIR"`, `"postgresql://USER@HOST/DATABASE"`.
    actions
        What to do, in that order: `["load", "run", "check"]`.

    Returns
    -------
    Run
        The finished run.
    """
    return _run(["dss", "tpch"], [*targets, *actions], locals(), "targets", "actions")


@_shared("mailbox")
def mailbox(
    *paths: PathLike,
    mailboxes: int | None = None,
    duration: str | None = None,
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Run mailboxes on databases of checksummed pages, as `assay mailbox` does.

    Parameters
    ----------
    *paths
        Files, folders, devices, or `model:NAME`.
    mailboxes
        Mailboxes of all servers together.
    duration
        Measured time: `"10m"`.

    Returns
    -------
    Run
        The finished run.
    """
    return _run(["mailbox"], paths, locals(), "paths")


@_shared("replay")
def replay(
    trace: PathLike,
    *paths: PathLike,
    with_: Texts = (),
    speed: float | None = None,
    closed: bool = False,
    think: bool = False,
    window: str | None = None,
    search: str | None = None,
    limit: Texts = (),
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Ask storage for the I/Os of a trace again, as `assay replay` does.

    Parameters
    ----------
    trace
        A trace, captured or imported.
    *paths
        Files, folders, devices, `array:` or `model:NAME`.
    with_
        Traces laid over the first, each begun after a time: `["b.trace@30s"]`.
    speed
        Times as fast as the trace was recorded.
    closed, think
        Whether to keep the number of I/Os outstanding, or the pauses after I/Os, in place of the times.
    window
        Part of the trace: `"busiest:10m"`.
    search
        `"speed"` finds the fastest speed within the limits.
    limit
        Limits: `["read.p99<=5ms"]`.

    Returns
    -------
    Run
        The finished run; a point has `replay`, with the times of the recorded load and lateness.
    """
    return _run(["replay"], [trace, *paths], locals(), "trace", "paths")


@_shared("study")
def study(
    name: PathLike,
    target: PathLike | None = None,
    *,
    levels: Texts = (),
    set: Texts = (),
    trace: Texts = (),
    quick: bool = False,
    output: PathLike = "assay-results",
    report: bool = False,
    **options: Any,
) -> Run:
    """Vary one thing at a time and say what it changes, as `assay study run` does.

    Parameters
    ----------
    name
        A study, or the file of one.
    target
        What to run on; the study's own unless given.
    levels
        Only these levels of a factor: `["raid=10,50"]`.
    set
        Options of the target at all levels: `["members=2"]`.
    trace
        Traces that are replayed in place of the study's load: `["orders.trace"]`.
    quick
        Whether to run each level once.

    Returns
    -------
    Run
        Its `manifest["study"]` has what was found.

    Examples
    --------
    >>> import assay, tempfile
    >>> found = assay.study("queue-depth", levels=["depth=1,2"], output=tempfile.mkdtemp()).manifest["study"]
    >>> [result["levels"]["depth"] for result in found["results"]]
    ['1', '2']
    """
    return _run(["study", "run"], [name] if target is None else [name, target], locals(), "name", "target")


@_shared("profile")
def profile(
    *paths: str | Path,
    preset: str | None = None,
    plan: dict[str, Any] | AnyPlan | None = None,
    size: str | int | None = None,
    overwrite: Sequence[str] = (),
    create: bool = False,
    output: str | Path = "assay-results",
    report: bool = False,
    **activity: Any,
) -> Run:
    """Find how much load files or devices hold within limits, as `assay profile` does.

    Parameters
    ----------
    *paths
        Files, folders, devices, or `null:`.
    preset
        Name of a preset; `oltp` unless a plan or an activity is given.
    plan
        A plan, or a dictionary in the form of a plan file.
    size
        Size of each file: `"10G"` or bytes.
    create
        Whether a file may be made whose name has no suffix.
    **activity
        Keys of one activity (`block_bytes`, `read_share`, `queue_depth`, ...), lists for several levels.

    Returns
    -------
    Run
        The finished run; `points`, `answers` and `series` are polars frames.

    Raises
    ------
    AssayError
        What the command line would report; what was measured until then is in the run folder.

    Examples
    --------
    >>> import assay, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> timing = {"warmup_s": 0.1, "duration_s": 0.3}
    >>> plan = {"timing": timing, "activity": [{"queue_depth": [1, 2]}]}
    >>> run = assay.profile("null:?latency=1ms", plan=plan, output=folder)
    >>> run.points["queue_depth"].to_list()
    [1, 2]
    """
    chosen = _plan(preset, plan, activity)
    parts = [Part(name=chosen.name, title=chosen.title or "Custom profile", plan=chosen)]
    request = TargetRequest(
        paths=[str(path) for path in paths],
        size=str(size) if size is not None else chosen.size,
        overwrite=list(overwrite),
        create=create,
    )
    return _measured(request, parts, output, report=report)


def _measured(request: TargetRequest, parts: Sequence[Part[Any]], output: PathLike, *, report: bool) -> Run:
    from assay.apps.cli.running import OutputOptions, start

    with taking(["profile", *request.paths]) as taken:
        start("profile", request, parts, OutputOptions(output=Path(output), report=report, quiet=True))
    return finished(taken)


def _plan(preset: str | None, plan: dict[str, Any] | AnyPlan | None, activity: dict[str, Any]) -> Any:
    if isinstance(plan, AnyPlan):
        return plan
    workload = workload_named(DEFAULT_KIND)
    if plan is not None:
        return workload.load_plan(plan, source="plan")
    if activity and preset is None:
        return workload.load_plan({"activity": [activity]}, source="activity")
    name = preset or workload.preset_default
    base = workload.preset(name).model_dump(mode="json", exclude_unset=True)
    base["activity"] = [{**base["activity"][0], **activity}, *base["activity"][1:]]
    return workload.load_plan(base, source=f"preset {name}")

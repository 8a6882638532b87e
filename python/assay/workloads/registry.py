"""The registry of workloads: one line for each kind, which is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.base.errors import UsageError
from assay.record.figures import Figure, join_figures
from assay.record.shapes.kinds import Shapes, join_shapes
from assay.workloads.declaration import Declaration

if TYPE_CHECKING:
    from assay.workloads.plan import Part
    from assay.workloads.workload import Workload

_DECLARED = {
    one.kind: one
    for one in (
        Declaration("io", "assay.workloads.io.workload:IoWorkload"),
        Declaration("integrity", "assay.workloads.integrity.workload:IntegrityWorkload"),
        Declaration("tpcc", "assay.workloads.tpcc.workload:TpccWorkload"),
        Declaration("brokerage", "assay.workloads.brokerage.workload:BrokerageWorkload"),
        Declaration("sql", "assay.workloads.sql.workload:SqlWorkload"),
        Declaration("sqllog", "assay.workloads.sqllog.workload:StatementsWorkload"),
        Declaration("tpch", "assay.workloads.tpch.workload:TpchWorkload"),
        Declaration("mailbox", "assay.workloads.mailbox.workload:MailboxWorkload"),
        Declaration("replay", "assay.workloads.replay.workload:ReplayWorkload"),
    )
}

_KINDS: dict[str, Workload[Any] | None] = dict.fromkeys(_DECLARED)
"""All kinds in the order they were registered; None for one that was not asked for yet."""

DEFAULT_KIND = "io"
"""The kind of plans and points that name none."""


def _workload(kind: str) -> Workload[Any]:
    """A kind that is known, imported."""
    workload = _KINDS[kind]
    if workload is None:
        workload = _KINDS[kind] = _DECLARED[kind].imported()
    return workload


def _shapes(kind: str) -> Shapes:
    """What a kind adds to points and manifests; it is not imported for that."""
    workload = _KINDS[kind]
    return _DECLARED[kind].shapes() if workload is None else workload.shapes


def register(workload: Workload[Any]) -> None:
    """Make a kind known."""
    _KINDS[workload.kind] = workload
    join_shapes(workload.kind, lambda: workload.shapes)
    join_figures(workload.kind, lambda: workload.figures)


# Each kind tells results which shapes and figures it adds.
for _name, _kind in ((None, DEFAULT_KIND), *((kind, kind) for kind in _DECLARED)):
    join_shapes(_name, partial(_shapes, _kind))
    join_figures(_name, partial(lambda kind: _workload(kind).figures, _kind))


def workloads_of_others(known: Container[str]) -> list[Workload[Any]]:
    """The kinds that were registered and are none of those known."""
    return [_workload(kind) for kind in _KINDS if kind not in known]


def workloads() -> list[Workload[Any]]:
    """All kinds, in the order they were registered."""
    return [_workload(kind) for kind in _KINDS]


def workload_of(plan: object) -> Workload[Any]:
    """The kind that a plan is of.

    Raises
    ------
    LookupError
        No kind has such plans.
    """
    return workload_of_plans(type(plan))


def workload_of_plans(plan_type: type) -> Workload[Any]:
    """The kind whose plans are of a type.

    Raises
    ------
    LookupError
        No kind has such plans.
    """
    for kind, known in _KINDS.items():
        if known is None and not _DECLARED[kind].may_have(plan_type):
            continue
        workload = _workload(kind)
        if issubclass(plan_type, workload.plan_type):
            return workload
    raise LookupError(plan_type.__name__)


def workloads_of(parts: Iterable[Part[Any]]) -> list[Workload[Any]]:
    """The kinds of a run's parts, each once, in the order of the registry."""
    kinds = {workload_of(part.plan).kind for part in parts}
    return [_workload(kind) for kind in _KINDS if kind in kinds]


def workload_known(kind: object) -> Workload[Any] | None:
    """A kind by its name, as a folder has it; None where it is not known, as in one of a newer Assay."""
    return _workload(kind) if isinstance(kind, str) and kind in _KINDS else None


def workload_recorded(record: Mapping[str, Any]) -> Workload[Any] | None:
    """The kind of a point or an answer; None where it is not known."""
    return workload_known((record.get("workload") or {}).get("kind") or DEFAULT_KIND)


def figures_of(record: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Figures of a point or an answer; none where its kind is not known."""
    workload = workload_recorded(record)
    return () if workload is None else workload.figures


def workload_named(kind: str, *, source: str = "kind") -> Workload[Any]:
    """A kind by its name.

    Raises
    ------
    UsageError
        There is no such kind; the nearest is named.
    """
    if kind not in _KINDS:
        from assay.base.reading import nearest

        meant = nearest(kind, _KINDS)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"{source}: unknown kind {kind!r}; {hint}known: {', '.join(_KINDS)}")
    return _workload(kind)


def load_plan_of_any_kind(data: Mapping[str, Any], *, source: str) -> Any:
    """A plan from its TOML or JSON form; its key `kind` says which.

    Raises
    ------
    UsageError
        It is not a plan; see `Workload.load_plan`.
    """
    kind = data.get("kind", DEFAULT_KIND)
    return workload_named(str(kind), source=f"{source}: kind").load_plan(data, source=source)

"""The registry of workloads: one line for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import UsageError
from assay.reading import nearest
from assay.results.figures import Figure, join_figures
from assay.results.shapes.kinds import join_shapes
from assay.workloads.brokerage.workload import BrokerageWorkload
from assay.workloads.integrity.workload import IntegrityWorkload
from assay.workloads.io.workload import IoWorkload
from assay.workloads.mailbox.workload import MailboxWorkload
from assay.workloads.plan import Part
from assay.workloads.tpcc.workload import TpccWorkload
from assay.workloads.tpch.workload import TpchWorkload
from assay.workloads.workload import Workload

_KINDS: dict[str, Workload[Any]] = {}

DEFAULT_KIND = IoWorkload.kind
"""The kind of plans and points that name none."""


def _join(kind: str | None, workload: Workload[Any]) -> None:
    """Tell results of a kind what it adds to them."""
    join_shapes(kind, workload.shapes)
    join_figures(kind, workload.figures)


def register(workload: Workload[Any]) -> None:
    """Make a kind known."""
    _KINDS[workload.kind] = workload
    _join(workload.kind, workload)


for _workload in (
    IoWorkload(),
    IntegrityWorkload(),
    TpccWorkload(),
    BrokerageWorkload(),
    TpchWorkload(),
    MailboxWorkload(),
):
    register(_workload)
_join(None, _KINDS[DEFAULT_KIND])


def workloads() -> list[Workload[Any]]:
    """All kinds, in the order they were registered."""
    return list(_KINDS.values())


def workload_of(plan: object) -> Workload[Any]:
    """The kind that a plan is of.

    Raises
    ------
    LookupError
        No kind has such plans.
    """
    for workload in _KINDS.values():
        if isinstance(plan, workload.plan_type):
            return workload
    raise LookupError(type(plan).__name__)


def workloads_of(parts: Iterable[Part[Any]]) -> list[Workload[Any]]:
    """The kinds of a run's parts, each once, in the order of the registry."""
    kinds = {workload_of(part.plan).kind for part in parts}
    return [workload for workload in _KINDS.values() if workload.kind in kinds]


def workload_known(kind: object) -> Workload[Any] | None:
    """A kind by its name, as a folder has it; None where it is not known, as in one of a newer Assay."""
    return next((workload for workload in _KINDS.values() if workload.kind == kind), None)


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
        meant = nearest(kind, _KINDS)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"{source}: unknown kind {kind!r}; {hint}known: {', '.join(_KINDS)}")
    return _KINDS[kind]


def load_plan_of_any_kind(data: Mapping[str, Any], *, source: str) -> Any:
    """A plan from its TOML or JSON form; its key `kind` says which.

    Raises
    ------
    UsageError
        It is not a plan; see `Workload.load_plan`.
    """
    kind = data.get("kind", DEFAULT_KIND)
    return workload_named(str(kind), source=f"{source}: kind").load_plan(data, source=source)

"""Where a run stands: its figures beside those of each class of storage at the same load, and beside its own history.

A reference counts only at the same load: block size, shares of reads and of random I/Os, and outstanding I/Os. A figure
at another depth would say more of the depth than of the storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.base.tables import Record
from assay.base.units import count_of
from assay.insight.differences import workload_text
from assay.insight.history.trends import RunsHistory
from assay.insight.ranking.references import ReferenceFigure, ReferenceStorage
from assay.record.figures import Figure, value_of
from assay.record.points import CUT_SHORT, load_text
from assay.record.shapes.point import Point
from assay.record.state import state_of
from assay.workloads.registry import figures_of

SHARE_NEAR = 0.02
"""Shares of reads and random I/Os that differ by less are the same load."""
LEVEL = 1.1
"""Ratios of less to both sides are called as much."""


@dataclass(frozen=True)
class ClassStanding:
    """A figure of one load beside those of a class of storage.

    Attributes
    ----------
    title, storage_class, kind
        The class, in words and by its name, and what one of it is called.
    low, high
        Least and largest figure of the class over that of the run.
    storages
        What the figures are of.
    bases, sources, states
        What they are, where they come from, in which state they hold; each once.
    """

    title: str
    storage_class: str
    kind: str
    low: float
    high: float
    storages: tuple[str, ...]
    bases: tuple[str, ...]
    sources: tuple[str, ...]
    states: tuple[str, ...]


@dataclass(frozen=True)
class OwnStanding:
    """A figure of one load among the user's own runs: how many there are, and how many of them are better."""

    runs: int
    better: int
    low: float
    high: float


@dataclass(frozen=True)
class FigureStanding:
    """Where one figure of one load stands."""

    load: str
    state: str
    figure: Figure
    value: float
    classes: tuple[ClassStanding, ...]
    own: OwnStanding | None


def standings(
    points: Sequence[Point], references: Sequence[ReferenceStorage], history: RunsHistory | None, run_id: str
) -> list[FigureStanding]:
    """Where the points of a run stand; figures without a reference and without a history are left out.

    Parameters
    ----------
    history
        The user's own runs; those of the same load on the same target are told beside.
    run_id
        Of the run, to find it in the history.
    """
    found: list[FigureStanding] = []
    for point in points:
        if point.get("ended_by") in CUT_SHORT or (point.get("generator") or {}).get("saturated"):
            continue
        for figure in figures_of(point):
            value = value_of(figure, point)
            if not value:
                continue
            classes = tuple(_classes(point, figure, value, references))
            where = f"{workload_text(point['workload'])}, {load_text(point['load'])}"
            own = None if history is None else _own(history, run_id, where, figure)
            if classes or own is not None:
                found.append(
                    FigureStanding(where, str(state_of(_record(point)).get("name")), figure, value, classes, own)
                )
    return found


def _record(point: Point) -> Record:
    return {**point}


def _classes(
    point: Point, figure: Figure, value: float, references: Sequence[ReferenceStorage]
) -> Iterator[ClassStanding]:
    by_class: dict[str, list[tuple[ReferenceStorage, float]]] = {}
    for storage in references:
        for one in storage.figure:
            if one.metric == figure.name and _same_load(point, one):
                by_class.setdefault(storage.storage_class, []).append((storage, one.value / value))
    for name, known in by_class.items():
        ratios = [ratio for _, ratio in known]
        texts = [
            tuple(dict.fromkeys(getattr(storage, key) for storage, _ in known))
            for key in ("of", "basis", "source", "state")
        ]
        first = known[0][0]
        yield ClassStanding(first.title, name, first.kind, min(ratios), max(ratios), *texts)


def _same_load(point: Point, one: ReferenceFigure) -> bool:
    workload: Record = {**point["workload"]}
    shares = ((workload.get("read_share"), one.read_share), (workload.get("random_share"), one.random_share))
    return (
        workload.get("block_bytes") == one.block_bytes
        and point["load"].get("outstanding") == one.outstanding
        and all(isinstance(mine, int | float) and abs(mine - share) < SHARE_NEAR for mine, share in shares)
    )


def _own(history: RunsHistory, run_id: str, where: str, figure: Figure) -> OwnStanding | None:
    for target in history.targets:
        for load in target.loads:
            if f"{load.workload}, {load.load}" != where:
                continue
            for trend in load.trends:
                names = [run.run_id for run in trend.runs]
                if trend.figure.name != figure.name or trend.end or run_id not in names:
                    continue
                mine = trend.values[names.index(run_id)]
                better = sum(value > mine if figure.better == "higher" else value < mine for value in trend.values)
                return OwnStanding(len(trend.values), better, min(trend.values), max(trend.values))
    return None


def class_words(figure: Figure, one: ClassStanding) -> str:
    """What a class does beside the run, in one sentence with what that rests on."""
    verb = "does" if figure.better == "higher" else "takes"
    many = count_of(len(one.storages), one.kind)
    rests = f"({many}; {', '.join(one.bases)}; {', '.join(one.states)})"
    return f"a {one.title} {verb} {_times(one.low, one.high)} at this load {rests}"


def _times(low: float, high: float) -> str:
    if low >= 1 / LEVEL and high <= LEVEL:
        return "as much"
    ends = list(dict.fromkeys(f"{ratio:.2g}" for ratio in (low, high)))
    return f"{' to '.join(ends)} times that"


def own_words(standing: FigureStanding) -> str:
    """Where the run stands among the user's own runs."""
    own = standing.own
    if own is None:
        return ""
    words = standing.figure.words
    best = "the best" if not own.better else "the worst" if own.better == own.runs - 1 else "counted from the best"
    place = f"number {own.better + 1} of {own.runs}"
    return f"{place} own runs, {best}; they range from {words(own.low)} to {words(own.high)}"

"""Figures: what a point says in one number, defined once for all who ask for it.

Limits, verdicts, comparisons, studies, searches, reports and exports find a workload's figures in its registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from assay.base.tables import Record
from assay.record.histograms import histogram_of

if TYPE_CHECKING:
    from assay.record.shapes.point import Point


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
STATISTICS = ("mean", *PERCENTILES, "max")
"""Statistics of a latency, as limits name them."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a workload's points.

    Attributes
    ----------
    name
        As documents name it, with its unit last where it has one.
    unit
        Base unit of its values: `iops`, `bytes_per_s`, `ns`, `share`, `count`, `nopm`, ...
    title
        As tables head it.
    better
        Which way is better; None where neither is.
    value
        Its value in a point; None where nothing was measured.
    words
        A value with its unit, for people.
    batches
        The same over equal parts of the window, from which intervals are computed; empty where there are none.
    noun
        As sentences name it; the title where empty.
    full
        As captions and axes name it; the noun where empty.
    in_answers
        Whether the ends of answers show it. The first figure of a kind that searches is one; the others follow it, as
        bytes follow I/Os: their interval is that of the first, scaled.
    at_ends
        Whether the ends of answers show it besides, without an interval: what users of such a load wait.
    compared
        Whether comparisons and tables of levels show it.
    of_generator
        Whether it says how Assay's load generator did, and nothing of the target: only a gate that names it judges it,
        and that the generator was the bottleneck is no reason against it.
    study
        As studies name it; empty where they do not compare it.
    limit
        As limits name it; empty where none bounds it.
    scopes
        What a limit judges in a point, each on its own: scope, value, and for a latency the record that it is of. It
        gets the role that the limit names, if any. Without it a limit judges `value`, with the scope `all`.
    record, statistic
        For a latency, the record that it is a statistic of, with `count`, `latency_ns` and `histogram`, and which one.
    follows
        Name of the figure that this one follows from at a point's load, so that both are one comparison; None where it
        says something of its own.
    told
        What the verdict says of a point by this figure, if anything.
    counts_errors
        Whether it counts the errors of a point: where a limit bounds it, errors alone fail no load of a search.
    failed, nothing
        For the first figure of a kind, what errors of its points are, and what is wrong where it has no value.
    """

    name: str
    unit: str
    title: str
    better: Literal["higher", "lower"] | None
    value: Callable[[Point], float | None]
    words: Callable[[float], str]
    batches: Callable[[Point], Sequence[float]] = lambda _point: ()
    noun: str = ""
    full: str = ""
    in_answers: bool = False
    at_ends: bool = False
    compared: bool = True
    of_generator: bool = False
    study: str = ""
    limit: str = ""
    scopes: Callable[[Point, str | None], Iterable[tuple[str, float | None, Record | None]]] | None = None
    record: Callable[[Point], Record | None] = lambda _point: None
    statistic: str = ""
    follows: Callable[[Point], str | None] = lambda _point: None
    told: Callable[[Point], str | None] = lambda _point: None
    counts_errors: bool = False
    failed: str = "errors"
    nothing: str = "nothing was measured"


def value_of(figure: Figure, point: Mapping[str, Any]) -> float | None:
    """A figure of a point that may lack anything; None where it lacks what the figure is read from."""
    try:
        return figure.value(cast("Point", point))
    except (LookupError, TypeError):
        return None


_KINDS: dict[str | None, Callable[[], tuple[Figure, ...]]] = {}


def join_figures(kind: str | None, figures: Callable[[], tuple[Figure, ...]]) -> None:
    """Give a kind's figures to data frames and exports when they are needed; None stands for points without a kind."""
    _KINDS[kind] = figures


def answer_values(point: Point) -> dict[str, float | None]:
    """Figures that answers of any kind have, by name, as a point has them; None where it is of another kind."""
    own = _KINDS.get(point.get("workload", {}).get("kind"), tuple)()
    names = [figure.name for figures in _KINDS.values() for figure in figures() if figure.in_answers]
    return dict.fromkeys(names) | {figure.name: figure.value(point) for figure in own if figure.in_answers}


def end_figures(figures: Iterable[Figure], points: Sequence[Point]) -> dict[str, float | None]:
    """What the end of an answer says: figures of all points at its load, by name, over all its points.

    Parameters
    ----------
    figures
        Those of the kind; the ones that are in answers or at their ends count.
    points
        All points at the load. One in which nothing was measured counts for nothing.
    """
    held = {figure.name: _mean(figure, points) or 0.0 for figure in figures if figure.in_answers}
    return held | {figure.name: pooled(figure, points) for figure in figures if figure.at_ends}


def pooled(figure: Figure, points: Sequence[Point]) -> float | None:
    """A figure over repeats of a point; None where nothing was measured.

    Means of latencies are weighted by their I/Os, percentiles are those of the merged histograms, all else is averaged.

    Raises
    ------
    RunFolderError
        A histogram is damaged.
    """
    if len(points) > 1 and figure.statistic == "mean":
        timed = [(record, value) for point in points if (record := figure.record(point))
                 and (value := figure.value(point)) is not None]  # fmt: skip
        count = sum(record["count"] for record, _ in timed)
        return sum(value * record["count"] for record, value in timed) / count if count else None
    if len(points) > 1 and figure.statistic in PERCENTILES:
        histograms = [found for point in points if (found := histogram_of(figure.record(point))) is not None]
        if not histograms:
            return None
        merged, *others = histograms
        for other in others:
            merged.merge(other)
        return float(merged.percentile(100 * PERCENTILES[figure.statistic]))
    return _mean(figure, points)


def _mean(figure: Figure, points: Sequence[Point]) -> float | None:
    values = [value for point in points if (value := figure.value(point)) is not None]
    return sum(values) / len(values) if values else None

"""Two or more runs side by side: what changed, by how much, and how sure that is.

Points of the runs are matched by workload and load, and every other run is compared with the first. A difference is a
ratio, B over A less 1, worked out on logarithms so that twice as fast and half as fast are equally far from 0. Its 95 %
interval comes from the best evidence there is:

- *repeats*: the same point measured several times on a side. Student's t on the logarithms, with the variance between
  repeats pooled over both sides (a side with one repeat borrows the other's).
- *batches*: one point each. Welch's t (B. L. Welch, Biometrika 34, 1947) on the batches' mean, with fewer effective
  samples because neighbouring batches resemble each other: n (1 - r) / (1 + r) for a first-order process (F. W. Zwiers
  and H. von Storch, J. Climate 8, 1995), r corrected for its bias in short series (M. G. Kendall, Biometrika 41, 1954),
  or what the initial monotone sequence leaves (C. J. Geyer, Statistical Science 7, 1992), whichever is fewer.
- *bootstrap*: percentiles of one point each. The p99 of n resampled I/Os is the quantile at a beta distributed rank
  (order statistics: H. A. David, 1970); n is the number of I/Os over the design effect (L. Kish, 1965) that the
  batches show.
- else no interval.

Batches see only what varies within a run, and no drift that is slower than the run or drowned in its noise. What varies
from run to run is often more, and only repeats see it: without them *changed* says that these two runs differ.

*Changed* means that the interval leaves out 0; *not changed* that it lies within the smallest difference worth
noticing; *cannot tell* everything else. One in twenty of many comparisons would seem changed by chance, so the overall
sentence counts those that stand S. Holm's correction (Scand. J. Statistics 6, 1979).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.record.figures import PERCENTILES, Figure, pooled
from assay.record.histograms import histogram_of
from assay.record.intervals import (
    BATCHES_MIN,
    ERROR_SHARE,
    Estimate,
    Method,
    by_answer_intervals,
    by_batches,
    by_bootstrap,
    by_repeats,
    relative_error,
)
from assay.record.points import load_text
from assay.record.shapes.point import Point
from assay.workloads.registry import figures_of

Status = Literal["changed", "not changed", "cannot tell"]

LOGARITHM_MAX = 700.0
"""Largest logarithm of a ratio; the exponential of a larger one is no number."""
VALUE_MIN = 1e-9
"""What is less counts as nothing: no measurement comes near it."""

SMALLEST_SHARE = 0.05
"""Smallest relative difference worth noticing, unless the caller states another."""


class RunLike(Protocol):
    """A run: its manifest and its points (docs/results.md)."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Content of `run.json`."""

    @property
    def points(self) -> Sequence[Point]:
        """The points, whole."""


@dataclass(frozen=True)
class ComparedRun:
    """The plainest `RunLike`."""

    manifest: Mapping[str, Any]
    points: Sequence[Point]


@dataclass(frozen=True)
class FigureDifference:
    """One figure of one matched point, in two runs.

    `relative` and `interval_95` are B / A - 1. `p` is the chance of such a difference without any change, `stands`
    whether it is still counted when all comparisons are taken together. `better` is None unless changed.
    """

    workload: str
    load: str
    figure: Figure
    run: int
    a: float | None
    b: float | None
    relative: float | None
    interval_95: tuple[float, float] | None
    p: float | None
    method: Method
    status: Status
    better: bool | None
    reason: str = ""
    stands: bool = False
    repeats: tuple[int, int] = (1, 1)

    @property
    def metric(self) -> str:
        """Name of the figure."""
        return self.figure.name

    def to_dict(self) -> dict[str, Any]:
        """The row as the document has it."""
        return _without_figure(self) | {"metric": self.metric}


@dataclass(frozen=True)
class AnswerDifference:
    """The most within limits, the knee or the edge, in two runs; None where no load met the limits."""

    workload: str
    axis: str
    end: str
    a_load: float | None
    b_load: float | None
    figure: Figure
    run: int
    a: float | None
    b: float | None
    relative: float | None
    interval_95: tuple[float, float] | None
    method: Method
    status: Status
    better: bool | None
    reason: str = ""

    @property
    def load(self) -> str:
        """The axis with the load of both."""
        loads = ["-" if load is None else f"{load:,.4g}" for load in (self.a_load, self.b_load)]
        return f"{self.axis} {' and '.join(dict.fromkeys(loads))}"

    def to_dict(self) -> dict[str, Any]:
        """The row as the document has it: values carry the name of their figure."""
        name, row = self.figure.name, _without_figure(self)
        return row | {"metric": name, f"a_{name}": row.pop("a"), f"b_{name}": row.pop("b")}


def _without_figure(row: FigureDifference | AnswerDifference) -> dict[str, Any]:
    return {of.name: getattr(row, of.name) for of in fields(row) if of.name != "figure"}


_AnyDifference = FigureDifference | AnswerDifference


@dataclass(frozen=True)
class RunComparison:
    """Everything `compare_runs` found; `runs` are the ids, the first of which is A."""

    runs: tuple[str, ...]
    smallest_share: float
    differences: tuple[FigureDifference, ...]
    answers: tuple[AnswerDifference, ...]
    unmatched: tuple[str, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """The result in one sentence, with chance findings taken out by Holm's correction."""
        if not self.differences:
            return "Nothing can be compared: no workload was measured at the same load in both."
        count = {status: sum(row.status == status for row in self.differences) for status in _STATUSES}
        standing = [row for row in self.differences if row.stands]
        told = (
            f"Of {len(self.differences)} comparisons {count['changed']} changed, {count['not changed']} show no change"
        )
        told += f" of {_percent(self.smallest_share)} or more, and {count['cannot tell']} cannot tell"
        if not standing:
            return f"{told}; taken together no change stands out from chance (Holm, 5 %)."
        largest = max(standing, key=lambda row: abs(math.log1p(row.relative or 0.0)))
        where = f"{largest.figure.title} of {largest.workload} at {largest.load} in {run_letter(largest.run)}"
        stand = f"{len(standing)} stand{'s' if len(standing) == 1 else ''} out from chance (Holm, 5 %)"
        return f"{told}; taken together {stand}, most of all {where}: {signed_percent(largest.relative)}."

    def rows(self) -> list[tuple[str, ...]]:
        """Rows for a table, in the columns of `COLUMNS`."""
        return [self._row(row.load, row.figure.title, row) for row in self.differences]

    def answer_rows(self) -> list[tuple[str, ...]]:
        """Rows of the answers for a table, in the columns of `COLUMNS`."""
        return [self._row(row.load, f"{row.figure.title} {_END_WORDS[row.end]}", row) for row in self.answers]

    def _row(self, load: str, title: str, row: _AnyDifference) -> tuple[str, ...]:
        # With more than two runs the column B holds several, so each value says whose it is.
        of = f" ({run_letter(row.run)})" if len(self.runs) > 2 else ""
        a, b = ("-" if value is None else row.figure.words(value) for value in (row.a, row.b))
        texts = (signed_percent(row.relative), _interval_text(row.interval_95), _status_text(row))
        return (row.workload, load, title, a, b + of, *texts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as one JSON document."""
        document = {of.name: getattr(self, of.name) for of in fields(self)} | {"sentence": self.sentence}
        document |= {name: [row.to_dict() for row in document[name]] for name in ("differences", "answers")}
        plain: dict[str, Any] = json.loads(json.dumps(document))
        return plain


COLUMNS = ("workload", "load", "metric", "A", "B", "difference", "95 % interval", "verdict")
_END_WORDS = {"max": "within limits", "knee": "at the knee", "edge": "at the edge"}
"""Loads of an answer that are compared, and how rows name them."""
_STATUSES: tuple[Status, ...] = ("changed", "not changed", "cannot tell")


def run_letter(index: int) -> str:
    """Return A for the first run, B for the second; R27 and on when letters run out."""
    return chr(ord("A") + index) if index < 26 else f"R{index + 1}"


def signed_percent(share: float | None) -> str:
    """Relative difference for people.

    Examples
    --------
    >>> signed_percent(0.123), signed_percent(-0.0004), signed_percent(None)
    ('+12.3 %', '+0.0 %', '-')
    """
    # Adding 0.0 turns the -0.0 that rounding may leave into 0.0.
    return "-" if share is None else f"{round(100 * share, 1) + 0.0:+.1f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _interval_text(interval: tuple[float, float] | None) -> str:
    return "no interval" if interval is None else f"{signed_percent(interval[0])} to {signed_percent(interval[1])}"


def _status_text(row: _AnyDifference) -> str:
    direction = {True: ", better", False: ", worse", None: ""}[row.better]
    return f"{row.status}{direction}" + (f": {row.reason}" if row.reason else "")


def compare_runs(runs: Sequence[RunLike], *, smallest_share: float = SMALLEST_SHARE) -> RunComparison:
    """Compare every run with the first.

    Parameters
    ----------
    runs
        Two runs or more; the first is A.
    smallest_share
        Smallest relative difference worth noticing, above 0 and below 1.

    Raises
    ------
    UsageError
        Fewer than two runs, or the smallest difference is outside 0 to 1.
    """
    if len(runs) < 2:
        raise UsageError(f"compare: {len(runs)} run given; accepted: two or more run folders")
    if not 0 < smallest_share < 1:
        raise UsageError(f"compare: smallest difference {smallest_share} is outside 0 to 1 (0 % to 100 %)")
    unmatched: list[str] = []
    pools = [_pools(run.points, run_letter(at), unmatched) for at, run in enumerate(runs)]
    differences: list[FigureDifference] = []
    answers: list[AnswerDifference] = []
    for at in range(1, len(runs)):
        for key, points in pools[0].items():
            if key in pools[at]:
                differences += _compare_point(points, pools[at][key], at, smallest_share)
        answers += _compare_answers(runs[0], runs[at], at, smallest_share)
        unmatched += _only_in(pools[0], pools[at], run_letter(0), run_letter(at))
        unmatched += _only_in(pools[at], pools[0], run_letter(at), run_letter(0))
    names = tuple(str(run.manifest.get("run_id") or run_letter(at)) for at, run in enumerate(runs))
    return RunComparison(names, smallest_share, _holm(differences), tuple(answers), tuple(unmatched))


Points = list[Point]


def _pools(points: Iterable[Point], letter: str, left_out: list[str]) -> dict[str, Points]:
    """Points of one workload at one load, repeats together; what did not end in order is left out and told."""
    pools: dict[str, Points] = {}
    for point in points:
        if point.get("ended_by") in ("interrupted", "not-answering"):
            left_out.append(
                f"{_workload_text(point['workload'])}, {load_text(point['load'])}: {point['ended_by']} in {letter}"
            )
        else:
            key = f"{_facts(point['workload'])} {json.dumps(point['load'], sort_keys=True)}"
            pools.setdefault(key, []).append(point)
    return pools


def _facts(workload: Mapping[str, Any]) -> str:
    """Return what makes a workload the same one: all its facts but its name, which is a label."""
    return json.dumps({key: value for key, value in workload.items() if key != "name"}, sort_keys=True)


def _only_in(one: Mapping[str, Points], other: Mapping[str, Points], letter: str, missing: str) -> list[str]:
    alone = [points[0] for key, points in one.items() if key not in other]
    return [
        f"{_workload_text(point['workload'])}, {load_text(point['load'])}: in {letter}, not in {missing}"
        for point in alone
    ]


def _workload_text(workload: Mapping[str, Any]) -> str:
    if workload.get("name"):
        return str(workload["name"])
    block_bytes = workload.get("block_bytes")
    size = format_bytes(block_bytes) if isinstance(block_bytes, int) else "mixed blocks"
    reads, random = (_percent(workload.get(key) or 0) for key in ("read_share", "random_share"))
    return f"{size}, {reads} read, {random} random"


def _compare_point(a: Points, b: Points, run: int, smallest_share: float) -> list[FigureDifference]:
    return [
        _compare_figure(figure, a, b, run, smallest_share)
        for figure in figures_of(a[0])
        if figure.compared and any(figure.value(point) is not None for point in (*a, *b))
    ]


def _compare_figure(figure: Figure, a: Points, b: Points, run: int, smallest_share: float) -> FigureDifference:
    values = [_pooled_value(figure, side) for side in (a, b)]
    saturated = [
        run_letter(at)
        for at, side in ((0, a), (run, b))
        if any((p.get("generator") or {}).get("saturated") for p in side)
    ]
    relative, estimate, reason = None, None, ""
    if not values[0] or not values[1]:
        reason = f"nothing measured in {run_letter(run) if values[0] else run_letter(0)}"
    else:
        relative = values[1] / values[0] - 1
        estimate, reason = _estimate(figure, a, b, math.log(values[1] / values[0]))
    interval, status = _judge(estimate, smallest_share)
    if saturated and not _are_same(a, b):
        status, reason = "cannot tell", f"the generator was the bottleneck in {' and '.join(saturated)}"
    return FigureDifference(
        workload=_workload_text(a[0]["workload"]),
        load=load_text(a[0]["load"]),
        figure=figure,
        run=run,
        a=values[0],
        b=values[1],
        relative=relative,
        interval_95=interval,
        p=estimate.p if estimate and not reason else None,
        method=estimate.method if estimate else "none",
        status=status,
        better=_is_better(figure, relative) if status == "changed" else None,
        reason=reason,
        repeats=(len(a), len(b)),
    )


def _is_better(figure: Figure, change: float | None) -> bool | None:
    """Whether a change is one for the better; None where neither way is."""
    return None if figure.better is None else ((change or 0) > 0) == (figure.better == "higher")


def _judge(estimate: Estimate | None, smallest_share: float) -> tuple[tuple[float, float] | None, Status]:
    if estimate is None:
        return None, "cannot tell"
    low, high = (math.expm1(min(edge, LOGARITHM_MAX)) for edge in (estimate.low, estimate.high))
    if low > 0 or high < 0:
        return (low, high), "changed"
    return (low, high), "not changed" if -smallest_share <= low and high <= smallest_share else "cannot tell"


def _pooled_value(figure: Figure, points: Points) -> float | None:
    value = pooled(figure, points)
    return value if value is not None and value >= VALUE_MIN else None


def _estimate(figure: Figure, a: Points, b: Points, center: float) -> tuple[Estimate | None, str]:
    measured = [[point for point in side if figure.value(point) is not None] for side in (a, b)]
    if _are_same(a, b):
        # One measurement given twice differs from itself by nothing, whatever its noise.
        return Estimate(0.0, 0.0, 1.0, "same measurements"), ""
    if any(len(side) > 1 for side in measured):
        repeats = [[_pooled_value(figure, [point]) for point in side] for side in measured]
        return by_repeats(repeats[0], repeats[1], center)
    one, other = (side[0] for side in measured)
    spreads = [relative_error(figure.batches(point)) for point in (one, other)]
    if spreads[0] is None or spreads[1] is None:
        return None, f"fewer than {BATCHES_MIN} batches and no repeats"
    if figure.statistic not in PERCENTILES:
        return by_batches(spreads[0], spreads[1], center), ""
    histograms = [histogram_of(figure.record(point)) for point in (one, other)]
    if histograms[0] is None or histograms[1] is None:
        return None, "no histogram"
    # The batches are those of the mean: they tell the design effect.
    errors = spreads[0][0], spreads[1][0]
    return by_bootstrap(histograms[0].bins(), histograms[1].bins(), errors, center, PERCENTILES[figure.statistic])


_OF_A_RUN = frozenset(
    {"id", "key", "part", "repeat", "purpose", "started_utc_ns", "measured_from_utc_ns", "measured_to_utc_ns"}
)
"""Keys that say where and when a point was measured, not what came of it."""


def _are_same(a: Points, b: Points) -> bool:
    """Whether points hold the same measurements, as those of two runs on a virtual clock do."""
    one, other = (
        [{key: value for key, value in point.items() if key not in _OF_A_RUN} for point in side] for side in (a, b)
    )
    return one == other


def _holm(differences: Sequence[FigureDifference]) -> tuple[FigureDifference, ...]:
    """Mark the differences that stand when all are taken together: p_i <= 5 % / (m - i), in rising order of p."""
    tested = sorted(
        (at for at, row in enumerate(differences) if row.p is not None), key=lambda at: differences[at].p or 0
    )
    standing = set()
    for rank, at in enumerate(tested):
        if (differences[at].p or 0.0) > ERROR_SHARE / (len(tested) - rank):
            break
        standing.add(at)
    return tuple(replace(row, stands=at in standing) for at, row in enumerate(differences))


def _compare_answers(a: RunLike, b: RunLike, run: int, smallest_share: float) -> list[AnswerDifference]:
    others = {_answer_key(answer): answer for answer in b.manifest.get("answers") or []}
    return [
        _compare_answer(figures[0], end, answer, others[key], run, smallest_share)
        for answer in a.manifest.get("answers") or []
        if (key := _answer_key(answer)) in others and (figures := figures_of(answer))
        # Runs of an older Assay know the most alone.
        for end in _END_WORDS
        if end == "max" or (answer.get(end) and others[key].get(end))
    ]


def _answer_key(answer: Mapping[str, Any]) -> str:
    return f"{_facts(answer['workload'])} {answer['axis']}"


def _compare_answer(
    figure: Figure, end: str, a: Mapping[str, Any], b: Mapping[str, Any], run: int, smallest_share: float
) -> AnswerDifference:
    values = [_held(figure, answer, end) for answer in (a, b)]
    loads = [(answer.get(end) or {}).get(answer["axis"]) for answer in (a, b)]
    measured = all(value is not None and value >= VALUE_MIN for value in values)
    relative = values[1] / values[0] - 1 if measured and values[0] and values[1] else None
    estimate = _answer_estimate(figure, end, a, b) if relative is not None else None
    interval, status = _judge(estimate, smallest_share)
    reason = _answer_caveat(a, b, run)
    if relative is None:
        held = [bool(value) for value in values]
        status = "not changed" if held[0] == held[1] else "changed"
        reason = "no load met the limits" + (f" in {run_letter(run if held[0] else 0)}" if any(held) else "")
    elif estimate is None:
        reason = "the search gave no interval"
    return AnswerDifference(
        workload=_workload_text(a["workload"]),
        axis=str(a["axis"]),
        end=end,
        a_load=loads[0],
        b_load=loads[1],
        figure=figure,
        run=run,
        a=values[0],
        b=values[1],
        relative=relative,
        interval_95=interval,
        method=estimate.method if estimate else "none",
        status=status,
        better=_is_better(figure, (values[1] or 0) - (values[0] or 0)) if status == "changed" else None,
        reason=reason,
    )


def _held(figure: Figure, answer: Mapping[str, Any], end: str) -> float | None:
    """What an answer holds at one of its loads; None where it holds nothing."""
    found = (answer.get(end) or {}).get(figure.name)
    return None if found is None else float(found)


def _answer_estimate(figure: Figure, end: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Estimate | None:
    if a == b:
        return Estimate(0.0, 0.0, 1.0, "same measurements")
    a_interval, b_interval = ((answer if end == "max" else answer[end]).get("interval_95") for answer in (a, b))
    if not a_interval or not b_interval or min(*a_interval, *b_interval) < VALUE_MIN:
        return None
    return by_answer_intervals(a[end][figure.name], b[end][figure.name], a_interval, b_interval)


def _answer_caveat(a: Mapping[str, Any], b: Mapping[str, Any], run: int) -> str:
    cut = [run_letter(at) for at, answer in ((0, a), (run, b)) if answer.get("limited_by") == "axis end"]
    return f"the largest load of the plan passed in {' and '.join(cut)}" if cut else ""

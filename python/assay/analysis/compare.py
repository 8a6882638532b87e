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
- *bootstrap*: p99 of one point each. The p99 of n resampled I/Os is the quantile at a beta distributed rank (order
  statistics: H. A. David, 1970); n is the number of I/Os over the design effect (L. Kish, 1965) that the batches show.
- else no interval.

Batches see only what varies within a run, and no drift that is slower than the run or drowned in its noise. What varies
from run to run is often more, and only repeats see it: without them *changed* says that these two runs differ.

*Changed* means that the interval leaves out 0; *not changed* that it lies within the smallest difference worth
noticing; *cannot tell* everything else. Of many comparisons one in twenty would seem changed by chance, so the overall
sentence counts those that stand S. Holm's correction (Scand. J. Statistics 6, 1979).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from assay.errors import UsageError
from assay.results.histograms import histogram_of
from assay.results.intervals import (
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
from assay.units import count_of, format_bytes, format_iops, format_latency, format_throughput

Status = Literal["changed", "not changed", "cannot tell"]

LOGARITHM_MOST = 700.0
"""Of a ratio; the exponential of a larger one is no number."""
VALUE_LEAST = 1e-9
"""What is less counts as nothing: no measurement comes near it."""

SMALLEST_SHARE = 0.05
"""Smallest relative difference worth noticing, unless the caller states another."""


class RunLike(Protocol):
    """A run: its manifest and its points (docs/results.md)."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Content of `run.json`."""

    @property
    def points(self) -> Sequence[Mapping[str, Any]]:
        """The points, whole."""


@dataclass(frozen=True)
class ComparedRun:
    """The plainest `RunLike`."""

    manifest: Mapping[str, Any]
    points: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Metric:
    """One measured quantity: where it is in a point, and which way is better."""

    name: str
    title: str
    direction: str
    kind: Literal["iops", "bytes_per_s", "mean", "p99"]

    @property
    def more_is_better(self) -> bool:
        """True of rates, false of latencies."""
        return self.kind in ("iops", "bytes_per_s")

    def format(self, value: float | None) -> str:
        """Value with its unit, for people."""
        if value is None:
            return "-"
        if self.kind == "iops":
            return format_iops(value)
        return format_throughput(value) if self.kind == "bytes_per_s" else format_latency(value)


METRICS = (
    Metric("iops", "IOPS", "total", "iops"),
    Metric("bytes_per_s", "throughput", "total", "bytes_per_s"),
    Metric("read_latency_mean_ns", "read mean", "read", "mean"),
    Metric("read_latency_p99_ns", "read p99", "read", "p99"),
    Metric("write_latency_mean_ns", "write mean", "write", "mean"),
    Metric("write_latency_p99_ns", "write p99", "write", "p99"),
)
_METRIC = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True)
class Difference:
    """One metric of one matched point, in two runs.

    `relative` and `interval_95` are B / A - 1. `p` is the chance of such a difference without any change, `stands`
    whether it is still counted when all comparisons are taken together. `better` is None unless changed.
    """

    workload: str
    load: str
    metric: str
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


@dataclass(frozen=True)
class AnswerDifference:
    """The largest IOPS within limits, in two runs; None where no load met the limits."""

    workload: str
    axis: str
    run: int
    a_iops: float | None
    b_iops: float | None
    relative: float | None
    interval_95: tuple[float, float] | None
    method: Method
    status: Status
    better: bool | None
    reason: str = ""


_AnyDifference = Difference | AnswerDifference


@dataclass(frozen=True)
class Comparison:
    """Everything `compare_runs` found; `runs` are the ids, the first of which is A."""

    runs: tuple[str, ...]
    smallest_share: float
    differences: tuple[Difference, ...]
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
        where = f"{_METRIC[largest.metric].title} of {largest.workload} at {largest.load} in {run_letter(largest.run)}"
        stand = f"{len(standing)} stand{'s' if len(standing) == 1 else ''} out from chance (Holm, 5 %)"
        return f"{told}; taken together {stand}, most of all {where}: {signed_percent(largest.relative)}."

    def rows(self) -> list[tuple[str, ...]]:
        """Rows for a table, in the columns of `COLUMNS`."""
        return [self._row(row.workload, row.load, _METRIC[row.metric], row.a, row.b, row) for row in self.differences]

    def answer_rows(self) -> list[tuple[str, ...]]:
        """Rows of the answers for a table, in the columns of `COLUMNS`."""
        within = replace(_METRIC["iops"], title="IOPS within limits")
        return [self._row(row.workload, row.axis, within, row.a_iops, row.b_iops, row) for row in self.answers]

    def _row(
        self, workload: str, load: str, metric: Metric, a: float | None, b: float | None, row: _AnyDifference
    ) -> tuple[str, ...]:
        # With more than two runs the column B holds several, so each value says whose it is.
        of = f" ({run_letter(row.run)})" if len(self.runs) > 2 else ""
        texts = (signed_percent(row.relative), _interval_text(row.interval_95), _status_text(row))
        return (workload, load, metric.title, metric.format(a), metric.format(b) + of, *texts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as one JSON document."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return document | {"sentence": self.sentence}


COLUMNS = ("workload", "load", "metric", "A", "B", "difference", "95 % interval", "verdict")
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


def compare_runs(runs: Sequence[RunLike], *, smallest_share: float = SMALLEST_SHARE) -> Comparison:
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
    differences: list[Difference] = []
    answers: list[AnswerDifference] = []
    for at in range(1, len(runs)):
        for key, points in pools[0].items():
            if key in pools[at]:
                differences += _compare_point(points, pools[at][key], at, smallest_share)
        answers += _compare_answers(runs[0], runs[at], at, smallest_share)
        unmatched += _only_in(pools[0], pools[at], run_letter(0), run_letter(at))
        unmatched += _only_in(pools[at], pools[0], run_letter(at), run_letter(0))
    names = tuple(str(run.manifest.get("run_id") or run_letter(at)) for at, run in enumerate(runs))
    return Comparison(names, smallest_share, _holm(differences), tuple(answers), tuple(unmatched))


Points = list[Mapping[str, Any]]


def _pools(points: Iterable[Mapping[str, Any]], letter: str, left_out: list[str]) -> dict[str, Points]:
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


def load_text(load: Mapping[str, Any]) -> str:
    """Load of a point in words.

    Examples
    --------
    >>> load_text({"outstanding": 96, "queue_depth": 8, "workers": 12}), load_text({"rate": 5000.0})
    ('96 outstanding', '5,000/s')
    """
    if load.get("rate") is not None:
        return f"{load['rate']:,.0f}/s"
    if load.get("users") is not None:
        return count_of(load["users"], "user")
    return str(load.get("kind") or "-") if load.get("outstanding") is None else f"{load['outstanding']} outstanding"


def _compare_point(a: Points, b: Points, run: int, smallest_share: float) -> list[Difference]:
    rows = []
    for metric in METRICS:
        present = [[point for point in side if point.get(metric.direction)] for side in (a, b)]
        if present[0] or present[1]:
            rows.append(_compare_metric(metric, present[0], present[1], a[0], run, smallest_share))
    return rows


def _compare_metric(
    metric: Metric, a: Points, b: Points, described: Mapping[str, Any], run: int, smallest_share: float
) -> Difference:
    values = [_pooled_value(metric, side) for side in (a, b)]
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
        estimate, reason = _estimate(metric, a, b, math.log(values[1] / values[0]))
    interval, status = _judge(estimate, smallest_share)
    if saturated:
        status, reason = "cannot tell", f"the generator was the bottleneck in {' and '.join(saturated)}"
    changed = status == "changed" and relative is not None
    return Difference(
        workload=_workload_text(described["workload"]),
        load=load_text(described["load"]),
        metric=metric.name,
        run=run,
        a=values[0],
        b=values[1],
        relative=relative,
        interval_95=interval,
        p=estimate.p if estimate and not saturated else None,
        method=estimate.method if estimate else "none",
        status=status,
        better=((relative or 0) > 0) == metric.more_is_better if changed else None,
        reason=reason,
        repeats=(len(a), len(b)),
    )


def _judge(estimate: Estimate | None, smallest_share: float) -> tuple[tuple[float, float] | None, Status]:
    if estimate is None:
        return None, "cannot tell"
    low, high = (math.expm1(min(edge, LOGARITHM_MOST)) for edge in (estimate.low, estimate.high))
    if low > 0 or high < 0:
        return (low, high), "changed"
    return (low, high), "not changed" if -smallest_share <= low and high <= smallest_share else "cannot tell"


def _pooled_value(metric: Metric, points: Points) -> float | None:
    """Value over all repeats: rates averaged, means weighted by their I/Os, p99 of the merged histograms."""
    value = _pooled([point[metric.direction] for point in points], metric)
    return value if value is not None and value >= VALUE_LEAST else None


def _pooled(directions: Sequence[Mapping[str, Any]], metric: Metric) -> float | None:
    if not directions:
        return None
    if metric.more_is_better:
        return float(sum(direction[metric.kind] for direction in directions) / len(directions))
    if metric.kind == "mean":
        timed = [direction for direction in directions if direction["latency_ns"].get("mean") is not None]
        count = sum(direction["count"] for direction in timed)
        total = sum(direction["latency_ns"]["mean"] * direction["count"] for direction in timed)
        return float(total / count) if count else None
    if len(directions) == 1:
        p99_ns = directions[0]["latency_ns"].get("p99")
        return None if p99_ns is None else float(p99_ns)
    histograms = [histogram for direction in directions if (histogram := histogram_of(direction)) is not None]
    if not histograms:
        return None
    merged, *others = histograms
    for other in others:
        merged.merge(other)
    return float(merged.percentile(99.0))


def _estimate(metric: Metric, a: Points, b: Points, center: float) -> tuple[Estimate | None, str]:
    if a == b:
        # One measurement given twice differs from itself by nothing, whatever its noise.
        return Estimate(0.0, 0.0, 1.0, "same measurements"), ""
    if len(a) > 1 or len(b) > 1:
        repeats = [[_pooled_value(metric, [point]) for point in side] for side in (a, b)]
        return by_repeats(repeats[0], repeats[1], center)
    spreads = [_batch_spread(metric, side[0]) for side in (a, b)]
    if spreads[0] is None or spreads[1] is None:
        return None, f"fewer than {BATCHES_MIN} batches and no repeats"
    if metric.kind == "p99":
        histograms = [histogram_of(side[0][metric.direction]) for side in (a, b)]
        if histograms[0] is None or histograms[1] is None:
            return None, "no histogram"
        bins = [histogram.bins() for histogram in histograms if histogram is not None]
        return by_bootstrap(bins[0], bins[1], (spreads[0][0], spreads[1][0]), center)
    return by_batches(spreads[0], spreads[1], center), ""


def _batch_spread(metric: Metric, point: Mapping[str, Any]) -> tuple[float, float] | None:
    """Relative standard error of the mean over batches, and its degrees of freedom.

    Bytes have no batches of their own; at a given mix of block sizes they follow the I/Os. p99 uses the batches of mean
    latency for the design effect.
    """
    batches = ((point.get("batches") or {}).get(metric.direction)) or {}
    series = batches.get("iops" if metric.more_is_better else "latency_mean_ns") or []
    return relative_error([float(value) for value in series if value is not None])


def _holm(differences: Sequence[Difference]) -> tuple[Difference, ...]:
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
    others = {_answer_key(answer): answer for answer in _io_answers(b)}
    return [
        _compare_answer(answer, others[_answer_key(answer)], run, smallest_share)
        for answer in _io_answers(a)
        if _answer_key(answer) in others
    ]


def _io_answers(run: RunLike) -> list[Mapping[str, Any]]:
    """Answers in I/Os per second, and searches that found none."""
    answers = run.manifest.get("answers") or []
    return [answer for answer in answers if not answer.get("max") or answer["max"].get("iops") is not None]


def _answer_key(answer: Mapping[str, Any]) -> str:
    return f"{_facts(answer['workload'])} {answer['axis']}"


def _compare_answer(a: Mapping[str, Any], b: Mapping[str, Any], run: int, smallest_share: float) -> AnswerDifference:
    iops = [float(answer["max"]["iops"]) if answer.get("max") else None for answer in (a, b)]
    measured = all(value is not None and value >= VALUE_LEAST for value in iops)
    relative = iops[1] / iops[0] - 1 if measured and iops[0] and iops[1] else None
    estimate = _answer_estimate(a, b) if relative is not None else None
    interval, status = _judge(estimate, smallest_share)
    reason = _answer_caveat(a, b, run)
    if relative is None:
        held = [bool(value) for value in iops]
        status = "not changed" if held[0] == held[1] else "changed"
        reason = "no load met the limits" + (f" in {run_letter(run if held[0] else 0)}" if any(held) else "")
    elif estimate is None:
        reason = "the search gave no interval"
    return AnswerDifference(
        workload=_workload_text(a["workload"]),
        axis=str(a["axis"]),
        run=run,
        a_iops=iops[0],
        b_iops=iops[1],
        relative=relative,
        interval_95=interval,
        method=estimate.method if estimate else "none",
        status=status,
        better=(iops[1] or 0) > (iops[0] or 0) if status == "changed" else None,
        reason=reason,
    )


def _answer_estimate(a: Mapping[str, Any], b: Mapping[str, Any]) -> Estimate | None:
    if not a.get("max") or not b.get("max"):
        return None
    if a == b:
        return Estimate(0.0, 0.0, 1.0, "same measurements")
    a_interval, b_interval = a.get("interval_95"), b.get("interval_95")
    if not a_interval or not b_interval or min(*a_interval, *b_interval) < VALUE_LEAST:
        return None
    return by_answer_intervals(a["max"]["iops"], b["max"]["iops"], a_interval, b_interval)


def _answer_caveat(a: Mapping[str, Any], b: Mapping[str, Any], run: int) -> str:
    cut = [run_letter(at) for at, answer in ((0, a), (run, b)) if answer.get("limited_by") == "axis end"]
    return f"the largest load of the plan passed in {' and '.join(cut)}" if cut else ""

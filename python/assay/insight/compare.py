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
from run to run is often more, and only repeats see it. So of one run each on the wall clock the interval is widened by
what other runs of the target vary, or are assumed to (`BETWEEN_RUNS`), and a difference that is seen only without that
says so: one run each cannot tell. Runs of one setup are a `ComparedSide`: each counts as a repeat. Sides of which the
runs were made in turns, A B A B, are compared in pairs, so that what drifts meanwhile is no difference. On a virtual
clock nothing else varies.

Figures that follow from another at a point's load, as throughput and mean latency follow from IOPS at a fixed number of
outstanding I/Os, are one comparison with it (`Figure.follows`).

*Changed* means that the interval leaves out 0; *not changed* that it lies within the smallest difference worth
noticing; *cannot tell* everything else. One in twenty of many comparisons would seem changed by chance, so the overall
sentence counts those that stand S. Holm's correction (Scand. J. Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.base.errors import UsageError
from assay.insight.compare_answers import compare_answers
from assay.insight.differences import (
    ONE_RUN,
    SMALLEST_SHARE,
    AnswerDifference,
    ComparedSide,
    FigureDifference,
    RunComparison,
    RunLike,
    is_better,
    judged,
    on_virtual_clock,
    run_letter,
    same_point,
    workload_text,
)
from assay.insight.history.between_runs import History, known_value
from assay.insight.unmatched import unmatched_lines
from assay.record.figures import PERCENTILES, Figure
from assay.record.histograms import histogram_of
from assay.record.intervals import (
    BATCHES_MIN,
    ERROR_SHARE,
    Estimate,
    by_batches,
    by_blocks,
    by_bootstrap,
    by_repeats,
    relative_error,
    widened,
)
from assay.record.points import load_text
from assay.record.shapes.point import Point
from assay.workloads.registry import figures_of


def compare_runs(
    runs: Sequence[RunLike | ComparedSide],
    *,
    smallest_share: float = SMALLEST_SHARE,
    history: Sequence[ComparedSide] = (),
    paired: bool = False,
    every: bool = False,
) -> RunComparison:
    """Compare every run, or every side of several runs, with the first.

    Parameters
    ----------
    runs
        Two or more; the first is A.
    smallest_share
        Smallest relative difference worth noticing, above 0 and below 1.
    history
        Other runs, those of one target together.
    paired
        Whether the runs of sides were made in turns: the first of each side belong together, and so on.
    every
        Whether figures that follow from others are judged on their own, too.

    Raises
    ------
    UsageError
        Fewer than two runs, the smallest difference is outside 0 to 1, or sides of pairs are not equally long.
    """
    if len(runs) < 2:
        raise UsageError(f"compare: {len(runs)} run given; accepted: two or more run folders")
    if not 0 < smallest_share < 1:
        raise UsageError(f"compare: smallest difference {smallest_share} is outside 0 to 1 (0 % to 100 %)")
    unmatched: list[str] = []
    past = History(history)
    sides = [run if isinstance(run, ComparedSide) else ComparedSide((run,)) for run in runs]
    if paired:
        refuse_unpaired([len(side.runs) for side in sides])
    pools = [_pools(side, run_letter(at), unmatched) for at, side in enumerate(sides)]
    differences: list[FigureDifference] = []
    answers: list[AnswerDifference] = []
    for at in range(1, len(runs)):
        for key, points in pools[0].items():
            if key in pools[at]:
                evidence = _Evidence(smallest_share, past, key, paired, every)
                differences += _compare_point(points, pools[at][key], at, evidence)
        answers += compare_answers(sides[0], sides[at], at, smallest_share, past)
        unmatched += unmatched_lines(*_only_in(pools[0], pools[at]), run_letter(at))
    names = tuple(side.name or run_letter(at) for at, side in enumerate(sides))
    return RunComparison(names, smallest_share, _holm(differences), tuple(answers), tuple(unmatched))


def refuse_unpaired(counts: Sequence[int]) -> None:
    """Refuse sides that cannot be pairs.

    Raises
    ------
    UsageError
        They do not have the same number of runs, two or more.
    """
    if len({*counts}) > 1 or counts[0] < 2:
        raise UsageError(
            f"compare --paired: the sides have {' and '.join(map(str, counts))} runs; accepted: the same number, two or"
            " more, made in turns A B A B"
        )


Points = list[Point]


@dataclass(frozen=True)
class _Evidence:
    """What a point of two sides is judged by besides its own measurements."""

    smallest_share: float
    past: History
    key: str
    paired: bool
    every: bool = False


@dataclass(frozen=True)
class _Measured:
    """Points of one workload at one load: those of a run together, repeats among them."""

    by_run: dict[int, Points] = field(default_factory=dict)

    @property
    def points(self) -> Points:
        """The points of all runs."""
        return [point for points in self.by_run.values() for point in points]

    @property
    def samples(self) -> list[Points]:
        """What is independent of each other: the runs, or of one run its repeats."""
        runs = list(self.by_run.values())
        return runs if len(runs) > 1 else [[point] for points in runs for point in points]


def _pools(side: ComparedSide, letter: str, left_out: list[str]) -> dict[str, _Measured]:
    """Points of one workload at one load; what did not end in order is left out and told."""
    pools: dict[str, _Measured] = {}
    for number, point in ((number, point) for number, run in enumerate(side.runs) for point in run.points):
        if point.get("ended_by") in ("interrupted", "not-answering"):
            left_out.append(
                f"{workload_text(point['workload'])}, {load_text(point['load'])}: {point['ended_by']} in {letter}"
            )
        else:
            pools.setdefault(same_point(point), _Measured()).by_run.setdefault(number, []).append(point)
    return pools


def _only_in(a: Mapping[str, _Measured], b: Mapping[str, _Measured]) -> tuple[Points, Points]:
    """Points that A has alone, and those that B has alone, one of each load."""
    alone = [
        [measured.points[0] for key, measured in one.items() if key not in other] for one, other in ((a, b), (b, a))
    ]
    return alone[0], alone[1]


def _compare_point(a: _Measured, b: _Measured, run: int, evidence: _Evidence) -> list[FigureDifference]:
    points = (*a.points, *b.points)
    rows: dict[str, FigureDifference] = {}
    for figure in figures_of(points[0]):
        if (figure.compared or (evidence.every and figure.of_generator)) and any(
            figure.value(point) is not None for point in points
        ):
            row = _compare_figure(figure, a, b, run, evidence)
            first = None if evidence.every else rows.get(figure.follows(points[0]) or "")
            rows[figure.name] = row if first is None or row.relative is None else _following(row, first)
    return list(rows.values())


def _following(row: FigureDifference, first: FigureDifference) -> FigureDifference:
    """The row of a figure that follows from another: what it was, without a judgement of its own."""
    return replace(
        row,
        status="follows",
        follows=first.figure.title,
        interval_95=None,
        p=None,
        method="none",
        better=None,
        reason="",
        between_runs=None,
    )


def _compare_figure(figure: Figure, a: _Measured, b: _Measured, run: int, evidence: _Evidence) -> FigureDifference:
    values = [known_value(figure, side.points) for side in (a, b)]
    saturated = [
        run_letter(at)
        for at, side in ((0, a), (run, b))
        if any((p.get("generator") or {}).get("saturated") for p in side.points)
    ]
    relative, estimate, reason, seen, between = None, None, "", None, None
    smallest_share = evidence.smallest_share
    if not values[0] or not values[1]:
        reason = f"nothing measured in {run_letter(run) if values[0] else run_letter(0)}"
    else:
        relative = values[1] / values[0] - 1
        center = math.log(values[1] / values[0])
        estimate, reason = _estimate(figure, a, b, center, paired=evidence.paired)
        if (
            estimate is not None
            and estimate.method in ("batches", "bootstrap")
            and not on_virtual_clock((*a.points, *b.points))
        ):
            between = evidence.past.of_point(figure, evidence.key)
            seen, estimate = estimate, widened(estimate, center, between[:2])
    interval, status = judged(estimate, smallest_share)
    if seen is not None and status == "cannot tell" and judged(seen, smallest_share)[1] == "changed":
        reason = ONE_RUN
    if saturated and not figure.of_generator and not _are_same(a.points, b.points):
        status, reason = "cannot tell", f"the generator was the bottleneck in {' and '.join(saturated)}"
    return FigureDifference(
        workload=workload_text(a.points[0]["workload"]),
        load=load_text(a.points[0]["load"]),
        figure=figure,
        run=run,
        a=values[0],
        b=values[1],
        relative=relative,
        interval_95=interval,
        p=estimate.p if estimate and reason in ("", ONE_RUN) else None,
        method=estimate.method if estimate else "none",
        status=status,
        better=is_better(figure, relative) if status == "changed" else None,
        reason=reason,
        repeats=(len(a.samples), len(b.samples)),
        between_runs=between.told if between is not None else None,
    )


def _estimate(
    figure: Figure, a: _Measured, b: _Measured, center: float, *, paired: bool
) -> tuple[Estimate | None, str]:
    if _are_same(a.points, b.points):
        # One measurement given twice differs from itself by nothing, whatever its noise.
        return Estimate(0.0, 0.0, 1.0, "same measurements"), ""
    if paired and len(a.by_run) > 1:
        both = [number for number in a.by_run if number in b.by_run]
        blocks = [[known_value(figure, side.by_run[number]) for number in both] for side in (a, b)]
        return by_blocks(blocks, center)
    samples = [
        [sample for sample in side.samples if any(figure.value(point) is not None for point in sample)]
        for side in (a, b)
    ]
    if any(len(side) > 1 for side in samples):
        repeats = [[known_value(figure, sample) for sample in side] for side in samples]
        return by_repeats(repeats[0], repeats[1], center)
    one, other = (side[0][0] for side in samples)
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

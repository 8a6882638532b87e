"""Answers of searches side by side: the most within limits, the knee and the edge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.insight.differences import (
    END_WORDS,
    ONE_RUN,
    VALUE_MIN,
    AnswerDifference,
    ComparedSide,
    is_better,
    judged,
    on_virtual_clock,
    run_letter,
    same_workload,
    workload_text,
)
from assay.insight.history.between_runs import History, RunSpread, spread
from assay.record.answers import end_value
from assay.record.figures import Figure
from assay.record.intervals import Estimate, by_answer_intervals, by_repeats, widened
from assay.record.shapes.point import Answer, End
from assay.workloads.registry import figures_of


def compare_answers(
    a: ComparedSide, b: ComparedSide, run: int, smallest_share: float, past: History
) -> list[AnswerDifference]:
    """What differs between the answers of two sides that asked the same."""
    own, others = answers_of(a), answers_of(b)
    before = [answers_of(side) for side in past.sides]
    is_virtual = on_virtual_clock(point for side in (a, b) for one in side.runs for point in one.points)
    return [
        _compare_answer(
            figures[0],
            end,
            answers,
            others[key],
            run,
            smallest_share,
            # Nothing but seeds varies between the runs of a model.
            between=None
            if is_virtual
            else spread([[held_at(figures[0], answer, end) for answer in found.get(key, [])] for found in before]),
        )
        for key, answers in own.items()
        if key in others and (figures := figures_of(answers[0]))
        # Runs of an older Assay know the most alone.
        for end in END_WORDS
        if end == "max" or all(_end(answer, end) for answer in (*answers, *others[key]))
    ]


def answers_of(side: ComparedSide) -> dict[str, list[Answer]]:
    """Answers of a side by what was asked, one a run."""
    found: dict[str, list[Answer]] = {}
    for run in side.runs:
        for answer in run.manifest.get("answers") or []:
            found.setdefault(f"{same_workload(answer['workload'])} {answer['axis']}", []).append(answer)
    return found


def _compare_answer(
    figure: Figure,
    end: str,
    a: Sequence[Answer],
    b: Sequence[Answer],
    run: int,
    smallest_share: float,
    *,
    between: RunSpread | None,
) -> AnswerDifference:
    held = [[held_at(figure, answer, end) for answer in side] for side in (a, b)]
    values = [_middle(side) for side in held]
    loads = [_load(side[0], end) for side in (a, b)]
    measured = all(value is not None and value >= VALUE_MIN for value in values)
    relative = values[1] / values[0] - 1 if measured and values[0] and values[1] else None
    estimate, reason = None, _answer_caveat(a, b, run)
    if relative is not None:
        estimate = _answer_estimate(end, a, b, held)
    interval, status = judged(estimate, smallest_share)
    if estimate is None or estimate.method != "answer intervals":
        between = None
    if between is not None and estimate is not None and relative is not None:
        seen, estimate = status, widened(estimate, math.log1p(relative), between[:2])
        interval, status = judged(estimate, smallest_share)
        reason = reason or (ONE_RUN if seen == "changed" and status == "cannot tell" else "")
    if relative is None:
        has = [bool(value) for value in values]
        status = "not changed" if has[0] == has[1] else "changed"
        reason = "no load met the limits" + (f" in {run_letter(run if has[0] else 0)}" if any(has) else "")
    elif estimate is None:
        reason = "the search gave no interval"
    return AnswerDifference(
        workload=workload_text(a[0]["workload"]),
        axis=str(a[0]["axis"]),
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
        better=is_better(figure, (values[1] or 0) - (values[0] or 0)) if status == "changed" else None,
        reason=reason,
        between_runs=None if between is None else between.told,
    )


def _middle(values: Sequence[float | None]) -> float | None:
    """Geometric mean of what runs hold; None where one of them holds nothing."""
    known = [value for value in values if value is not None and value >= VALUE_MIN]
    if len(known) < len(values):
        return None
    return known[0] if len(known) == 1 else math.exp(sum(map(math.log, known)) / len(known))


def _end(answer: Answer, end: str) -> End | None:
    """The most within limits, the knee or the edge."""
    return {"max": answer["max"], "knee": answer.get("knee"), "edge": answer.get("edge")}[end]


def _load(answer: Answer, end: str) -> float | None:
    """The load at one of the ends."""
    found: Mapping[str, object] = _end(answer, end) or {}
    load = found.get(answer["axis"])
    return load if isinstance(load, (int, float)) else None


def held_at(figure: Figure, answer: Answer, end: str) -> float | None:
    """What an answer holds at one of its loads; None where it holds nothing."""
    found = end_value(_end(answer, end), figure)
    return None if found is None else float(found)


def _answer_estimate(
    end: str,
    a: Sequence[Answer],
    b: Sequence[Answer],
    held: Sequence[Sequence[float | None]],
) -> Estimate | None:
    if a == b:
        return Estimate(0.0, 0.0, 1.0, "same measurements")
    if any(len(side) > 1 for side in (a, b)):
        middles = [_middle(side) or VALUE_MIN for side in held]
        return by_repeats(held[0], held[1], math.log(middles[1] / middles[0]))[0]
    intervals = [side[0].get("interval_95") if end == "max" else (_end(side[0], end) or {}).get("interval_95")
                 for side in (a, b)]  # fmt: skip
    low, high = held[0][0], held[1][0]
    if not intervals[0] or not intervals[1] or not low or not high or min(*intervals[0], *intervals[1]) < VALUE_MIN:
        return None
    return by_answer_intervals(low, high, intervals[0], intervals[1])


def _answer_caveat(a: Sequence[Answer], b: Sequence[Answer], run: int) -> str:
    cut = [
        run_letter(at)
        for at, side in ((0, a), (run, b))
        if any(answer.get("limited_by") == "axis end" for answer in side)
    ]
    return f"the largest load of the plan passed in {' and '.join(cut)}" if cut else ""

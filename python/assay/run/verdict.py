"""The verdict: what was asked, the limit, the value, met or not, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.units import format_latency
from assay.record.answers import answer_words, load_words, named_part, without_brackets
from assay.record.common_figures import DIRECTIONS, share_words
from assay.record.figures import Figure
from assay.record.limits import parse_limits, show_value
from assay.record.shapes.point import Answer, JudgedLimit, Point, VerdictLine
from assay.record.standstill import HOSTS_APART, why_saturated
from assay.workloads.plan import Part
from assay.workloads.registry import figures_of


def verdict_lines(points: Sequence[Point], answers: Sequence[Answer]) -> list[VerdictLine]:
    """All verdict lines of a run.

    Searches give one line each. Points that were measured at a given load give what their figures tell, and one line
    per limit and scope.
    """
    searched = {point_id for answer in answers for point_id in answer["point_ids"] or ()}
    lines = [line for answer in answers if (line := _answer_line(answer)) is not None]
    for point in points:
        if point["id"] not in searched and point["ended_by"] != "interrupted":
            lines += _point_lines(point)
    return lines


def with_parts(lines: Sequence[VerdictLine], parts: Sequence[Part[Any]], *, always: bool) -> list[VerdictLine]:
    """The lines of a run with the titles of their parts: two parts may ask the same, of two databases.

    Parameters
    ----------
    always
        Whether a run of one part names it as well, as a study does with its levels.
    """
    titles = {part.name: part.title for part in parts}
    if not always and sum(not part.aside for part in parts) < 2:
        return [*lines]
    return [line | {"question": named_part(titles.get(line.get("part") or ""), line["question"])} for line in lines]


def _answer_line(answer: Answer) -> VerdictLine | None:
    """What a search found; None where the kind is not known."""
    title, limits = str(answer["workload"]["name"]), answer.get("limits") or ()
    best: Mapping[str, Any] | None = answer["max"]
    figures = [figure for figure in figures_of(answer) if figure.in_answers]
    if not figures:
        return None
    first, *others = figures
    limit = "; ".join(limits) or None
    if best is None:
        meaning = f"{title}: no load tried met the limits ({answer['limited_by']})"
        return VerdictLine(
            question=title, limit=limit, value=None, unit=first.unit, met=False, meaning=meaning, point_id=None,
            part=answer["part"],
        )  # fmt: skip
    beside = ", ".join(without_brackets(figure.words(best[figure.name])) for figure in others)
    meaning = f"holds {first.words(best[first.name])} {load_words(best[answer['axis']], answer['axis'])}" + (
        f" ({beside})" if beside else ""
    )
    meaning += answer_words(answer, first, [figure for figure in figures_of(answer) if figure.at_ends])
    meaning += {
        "saturation": "; more load brings no more",
        "axis end": "; the largest load tried",
        "generator": "; the load generator limits beyond that",
        HOSTS_APART: "; at more load hosts measured too far apart",
    }.get(answer["limited_by"] or "", "")
    if band := answer.get("band_90"):
        low, high = map(first.words, band)
        meaning += f"; the model's 90 % band {low} to {high} ({answer['band_basis']})"
    value, point_id = best[first.name], best["point_id"]
    return VerdictLine(
        question=title, limit=limit, value=value, unit=first.unit, met=True, meaning=meaning, point_id=point_id,
        part=answer["part"],
    )  # fmt: skip


def _point_lines(point: Point) -> list[VerdictLine]:
    title, figures, point_id = _point_title(point), figures_of(point), point["id"]
    is_saturated = bool((point.get("generator") or {}).get("saturated"))
    told = [
        VerdictLine(
            question=title, limit=None, value=figure.value(point), unit=figure.unit, met=None, meaning=text,
            point_id=point_id,
        )
        for figure in figures
        if (text := figure.told(point)) is not None
    ]  # fmt: skip
    judged = [
        VerdictLine(
            question=title, limit=one["limit"], value=one["value"], unit=one["unit"], met=one["met"],
            meaning=_limit_meaning(point, one, figures), point_id=point_id,
        )
        for one in point["limits"]
        if one["met"] is not None or is_saturated
    ]  # fmt: skip
    return [line | {"part": point["part"]} for line in [*told, *judged, *_burst_lines(title, point)]]


def _burst_lines(title: str, point: Mapping[str, Any]) -> list[VerdictLine]:
    """Foreground reads while a checkpoint writes, against the time between."""
    bursts = point.get("bursts")
    if not bursts or not bursts["read_during"] or not bursts["read_between"]:
        return []
    during, between = (bursts[when]["latency_ns"]["mean"] for when in ("read_during", "read_between"))
    meaning = (
        f"reads take {format_latency(during)} on average during {bursts['count']} checkpoint bursts,"
        f" {format_latency(between)} between"
    )
    question = f"{title}, reads during bursts"
    return [
        VerdictLine(
            question=question, limit=None, value=during, unit="ns", met=None, meaning=meaning, point_id=point["id"]
        )
    ]


def _point_title(point: Point) -> str:
    title = str(point["workload"]["name"])
    load: Mapping[str, Any] = point["load"]
    if load.get("queue_depth", 1) > 1:
        title += f", queue depth {load['queue_depth']}"
    if load.get("workers", 1) > 1 and "worker" not in title:
        title += f", {load['workers']} workers"
    if "rate" in load:
        title += f" at {load['rate']:,.0f} per s"
    return title


def _limit_meaning(point: Point, verdict: JudgedLimit, figures: Sequence[Figure]) -> str:
    if verdict["met"] is None:
        return f"not measured: {why_saturated(point)}"
    limit, scope = parse_limits([verdict["limit"]], figures)[0], str(verdict["scope"])
    where = "" if scope in (point["workload"].get("role") or "", "host", "all") else f" on {scope}"
    if where and limit.direction is None:
        where = f" of the {scope}"
    elif where and limit.direction not in DIRECTIONS:
        where = f" of {scope.replace('_', '-')}"
    what = limit.metric if limit.direction is None else f"{limit.direction} {limit.metric}"
    value = verdict["value"] or 0.0
    share = value / limit.value if limit.value else 0.0
    against = f"{share_words(share)} of the limit" if share < 10 else f"{share:.0f} times the limit"
    return f"{what}{where} is {show_value(value, limit.unit)}, {against}"

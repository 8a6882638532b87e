"""The verdict: what was asked, the limit, the value, met or not, and what it means."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from assay.base.tables import Record
from assay.base.units import format_latency
from assay.record.answers import (
    LONGER,
    answer_words,
    is_vague,
    least_words,
    load_words,
    named_part,
    without_brackets,
)
from assay.record.common_figures import DIRECTIONS
from assay.record.figures import Figure
from assay.record.judgement import (
    GENERATOR,
    NOTHING_ENDED,
    TOO_FEW,
    UNDECIDED,
    concerns,
    judged_words,
    unknown_words,
)
from assay.record.limits import parse_limits
from assay.record.points import MEMORY_AXIS
from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.need import AskedNeed
from assay.record.shapes.point import Answer, JudgedLimit, Point, VerdictLine
from assay.record.standstill import HOSTS_APART, bounded_words, why_saturated
from assay.run.needed import need_line
from assay.workloads.plan import Part
from assay.workloads.registry import figures_of, workload_of, workloads_of
from assay.workloads.workload import Conclusion


def conclusions_of(
    parts: Sequence[Part[Any]], points: Sequence[Point], manifest: Record, *, is_study: bool
) -> list[Conclusion]:
    """What each kind of a run says of its points; lines of a kind with one part name it, but for a study's."""
    found = []
    for workload in workloads_of(parts):
        own = [point for point in points if point["workload"]["kind"] == workload.kind]
        conclusion = workload.conclude(own, manifest)
        names = [part.name for part in parts if workload_of(part.plan) is workload]
        if len(names) == 1 and not is_study:
            for line in [*conclusion.first, *conclusion.last]:
                line.setdefault("part", names[0])
        found.append(conclusion)
    return found


def verdict_of_run(
    parts: Sequence[Part[Any]],
    points: Sequence[Point],
    answers: Sequence[Answer],
    conclusions: Sequence[Conclusion],
    *,
    is_study: bool,
    need: AskedNeed | None = None,
    contract: AcceptanceTest | None = None,
) -> list[VerdictLine]:
    """The verdict of a run in the order of its parts, without those for a closer look; what kinds say is around it.

    The search that measured a need answers for the need. Of a contract the clauses answer for its parts.
    """
    lines = [line for one in conclusions for line in one.first]
    lines += contract_lines(contract) if contract is not None else []
    for part in [part for part in parts if not part.aside and contract is None]:
        if need is not None and part.name == need["part"]:
            lines.append(need_line(need, next((one for one in answers if one["part"] == part.name), None)))
            continue
        lines += verdict_lines(
            [point for point in points if point["part"] == part.name],
            [answer for answer in answers if answer["part"] == part.name],
            {part.name: part.plan.limits} if part.plan.user_limits else {},
        )
    lines += [line for one in conclusions for line in one.last]
    named = with_parts(lines, parts, always=is_study)
    return [line | {"asked": bool(line.get("asked"))} for line in named]


def contract_lines(contract: AcceptanceTest) -> list[VerdictLine]:
    """A line for each clause of a contract that was tested."""
    found = []
    for one in contract.get("clauses") or []:
        told = [text for text in (one["found"], f"unknown: {one['why']}" if one["met"] is None else "") if text]
        shown = next((item for item in one["evidence"] if item["met"] is one["met"]), None)
        found.append(
            VerdictLine(
                question=f"Clause {one['name']}",
                limit=one["promise"],
                value=shown["value"] if shown else None,
                unit=shown["unit"] if shown else None,
                met=one["met"],
                meaning="; ".join(told),
                point_id=shown.get("point_id") if shown else None,
                asked=True,
            )
        )
    return found


def verdict_lines(
    points: Sequence[Point], answers: Sequence[Answer], asked: Mapping[str, Sequence[str]] | None = None
) -> list[VerdictLine]:
    """Verdict lines of points and searches.

    Searches give one line each. Points that were measured at a given load give what their figures tell, and one line
    per limit and scope. A limit that concerns no load of its part has one line.

    Parameters
    ----------
    asked
        Limits that the user gave, by part. The exit code counts them and searches.
    """
    asked = asked or {}
    searched = {point_id for answer in answers for point_id in answer["point_ids"] or ()}
    lines = [line for answer in answers if (line := _answer_line(answer, points)) is not None]
    whole = [point for point in points if point["ended_by"] != "interrupted"]
    for point in whole:
        if point["id"] not in searched:
            lines += _point_lines(point, asked)
    return [*lines, *_of_no_load(whole, asked)]


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


def _answer_line(answer: Answer, points: Sequence[Point]) -> VerdictLine | None:
    """What a search found; None where the kind is not known."""
    title, limits = str(answer["workload"]["name"]), answer.get("limits") or ()
    best: Mapping[str, Any] | None = answer["max"]
    figures = [figure for figure in figures_of(answer) if figure.in_answers]
    if not figures:
        return None
    first, *others = figures
    limit = "; ".join(limits) or None
    if answer["axis"] == MEMORY_AXIS:
        end: Record = best or answer.get("first_failing") or {}
        return VerdictLine(
            question=title, limit=limit, value=end.get(MEMORY_AXIS), unit="bytes", met=best is not None,
            meaning=least_words(answer, figures_of(answer)), point_id=end.get("point_id") if best else None,
            part=answer["part"], asked=True,
        )  # fmt: skip
    if best is None:
        is_met, meaning = _of_no_answer(answer, first, points)
        return VerdictLine(
            question=title, limit=limit, value=None, unit=first.unit, met=is_met, meaning=meaning, point_id=None,
            part=answer["part"], asked=True,
        )  # fmt: skip
    beside = ", ".join(without_brackets(figure.words(best[figure.name])) for figure in others)
    value, load, interval = (
        best[first.name],
        load_words(best[answer["axis"]], answer["axis"]),
        answer.get("interval_95"),
    )
    meaning = f"holds {first.words(value)} {load}"
    if vague := is_vague(value, interval):
        low, high = map(first.words, interval or ())
        meaning = (
            f"how much it holds is not known: {first.words(value)} {load}, 95 % interval {low} to {high}; {LONGER}"
        )
    meaning += f" ({beside})" if beside and not vague else ""
    meaning += answer_words(answer, first, [figure for figure in figures_of(answer) if figure.at_ends])
    meaning += {
        "saturation": "; more load brings no more",
        "axis end": "; the largest load tried",
        GENERATOR: "; the load generator limits beyond that",
        HOSTS_APART: "; at more load hosts measured too far apart",
    }.get(answer["limited_by"] or "", "")
    if band := answer.get("band_90"):
        low, high = map(first.words, band)
        meaning += f"; the model's 90 % band {low} to {high} ({answer['band_basis']})"
    too_few = _too_few(best, answer, points)
    if too_few:
        meaning += f"; whether it does so within {too_few['limit']} is {unknown_words(TOO_FEW, too_few.get('why'))}"
    # A load meets the limits, so that the exit code has nothing to say of how much more would.
    return VerdictLine(
        question=title, limit=limit, value=value, unit=first.unit, meaning=meaning, point_id=best["point_id"],
        met=None if too_few or vague or not limit else True, part=answer["part"],
        asked=limit is not None and not (vague and not too_few),
    )  # fmt: skip


def _of_no_answer(answer: Answer, figure: Figure, points: Sequence[Point]) -> tuple[bool | None, str]:
    """Whether a search without an answer missed its limits or could not tell, and its meaning."""
    title, ended_by = str(answer["workload"]["name"]), answer["limited_by"]
    if ended_by == figure.nothing:
        return None, f"{title}: {unknown_words(NOTHING_ENDED, ended_by)}"
    if ended_by not in UNDECIDED:
        return False, f"{title}: no load tried met the limits ({ended_by})"
    own = [point for point in points if point["id"] in (answer["point_ids"] or ())]
    saturated = next((one for one in own if (one.get("generator") or {}).get("saturated")), None)
    reason = (saturated["generator"].get("reason") if saturated else None) or ended_by
    why = why_saturated(saturated or {"generator": {"reason": ended_by}})
    return None, f"{title}: {unknown_words(reason, why)}"


def _too_few(best: Mapping[str, Any], answer: Answer, points: Sequence[Point]) -> JudgedLimit | None:
    """A limit for which every point at the load of an answer has too few samples."""
    axis, ids = answer["axis"], answer["point_ids"] or ()
    at_load: list[list[JudgedLimit]] = [
        point["limits"] for point in points if point["id"] in ids and dict(point["load"]).get(axis) == best.get(axis)
    ]
    few = [one for limits in at_load for one in limits if one.get("reason") == TOO_FEW]
    return next((one for one in few if sum(one["limit"] == other["limit"] for other in few) >= len(at_load)), None)


def _point_lines(point: Point, asked: Collection[str]) -> list[VerdictLine]:
    title, figures, point_id = _point_title(point), figures_of(point), point["id"]
    told = [
        VerdictLine(
            question=title, limit=None, value=figure.value(point), unit=figure.unit, met=None,
            meaning=bounded_words(point, text, is_rate=figure.better == "higher"), point_id=point_id,
        )
        for figure in figures
        if (text := figure.told(point)) is not None
    ]  # fmt: skip
    judged = [
        VerdictLine(
            question=title, limit=one["limit"], value=one["value"], unit=one["unit"], met=one["met"],
            meaning=_limit_meaning(point, one, figures), point_id=point_id, asked=point.get("part") in asked,
        )
        for one in point["limits"]
        if concerns(one)
    ]  # fmt: skip
    return [line | {"part": point["part"]} for line in [*told, *judged, *_burst_lines(title, point)]]


def _of_no_load(points: Sequence[Point], asked: Mapping[str, Sequence[str]]) -> Iterator[VerdictLine]:
    """A line for each limit of the user that concerns no load of its part: it is unknown."""
    for part, texts in asked.items():
        own = [point for point in points if point.get("part") == part]
        for text in texts:
            judged = [one for point in own for one in point["limits"] if one["limit"] == text]
            if judged and not any(concerns(one) for one in judged):
                names = dict.fromkeys(str(point["workload"]["name"]) for point in own)
                yield VerdictLine(
                    question=next(iter(names)) if len(names) == 1 else part, limit=text, value=None,
                    unit=judged[0]["unit"], met=None, point_id=None, part=part, asked=True,
                    meaning=unknown_words(judged[0].get("reason"), judged[0].get("why")),
                )  # fmt: skip


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
            question=question,
            limit=None,
            value=during,
            unit="ns",
            met=None,
            point_id=point["id"],
            meaning=bounded_words(point, meaning, is_rate=False),
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
        return unknown_words(verdict.get("reason"), verdict.get("why"))
    limit, scope = parse_limits([verdict["limit"]], figures)[0], str(verdict["scope"])
    where = "" if scope in (point["workload"].get("role") or "", "host", "all") else f" on {scope}"
    if where and limit.direction is None:
        where = f" of the {scope}"
    elif where and limit.direction not in DIRECTIONS:
        where = f" of {scope.replace('_', '-')}"
    what = limit.metric if limit.direction is None else f"{limit.direction} {limit.metric}"
    return f"{what}{where} is {judged_words(limit, verdict['value'] or 0.0)}"

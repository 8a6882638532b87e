"""What a study found: the figure at each level with its interval, and each level against the baseline.

Over repeats an interval comes from what varies between them: of a figure Student's, of a ratio that of randomised
blocks (`intervals.by_blocks`). Of one repeat a ratio's interval comes from those of its two figures
(`intervals.by_answer_intervals`): that of a search is its answer's, that of a point comes from batch means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from assay.base.errors import UsageError
from assay.insight.studies.answer import answer_sentences, published_words
from assay.insight.studies.comparing import all_series, compare_series, level_label, trends_of, with_series
from assay.insight.studies.interference import interference_findings, sentences_of
from assay.insight.studies.published import published_findings
from assay.insight.studies.raw_gap import gaps_of
from assay.insight.studies.result import StudyResult, Value
from assay.insight.studies.trends import LevelTrend, study_sentences, trend_sentence
from assay.insight.studies.words import (
    LevelAgainstBaseline,
    capacity_sentences,
    capital,
    comparison_sentence,
    no_result_sentences,
)
from assay.record.points import load_text
from assay.record.shapes.manifest import Manifest, Part
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.study import BesideLoad, Comparison, PublishedFigure, RawGap, Result, Study, Trend
from assay.record.standstill import HOSTS_APART, overdriven_words, why_saturated
from assay.record.steady import geometric_mean_95, half_width_95
from assay.workloads.capabilities import OnDatabases
from assay.workloads.registry import figures_of, workloads


class StudyFindings(TypedDict):
    """What a study's run adds to the manifest's `study` when it has ended."""

    results: list[Result]
    comparisons: list[Comparison]
    trends: list[Trend]
    sentences: list[str]
    published: list[PublishedFigure]
    gaps: list[RawGap]
    beside: list[BesideLoad]


class _Levels(TypedDict):
    part: str
    levels: dict[str, str]
    title: str


def study_findings(
    study: Study, parts: Sequence[Part], points: Sequence[Point], answers: Sequence[Answer]
) -> StudyFindings:
    """What the manifest's `study` holds once the run has ended (docs/studies.md).

    Parameters
    ----------
    study
        The manifest's `study` as it was at the start.
    parts
        The manifest's `parts`, in the order of the levels.
    points, answers
        Those of the run.
    """
    by_id = {point["id"]: point for point in points}
    found = [result for part in parts for result in _part_results(study, part, points, answers, by_id)]
    results = with_series(study, _over_repeats(found))
    compared: list[LevelAgainstBaseline] = []
    trends: list[LevelTrend] = []
    every = all_series(study, results) if study["comparison"] is not None else []
    if study["comparison"] is not None:
        for series in every:
            compared += compare_series(study, series)
            trends += trends_of(study, series)
    published = published_findings(study, parts, results)
    words = [comparison_sentence(study, one) for one in compared]
    chosen = [text for kind in workloads() if isinstance(kind, OnDatabases) for text in kind.choices(points)]
    gaps = gaps_of(parts, points, answers)
    beside = interference_findings(study, parts, points, results)
    listed = [_with_capacity(study, result) for result in results]
    sentences = no_result_sentences(compared)
    if every:
        own = {series.name: list(series.results.values()) for series in every}
        sentences += answer_sentences(study, own, compared)
    sentences += [capital(choice) for choice in chosen]
    sentences += study_sentences(study, compared, trends, published)
    sentences += capacity_sentences(listed) if compared else []
    return {
        "results": listed,
        "comparisons": [_comparison_row(one, text) for one, text in zip(compared, words, strict=True)],
        "trends": [_trend_row(one, trend_sentence(study, one)) for one in trends],
        "sentences": sentences + sentences_of(beside) + _gap_words(study, gaps),
        "published": published,
        "gaps": gaps,
        "beside": beside,
    }


def compared_again(manifest: Manifest, points: Sequence[Point], baseline: str | None) -> Study:
    """The study of a run with its levels compared with another of them, from the manifest and the points of the run.

    Raises
    ------
    UsageError
        The run is no study, or its study has no such level.
    """
    study = manifest.get("study")
    if not study or study["comparison"] is None:
        raise UsageError("not the run of a study that compares levels")
    wanted = study["comparison"]
    factor = next(one for one in study["factors"] if one["name"] == wanted["by"])
    keys = {text: level["key"] for level in factor["levels"] for text in (level["label"], level["key"])}
    chosen = keys.get(baseline or wanted["baseline"])
    if chosen is None:
        listed = ", ".join(level["label"] for level in factor["levels"])
        raise UsageError(f"--baseline {baseline}: {factor['title']} has no such level; levels: {listed}")
    asked: Study = {**study, "comparison": {**wanted, "baseline": chosen}}
    found = study_findings(asked, manifest.get("parts") or [], points, manifest.get("answers") or [])
    return {**asked, **found}


def _gap_words(study: Study, gaps: Sequence[RawGap]) -> list[str]:
    """What gaps say; of a study that asks for them, with what was published after the first."""
    told = [sentence for gap in gaps for sentence in gap["sentences"]]
    return told if study["comparison"] is not None else [*told[:1], *published_words(study), *told[1:]]


def _with_capacity(study: Study, result: StudyResult) -> Result:
    """A result with the capacity of its array and IOPS per usable terabyte, where the study asks for them."""
    told = result.to_dict()
    held = study.get("capacities", {}).get(result.part)
    if held is not None:
        iops = result.values.get("iops")
        told["capacity"] = {
            **held,
            "iops_per_usable_tb": iops[0] / held["usable_bytes"] * 1e12 if iops else None,
        }
    return told


def _comparison_row(one: LevelAgainstBaseline, sentence: str) -> Comparison:
    return {
        "part": one.part,
        "place": one.place,
        "figure": one.figure,
        "unit": one.unit,
        "series": one.series,
        "level": one.level,
        "baseline": one.baseline,
        "value": one.value,
        "baseline_value": one.baseline_value,
        "ratio": one.ratio,
        "interval_95": list(one.interval_95) if one.interval_95 else None,
        "differs": one.differs,
        "band_90": list(one.band_90) if one.band_90 else None,
        "baseline_band_90": list(one.baseline_band_90) if one.baseline_band_90 else None,
        "band_basis": one.band_basis,
        "reason": one.reason,
        "sentence": sentence,
    }


def _trend_row(one: LevelTrend, sentence: str) -> Trend:
    return {
        "figure": one.figure,
        "unit": one.unit,
        "series": one.series,
        "ordered": one.ordered,
        "direction": one.direction,
        "steps": one.steps,
        "clear_steps": one.clear_steps,
        "values": list(one.values),
        "levels": list(one.levels),
        "most_levels": list(one.most_levels),
        "least_levels": list(one.least_levels),
        "most": one.most,
        "least": one.least,
        "sentence": sentence,
    }


def _part_results(
    study: Study, part: Part, points: Sequence[Point], answers: Sequence[Answer], by_id: Mapping[str, Point]
) -> Iterator[StudyResult]:
    name = part["name"]
    levels = study["levels"].get(name, {})
    told: _Levels = {"part": name, "levels": levels, "title": _title(study, levels) or str(part["title"])}
    search = part["plan"].get("search") if part["plan"] else None
    if (search.get("axis", "none") if search else "none") != "none":
        for place, answer in enumerate(answer for answer in answers if answer["part"] == name):
            yield _of_answer(answer, by_id, place, told)
        return
    # In the order of the plan's workloads, whichever ran first.
    for place, point in enumerate(point for point in points if point["part"] == name):
        yield _of_point(point, place, told)


def _title(study: Study, levels: Mapping[str, str]) -> str:
    return ", ".join(
        level_label(study, factor["name"], levels[factor["name"]])
        for factor in study["factors"]
        if factor["name"] in levels
    )


def _of_answer(answer: Answer, by_id: Mapping[str, Point], place: int, told: _Levels) -> StudyResult:
    best = answer["max"]
    result = StudyResult(
        **told,
        workload=str(answer["workload"]["name"]),
        load=None,
        place=place,
        values={},
        limited_by=answer["limited_by"],
        reason=f"no load met the limits ({answer['limited_by']})" if best is None else "",
    )
    ended = [figure for figure in figures_of(answer) if figure.in_answers]
    if best is None or not ended:
        return result
    held, point_id = _figure_of(best, ended[0].name), str(best["point_id"])
    first: Value = (held, _pair(answer["interval_95"]))
    values = {figure.study: _scaled(first, _figure_of(best, figure.name) / held if held else 0.0) for figure in ended}
    point = by_id.get(point_id)
    known = _values(point) if point is not None else {}
    # What stands beside the answer is of all its repeats, as the answer is: one point may miss what their mean meets.
    for figure in figures_of(answer):
        mean = best.get(figure.name)
        if figure.at_ends and figure.study in known and isinstance(mean, int | float):
            known[figure.study] = _scaled(known[figure.study], mean / known[figure.study][0])
    # The search gives the band of its first figure.
    return replace(
        result,
        values=known | values,
        one_run=point is not None and point.get("clock") == "wall",
        reason=_GENERATOR_ENDS.get(answer["limited_by"] or "")
        or (overdriven_words(point) if point is not None else ""),
        point_ids=(point_id,),
        answered=tuple(values),
        band_90=_pair(answer.get("band_90")),
        band_basis=answer.get("band_basis"),
    )


_GENERATOR_ENDS = {
    "generator": "the load generator was the bottleneck",
    HOSTS_APART: "at more load its hosts measured too far apart",
}
"""Why an answer says nothing of the target, by what limited the search."""


def _figure_of(end: Mapping[str, object], name: str) -> float:
    """A figure that the kind of a search keeps with the load it found."""
    value = end[name]
    assert isinstance(value, int | float)
    return value


def _of_point(point: Point, place: int, told: _Levels) -> StudyResult:
    return StudyResult(
        **told,
        workload=str(point["workload"]["name"]),
        load=load_text(point["load"]),
        place=place,
        values=_values(point),
        reason=_doubt(point),
        one_run=point.get("clock") == "wall",
        point_ids=(point["id"],),
        answered=tuple(figure.study for figure in figures_of(point) if figure.in_answers),
        band_90=_pair(point.get("band_90")),
        band_basis=point.get("band_basis"),
    )


def _pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
    return (interval[0], interval[1]) if interval else None


def _doubt(point: Point) -> str:
    known = figures_of(point)
    if not known:
        return "this Assay does not know the kind of the workload"
    # A score takes all of the work: the figure after it stands for a part.
    if not any(figure.value(point) for figure in known[:2]):
        return known[0].nothing
    if point["errors"]["count"]:
        return f"{point['errors']['count']:,} {known[0].failed}"
    if point["generator"]["saturated"]:
        return why_saturated(point)
    if late := overdriven_words(point):
        return late
    return "" if point["ended_by"] in ("steady", "time") else f"the point was cut short ({point['ended_by']})"


def _values(point: Point) -> dict[str, Value]:
    """Every figure of a point that studies compare, with the interval of its batches."""
    found = {figure: figure.value(point) for figure in figures_of(point) if figure.study}
    return {
        # Batches are means, which say nothing of how sure a percentile is.
        figure.study: _with_interval(value, figure.batches(point) if figure.statistic in ("", "mean") else ())
        for figure, value in found.items()
        if value is not None
    }


def _with_interval(value: float, batches: Sequence[float]) -> Value:
    half = half_width_95(batches)
    return value, None if half == math.inf else (max(value - half, 0.0), value + half)


def _scaled(value: Value, factor: float) -> Value:
    figure, interval = value
    return figure * factor, (interval[0] * factor, interval[1] * factor) if interval else None


def _over_repeats(found: Sequence[StudyResult]) -> list[StudyResult]:
    """One result for all repeats of a combination and place, in the order of the first ones."""
    pools: dict[tuple[str, int], list[StudyResult]] = {}
    for result in found:
        pools.setdefault((first_name(result.part), result.place), []).append(result)
    return [pool[0] if len(pool) == 1 else _pooled(pool) for pool in pools.values()]


def first_name(part: str) -> str:
    """The name of the first repeat of a part.

    Examples
    --------
    >>> first_name("raid=10 #2"), first_name("raid=10")
    ('raid=10', 'raid=10')
    """
    return re.sub(r" #[0-9]+$", "", part)


def _pooled(pool: Sequence[StudyResult]) -> StudyResult:
    """Means over repeats, with Student's interval of what varies between them, which covers every repeat."""
    first = pool[0]
    held = [result for result in pool if result.values]
    values: dict[str, Value] = {}
    names = dict.fromkeys(name for result in pool for name in result.values)
    repeats = {name: tuple(result.values[name][0] if name in result.values else None for result in pool)
               for name in names}  # fmt: skip
    if len(held) == len(pool):
        for name in first.values:
            figures = [result.values[name] for result in pool if name in result.values]
            each = [value for value, _ in figures]
            values[name] = (sum(each) / len(each), _of_repeats(each))
    reason = next((result.reason for result in pool if result.reason), "")
    return replace(
        first,
        values=values,
        repeats=repeats,
        one_run=False,
        reason=reason or ("" if values else "no load met the limits in every repeat"),
        point_ids=tuple(point_id for result in pool for point_id in result.point_ids),
    )


def _of_repeats(each: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of a figure with one value a repeat, by logarithms; None where it is not positive."""
    if len(each) < 2 or min(each) <= 0:
        return None
    _, interval = geometric_mean_95(each)
    return (min(interval[0], *each), max(interval[1], *each)) if interval else None

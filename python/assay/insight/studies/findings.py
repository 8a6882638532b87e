"""What a study found: the figure at each level with its interval, and each level against the baseline.

Over repeats an interval comes from what varies between them: of a figure Student's, of a ratio that of randomised
blocks (`intervals.by_blocks`). Of one repeat a ratio's interval comes from those of its two figures
(`intervals.by_answer_intervals`): that of a search is its answer's, that of a point comes from batch means.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from assay.base.units import count_of
from assay.insight.studies.interference import interference_findings, sentences_of
from assay.insight.studies.published import published_findings
from assay.insight.studies.raw_gap import gaps_of
from assay.insight.studies.result import StudyResult, Value, apart, differ, ratio_95, ratio_over_repeats_95, unit_of
from assay.insight.studies.trends import LevelTrend, study_sentences, trend_sentence
from assay.insight.studies.words import (
    LevelAgainstBaseline,
    bases_of,
    capacity_sentences,
    capital,
    compared_in,
    comparison_sentence,
    no_result_sentences,
    why_not_shown,
)
from assay.record.points import load_text
from assay.record.shapes.manifest import Part
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.study import BesideLoad, Comparison, PublishedFigure, RawGap, Result, Study, Trend
from assay.record.standstill import HOSTS_APART, why_saturated
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


Series = tuple[tuple[tuple[str, str], ...], int]
"""What results of one series have in common: their other levels, and their place."""


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
    results = _with_series(study, _over_repeats(found))
    compared: list[LevelAgainstBaseline] = []
    trends: list[LevelTrend] = []
    if study["comparison"] is not None:
        for series in _series(study, results):
            compared += _compare_series(study, series)
            trends += _trend(study, series)
    published = published_findings(study, parts, results)
    words = [comparison_sentence(study, one) for one in compared]
    chosen = [text for kind in workloads() if isinstance(kind, OnDatabases) for text in kind.choices(points)]
    gaps = gaps_of(parts, points, answers)
    beside = interference_findings(study, parts, points, results)
    listed = [_with_capacity(study, result) for result in results]
    sentences = no_result_sentences(compared) + [capital(choice) for choice in chosen]
    sentences += study_sentences(study, compared, trends, published)
    sentences += capacity_sentences(listed)
    return {
        "results": listed,
        "comparisons": [_comparison_row(one, text) for one, text in zip(compared, words, strict=True)],
        "trends": [_trend_row(one, trend_sentence(study, one)) for one in trends],
        "sentences": [*sentences, *sentences_of(beside), *(sentence for gap in gaps for sentence in gap["sentences"])],
        "published": published,
        "gaps": gaps,
        "beside": beside,
    }


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


def level_label(study: Study, factor: str, key: str) -> str:
    """The label of a level."""
    levels = next(known["levels"] for known in study["factors"] if known["name"] == factor)
    return str(next(level["label"] for level in levels if level["key"] == key))


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
    # The search gives the band of its first figure.
    return replace(
        result,
        values=(_values(point) if point is not None else {}) | values,
        reason=_GENERATOR_ENDS.get(answer["limited_by"] or "") or (_not_served(point) if point is not None else ""),
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
    if not_served := _not_served(point):
        return not_served
    return "" if point["ended_by"] in ("steady", "time") else f"the point was cut short ({point['ended_by']})"


def _not_served(point: Point) -> str:
    """Why a point on a served array says nothing of the array; empty where its host kept up."""
    for served in point.get("served") or []:
        late = served.get("lateness") or {}
        if late.get("overdriven"):
            seconds = f"{late.get('overdriven_s') or 0} of {count_of(late.get('busy_s') or 0, 'second')}"
            return f"the served array was overdriven in {seconds}: this host cannot serve such load in time"
    return ""


def _values(point: Point) -> dict[str, Value]:
    """Every figure of a point that studies compare, with the interval of its batches."""
    found = {figure: figure.value(point) for figure in figures_of(point) if figure.study}
    return {
        figure.study: _with_interval(value, figure.batches(point))
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
        reason=reason or ("" if values else "no load met the limits in every repeat"),
        point_ids=tuple(point_id for result in pool for point_id in result.point_ids),
    )


def _of_repeats(each: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of a figure with one value a repeat, by logarithms; None where it is not positive."""
    if len(each) < 2 or min(each) <= 0:
        return None
    _, interval = geometric_mean_95(each)
    return (min(interval[0], *each), max(interval[1], *each)) if interval else None


# Comparisons


def _with_series(study: Study, results: Sequence[StudyResult]) -> list[StudyResult]:
    """The results with the names of their series: the workload where parts have several, else the other levels."""
    if study["comparison"] is None:
        return list(results)
    by = study["comparison"]["by"]
    varied = [factor["name"] for factor in study["factors"] if len(factor["levels"]) > 1 and factor["name"] != by]
    several = any(result.place for result in results)
    loads: dict[Series, set[str | None]] = {}
    for result in results:
        loads.setdefault(_series_key(result, by), set()).add(result.load)

    def levels_of(result: StudyResult) -> str:
        return ", ".join(level_label(study, name, result.levels[name]) for name in varied if name in result.levels)

    def workload_of(result: StudyResult) -> str:
        same = len(loads[_series_key(result, by)]) == 1 and result.load
        return result.workload + (f", {result.load}" if same else "")

    if not several:
        return [replace(result, series=levels_of(result)) for result in results]
    told = len({workload_of(result) for result in results}) == len(loads)
    return [
        replace(result, series=workload_of(result) if told else f"{levels_of(result)}, {workload_of(result)}")
        for result in results
    ]


def _series_key(result: StudyResult, by: str) -> Series:
    return tuple((name, key) for name, key in result.levels.items() if name != by), result.place


@dataclass(frozen=True, kw_only=True)
class ResultSeries:
    """Results that differ in the compared factor alone, by its levels in their order."""

    name: str
    results: dict[str, StudyResult]


def _series(study: Study, results: Sequence[StudyResult]) -> list[ResultSeries]:
    by = compared_in(study)["by"]
    found: dict[Series, list[StudyResult]] = {}
    for result in results:
        if by in result.levels:
            found.setdefault(_series_key(result, by), []).append(result)
    order = [level["key"] for factor in study["factors"] if factor["name"] == by for level in factor["levels"]]
    made = []
    for group in found.values():
        rising = sorted(group, key=lambda result: order.index(result.levels[by]))
        made.append(ResultSeries(name=rising[0].series, results={result.levels[by]: result for result in rising}))
    return made


def _compare_series(study: Study, series: ResultSeries) -> Iterator[LevelAgainstBaseline]:
    wanted = compared_in(study)
    by, baseline = wanted["by"], wanted["baseline"]
    keys = (
        level["key"]
        for factor in study["factors"]
        if factor["name"] == by
        for level in factor["levels"]
        if baseline in (level["key"], level["label"])
    )
    key = next(keys, None)
    base = series.results.get(key) if key is not None else None
    for level, result in series.results.items():
        if base is not None and level != key:
            yield _compare(study, series, result, base)


def _compare(study: Study, series: ResultSeries, one: StudyResult, base: StudyResult) -> LevelAgainstBaseline:
    wanted = compared_in(study)
    figure, by = wanted["figure"], wanted["by"]
    values = [result.values.get(figure) for result in (one, base)]
    estimate = ratio_over_repeats_95(one, base, list(series.results.values()), figure)
    estimate = estimate or ratio_95(values[0], values[1])
    bands = [_band(result, figure) for result in (one, base)]
    reasons = [f"{level_label(study, by, r.levels[by])}: {r.reason}" for r in (one, base) if r.reason]
    return LevelAgainstBaseline(
        part=one.part,
        place=one.place,
        figure=figure,
        unit=unit_of(figure),
        series=series.name,
        level=level_label(study, by, one.levels[by]),
        baseline=level_label(study, by, base.levels[by]),
        value=values[0][0] if values[0] else None,
        baseline_value=values[1][0] if values[1] else None,
        ratio=values[0][0] / values[1][0] if values[0] and values[1] and values[1][0] else None,
        interval_95=estimate,
        differs=None if estimate is None or reasons else apart(estimate),
        band_90=bands[0],
        baseline_band_90=bands[1],
        band_basis=bases_of(one.band_basis or "", base.band_basis or ""),
        reason="; ".join(reasons),
    )


def _band(result: StudyResult, figure: str) -> tuple[float, float] | None:
    """The model's band for a figure: that of the first of its kind, which the others of answers follow."""
    if result.band_90 is None or figure not in result.answered or result.answered[0] not in result.values:
        return None
    first = result.values[result.answered[0]][0]
    factor = result.values[figure][0] / first if first else 0.0
    return result.band_90[0] * factor, result.band_90[1] * factor


def _trend(study: Study, series: ResultSeries) -> Iterator[LevelTrend]:
    """Whether the figure rises or falls over all levels, and where it is largest and least."""
    wanted = compared_in(study)
    by, figure = wanted["by"], wanted["figure"]
    factor = next(factor for factor in study["factors"] if factor["name"] == by)
    held = [(key, result.values[figure]) for key, result in series.results.items()
            if figure in result.values and not result.reason]  # fmt: skip
    if len(held) < 3:
        return
    labels = {key: level_label(study, by, key) for key, _ in held}

    def like(end: Value) -> tuple[str, ...]:
        """Levels that cannot be told from one end."""
        return tuple(labels[key] for key, value in held if value is end or not differ(value, end))

    steps = [(later[0] - sooner[0], ratio_95(later, sooner)) for (_, sooner), (_, later) in itertools.pairwise(held)]
    clear = sum(1 for _, interval in steps if interval and apart(interval))
    direction = None
    if factor["ordered"] and all(step < 0 for step, _ in steps):
        direction = "fall"
    elif factor["ordered"] and all(step > 0 for step, _ in steps):
        direction = "rise"
    least, most = (pick(held, key=lambda pair: pair[1][0]) for pick in (min, max))
    first, last = (series.results[key] for key, _ in (most, least))
    basis = bases_of(first.band_basis or "", last.band_basis or "")
    yield LevelTrend(
        figure=figure,
        unit=unit_of(figure),
        series=series.name,
        ordered=factor["ordered"],
        direction=direction,
        steps=len(steps),
        clear_steps=clear,
        values=tuple(value for _, (value, _) in held),
        levels=tuple(labels.values()),
        most=labels[most[0]],
        least=labels[least[0]],
        most_levels=like(most[1]),
        least_levels=like(least[1]),
        doubt=why_not_shown(_band(first, figure), _band(last, figure), basis),
    )

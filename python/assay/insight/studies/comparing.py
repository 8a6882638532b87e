"""Each level of a study against the baseline, series by series, and how figures go over all levels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.insight.studies.result import StudyResult, Value, apart, differ, ratio_95, ratio_over_repeats_95, unit_of
from assay.insight.studies.trends import LevelTrend
from assay.insight.studies.words import LevelAgainstBaseline, bases_of, compared_in, why_not_shown
from assay.record.shapes.study import Study

NOTHING: Value = (0.0, None)

Series = tuple[tuple[tuple[str, str], ...], int]
"""What results of one series have in common: their other levels, and their place."""


def level_label(study: Study, factor: str, key: str) -> str:
    """The label of a level."""
    levels = next(known["levels"] for known in study["factors"] if known["name"] == factor)
    return str(next(level["label"] for level in levels if level["key"] == key))


def with_series(study: Study, results: Sequence[StudyResult]) -> list[StudyResult]:
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


def all_series(study: Study, results: Sequence[StudyResult]) -> list[ResultSeries]:
    """Results of a study that differ in the compared factor alone."""
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


def compare_series(study: Study, series: ResultSeries) -> Iterator[LevelAgainstBaseline]:
    """Each level of a series against the baseline, where the baseline was measured."""
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
    one_run = one.one_run or base.one_run
    estimate = ratio_over_repeats_95(one, base, list(series.results.values()), figure)
    estimate = estimate or ratio_95(values[0], values[1], one_run=one_run)
    differs = None if estimate is None else apart(estimate)
    if differs is False and one_run and differ(values[0] or NOTHING, values[1] or NOTHING):
        # A difference beyond the noise within one run each, and not beyond what runs differ by.
        differs = None
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
        differs=None if reasons else differs,
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


def trends_of(study: Study, series: ResultSeries) -> Iterator[LevelTrend]:
    """Whether the figure rises or falls over all levels, and where it is largest and least."""
    wanted = compared_in(study)
    by, figure = wanted["by"], wanted["figure"]
    factor = next(factor for factor in study["factors"] if factor["name"] == by)
    held = [(key, result.values[figure]) for key, result in series.results.items()
            if figure in result.values and not result.reason]  # fmt: skip
    if len(held) < 3:
        return
    labels = {key: level_label(study, by, key) for key, _ in held}
    one_run = any(series.results[key].one_run for key, _ in held)

    def like(end: Value) -> tuple[str, ...]:
        """Levels that cannot be told from one end."""
        return tuple(labels[key] for key, value in held if value is end or not differ(value, end, one_run=one_run))

    steps = [
        (later[0] - sooner[0], ratio_95(later, sooner, one_run=one_run))
        for (_, sooner), (_, later) in itertools.pairwise(held)
    ]
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
        unknown=all(interval is None for _, interval in steps) or (one_run and differ(most[1], least[1])),
    )

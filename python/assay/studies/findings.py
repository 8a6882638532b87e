"""What a study found: the figure at each level with its interval, and each level against the baseline.

A ratio's interval comes from those of its two figures (`compare_interval.by_answer_intervals`). That of a search is its
answer's; that of a point at a given load comes from batch means; repeats widen it to what they span.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from assay.analysis.compare import load_text
from assay.results.intervals import by_answer_intervals
from assay.results.steady import half_width_95
from assay.studies.published import published_findings
from assay.studies.raw_gap import gaps_of
from assay.studies.words import Compared, Trend, capital, comparison_sentence, study_sentences, trend_sentence

Record = Mapping[str, Any]

UNITS = {
    "iops": "iops",
    "bytes_per_s": "bytes_per_s",
    "read_latency": "ns",
    "write_latency": "ns",
    "nopm": "nopm",
    "nopm_lowest": "nopm",
    "tpm": "tpm",
    "response_p90": "ns",
    "data_write_latency": "ns",
    "log_write_latency": "ns",
}
"""Unit of each figure that can be compared."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figure of one workload at one combination of levels, over its repeats.

    Attributes
    ----------
    levels
        Keys of the levels, by factor.
    title
        Labels of the levels.
    workload, load
        What was asked; no load where it was searched for.
    series
        What it has in common with the results it is compared with, where there are several such series.
    place
        Which of the part's workloads this is: it is compared with the same place at other levels.
    values
        By figure, each with its 95 % interval or None; empty where there is no answer.
    limited_by
        What ended a search.
    reason
        Why the values must not be believed, or are missing.
    band_90, band_basis
        How far the model may be off, in the unit of the compared figure, and what that rests on.
    """

    part: str
    levels: dict[str, str]
    title: str
    workload: str
    load: str | None
    place: int
    series: str = ""
    values: dict[str, tuple[float, tuple[float, float] | None]]
    limited_by: str | None = None
    reason: str = ""
    band_90: tuple[float, float] | None = None
    band_basis: str | None = None
    point_ids: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as the manifest has it."""
        shown = asdict(self) | {"point_ids": list(self.point_ids)}
        shown["values"] = {
            name: {"value": value, "unit": UNITS[name], "interval_95": list(interval) if interval else None}
            for name, (value, interval) in self.values.items()
        }
        shown["band_90"] = list(self.band_90) if self.band_90 else None
        return shown


def study_findings(
    study: Record, parts: Sequence[Record], points: Sequence[Record], answers: Sequence[Record]
) -> dict[str, Any]:
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
    compared: list[Compared] = []
    trends: list[Trend] = []
    if study["comparison"] is not None:
        for series in _series(study, results):
            compared += _compare_series(study, series)
            trends += _trend(study, series)
    published = published_findings(study, parts, results)
    words = [comparison_sentence(study, one) for one in compared]
    # Of a partition study, which table was chosen, and why.
    traced = [((point.get("oltp") or {}).get("layout") or {}).get("hottest") for point in points]
    reasons = list(dict.fromkeys(str(found["sentence"]) for found in traced if found))
    gaps = gaps_of(parts, points, answers)
    sentences = [capital(reason) for reason in reasons] + study_sentences(study, compared, trends, published)
    return {
        "results": [result.to_dict() for result in results],
        "comparisons": [asdict(one) | {"sentence": text} for one, text in zip(compared, words, strict=True)],
        "trends": [asdict(one) | {"sentence": trend_sentence(study, one)} for one in trends],
        "sentences": [*sentences, *(sentence for gap in gaps for sentence in gap["sentences"])],
        "published": published,
        "gaps": gaps,
    }


def _part_results(
    study: Record, part: Record, points: Sequence[Record], answers: Sequence[Record], by_id: Mapping[str, Record]
) -> Iterator[Result]:
    name = part["name"]
    levels = study["levels"].get(name, {})
    told = {"part": name, "levels": levels, "title": _title(study, levels) or part["title"]}
    if part["plan"]["search"]["axis"] != "none":
        for place, answer in enumerate(answer for answer in answers if answer["part"] == name):
            yield _of_answer(answer, by_id, place, told)
        return
    # In the order of the plan's workloads, whichever ran first.
    for place, point in enumerate(point for point in points if point["part"] == name):
        yield _of_point(point, place, told)


def _title(study: Record, levels: Mapping[str, str]) -> str:
    return ", ".join(
        level_label(study, factor["name"], levels[factor["name"]])
        for factor in study["factors"]
        if factor["name"] in levels
    )


def level_label(study: Record, factor: str, key: str) -> str:
    """The label of a level."""
    levels = next(known["levels"] for known in study["factors"] if known["name"] == factor)
    return str(next(level["label"] for level in levels if level["key"] == key))


def _of_answer(answer: Record, by_id: Mapping[str, Record], place: int, told: dict[str, Any]) -> Result:
    best = answer["max"]
    of_database = _is_of_database(answer)
    result = Result(
        **told,
        workload=answer["workload"]["name"],
        load=None,
        place=place,
        values={},
        limited_by=answer["limited_by"],
        reason=f"no load met the limits ({answer['limited_by']})" if best is None else "",
    )
    if best is None:
        return result
    interval = answer["interval_95"]
    first, second = ("nopm", "tpm") if of_database else ("iops", "bytes_per_s")
    values: dict[str, Any] = {first: (best[first], tuple(interval) if interval else None)}
    values[second] = _scaled(values[first], best[second] / best[first] if best[first] else 0.0)
    point = by_id.get(best["point_id"])
    if point is not None:
        values |= _of_storage(point) if of_database else _latencies(point)
    # The search gives the band in I/Os per second.
    band = answer.get("band_90")
    return replace(
        result,
        values=values,
        point_ids=(best["point_id"],),
        band_90=tuple(band) if band else None,
        band_basis=answer.get("band_basis"),
    )


def _of_point(point: Record, place: int, told: dict[str, Any]) -> Result:
    result = Result(
        **told,
        workload=point["workload"]["name"],
        load=load_text(point["load"]),
        place=place,
        values={},
        reason=_doubt(point),
        point_ids=(point["id"],),
    )
    if _is_of_database(point):
        return replace(result, values=_of_transactions(point))
    total = point["total"]
    if not total:
        return result
    values: dict[str, Any] = {"iops": _with_interval(total["iops"], point["batches"]["total"]["iops"])}
    values["bytes_per_s"] = _scaled(values["iops"], total["bytes_per_s"] / total["iops"] if total["iops"] else 0.0)
    band = point.get("band_90")
    return replace(
        result,
        values=values | _latencies(point),
        band_90=tuple(band) if band else None,
        band_basis=point.get("band_basis"),
    )


def _doubt(point: Record) -> str:
    of_database = _is_of_database(point)
    if of_database and not point["oltp"]["nopm"]:
        return "no new order was committed"
    if not of_database and not point["total"]:
        return "no I/O ended"
    if point["errors"]["count"]:
        return f"{point['errors']['count']:,} transactions failed" if of_database else "I/O errors"
    if point["generator"]["saturated"]:
        return "the load generator was the bottleneck"
    return "" if point["ended_by"] in ("steady", "time") else f"the point was cut short ({point['ended_by']})"


Value = tuple[float, tuple[float, float] | None]


def _latencies(point: Record) -> dict[str, Value]:
    return {
        f"{side}_latency": _with_interval(point[side]["latency_ns"]["mean"], point["batches"][side]["latency_mean_ns"])
        for side in ("read", "write")
        if point[side]
    }


def _is_of_database(record: Record) -> bool:
    """Whether a point or an answer is of transactions."""
    return bool(record["workload"].get("kind") == "tpcc")


def _of_transactions(point: Record) -> dict[str, Value]:
    """Figures of a point of transactions, and what its storage did meanwhile."""
    oltp, batches = point["oltp"], point["batches"]["total"]["nopm"]
    values = {"nopm": _with_interval(oltp["nopm"], batches)}
    values["tpm"] = _scaled(values["nopm"], oltp["tpm_client"] / oltp["nopm"] if oltp["nopm"] else 0.0)
    if batches:
        values["nopm_lowest"] = (min(batches), None)
    return values | _of_storage(point)


def _of_storage(point: Record) -> dict[str, Value]:
    """Response time of new orders, and means of the data's and the log's storage, where they are known."""
    latency = point["oltp"]["by_transaction"]["new_order"]["latency_ns"]
    data = point["roles"].get("data") or {}
    total, log = data.get("total") or {}, point["roles"].get("log") or {}

    def mean(direction: Record | None) -> float | None:
        return direction["latency_ns"]["mean"] if direction else None

    known = {
        "response_p90": latency["p90"] if latency else None,
        "iops": total.get("iops"),
        "bytes_per_s": total.get("bytes_per_s"),
        "read_latency": mean(data.get("read")),
        "write_latency": mean(data.get("write")),
        "data_write_latency": mean(data.get("write")),
        "log_write_latency": mean(log.get("write")),
    }
    return {name: (float(value), None) for name, value in known.items() if value is not None}


def _with_interval(value: float, batches: Sequence[float | None]) -> Value:
    half = half_width_95([batch for batch in batches if batch is not None])
    return value, None if half == math.inf else (max(value - half, 0.0), value + half)


def _scaled(value: Value, factor: float) -> Value:
    figure, interval = value
    return figure * factor, (interval[0] * factor, interval[1] * factor) if interval else None


def _over_repeats(found: Sequence[Result]) -> list[Result]:
    """One result for all repeats of a combination and place, in the order of the first ones."""
    pools: dict[tuple[Any, ...], list[Result]] = {}
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


def _pooled(pool: Sequence[Result]) -> Result:
    """Means over repeats; the interval covers every repeat, as that of a search does."""
    first = pool[0]
    held = [result for result in pool if result.values]
    values: dict[str, Value] = {}
    if len(held) == len(pool):
        for name in first.values:
            figures = [result.values[name] for result in pool if name in result.values]
            mean = sum(value for value, _ in figures) / len(figures)
            halves = [(interval[1] - interval[0]) / 2 for _, interval in figures if interval]
            interval = None
            if len(halves) == len(figures):
                half = math.hypot(*halves) / len(figures)
                each = [value for value, _ in figures]
                interval = (max(min(mean - half, *each), 0.0), max(mean + half, *each))
            values[name] = (mean, interval)
    reason = next((result.reason for result in pool if result.reason), "")
    return replace(
        first,
        values=values,
        reason=reason or ("" if values else "no load met the limits in every repeat"),
        point_ids=tuple(point_id for result in pool for point_id in result.point_ids),
    )


# Comparisons


def _with_series(study: Record, results: Sequence[Result]) -> list[Result]:
    """The results with the names of their series: the workload where parts have several, else the other levels."""
    if study["comparison"] is None:
        return list(results)
    by = study["comparison"]["by"]
    varied = [factor["name"] for factor in study["factors"] if len(factor["levels"]) > 1 and factor["name"] != by]
    several = any(result.place for result in results)
    loads: dict[tuple[Any, ...], set[str | None]] = {}
    for result in results:
        loads.setdefault(_series_key(result, by), set()).add(result.load)

    def levels_of(result: Result) -> str:
        return ", ".join(level_label(study, name, result.levels[name]) for name in varied if name in result.levels)

    def workload_of(result: Result) -> str:
        same = len(loads[_series_key(result, by)]) == 1 and result.load
        return result.workload + (f", {result.load}" if same else "")

    if not several:
        return [replace(result, series=levels_of(result)) for result in results]
    told = len({workload_of(result) for result in results}) == len(loads)
    return [
        replace(result, series=workload_of(result) if told else f"{levels_of(result)}, {workload_of(result)}")
        for result in results
    ]


def _series_key(result: Result, by: str) -> tuple[Any, ...]:
    return tuple((name, key) for name, key in result.levels.items() if name != by), result.place


@dataclass(frozen=True, kw_only=True)
class Series:
    """Results that differ in the compared factor alone, by its levels in their order."""

    name: str
    results: dict[str, Result]


def _series(study: Record, results: Sequence[Result]) -> list[Series]:
    by = study["comparison"]["by"]
    found: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        if by in result.levels:
            found.setdefault(_series_key(result, by), []).append(result)
    order = [level["key"] for factor in study["factors"] if factor["name"] == by for level in factor["levels"]]
    made = []
    for group in found.values():
        rising = sorted(group, key=lambda result: order.index(result.levels[by]))
        made.append(Series(name=rising[0].series, results={result.levels[by]: result for result in rising}))
    return made


def _compare_series(study: Record, series: Series) -> Iterator[Compared]:
    wanted = study["comparison"]
    by, baseline = wanted["by"], wanted["baseline"]
    key = next(
        level["key"]
        for factor in study["factors"]
        if factor["name"] == by
        for level in [*factor["levels"], {"key": None, "label": baseline}]
        if baseline in (level["key"], level["label"])
    )
    base = series.results.get(key)
    for level, result in series.results.items():
        if base is not None and level != key:
            yield _compare(study, series.name, result, base)


def _compare(study: Record, series: str, one: Result, base: Result) -> Compared:
    wanted = study["comparison"]
    figure, by = wanted["figure"], wanted["by"]
    values = [result.values.get(figure) for result in (one, base)]
    estimate = ratio_95(values[0], values[1])
    bands = [_band(result, figure) for result in (one, base)]
    reasons = [f"{level_label(study, by, r.levels[by])}: {r.reason}" for r in (one, base) if r.reason]
    return Compared(
        part=one.part,
        place=one.place,
        figure=figure,
        unit=UNITS[figure],
        series=series,
        level=level_label(study, by, one.levels[by]),
        baseline=level_label(study, by, base.levels[by]),
        value=values[0][0] if values[0] else None,
        baseline_value=values[1][0] if values[1] else None,
        ratio=values[0][0] / values[1][0] if values[0] and values[1] and values[1][0] else None,
        interval_95=estimate,
        differs=None if estimate is None or reasons else estimate[0] > 1 or estimate[1] < 1,
        band_90=bands[0],
        baseline_band_90=bands[1],
        # The level that was measured less says more.
        band_basis=max(one.band_basis or "", base.band_basis or "", key=len) or None,
        reason="; ".join(reasons),
    )


def _band(result: Result, figure: str) -> tuple[float, float] | None:
    """The model's band for the figure; it is given for I/Os, and bytes follow them. None for latencies."""
    if result.band_90 is None or figure not in ("iops", "bytes_per_s") or "iops" not in result.values:
        return None
    factor = result.values[figure][0] / result.values["iops"][0] if result.values["iops"][0] else 0.0
    return result.band_90[0] * factor, result.band_90[1] * factor


def ratio_95(one: Value | None, base: Value | None) -> tuple[float, float] | None:
    """95 % interval of one figure over another; None where either has none."""
    if one is None or base is None or one[1] is None or base[1] is None:
        return None
    if min(one[0], base[0], *one[1], *base[1]) <= 0:
        return None
    estimate = by_answer_intervals(base[0], one[0], base[1], one[1])
    return math.exp(estimate.low), math.exp(estimate.high)


def _trend(study: Record, series: Series) -> Iterator[Trend]:
    """Whether the figure rises or falls over all levels, and where it is largest and least."""
    by, figure = study["comparison"]["by"], study["comparison"]["figure"]
    factor = next(factor for factor in study["factors"] if factor["name"] == by)
    held = [(key, result.values[figure]) for key, result in series.results.items()
            if figure in result.values and not result.reason]  # fmt: skip
    if len(held) < 3:
        return
    steps = [(later[0] - sooner[0], ratio_95(later, sooner)) for (_, sooner), (_, later) in itertools.pairwise(held)]
    clear = sum(1 for _, interval in steps if interval and (interval[0] > 1 or interval[1] < 1))
    direction = None
    if factor["ordered"] and all(step < 0 for step, _ in steps):
        direction = "fall"
    elif factor["ordered"] and all(step > 0 for step, _ in steps):
        direction = "rise"
    least, most = (pick(held, key=lambda pair: pair[1][0]) for pick in (min, max))
    yield Trend(
        figure=figure,
        unit=UNITS[figure],
        series=series.name,
        ordered=factor["ordered"],
        direction=direction,
        steps=len(steps),
        clear_steps=clear,
        values=tuple(value for _, (value, _) in held),
        levels=tuple(level_label(study, by, key) for key, _ in held),
        most=level_label(study, by, most[0]),
        least=level_label(study, by, least[0]),
    )

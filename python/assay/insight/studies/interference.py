"""What a load and another one beside it do to each other, and what storage of their own would bring."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.insight.studies.result import StudyResult, Value, ratio_95
from assay.insight.studies.words import MORE_RUNS, capital, change_text, noun_of, percent_text
from assay.record.shapes.manifest import Part
from assay.record.shapes.point import Beside, BesideQueries, Point
from assay.record.shapes.study import BesideLoad, Study
from assay.record.steady import geometric_mean_95
from assay.workloads.databases.figures import CPU_BUSY_SHARE


def interference_findings(
    study: Study, parts: Sequence[Part], points: Sequence[Point], results: Sequence[StudyResult]
) -> list[BesideLoad]:
    """The manifest's `beside` (docs/studies.md): each point that another load ran beside.

    Parameters
    ----------
    study, parts, points
        The manifest's `study` as it was at the start and its `parts`, and the run's points.
    results
        One for each combination of levels.
    """
    beside = {part["name"] for part in parts if part.get("beside")}
    factor = next((one["name"] for one in study["factors"] if one.get("of") == "beside"), "")
    compared = study.get("comparison")
    found: list[BesideLoad] = []
    by_place: dict[str, BesideLoad] = {}
    for result in results:
        repeats = [point for point in points if point["id"] in result.point_ids and point.get("beside")]
        if not repeats or result.part not in beside:
            continue
        told = over_repeats([one for point in repeats if (one := point["beside"]) is not None])
        busy = [(point.get("telemetry") or {}).get("cpu_share") for point in repeats]
        found.append({
            "part": result.part, "point_ids": list(result.point_ids), "title": result.title, "load": str(told["title"]),
            "target": [text for text in told["target"] if text is not None], "alone": told["alone"],
            "together": told["together"],
            "slowdown": told["slowdown"], "slowdown_95": told["slowdown_95"],
            "cpu_share": _mean([share for share in busy if share is not None]),
            "sentences": [
                f"{result.title}: nothing can be said of what the queries lose: {result.reason}."
                if result.reason else _slowdown_sentence(result.title, told, len(repeats))
            ],
        })  # fmt: skip
        by_place[result.levels.get(factor, "")] = found[-1]
    if {"same", "apart"} <= set(by_place) and compared:
        values = {result.part: None if result.reason else result.values.get(compared["figure"]) for result in results}
        one_run = any(result.one_run for result in results)
        same, apart = by_place["same"], by_place["apart"]
        by_place["apart"]["sentences"].append(_apart_sentence(compared["figure"], values, same, apart, one_run=one_run))
    elif "same" in by_place:
        by_place["same"]["sentences"].append(
            "What other storage would bring was not measured: at most what both lose together."
            + _cpu_words(by_place["same"])
        )
    return found


def over_repeats(each: Sequence[Beside]) -> Beside:
    """What a load did beside the same point in several repeats.

    Queries are counted and their times averaged. The slowdown is the geometric mean; its interval covers every repeat,
    as those of other figures do.
    """
    if len(each) == 1:
        return each[0]
    factors = [one["slowdown"] for one in each if one["slowdown"] is not None]
    ends = [one["slowdown_95"] for one in each if one["slowdown_95"] is not None]
    middle, interval = geometric_mean_95(factors) if factors else (None, None)
    if middle is not None and len(ends) == len(factors) and all(low > 0 for low, _ in ends):
        half = math.hypot(*(math.log(high / low) / 2 for low, high in ends)) / len(ends)
        interval = (middle / math.exp(half), middle * math.exp(half))
    return {
        **each[0],
        "alone": _over_queries([one["alone"] for one in each]),
        "together": _over_queries([one["together"] for one in each]),
        "slowdown": middle,
        "slowdown_95": [min(interval[0], *factors), max(interval[1], *factors)] if interval else None,
    }  # fmt: skip


def _over_queries(each: Sequence[BesideQueries]) -> BesideQueries:
    means = [one["mean_s"] for one in each]
    return {
        "queries": sum(one["queries"] for one in each),
        "mean_s": _mean([mean for mean in means if mean is not None]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _slowdown_sentence(title: str, told: Beside, repeats: int) -> str:
    if told["slowdown"] is None:
        return f"{title}: no query ended while the point was measured, so what they lose is not known."
    ends = told["slowdown_95"]
    interval = f" (95 % interval {ends[0]:.2f} to {ends[1]:.2f})" if ends else ""
    counts = f"{told['together']['queries']:,} queries together, {told['alone']['queries']:,} alone"
    counts += f", in {repeats} repeats" if repeats > 1 else ""
    if ends and ends[0] <= 1 <= ends[1]:
        return (
            f"{title}: no difference was found in how long a query takes: {told['slowdown']:.2f} times{interval};"
            f" {counts}."
        )
    return f"{title}: a query takes {told['slowdown']:.2f} times as long as alone{interval}; {counts}."


def _apart_sentence(
    figure: str, values: Mapping[str, Value | None], same: BesideLoad, apart: BesideLoad, *, one_run: bool
) -> str:
    one, other = values.get(apart["part"]), values.get(same["part"])
    if one is None or other is None or not other[0]:
        return "What other storage brings cannot be told: a level has no result."
    ratio = one[0] / other[0]
    interval = ratio_95(one, other, one_run=one_run)
    change = change_text(ratio, interval)
    if interval is None or (one_run and interval[0] <= 1 <= interval[1]):
        text = f"Whether separating the storage brings anything is not known ({MORE_RUNS}): {change}."
    elif interval[0] <= 1 <= interval[1]:
        text = f"Separating the storage brings nothing that was found: {change} {noun_of(figure)}."
    else:
        text = f"Separating the storage brings {change} {noun_of(figure)}."
    return text + _cpu_words(apart)


def _cpu_words(one: BesideLoad) -> str:
    share = one["cpu_share"]
    if share is None or share < CPU_BUSY_SHARE:
        return ""
    return (
        f" The host's processors were {percent_text(share)} busy: both loads share them, and a host of its own for one"
        " would bring what storage cannot."
    )


def sentences_of(found: Sequence[BesideLoad]) -> list[str]:
    """All sentences, in the order of the levels."""
    return [capital(sentence) for one in found for sentence in one["sentences"]]

"""What follows from a study: the choice that its figures speak for, and what they leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.base.tables import Record
from assay.document.text import joined, percent
from assay.insight.studies.raw_gap import gap_shares
from assay.insight.studies.result import study_figures
from assay.insight.studies.words import capacity_texts, capital, ending_of, figure_text, noun_of, why_not_shown
from assay.record.shapes.study import RawGap, Result
from assay.record.source import records

ENOUGH = 0.05
"""Steps that bring less altogether do not pay: as of a knee."""
SERIES_NAMED = 3
"""Series that a sentence names; of more it gives the number of the others."""
NEAR = 0.10
"""A model that is so near to what was published may be asked about levels that were not."""


def follows_of(study: Record) -> list[str]:
    """What follows from a study, in sentences; empty where nothing was found."""
    if study.get("published"):
        return _of_published(records(study["published"]))
    compared = records(study.get("comparisons"))
    texts = [*_of_comparisons(study), *_of_capacity(study), *_of_gaps(study.get("gaps") or [])]
    if any(one.get("ratio") and one.get("differs") is None and not one.get("reason") for one in compared):
        texts.append(
            "One run of each level does not tell what varies between runs: the study needs three repeats before a"
            " choice rests on it."
        )
    return texts


def _of_comparisons(study: Record) -> list[str]:
    """A sentence for each series, or for all series of which the same is to be said."""
    series: dict[str, list[str]] = {}
    for trend in records(study.get("trends")):
        levels, values = trend.get("levels") or [], trend.get("values") or []
        own = [one for one in records(study.get("comparisons"))
               if one.get("series") == trend.get("series") and one.get("figure") == trend.get("figure")]  # fmt: skip
        text = _of_trend(trend, dict(zip(levels, values, strict=False)), own, study)
        if text:
            series.setdefault(text, []).append(str(trend.get("series") or ""))
    return [capital(_of_series(names) + text) for text, names in series.items()]


def _of_series(names: Sequence[str]) -> str:
    told = [name for name in dict.fromkeys(names) if name]
    if not told:
        return ""
    more = [f"{len(told) - SERIES_NAMED} more"] if len(told) > SERIES_NAMED else []
    return f"{'; '.join([*told[:SERIES_NAMED], *more])}: "


def _title(study: Record) -> str:
    """What is compared, as axes name it."""
    by = (study.get("comparison") or {}).get("by")
    return next((str(one.get("title")) for one in records(study.get("factors")) if one.get("name") == by), "it")


def _of_trend(trend: Record, values: Mapping[str, float], compared: Sequence[Record], study: Record) -> str:
    if not values:
        return ""
    figure, unit, title = str(trend.get("figure")), str(trend.get("unit")), _title(study)
    known = study_figures().get(figure)
    noun = noun_of(figure)
    decided = [one for one in compared if one.get("differs") is not None]
    is_state = (study.get("comparison") or {}).get("states")
    if decided and not any(one["differs"] for one in decided):
        if is_state:
            return f"{capital(noun)} {'are' if not ending_of(unit) else 'is'} the same at {joined(values)}."
        does = "does" if ending_of(unit) else "do"
        return f"{noun} {does} not decide between {joined(values)}: choose by cost, capacity or ease of operation."
    if known is None or known.better is None or not decided:
        return ""
    is_more = known.better == "higher"
    ranked = sorted(values, key=lambda level: values[level], reverse=is_more)
    best, worst = ranked[0], ranked[-1]
    alike = trend.get("most_levels" if is_more else "least_levels") or [best]
    shown = figure_text(values[best], unit)
    if is_state:
        return (
            f"The {title} is no choice: size with {figure_text(values[worst], unit)} at {worst}, not {shown} at {best}."
        )
    if trend.get("ordered") and trend.get("direction"):
        last = list(values)[-1]
        if (trend["direction"] == "rise") == is_more:
            return _of_steps(values, values[best], unit, title, is_more=is_more)
        return (
            f"Size with the figure of the level that will be reached: {figure_text(values[last], unit)} at {last}, not"
            f" {shown} at {best}."
        )
    deciding, choice = f"Where {noun} decide{ending_of(unit)}", " or ".join(alike)
    if any(why_not_shown(one.get("band_90"), one.get("baseline_band_90"), one.get("band_basis")) for one in compared):
        return f"{deciding}, {choice} is likely the choice ({shown}), which the model does not show: measure it first."
    return f"{deciding}, choose {choice} ({shown})."


def _of_steps(values: Mapping[str, float], best: float, unit: str, title: str, *, is_more: bool) -> str:
    """How far steps that make a figure better pay: to the first level that is as good as the best but for `ENOUGH`."""
    enough = next(
        level
        for level, value in values.items()
        if (value >= best * (1 - ENOUGH) if is_more else value <= best * (1 + ENOUGH))
    )
    shown = figure_text(values[enough], unit)
    if enough == list(values)[-1]:
        return f"Each step of {title} pays, as far as {enough} ({shown})."
    return f"Go as far as {enough} ({shown}): what is beyond brings less than {percent(ENOUGH)}."


def _of_capacity(study: Record) -> list[str]:
    results: Sequence[Result] = study.get("results") or []
    held = [(result, size) for result in results if (size := result.get("capacity")) and size.get("usable_bytes")]
    sizes = {str(result["title"]): float(size["usable_bytes"]) for result, size in held}
    if len(set(sizes.values())) < 2:
        return []
    most = max(sizes, key=lambda title: sizes[title])
    shown = next(capacity_texts(result)[1] for result, _ in held if result["title"] == most)
    survived = {str(result["title"]): size.get("survives") for result, size in held}
    told = joined(f"{title} {'none' if count == 0 else count}" for title, count in survived.items())
    lost = f"; disk failures in a group that lose no data: {told}" if None not in survived.values() else ""
    return [f"Where space decides, choose {most} ({shown} usable){lost}."]


def _of_gaps(gaps: Sequence[RawGap]) -> list[str]:
    return [
        f"Derate raw profiles of this storage{' read in order' if in_order else ''} by {percent(fmean(each))} when a"
        " database is sized by them."
        for in_order, each in gap_shares(gaps).items()
        if fmean(each) > 0
    ]


def _of_published(rows: Sequence[Record]) -> list[str]:
    known = [row for row in rows if row.get("error_share") is not None]
    texts = []
    near = [str(row["title"]) for row in known if abs(row["error_share"]) <= NEAR]
    far = [f"{row['title']} ({row['error_share'] * 100:+.0f} %)" for row in known if abs(row["error_share"]) > NEAR]
    if near:
        texts.append(f"The models may stand in for a measurement, within their bands, in: {'; '.join(near)}.")
    if far:
        texts.append(
            f"Measure instead of predicting in: {'; '.join(far)}; the model is more than {percent(NEAR)} off there."
        )
    broken = [str(row["title"]) for row in rows if row.get("kind") == "order" and row.get("holds") is False]
    if broken:
        texts.append(f"The models do not keep this published order, and say nothing of it: {'; '.join(broken)}.")
    return texts

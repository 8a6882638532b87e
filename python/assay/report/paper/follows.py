"""What follows from a study: the choice that its figures speak for, and what they leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.document.text import joined, percent
from assay.results.source import Record, records
from assay.studies.raw_gap import gap_shares
from assay.studies.result import study_figures
from assay.studies.words import capacity_texts, capital, figure_text, noun_of

NEAR = 0.10
"""A model that is so near to what was published may be asked about levels that were not."""


def follows_of(study: Record) -> list[str]:
    """What follows from a study, in sentences; empty where nothing was found."""
    if study.get("published"):
        return _of_published(records(study["published"]))
    texts = [*_of_comparisons(study), *_of_capacity(study), *_of_gaps(records(study.get("gaps")))]
    unsure = [one for one in records(study.get("comparisons")) if one.get("ratio") and not one.get("interval_95")]
    if unsure:
        texts.append("Some figures have no interval: repeat the study with --repeats 3 before a choice rests on them.")
    return texts


def _of_comparisons(study: Record) -> list[str]:
    texts = []
    for trend in records(study.get("trends")):
        levels, values = trend.get("levels") or [], trend.get("values") or []
        own = [one for one in records(study.get("comparisons"))
               if one.get("series") == trend.get("series") and one.get("figure") == trend.get("figure")]  # fmt: skip
        text = _of_trend(trend, dict(zip(levels, values, strict=False)), own, _title(study))
        if text:
            before = f"{trend['series']}: " if trend.get("series") else ""
            texts.append(capital(before + text))
    return list(dict.fromkeys(texts))


def _title(study: Record) -> str:
    """What is compared, as axes name it."""
    by = (study.get("comparison") or {}).get("by")
    return next((str(one.get("title")) for one in records(study.get("factors")) if one.get("name") == by), "it")


def _of_trend(trend: Record, values: Mapping[str, float], compared: Sequence[Record], title: str) -> str:
    if not values:
        return ""
    figure = str(trend.get("figure"))
    known = study_figures().get(figure)
    noun, unit = noun_of(figure), str(trend.get("unit"))
    decided = [one for one in compared if one.get("differs") is not None]
    if decided and not any(one["differs"] for one in decided):
        return f"{noun} do not decide between {joined(values)}: choose by cost, capacity or ease of operation."
    if known is None or known.better is None or not decided:
        return ""
    best = (max if known.better == "higher" else min)(values, key=lambda level: values[level])
    shown = figure_text(values[best], unit)
    if trend.get("ordered") and trend.get("direction"):
        last = list(values)[-1]
        if best == last:
            return f"Each step of {title} pays, as far as {last} ({shown})."
        return (
            f"Size with the figure of the level that will be reached: {figure_text(values[last], unit)} at {last}, not"
            f" {shown} at {best}."
        )
    return f"Where {noun} decide, choose {best} ({shown})."


def _of_capacity(study: Record) -> list[str]:
    held = [result for result in records(study.get("results")) if (result.get("capacity") or {}).get("usable_bytes")]
    sizes = {str(result["title"]): float(result["capacity"]["usable_bytes"]) for result in held}
    if len(set(sizes.values())) < 2:
        return []
    most = max(sizes, key=lambda title: sizes[title])
    shown = next(capacity_texts(result)[1] for result in held if result["title"] == most)
    return [f"Where space decides, choose {most} ({shown} usable)."]


def _of_gaps(gaps: Sequence[Record]) -> list[str]:
    return [
        f"Derate raw profiles of this storage{' read in order' if in_order else ''} by {percent(fmean(each))} when a"
        " database is sized by them (assay size --derating)."
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

"""The first sentences of a study: what its question is answered with, and what was published on the same question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.base.tables import Record
from assay.base.units import count_of
from assay.document.text import joined
from assay.insight.studies.result import StudyResult, unit_of
from assay.insight.studies.words import (
    MORE_RUNS,
    LevelAgainstBaseline,
    capital,
    change_text,
    compared_in,
    figure_text,
    grammar_of,
    noun_of,
    why_not_shown,
)
from assay.record.shapes.study import Study
from assay.record.source import records

SERIES_MAX = 3
"""Series that get an answer of their own; of more each level has one sentence over all of them."""
NAMED_MAX = 4
"""Series that a sentence over all of them names."""


def answer_sentences(
    study: Study, series: Mapping[str, Sequence[StudyResult]], compared: Sequence[LevelAgainstBaseline]
) -> list[str]:
    """The answer of a study in one sentence for each series, or over all of them, and what was published.

    Parameters
    ----------
    study
        The manifest's `study`.
    series
        Results by the name of their series, by the levels of the compared factor in their order.
    compared
        Every level against the baseline.
    """
    wanted = compared_in(study)
    if not wanted.get("answer"):
        return published_words(study)
    asked = wanted.get("answer_for") or []
    chosen = {name: held for name, held in series.items() if not asked or name in asked} or dict(series)
    if len(chosen) > SERIES_MAX:
        told = _over_series([one for one in compared if one.series in chosen])
    else:
        many = len(chosen) > 1
        told = [
            _of_series(study, name if many else "", held, [one for one in compared if one.series == name])
            for name, held in chosen.items()
        ]
    return [text for text in told if text] + published_words(study)


def published_words(study: Study | Record) -> list[str]:
    """What was published on the question of a study, each with its source."""
    return [f"Published ({one['source']}): {one['text']}" for one in records(study.get("said"))]


def _of_series(
    study: Study, name: str, results: Sequence[StudyResult], compared: Sequence[LevelAgainstBaseline]
) -> str:
    wanted = compared_in(study)
    figure = wanted["figure"]
    held = [(result, result.values[figure][0]) for result in results if figure in result.values and not result.reason]
    if not held or len(results) < 2:
        return ""
    unit = unit_of(figure)
    by = {level["key"]: level["label"] for factor in study["factors"] if factor["name"] == wanted["by"]
          for level in factor["levels"]}  # fmt: skip
    named = [(by[result.levels[wanted["by"]]], figure_text(value, unit)) for result, value in held]
    values = joined(f"{value} ({label})" for label, value in named)
    if grammar_of(unit).is_plural:
        label, value = named[0]
        values = joined([f"{value} {noun_of(figure)} ({label})", *(f"{value} ({label})" for label, value in named[1:])])
    template = wanted.get("answer") or "{values}"
    before = f"{name}: " if name else ""
    return capital(before + template.replace("{values}", values) + _judged(compared) + ".")


def _judged(compared: Sequence[LevelAgainstBaseline]) -> str:
    """Whether the levels of a series differ."""
    known = [one for one in compared if one.ratio is not None and not one.reason]
    if not known:
        return ""
    if all(one.differs is False for one in known):
        return "; no difference was found"
    if not any(one.differs for one in known):
        return f"; whether they differ is not known ({MORE_RUNS})"
    if doubts := _doubts([one for one in known if one.differs]):
        return f"; that order is likely, and not shown: {max(doubts, key=len)}"
    alike = [one.level for one in known if one.differs is False]
    return f"; no difference was found between {joined([known[0].baseline, *alike])}" if alike else ""


def _doubts(compared: Sequence[LevelAgainstBaseline]) -> list[str]:
    """Why a model does not show the order of levels that differ."""
    found = (why_not_shown(one.band_90, one.baseline_band_90, one.band_basis) for one in compared)
    return [text for text in found if text]


def _over_series(compared: Sequence[LevelAgainstBaseline]) -> list[str]:
    """What each level does, over many series: in which it differs from the baseline, and in which it does not."""
    told = []
    for level in dict.fromkeys(one.level for one in compared):
        own = [one for one in compared if one.level == level and one.ratio is not None and not one.reason]
        if not own:
            continue
        noun, parts = noun_of(own[0].figure), []
        rise = [one for one in own if one.differs and (one.ratio or 0) > 1]
        fall = [one for one in own if one.differs and (one.ratio or 0) < 1]
        for found, word in ((rise, grammar_of(own[0].unit).more), (fall, grammar_of(own[0].unit).less)):
            if found:
                parts.append(f"{word} {noun} in {_named(found, changes=True)}")
        if alike := [one for one in own if one.differs is False]:
            parts.append(f"no difference in {_named(alike)}")
        if unknown := [one for one in own if one.differs is None]:
            parts.append(f"not known in {_named(unknown)}")
        doubts = _doubts([*rise, *fall])
        not_shown = f"; these orders are likely, and not shown: {max(doubts, key=len)}" if doubts else ""
        told.append(capital(f"{level} against {own[0].baseline}: {'; '.join(parts)}{not_shown}."))
    return told


def _named(found: Sequence[LevelAgainstBaseline], *, changes: bool = False) -> str:
    """Series by name where they are few, else how many and how far they go."""
    if len(found) <= NAMED_MAX:
        return joined(f"{one.series} ({change_text(one.ratio or 0, None)})" if changes else one.series for one in found)
    ends = sorted(found, key=lambda one: one.ratio or 0)
    reach = f" ({change_text(ends[0].ratio or 0, None)} to {change_text(ends[-1].ratio or 0, None)})"
    return f"{count_of(len(found), 'workload')}{reach if changes else ''}"

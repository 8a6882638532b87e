"""How figures go over the levels of a study, and its headline sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from assay.insight.studies.words import (
    ALL_SAID,
    MORE_RUNS,
    LevelAgainstBaseline,
    capital,
    compared_in,
    comparison_sentence,
    far_ends,
    figure_text,
    grammar_of,
    noun_of,
    published_sentences,
)
from assay.record.shapes.study import PublishedFigure, Study


@dataclass(frozen=True, kw_only=True)
class LevelTrend:
    """How a figure goes over all levels of one series; `clear_steps` are those beyond their interval.

    Levels that cannot be told from the largest, or the least, are `most_levels` and `least_levels`, in their order;
    `doubt` is why a model makes the order of the largest and the least likely and does not show it; `unknown`, that one
    run of each level tells no order.
    """

    figure: str
    unit: str
    series: str
    ordered: bool
    direction: str | None
    steps: int
    clear_steps: int
    values: tuple[float, ...]
    levels: tuple[str, ...]
    most: str
    least: str
    most_levels: tuple[str, ...]
    least_levels: tuple[str, ...]
    doubt: str
    unknown: bool = False


def study_sentences(
    study: Study,
    compared: Sequence[LevelAgainstBaseline],
    trends: Sequence[LevelTrend],
    published: Sequence[PublishedFigure],
) -> list[str]:
    """The headline sentences: every comparison where they are few, else what they come to, series by series."""
    if published:
        return published_sentences(published)
    if len(compared) <= ALL_SAID:
        said = [comparison_sentence(study, one) for one in compared]
        # That nothing is known of the order, the answer says.
        has_answer = study["comparison"] is not None and bool(study["comparison"].get("answer"))
        return said + [trend_sentence(study, one) for one in trends if not (one.unknown and has_answer)]
    return [*far_ends(study, compared), *_summed_trends(study, trends)]


def trend_sentence(study: Study, one: LevelTrend) -> str:
    """How the figure goes over the levels."""
    noun = noun_of(one.figure)
    before = f"{one.series}: " if one.series else ""
    listed = ", ".join(
        f"{level} {figure_text(value, one.unit)}" for level, value in zip(one.levels, one.values, strict=True)
    )
    are, do = grammar_of(one.unit).are, grammar_of(one.unit).ending
    if len(one.most_levels) == len(one.levels) and one.unknown:
        return capital(f"{before}whether {noun} differ{do} between the levels is not known ({MORE_RUNS}): {listed}.")
    if len(one.most_levels) == len(one.levels):
        return capital(f"{before}no difference in {noun} was found between the levels: {listed}.")
    likely, not_shown = ("likely ", f", which is not shown: {one.doubt}") if one.doubt else ("", "")
    if one.direction is None:
        how = f"{noun} {are} {likely}largest at {_either(one.most_levels)} and least at {_either(one.least_levels)}"
        if one.ordered:
            how = (
                f"{noun} {likely}neither rise{do} nor fall{do} throughout and {are} largest at"
                f" {_either(one.most_levels)}"
            )
        return capital(f"{before}{how}{not_shown}: {listed}.")
    title = _compared_title(study)
    unsure = one.steps - one.clear_steps
    where = f"at every step of {title}"
    if unsure:
        ends = f"from {one.levels[0]} to {one.levels[-1]}"
        where = f"{ends}, with {unsure} of {one.steps} steps within {'its' if unsure == 1 else 'their'} interval"
    return capital(f"{before}{noun} {likely}{one.direction}{do} {where}{not_shown}: {listed}.")


def _either(levels: Sequence[str]) -> str:
    """Levels that cannot be told apart.

    Examples
    --------
    >>> _either(["RAID 10"]), _either(["RAID 5", "RAID 50", "RAID 10"])
    ('RAID 10', 'RAID 5, RAID 50 or RAID 10')
    """
    return " or ".join(text for text in (", ".join(levels[:-1]), levels[-1]) if text)


def _compared_title(study: Study) -> str:
    by = compared_in(study)["by"]
    return str(next(factor["title"] for factor in study["factors"] if factor["name"] == by))


def _summed_trends(study: Study, trends: Sequence[LevelTrend]) -> list[str]:
    if len(trends) <= 2:
        return [trend_sentence(study, one) for one in trends]
    noun = noun_of(trends[0].figure)
    are, do = grammar_of(trends[0].unit).are, grammar_of(trends[0].unit).ending
    not_shown = f", which is not shown: {doubts[0]}" if (doubts := [one.doubt for one in trends if one.doubt]) else ""
    likely = "likely " if doubts else ""
    if not trends[0].ordered:
        counts = Counter(_either(one.most_levels) for one in trends if len(one.most_levels) < len(one.levels))
        largest = [f"at {level} in {count}" for level, count in counts.most_common()]
        alike = len(trends) - counts.total()
        without = f"; in {alike} no difference between the levels was found" if alike else ""
        if not largest:
            return [capital(f"no difference in {noun} between the levels was found in any of {len(trends)} workloads.")]
        return [
            capital(
                f"{noun} {are} {likely}largest {', '.join(largest)} of {len(trends)} workloads{not_shown}{without}."
            )
        ]
    title = _compared_title(study)
    words = [
        f"{direction}{do} at every step of {title} in {count}"
        for direction in ("rise", "fall")
        if (count := sum(1 for one in trends if one.direction == direction and one.clear_steps == one.steps))
    ]
    if not words:
        told = f"neither rise{do} nor fall{do} throughout over {title} in any"
        return [capital(f"{noun} {told} of {len(trends)} workloads.")]
    return [capital(f"{noun} {likely}{' and '.join(words)} of {len(trends)} workloads{not_shown}.")]

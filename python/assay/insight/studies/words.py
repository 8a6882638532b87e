"""What a study found, in sentences."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.base.units import bytes_unit, count_of, format_duration, format_iops, format_latency
from assay.insight.calibration.published_papers import full_names
from assay.insight.studies.result import study_figures
from assay.record.figures import Figure
from assay.record.shapes.study import Compared, Comparison, PublishedFigure, Result, Study
from assay.workloads.registry import workloads

ALL_SAID = 6
"""Up to so many comparisons each gets its sentence among the headlines; more are summed up."""


MORE_RUNS = "--repeats 3 tells"
"""What to do where one run of each level cannot tell."""


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """How sentences go on with figures of a unit: what a level does with one, and what one is that is compared."""

    verb: str
    more: str
    less: str
    is_plural: bool = False

    @property
    def ending(self) -> str:
        """Ending of a verb whose subject is the figure."""
        return "" if self.is_plural else "s"

    @property
    def are(self) -> str:
        """What the figure is."""
        return "are" if self.is_plural else "is"


_COUNTED = Grammar(verb="holds", more="more", less="fewer", is_plural=True)
_GRAMMARS = {
    "bytes_per_s": Grammar(verb="reaches", more="more", less="less"),
    "bytes": Grammar(verb="has", more="larger", less="smaller"),
    "ns": Grammar(verb="has", more="higher", less="lower"),
    "s": Grammar(verb="has", more="longer", less="shorter"),
    "share": Grammar(verb="has", more="higher", less="lower"),
    "ratio": Grammar(verb="has", more="higher", less="lower"),
}


def grammar_of(unit: str) -> Grammar:
    """Figures of all other units are many things, such as I/Os per second."""
    return _GRAMMARS.get(unit, _COUNTED)


def ending_of(unit: str) -> str:
    """Ending of a verb whose subject is a figure of this unit."""
    return grammar_of(unit).ending


def noun_of(figure: str) -> str:
    """A figure as sentences name it; one of a kind that this Assay does not know by its own name."""
    known = study_figures().get(figure)
    return figure.replace("_", " ") if known is None else known.noun or known.title


def full_name_of(figure: str, results: Sequence[Result] = ()) -> str:
    """A figure as captions and axes name it, in the words of the kind that has these results."""
    own = {one.study: one for one in common_figures(results)} if results else {}
    known = own.get(figure) or study_figures().get(figure)
    return (known.full if known else "") or noun_of(figure)


@dataclass(frozen=True, kw_only=True)
class LevelAgainstBaseline:
    """One level against the baseline; `ratio` is the level's figure over the baseline's."""

    part: str
    place: int
    figure: str
    unit: str
    series: str
    level: str
    baseline: str
    value: float | None
    baseline_value: float | None
    ratio: float | None
    interval_95: tuple[float, float] | None
    differs: bool | None
    band_90: tuple[float, float] | None
    baseline_band_90: tuple[float, float] | None
    band_basis: str | None
    reason: str


def figure_text(value: float | None, unit: str) -> str:
    """A figure for people, without the word IOPS.

    Examples
    --------
    >>> figure_text(4180.2, "iops"), figure_text(8.3e6, "ns"), figure_text(13_220, "bytes"), figure_text(90, "s")
    ('4,180', '8.30 ms', '13.22 kB', '1 min 30 s')
    """
    if value is None:
        return "-"
    if unit == "ns":
        return format_latency(value)
    if unit == "s":
        return format_duration(value)
    if unit == "share":
        return f"{value * 100:.3g} %"
    if unit == "ratio":
        return f"{value:.2f}"
    # Published studies count in MB, 1,000,000 bytes.
    if unit == "bytes":
        factor, name = bytes_unit([value])
        return f"{value / factor:,.4g} {name}"
    return f"{value / 1e6:,.4g} MB/s" if unit == "bytes_per_s" else format_iops(value)


def percent_text(share: float) -> str:
    """A share in percent, with a decimal below 3 %.

    Examples
    --------
    >>> percent_text(0.412), percent_text(0.0123)
    ('41 %', '1.2 %')
    """
    return f"{share * 100:.0f} %" if abs(share) >= 0.03 else f"{share * 100:.1f} %"


def change_text(ratio: float, interval_95: Sequence[float] | None) -> str:
    """A ratio as a signed change with the wider side of its interval; as a factor from 2 on.

    Examples
    --------
    >>> change_text(1.41, (1.35, 1.46)), change_text(2.8, (2.7, 2.9)), change_text(0.83, None)
    ('+41 % +- 6 %', '2.80 times (2.70 to 2.90)', '-17 %')
    """
    if ratio >= 2:
        return f"{ratio:.2f} times" + (f" ({interval_95[0]:.2f} to {interval_95[1]:.2f})" if interval_95 else "")
    return f"{'+' if ratio >= 1 else '-'}{percent_text(abs(ratio - 1))}" + _half_text(ratio, interval_95)


def _half_text(ratio: float, interval_95: Sequence[float] | None) -> str:
    if interval_95 is None:
        return ""
    return f" +- {percent_text(max(interval_95[1] - ratio, ratio - interval_95[0]))}"


def comparison_sentence(study: Study, one: LevelAgainstBaseline) -> str:
    """What was found of one level, with its interval and, of a model, with how far it may be off.

    Parameters
    ----------
    study
        The manifest's `study`.
    one
        The comparison.
    """
    text = _found(study, one)
    before = f"{one.series}: " if one.series else ""
    return capital(before + text + _band_text(one) + ".")


def capital(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def why_not_shown(band: Sequence[float] | None, baseline_band: Sequence[float] | None, basis: str | None) -> str:
    """Why the model does not prove the order of two levels (bands overlap, not calibrated); else empty.

    Examples
    --------
    >>> why_not_shown((1874, 3284), (2799, 3777), "calibrated to 4 points of a.toml; none of them under RAID 6")
    "the model's bands overlap, and no point of its calibration is under RAID 6"
    >>> why_not_shown((1874, 2284), (2799, 3777), "calibrated to 4 points of a.toml")
    ''
    """
    reasons = []
    if band and baseline_band and band[0] <= baseline_band[1] and baseline_band[0] <= band[1]:
        reasons.append("the model's bands overlap")
    if band and baseline_band and (basis or "").startswith("not calibrated"):
        reasons.append("the model is not calibrated")
    if lacking := re.findall(r"none of them under ([^;]+)", basis or ""):
        whose = "its" if reasons else "the model's"
        reasons.append(f"no point of {whose} calibration is under {' or '.join(lacking)}")
    return ", and ".join(reasons)


def bases_of(*bases: str) -> str | None:
    """What two bands rest on: of one model what each lacks, of several that of the level that was measured less."""
    parts = [text.split("; ") for text in bases]
    if len({part[0] for part in parts}) > 1:
        return max(bases, key=len)
    return "; ".join(dict.fromkeys(text for part in parts for text in part)) or None


def _found(study: Study, one: LevelAgainstBaseline) -> str:
    noun = noun_of(one.figure)
    if one.ratio is None:
        return f"{one.level} cannot be compared with {one.baseline}: {one.reason or 'nothing was measured'}"
    against = f"({figure_text(one.value, one.unit)} against {figure_text(one.baseline_value, one.unit)})"
    change = change_text(one.ratio, one.interval_95)
    if one.reason:
        return f"nothing can be said of {one.level} against {one.baseline}, {change} {noun}: {one.reason}"
    if one.differs is False:
        return f"no difference in {noun} was found between {one.level} and {one.baseline}: {change} {against}"
    if one.interval_95 is None:
        return (
            f"whether {one.level} and {one.baseline} differ in {noun} cannot be told, as there is no interval"
            f" (--repeats 3 gives one): {change} {against}"
        )
    if one.differs is None:
        return (
            f"one run of each cannot tell whether {one.level} and {one.baseline} differ in {noun} ({MORE_RUNS}):"
            f" {change} {against}"
        )
    wanted = compared_in(study)
    doubt = why_not_shown(one.band_90, one.baseline_band_90, one.band_basis)
    likely, against = ("likely ", f"{against}, which is not shown: {doubt}") if doubt else ("", against)
    fall = wanted.get("fall")
    if fall and one.ratio < 1:
        return f"{noun} {likely}{fall}{grammar_of(one.unit).ending} by {change.lstrip('-')} with {one.level} {against}"
    grammar = grammar_of(one.unit)
    verb = likely + (wanted["verb"] or grammar.verb)
    if one.ratio >= 2:
        return f"{one.level} {verb} {change} the {noun} of {one.baseline} {against}"
    word = grammar.more if one.ratio >= 1 else grammar.less
    return f"{one.level} {verb} {change.lstrip('+-')} {word} {noun} than {one.baseline} {against}"


def _band_text(one: LevelAgainstBaseline) -> str:
    told = [
        f"{(low / value - 1) * 100:+.0f} % to {(high / value - 1) * 100:+.0f} % at {name}"
        for name, value, (low, high) in (
            (one.level, one.value, one.band_90 or (0.0, 0.0)),
            (one.baseline, one.baseline_value, one.baseline_band_90 or (0.0, 0.0)),
        )
        if value and high
    ]
    if not told:
        return ""
    basis = f"; {one.band_basis}" if one.band_basis else ""
    return f"; the model may be off by {' and '.join(told)} (90 % band{basis})"


def compared_in(study: Study) -> Compared:
    """What a study compares, where it compares something."""
    wanted = study["comparison"]
    assert wanted is not None
    return wanted


def no_result_sentences(compared: Sequence[LevelAgainstBaseline]) -> list[str]:
    """What comes first where levels were limited by something else than what the study asks about."""
    doubtful = [one for one in compared if one.reason and one.ratio is not None]
    if not doubtful:
        return []
    reasons = "; ".join(dict.fromkeys(reason for one in doubtful for reason in one.reason.split("; ")))
    of = "" if len(doubtful) == len(compared) else f" for {len(doubtful)} of {count_of(len(compared), 'comparison')}"
    return [f"No result{of}: {reasons}."]


def capacity_sentences(results: Sequence[Result]) -> list[str]:
    """IOPS per usable terabyte of every level, with what each has of raw capacity; none where none is asked for."""
    told = [
        f"{result['title']} {format_iops(per_tb)} ({usable} usable of {raw} raw)"
        for result in results
        if not result["reason"]
        for held in [result.get("capacity")]
        for per_tb in [held["iops_per_usable_tb"] if held is not None else None]
        if per_tb is not None
        for raw, usable in [capacity_texts(result)[:2]]
    ]
    return [f"IOPS per usable TB: {', '.join(told)}."] if told else []


CAPACITY_COLUMNS = ("raw", "usable", "IOPS per usable TB")


def capacity_texts(result: Result) -> tuple[str, ...]:
    """What stands under `CAPACITY_COLUMNS` for a result of the manifest.

    Examples
    --------
    >>> held = {"raw_bytes": 3_504_000_000_000, "usable_bytes": 1_429_000_000_000, "iops_per_usable_tb": 2902.4}
    >>> capacity_texts({"capacity": held})
    ('3.50 TB', '1.43 TB', '2,902')
    """
    held = result.get("capacity")
    if held is None:
        return ("-",) * len(CAPACITY_COLUMNS)
    per_tb = held["iops_per_usable_tb"]
    sizes = (f"{size_bytes / 1e12:,.2f} TB" for size_bytes in (held["raw_bytes"], held["usable_bytes"]))
    return (*sizes, "-" if per_tb is None else format_iops(per_tb))


def far_ends(study: Study, compared: Sequence[LevelAgainstBaseline]) -> list[str]:
    """The level farthest from the baseline in each series, or the range over the series where those are many."""
    last: dict[str, LevelAgainstBaseline] = {one.series: one for one in compared}
    ends = list(last.values())
    if len(ends) <= ALL_SAID:
        return [comparison_sentence(study, one) for one in ends]
    sentences = []
    for level in dict.fromkeys(one.level for one in compared):
        known = [one for one in compared if one.level == level and one.ratio is not None and not one.reason]
        if not known:
            continue
        least, most = (pick(known, key=lambda one: one.ratio or 0.0) for pick in (min, max))
        differing = sum(1 for one in known if one.differs)
        sentences.append(
            f"{level} against {known[0].baseline}: {noun_of(least.figure)}"
            f" from {change_text(least.ratio or 0.0, least.interval_95)} ({least.series})"
            f" to {change_text(most.ratio or 0.0, most.interval_95)} ({most.series});"
            f" {differing} of {len(known)} workloads differ beyond their interval."
        )
    return sentences


def published_sentences(published: Sequence[PublishedFigure]) -> list[str]:
    """How near a model comes to what was published."""
    sentences = []
    for fit, word in ((True, "fitted to"), (False, "predicted")):
        shares = [row["error_share"] for row in published if row["fit"] is fit]
        errors = [abs(share) for share in shares if share is not None]
        if errors:
            within = sum(1 for error in errors if error <= 0.10)
            mean, most = percent_text(sum(errors) / len(errors)), percent_text(max(errors))
            sentences.append(
                f"Of {count_of(len(errors), 'published figure')} {word}, {within}"
                f" lie{'s' if within == 1 else ''} within 10 % (mean error {mean}, largest {most})."
            )
    for row in published:
        if row["kind"] == "order" and row["holds"] is not None:
            sentences.append(f"{row['title']}: {'so does the model' if row['holds'] else 'the model disagrees'}"
                             f" ({row['model_text']}).")  # fmt: skip
    return sentences


# Rows of tables, for the terminal and the report


def common_figures(results: Sequence[Result]) -> list[Figure]:
    """Figures to show: those of the workload kind whose figures most results have, the main figure first.

    If some results are of databases and some of I/O alone, the kind is I/O: databases did I/O too.
    """
    measured = [set(result["values"]) for result in results if result.get("values")]
    held = set.intersection(*measured) if measured else set()
    shown = [[figure for figure in kind.figures if figure.study and figure.compared] for kind in workloads()]
    if not measured:
        return shown[0]
    # A score takes all of the work: of a part of it the figures after the score are left.
    left = [list(itertools.dropwhile(lambda figure: figure.study not in held, figures)) for figures in shown]
    known = [figures for figures in left if figures]
    return max(known, key=lambda figures: sum(figure.study in held for figure in figures), default=shown[0])


def are_of_databases(results: Sequence[Result]) -> bool:
    """Whether results are shown as those of transactions; where some are of I/O alone, what storage did is common."""
    return common_figures(results) != common_figures([])


def against_text(study: Study, result: Result, one: Comparison | None) -> str:
    """A result against the baseline: its comparison, or whether it is the baseline itself."""
    ratio = one.get("ratio") if one is not None else None
    if one is not None and ratio is not None:
        return change_text(ratio, one.get("interval_95"))
    wanted = study.get("comparison")
    is_base = one is None and wanted and wanted["by"] in (result.get("levels") or {})
    return "baseline" if is_base else "-"


def comparison_rows(study: Study) -> tuple[list[str], list[list[str]]]:
    """Levels of a study against its baseline, as columns and their rows; the workload only where there are several."""
    results = study["results"] or []
    common, wanted = common_figures(results), study["comparison"]
    asked = wanted.get("figure") if wanted else None
    first = next((figure for figure in common if figure.study == asked), common[0])
    several = len({result["workload"] for result in results}) > 1
    compared = {(one["part"], one["place"]): one for one in study["comparisons"] or []}
    columns = ["level", *(["workload"] if several else []), first.title, "95 % interval"]
    columns += [*(["against baseline"] if compared else []), "limited by"]
    rows = []
    for result in results:
        held, load = result["values"].get(first.study), f", {result['load']}" if result["load"] else ""
        row = [result["title"], *([result["workload"] + load] if several else [])]
        interval = held.get("interval_95") if held else None
        row.append(figure_text(held["value"], first.unit) if held else "-")
        row.append(" to ".join(figure_text(end, first.unit) for end in interval) if interval else "-")
        if compared:
            row.append(against_text(study, result, compared.get((result["part"], result["place"]))))
        rows.append([*row, result["reason"] or result["limited_by"] or "-"])
    return columns, rows


def published_texts(row: PublishedFigure) -> tuple[str, ...]:
    """A published figure: title, published, model, error, whether the model was fitted to it, and why it differs."""
    if row["kind"] == "order":
        held = {True: "holds", False: "does not hold", None: "-"}[row["holds"]]
        return (row["title"], "falls", row["model_text"] or "-", held, "predicted", row["note"] or "")
    error, within = row["error_share"], row.get("within")
    ends = [_published_value(end, row["unit"]) for end in within or ()] or [
        _published_value(row["published"], row["unit"])
    ]
    return (
        row["title"],
        " to ".join(ends),
        _published_value(row["model"], row["unit"]),
        row["reason"] or "-" if error is None else f"{error:+.1%}".replace("%", " %"),
        "fitted" if row["fit"] else "predicted",
        row["note"] or "",
    )


PUBLISHED_COLUMNS = ("figure", "published", "model", "error", "model is", "why, and what to know")
"""Heads of `published_texts`."""


def published_by_study(rows: Sequence[PublishedFigure]) -> dict[str, list[PublishedFigure]]:
    """Published figures by the study they come from, under its full name."""
    names = full_names()
    grouped: dict[str, list[PublishedFigure]] = {}
    for row in rows:
        name = row["source"]
        grouped.setdefault(f"{name}: {names[name]}" if name in names else name, []).append(row)
    return grouped


def _published_value(value: float | None, unit: str) -> str:
    if value is None or unit == "ratio":
        return "-" if value is None else f"{value:.2f} times"
    if unit == "bytes":
        return f"{value / 1e12:,.4g} TB"
    return figure_text(value, unit) + (" IOPS" if unit == "iops" else "")

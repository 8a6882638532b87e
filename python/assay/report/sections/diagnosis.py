"""What hurts, in a report: the matrix of tiers and resources, the causes with their evidence, and when they held."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import format_duration
from assay.document.elements import Block, Cell, Column, FigureElement, Paragraph, Section, Table, Tone
from assay.document.palette import MAX_SERIES
from assay.document.series import PanelRow
from assay.document.series_charts import PointBand, timeline
from assay.document.text import DASH, percent, shorten
from assay.insight.diagnosis.diagnose import TITLES, CauseRecord, Diagnosis, diagnose
from assay.insight.diagnosis.matrix import HOT, NONE, RESOURCES, WARM, CellOf
from assay.insight.diagnosis.observed import SAMPLES_MIN, Numbers, ObservedSource
from assay.insight.diagnosis.signals import Threshold
from assay.insight.diagnosis.verdict import BAD, FINE, bad_cells
from assay.record.source import RunFacts

MULTIPLE_MAX = 100.0
"""Where a value below its threshold is drawn at the most: throughput of nearly nothing is endlessly far below."""

STEPS_MAX = 400
"""Steps of the figure."""

CAUSES_MAX = 6

_TONES: dict[str, Tone] = {HOT: "bad", WARM: "warn", "ok": "good"}


def diagnosis_of(facts: RunFacts) -> Diagnosis | None:
    """The diagnosis of a run or recording; None where too little was recorded for one."""
    if facts.series is None:
        return None
    name = str(facts.manifest.get("run_id") or "the run")
    found = diagnose([ObservedSource(name=name, manifest=facts.manifest, points=facts.points, series=facts.series)])
    return found if found.is_enough else None


def diagnosis_section(found: Diagnosis) -> Section:
    """The section: what is most likely, the matrix, the causes, and the time axis."""
    bad = found.causes or found.verdict["state"] == BAD
    blocks: list[Block] = [
        Paragraph(limiting_words(found), strong=bool(bad)),
        Paragraph(f"When: {found.verdict['since']}."),
    ]
    return Section("diagnosis", "Where it hurts", [*blocks, *diagnosis_blocks(found, _figure(found))])


def diagnosis_blocks(found: Diagnosis, figure: FigureElement | None) -> list[Block]:
    """The matrix, the causes, a figure of them over time, and what was not judged."""
    blocks: list[Block] = [_matrix(found)]
    if found.causes:
        blocks.append(_causes(found.cause_records()))
    if figure is not None:
        blocks.append(figure)
    if found.not_judged:
        blocks.append(Paragraph(f"Not judged: {'; '.join(found.not_judged)}."))
    missing = ", ".join(name for name, _ in found.not_looked_for)
    if missing:
        blocks.append(Paragraph(f"Not looked for, since nothing was recorded of it: {missing}."))
    return blocks


def limiting_words(found: Diagnosis) -> str:
    """What most likely limits it, or what is bad, fine or not judged, in a sentence."""
    verdict = found.verdict
    if found.causes:
        first = found.causes[0]
        return f"{first.likelihood}: {TITLES[first.cause]} ({first.cause}, confidence {percent(first.confidence)})."
    if verdict["state"] == BAD:
        return f"It is bad, and the cause is not found: {verdict['what']}."
    if verdict["state"] == FINE:
        return f"{found.title}: {verdict['what']}."
    return f"Not judged: {verdict['what']}."


def next_words(found: Diagnosis) -> list[str]:
    """What to do about the most likely cause, or to find one."""
    return [found.verdict["do"]] if found.causes or found.verdict["state"] == BAD else []


def _name(cell: CellOf) -> str:
    return f"{cell.tier} {cell.resource}"


def _matrix(found: Diagnosis) -> Table:
    columns = [Column("Tier"), *(Column(name) for name in RESOURCES)]
    rows = []
    for tier, host in dict.fromkeys((cell.tier, cell.host) for cell in found.cells):
        own = {cell.resource: cell for cell in found.cells if (cell.tier, cell.host) == (tier, host)}
        row = [Cell(shorten(own[RESOURCES[0]].place, 40))]
        for resource in RESOURCES:
            cell = own[resource]
            if cell.state == NONE:
                row.append(Cell(NONE, "quiet"))
                continue
            words = f"{cell.state}: {cell.words}"
            words += (
                f"; {format_duration(cell.minutes * 60)} beyond its threshold"
                if cell.minutes and cell.state != "ok"
                else ""
            )
            if cell.is_bad:
                words += f"; {', '.join(found.of_cell(cell).causes) or 'cause not found'}"
            row.append(Cell(shorten(words, 110), _TONES.get(cell.state, "quiet")))
        rows.append(row)
    caption = (
        "Tiers by resources: the measure of each cell that comes nearest to its threshold, its 95th percentile, and"
        f" for how long it was beyond. {SAMPLES_MIN} samples are the least for a verdict."
    )
    return Table("matrix", caption, columns, rows, dense=True)


def _causes(causes: Sequence[CauseRecord]) -> Table:
    columns = [
        Column("Cause", weight=1.2),
        Column("Confidence", number=True, weight=0.7),
        Column("Seen", weight=2.4),
        Column("Threshold from", weight=1.6),
        Column("What would disprove it", weight=1.5),
        Column("Advice", weight=1.8),
    ]
    rows = []
    for cause in causes[:CAUSES_MAX]:
        evidence = cause["evidence"]
        rows.append(
            [
                Cell(f"{cause['cause']}: {cause['title']}"),
                Cell(percent(cause["confidence"])),
                Cell("; ".join(one["text"] for one in evidence) or DASH),
                Cell("; ".join(dict.fromkeys(source for one in evidence if (source := one.get("source")))) or DASH),
                Cell("; ".join(cause["against"]) or DASH),
                Cell(cause["advice"]),
            ]
        )
    return Table(
        "causes",
        "Causes that independent signals agree on, most likely first; one strong signal alone has less confidence.",
        columns,
        rows,
        dense=True,
    )


def _figure(found: Diagnosis) -> FigureElement | None:
    """How far each hot cell's leading measure was beyond its threshold over time, and when the first cause held."""
    observed = found.observed
    cells = sorted(
        (cell for cell in found.cells if cell.state in (HOT, WARM) and cell.leading is not None),
        key=lambda cell: -max(one.share for one in cell.judged),
    )[:MAX_SERIES]
    if not cells or observed.steps < 2:
        return None
    alone = len({(cell.tier, cell.resource) for cell in cells}) == len(cells)
    rows: list[PanelRow] = []
    for cell in cells:
        one = cell.leading
        assert one is not None
        name = _name(cell) if alone else f"{_name(cell)}, {shorten(cell.host, 20)}"
        rows += _multiples(found, "over threshold (x)", name, one.measure.values, one.measure.threshold)
    bands = _bands(found) if found.causes else []
    chart = timeline(rows, bands, end_s=observed.steps * observed.step_s)
    if chart is None:
        return None
    caption = f"Measures that left their thresholds, as multiples of them: 1 is the threshold{_cut_words(rows)}."
    if bands:
        caption += f" Shaded: when the signals of {found.causes[0].cause} held together."
    told = "; ".join(f"{_name(cell)}: {cell.words}" for cell in cells)
    return FigureElement("diagnosis-time", caption, f"Measures beyond their thresholds over time: {told}.", chart)


def evidence_figure(found: Diagnosis) -> FigureElement | None:
    """Each signal of the causes in a panel of its own over one time axis, as a multiple of its threshold."""
    observed, rows = found.observed, []
    seen: set[str] = set()
    for cause in found.causes[:CAUSES_MAX]:
        for signal in cause.signals:
            if signal.values is None or signal.threshold is None or signal.text in seen or len(seen) >= MAX_SERIES:
                continue
            seen.add(signal.text)
            rows += _evidence(found, signal.text, cause.cause, signal.values, signal.threshold)
    if not found.causes:
        for cell in bad_cells(found.cells)[:MAX_SERIES]:
            one = cell.leading
            assert one is not None
            rows += _evidence(found, one.measure.text, _name(cell), one.measure.values, one.measure.threshold)
    chart = (
        timeline(rows, _bands(found) if found.causes else [], end_s=observed.steps * observed.step_s) if rows else None
    )
    if chart is None:
        return None
    caption = (
        "The evidence over time, each signal as a multiple of its threshold: 1 is the threshold, from which it is bad,"
        " or below which where the panel says so."
    )
    if found.causes:
        caption += " Shaded: when the signals of the first cause held together."
    return FigureElement("evidence-time", caption, f"Evidence over time: {'; '.join(seen)}.", chart)


def _cut_words(rows: Sequence[PanelRow]) -> str:
    is_cut = any(row["value"] == MULTIPLE_MAX for row in rows)
    return f", and values {MULTIPLE_MAX:.0f} times below it or more are drawn at {MULTIPLE_MAX:.0f}" if is_cut else ""


def _evidence(found: Diagnosis, text: str, name: str, values: Numbers, bound: Threshold) -> list[PanelRow]:
    """Values of a panel of its own, the worst of each part of the time: a value that falls is seen to fall."""
    panel = f"{shorten(text, 24)} (x, bad below 1)" if bound.below else f"{shorten(text, 30)} (x)"
    return _multiples(found, panel, name, values, bound, is_excess=False)


def _multiples(
    found: Diagnosis, panel: str, name: str, values: Numbers, bound: Threshold, *, is_excess: bool = True
) -> list[PanelRow]:
    """Values as multiples of their threshold, the worst of each part of the time.

    Parameters
    ----------
    is_excess
        Whether a value below a lower bound is told by how many times it is below: bounds of both kinds share a panel.
    """
    import numpy as np

    observed, rows = found.observed, list[PanelRow]()
    width = max(-(-observed.steps // STEPS_MAX), 1)
    for begin in range(0, observed.steps, width):
        own = values[begin : begin + width]
        known = own[np.isfinite(own)]
        value = None
        if known.size and bound.value > 0:
            value = float(known.min() if bound.below else known.max()) / bound.value
            if bound.below and is_excess:
                value = min(1.0 / max(value, 1e-12), MULTIPLE_MAX)
        rows.append({"panel": panel, "series": name, "t_s": begin * observed.step_s, "value": value, "log": False})
    return rows


def _bands(found: Diagnosis) -> list[PointBand]:
    """Spans in which the first cause held."""
    import numpy as np

    first, observed = found.causes[0], found.observed
    edges = np.flatnonzero(np.diff(np.concatenate(([0], first.together.astype(int), [0]))))
    spans = list(zip(edges[::2], edges[1::2], strict=True))
    if len(spans) > 60:
        return []
    return [
        {"start_s": float(begin * observed.step_s), "end_s": float(end * observed.step_s), "label": "", "odd": True}
        for begin, end in spans
    ]

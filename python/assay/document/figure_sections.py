"""Sections that a workload's figures make by themselves: its points, and what its searches found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from assay.base.tables import Record
from assay.base.units import format_iops
from assay.document.advice import held_text, limiting_text, next_texts, running_text
from assay.document.charts import SearchRow, figure_or_words, search_curve
from assay.document.elements import Block, Cell, Column, Paragraph, Section, Table
from assay.document.limits import limit_text, limited_text, nothing_held_text, searched_state
from assay.document.remarks import Remarks
from assay.document.text import DASH, id_range, load_label, load_size, shorten
from assay.record import student
from assay.record.answers import answer_marks, answer_words
from assay.record.figures import Figure as Measure
from assay.record.figures import value_of
from assay.record.intervals import relative_error
from assay.record.shapes.point import Point
from assay.record.source import RunFacts


def figure_sections(facts: RunFacts, kind: str, title: str, figures: Sequence[Measure]) -> list[Section]:
    """Sections that any kind of workload can have: a table of the figures of its points, and a curve for each search.

    Parameters
    ----------
    facts
        The run.
    kind, title
        The kind, and how its sections are headed.
    figures
        Its figures, of which those that are compared are shown; searches maximise the first.
    """
    points = facts.points_of(kind)
    if not points or not figures:
        return []
    blocks: list[Block] = []
    for number, answer in enumerate(facts.answers_of(kind, figures[0].name), start=1):
        blocks += _search_blocks(points, answer, figures, f"{kind}-search-{number}")
    return [
        Section(
            kind,
            title,
            [*blocks, _table(points, kind, [figure for figure in figures if figure.compared])],
            place="answer",
        )
    ]


def figure_remarks(facts: RunFacts, kind: str, figures: Sequence[Measure]) -> Remarks:
    """Remarks of a kind of workload: what its searches found."""
    answers = facts.answers_of(kind, figures[0].name) if figures else []
    return Remarks(
        headlines=[Paragraph(answer_sentence(answer, figures[0], counted=figures), strong=True) for answer in answers],
        limiting=[text for answer in answers if (text := limiting_text(answer, _name(answer)))],
        running=[text for answer in answers if (text := running_text(facts, answer, figures[0], _name(answer)))],
        next_steps=next_texts(facts, kind, answers, _name),
    )


def counted_words(end: Record, figures: Sequence[Measure]) -> list[str]:
    """What a load of an answer counts besides the figure that was searched for, such as mailboxes."""
    return [
        one.words(value)
        for one in figures[1:]
        if one.in_answers and one.unit == "count" and (value := end.get(one.name)) is not None
    ]


def answer_sentence(
    answer: Record, figure: Measure, latencies: Sequence[Measure] | None = None, counted: Sequence[Measure] = ()
) -> str:
    """What a search found, in one sentence.

    Parameters
    ----------
    answer
        The answer.
    figure
        What was searched for.
    latencies
        Figures that tell of latency at knee and edge: with them the sentence adds both, and what ended the search.
    counted
        Figures of which those that count something are said beside it.
    """
    name, most = _name(answer), answer.get("max")
    if not most:
        return nothing_held_text(answer, name, figure.failed)
    value, axis = most[figure.name], str(answer.get("axis"))
    load = f" with {load_label({axis: most[axis]})}" if axis in most else ""
    held = held_text(answer, value, figure.words(value), name, figure.words) + load
    held += "".join(f", which is {words}" for words in counted_words(most, counted))
    further = ""
    if latencies is not None:
        ended = limited_text(answer, errors=f"more load brings {figure.failed}")
        further = f"{answer_words(answer, figure, latencies)}; {ended}"
    return f"{held}{further} [{most.get('point_id') or DASH}]."


def interval_of(figure: Measure, point: Record) -> tuple[float, float] | None:
    """The 95 % interval of a figure, from its batches; None where they are too few."""
    value = value_of(figure, point)
    try:
        found = relative_error(figure.batches(cast(Point, point)))
    except (LookupError, TypeError):
        found = None
    if value is None or found is None:
        return None
    error, freedom = found
    half = student.quantile(freedom, 0.975) * error
    return value * (1 - half), value * (1 + half)


def _name(record: Record) -> str:
    return shorten(str(record["workload"].get("name") or record["workload"].get("kind") or DASH), 60)


def _search_blocks(points: Sequence[Record], answer: Record, figures: Sequence[Measure], name: str) -> list[Block]:
    figure = figures[0]
    said = answer_sentence(answer, figure, [one for one in figures if one.at_ends])
    blocks: list[Block] = [Paragraph(said, strong=True)]
    if answer.get("limits"):
        blocks.append(Paragraph(f"Limits: {'; '.join(limit_text(limit) for limit in answer['limits'])}."))
    ids = answer.get("point_ids") or []
    axis = str(answer.get("axis") or "load")
    marks = answer_marks(answer)
    rows: list[SearchRow] = []
    for point in points:
        value = value_of(figure, point)
        if point.get("id") in ids and value is not None:
            rows.append(
                {"load": point["load"].get(axis) or load_size(point["load"]), "value": value, "latency_ns": None,
                 "point_id": point["id"], "state": searched_state(point, answer, figure.failed),
                 "mark": marks.get(point.get("id"), "")}
            )  # fmt: skip
    if not rows:
        return blocks
    rows.sort(key=lambda row: float(row["load"]))
    chart = search_curve(rows, axis, figure.title)
    caption = (
        f"{figure.title} over {axis}. Rings mark the most, the knee and the edge; where a load was measured again the"
        " line is the median and the bar the range."
        f" Points {id_range(str(point_id) for point_id in ids)}."
    )
    ends = [f"{figure.words(row['value'])} at {row['load']:g}" for row in (rows[0], rows[-1])]
    return [
        *blocks,
        figure_or_words(name, caption, f"{figure.title} over {axis}: from {ends[0]} to {ends[1]}. {said}", chart),
    ]


def _number(figure: Measure, value: float) -> str:
    """A value below the title of its figure, which says what is counted."""
    return format_iops(value) if figure.unit in ("iops", "count") else figure.words(value)


def _table(points: Sequence[Record], kind: str, figures: Sequence[Measure]) -> Table:
    intervals = [{figure.name: interval_of(figure, point) for figure in figures} for point in points]
    spanned = {name for found in intervals for name, interval in found.items() if interval}
    columns = [Column("Point", weight=0.85), Column("Workload", weight=1.8), Column("Load", weight=1.2)]
    for figure in figures:
        columns.append(Column(figure.title, number=True))
        columns += [Column("95 % interval", number=True, weight=1.5)] if figure.name in spanned else []
    rows = []
    for point, found in zip(points, intervals, strict=True):
        point_id = str(point.get("id") or DASH)
        cells = [Cell(point_id, "quiet", point_id), Cell(_name(point)), Cell(load_label(point["load"]))]
        for figure in figures:
            value, interval = value_of(figure, point), found[figure.name]
            cells.append(Cell(DASH if value is None else _number(figure, value)))
            if figure.name in spanned:
                words = [_number(figure, edge) for edge in interval or ()]
                cells.append(Cell(" to ".join(words) or DASH, "plain" if words else "quiet"))
        rows.append(cells)
    caption = "Points in the order they ended; intervals are computed from batches of the window."
    return Table(f"{kind}-figures", caption, columns, rows, dense=True)

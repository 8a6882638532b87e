"""The state of the target: how it was brought into it, round by round, and the window that was steady."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from assay.base.units import format_iops, format_share, format_throughput
from assay.document.charts import PANEL_WIDTH, ChartRows, figure_or_words
from assay.document.drawing import alt
from assay.document.elements import Block, Cell, Column, Paragraph, Section, Table
from assay.document.palette import COLOURS, COUNT, INK, LIMIT
from assay.document.text import joined, sentence
from assay.record.state import DISCLAIMER, UNKNOWN, state_words, states_of
from assay.record.steady import EXCURSION_SHARE, SLOPE_SHARE, RoundsSteadiness, steady_rounds

if TYPE_CHECKING:
    from assay.record.shapes.point import Point
    from assay.record.shapes.state import Preconditioning
    from assay.record.source import RunFacts


class RoundRow(TypedDict):
    """I/Os per second of a round, and what was written until its end as a number of times the capacity."""

    number: int
    iops: float
    point_id: str | None


def state_section(facts: RunFacts) -> Section | None:
    """Build the section; None where the run did not precondition its target."""
    states = [state for state in states_of(cast("Sequence[Mapping[str, object]]", facts.points))
              if state.get("name") != UNKNOWN and state.get("method") != "model"]  # fmt: skip
    if not states and not facts.preconditioning:
        return None
    blocks: list[Block] = [Paragraph(DISCLAIMER)]
    for state in states:
        of = joined([str(part) for part in state.get("parts") or []])
        blocks.append(Paragraph(sentence(f"{of}: measured on a target that was {state_words(state)}")))
    parts = dict.fromkeys(str(point.get("part")) for point in facts.preconditioning)
    for place, part in enumerate(parts, start=1):
        own = [point for point in facts.preconditioning if str(point.get("part")) == part]
        blocks += _rounds(part, own, place)
        blocks.append(_steps(part, own, place))
    return Section("state", "State of the target", blocks)


def _told(point: Point) -> Preconditioning:
    return cast("Preconditioning", cast("Mapping[str, object]", point).get("precondition") or {})


def _iops(point: Point) -> float:
    total = point.get("total")
    return total["iops"] if total else 0.0


def _rounds(part: str, points: Sequence[Point], place: int) -> list[Block]:
    """The tracked figure round by round, with the window, its average, and the bounds of both criteria."""
    rows: list[RoundRow] = [
        {"number": int(_told(point).get("number") or 0), "iops": _iops(point), "point_id": point.get("id")}
        for point in points
        if _told(point).get("step") == "round" and _told(point).get("tracked")
    ]
    found = steady_rounds([row["iops"] for row in rows])
    if found is None:
        return []
    excursion, slope = format_share(found.excursion_share, 1), format_share(abs(found.rise_share), 1)
    verdict = "steady" if found.reached else "not steady"
    caption = (
        f"{part}: I/Os per second of each round. The window is the last five rounds, on average"
        f" {format_iops(found.average)} (line). Their excursion is {excursion} of it (max."
        f" {format_share(EXCURSION_SHARE)}; dashed lines lie half of that above and below). The best linear fit changes"
        f" by {slope} of it (max. {format_share(SLOPE_SHARE)}; thick line): {verdict}."
    )
    alternative = f"{part}: {', '.join(format_iops(row['iops']) for row in rows)} I/Os per second by round; {verdict}."
    return [figure_or_words(f"rounds-{place}", caption, alternative, rounds_chart(rows, found))]


def rounds_chart(rows: Sequence[RoundRow], found: RoundsSteadiness) -> alt.TopLevelMixin:
    """Draw rounds with the measurement window, its bounds and its linear fit."""
    numbers = [row["number"] for row in rows]
    first, last = numbers[found.first], numbers[-1]
    most = max([row["iops"] for row in rows] + [found.average * (1 + EXCURSION_SHARE)]) * 1.05
    scale = alt.Scale(domain=[min(numbers), last], nice=False)
    x = alt.X("number:Q", title="round", axis=alt.Axis(format="d", tickMinStep=1), scale=scale)
    y = alt.Y("iops:Q", title="I/Os per second", axis=alt.Axis(format=COUNT), scale=alt.Scale(domain=[0, most]))
    base = alt.Chart(ChartRows(values=list(rows))).encode(x=x, y=y)
    window = alt.Chart(ChartRows(values=[{"from": first, "to": last}])).mark_rect(opacity=0.08, color=INK)
    half = EXCURSION_SHARE / 2
    levels = [
        {"number": at, "iops": found.average * factor, "line": str(factor)}
        for factor in (1 - half, 1.0, 1 + half)
        for at in (first, last)
    ]
    lines = alt.Chart(ChartRows(values=levels)).encode(x=x, y=y, detail="line:N")
    fit = [
        {"number": at, "iops": found.average * (1 + side * found.rise_share / 2)}
        for at, side in ((first, -1), (last, 1))
    ]
    figure: alt.TopLevelMixin = alt.layer(
        window.encode(x=alt.X("from:Q", scale=scale), x2="to:Q"),
        base.mark_line(strokeWidth=1.6, color=COLOURS[0]),
        base.mark_point(size=34, filled=True, opacity=1, color=COLOURS[0]),
        lines.transform_filter("datum.line != '1.0'").mark_line(color=LIMIT, strokeDash=[5, 4], strokeWidth=1.2),
        lines.transform_filter("datum.line == '1.0'").mark_line(color=INK, strokeWidth=1.0),
        alt.Chart(ChartRows(values=fit)).mark_line(color=COLOURS[1], strokeWidth=2.6).encode(x=x, y=y),
    ).properties(width=PANEL_WIDTH[1], height=220)
    return figure


def _steps(part: str, points: Sequence[Point], place: int) -> Table:
    """Every step, and what was written until its end."""
    columns = [
        Column("Point", weight=0.8), Column("Step", weight=3.0), Column("I/Os per second", number=True, weight=1.4),
        Column("Throughput", number=True, weight=2.2), Column("Written", number=True),
    ]  # fmt: skip
    written = 0.0
    rows = []
    for point in points:
        written += float(_told(point).get("written_bytes") or 0)
        total = point.get("total")
        rows.append(
            [
                Cell(str(point.get("id")), anchor=point.get("id")),
                Cell(str(point["workload"].get("name"))),
                Cell(format_iops(_iops(point))),
                Cell(format_throughput(total["bytes_per_s"]) if total else "-"),
                Cell(f"{written / 1e9:,.4g} GB" if written else "-"),
            ]
        )
    return Table(
        f"state-steps-{place}", f"{part}: steps of preconditioning, and what was written by their end.", columns, rows
    )

"""The state of the target: how it was brought into it, round by round, and the window that was steady."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from assay.base.units import format_decimal, format_iops, format_share, format_throughput
from assay.document.charts import PANEL_WIDTH, ChartRows, figure_or_words
from assay.document.drawing import alt
from assay.document.elements import Block, Cell, Column, FactList, Paragraph, Section, Table
from assay.document.palette import COLOURS, COUNT, INK, LIMIT
from assay.document.text import DASH, joined, moment, sentence
from assay.record.state import DISCLAIMER, UNKNOWN, state_words, states_of
from assay.record.steady import EXCURSION_SHARE, SLOPE_SHARE, RoundsSteadiness, steady_rounds
from assay.workloads.io.filling import DEPTH

if TYPE_CHECKING:
    from assay.record.shapes.drive import Drive
    from assay.record.shapes.point import Point
    from assay.record.shapes.state import Preconditioning
    from assay.record.source import RunFacts


PARTS_NAMED = 3
"""More parts of one state are counted, not named."""


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
    titles = {str(part.get("name")): str(part.get("title") or part.get("name"))
              for part in facts.manifest.get("parts") or []}  # fmt: skip
    blocks: list[Block] = [Paragraph(DISCLAIMER), FactList("state", _tested(facts))]
    for state in states:
        of = [titles.get(str(part), str(part)) for part in state.get("parts") or []]
        whose = joined(of) if len(of) <= PARTS_NAMED else f"{'all ' if len(states) == 1 else ''}{len(of)} parts"
        blocks.append(Paragraph(sentence(f"{whose}: measured on a target that was {state_words(state)}")))
    parts = dict.fromkeys(str(point.get("part")) for point in facts.preconditioning)
    for place, part in enumerate(parts, start=1):
        own = [point for point in facts.preconditioning if str(point.get("part")) == part]
        shared = len(parts) == 1 and any(len(state.get("parts") or []) > 1 for state in states)
        title = "before all parts" if shared else titles.get(part, part)
        blocks += _rounds(title, own, place)
        blocks.append(_steps(title, own, place))
    if len(parts) == 1:
        blocks += _rounds_of_levels(facts)
    return Section("state", "State of the target", blocks)


def _tested(facts: RunFacts) -> list[tuple[str, str]]:
    """What a report of PTS names of the test's time, system and drive; sizes of drives are decimal there."""
    run = facts.manifest
    host, target = run.get("host") or {}, run.get("target") or {}
    processor = " x ".join(str(word) for word in (host.get("cpu_count"), host.get("cpu_model")) if word)
    system = [str(word) for word in (host.get("distribution"), host.get("kernel"), processor) if word]
    array = target.get("array") or {}
    drives = [str(array.get("target"))] if array else [_drive_words(one) for one in target.get("drives") or []]
    used = sum(volume.get("size_bytes") or 0 for volume in target.get("volumes") or [])
    return [
        ("Date", moment(run.get("started_utc_ns"))),
        ("System", ", ".join(system) or DASH),
        ("Drive", "; ".join(drives) or "not known: no NVMe, SATA or SAS drive was found beneath the target"),
        ("Capacity under test", format_decimal(used)),
    ]


def _drive_words(drive: Drive) -> str:
    firmware = f"firmware {drive['firmware']}" if drive.get("firmware") else None
    return ", ".join(word for word in (drive["name"], drive.get("model"), firmware, drive.get("transport")) if word)


def _rounds_of_levels(facts: RunFacts) -> list[Block]:
    """The smallest writes of a study in each of its repeats, the rounds of PTS, and whether they were steady."""
    rounds: dict[str, list[Point]] = {}
    for point in facts.points:
        rounds.setdefault(str(point.get("part")).partition(" #")[0], []).append(point)
    tracked = min(rounds.values(), key=lambda own: _smallness(own[0]), default=[])
    found = steady_rounds([_iops(point) for point in tracked])
    if found is None:
        return []
    rows: list[RoundRow] = [
        {"number": number, "iops": _iops(point), "point_id": point.get("id")}
        for number, point in enumerate(tracked, start=1)
    ]
    what = f"{tracked[0]['workload'].get('name')}: I/Os per second in each round of all levels"
    return [_round_figure("rounds-of-levels", what, rows, found, "round of all levels")]


def _smallness(point: Point) -> tuple[float, float]:
    """Share of reads and size of block: the least are the small writes that PTS tracks."""
    read_share, block = point["workload"].get("read_share"), point["workload"].get("block_bytes")
    return read_share if isinstance(read_share, float) else 1.0, block if isinstance(block, int) else math.inf


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
    each = {_told(point).get("written_bytes") for point in points if _told(point).get("step") == "round"}
    writes = f" (each writes {format_decimal(size)})" if len(each) == 1 and (size := each.pop()) else ""
    return [_round_figure(f"rounds-{place}", f"{part}: I/Os per second of each round", rows, found, f"round{writes}")]


def _round_figure(name: str, what: str, rows: Sequence[RoundRow], found: RoundsSteadiness, axis: str) -> Block:
    """A figure of rounds, with the criterion in its caption."""
    excursion, slope = format_share(found.excursion_share, 1), format_share(abs(found.rise_share), 1)
    verdict = "steady" if found.reached else "not steady"
    caption = (
        f"{what}. The window is the last five rounds, on average"
        f" {format_iops(found.average)} (line). Their excursion is {excursion} of it (max."
        f" {format_share(EXCURSION_SHARE)}; dashed lines lie half of that above and below). The best linear fit changes"
        f" by {slope} of it (max. {format_share(SLOPE_SHARE)}; thick line): {verdict}."
    )
    alternative = f"{what}: {', '.join(format_iops(row['iops']) for row in rows)}; {verdict}."
    return figure_or_words(name, caption, alternative, rounds_chart(rows, found, axis))


def rounds_chart(rows: Sequence[RoundRow], found: RoundsSteadiness, axis: str = "round") -> alt.TopLevelMixin:
    """Draw rounds with the measurement window, its bounds and its linear fit."""
    numbers = [row["number"] for row in rows]
    first, last = numbers[found.first], numbers[-1]
    most = max([row["iops"] for row in rows] + [found.average * (1 + EXCURSION_SHARE)]) * 1.05
    scale = alt.Scale(domain=[min(numbers), last], nice=False)
    x = alt.X("number:Q", title=axis, axis=alt.Axis(format="d", tickMinStep=1), scale=scale)
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
    caption = (
        f"{part}: steps of preconditioning, {DEPTH} I/Os outstanding on each volume, and what was written by their end."
    )
    written = 0.0
    rows = []
    for point in points:
        # A purge leaves a block as its sign, which is no filling.
        purges = _told(point).get("step") == "purge"
        written += 0.0 if purges else float(_told(point).get("written_bytes") or 0)
        total = point.get("total")
        rows.append(
            [
                Cell(str(point.get("id")), anchor=point.get("id")),
                Cell(str(point["workload"].get("name"))),
                Cell("-" if purges else format_iops(_iops(point))),
                Cell(format_throughput(total["bytes_per_s"]) if total else "-"),
                Cell(format_decimal(written) if written else "-"),
            ]
        )
    return Table(
        f"state-steps-{place}",
        caption,
        columns,
        rows,
    )

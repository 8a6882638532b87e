"""Figures of an integrity run: the units of a wrong page, and findings over the phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import ChartRows, ordered
from assay.document.drawing import alt
from assay.document.palette import BAND, COLOURS, INK, colour


class UnitCell(TypedDict):
    """A unit of a page by its number, and its state, a key of `STATES` where it is known."""

    number: int
    state: str


class FoundAt(TypedDict):
    """When a finding was made, seconds since the first phase began; `lasting` is persistent or transient."""

    t_s: float
    name: str
    lasting: str


class PhaseBand(TypedDict):
    """A phase, seconds since the first one began, and its pages per second; its `label` may be empty."""

    start_s: float
    end_s: float
    label: str
    odd: bool
    verified_per_s: float
    written_per_s: float


STATES = {
    "expected": ("E", COLOURS[5]),
    "older": ("O", COLOURS[1]),
    "foreign": ("F", COLOURS[3]),
    "not read": ("N", "#BBBBBB"),
    "corrupt": ("C", COLOURS[4]),
}
"""Letter and colour of each state of a unit: the letter stands in the unit, for printing in grey."""

LETTER_INK = "#000000"
"""Letters stand on colours, so they stay black on a dark page."""

STRIP_WIDTH, TIME_WIDTH = 600, 470
UNIT_BYTES = 512


def unit_strip(units: Sequence[UnitCell], ranges: Sequence[Sequence[int]], length: int) -> alt.TopLevelMixin | None:
    """Units of a page side by side, coloured by state, with the differing bytes beneath them.

    Parameters
    ----------
    units : sequence of rows
        Units of unknown state are left out.
    ranges : sequence of pairs
        First differing byte of the page and the first after it that is right again.
    length : int
        Bytes of the page.
    """
    known = [unit for unit in units if unit["state"] in STATES]
    cells = [
        {"from": unit["number"] * UNIT_BYTES, "to": (unit["number"] + 1) * UNIT_BYTES, "state": unit["state"],
         "middle": (unit["number"] + 0.5) * UNIT_BYTES, "letter": STATES[unit["state"]][0]}
        for unit in known
    ]  # fmt: skip
    if not cells or length <= 0:
        return None
    shown = [state for state in STATES if any(unit["state"] == state for unit in known)]
    names = " : ".join(f"datum.label == '{state}' ? '{STATES[state][0]}  {state}'" for state in shown)
    step = max(UNIT_BYTES, length // 8)
    axis = alt.Axis(values=list(range(0, length + 1, step)), format=",d", grid=False, labelFontSize=10)
    x = alt.X("from:Q", title="byte of the page", axis=axis, scale=alt.Scale(domain=[0, length], nice=False))
    hues = alt.Color(
        "state:N",
        scale=alt.Scale(domain=shown, range=[STATES[state][1] for state in shown]),
        legend=alt.Legend(orient="top", title=None, symbolType="square", labelExpr=f"{names} : ''", columns=5),
    )
    base = alt.Chart(ChartRows(values=cells))
    boxes = base.mark_rect(stroke=INK, strokeWidth=0.8).encode(
        x=x, x2="to:Q", y=alt.value(0), y2=alt.value(22), color=hues
    )
    letters = base.mark_text(fontSize=11, fontWeight="bold", color=LETTER_INK, baseline="middle").encode(
        x="middle:Q", y=alt.value(11.5), text="letter:N"
    )
    layers: list[alt.Chart] = [boxes, letters]
    spans = [{"from": first, "to": after} for first, after in ranges]
    if spans:
        # The stroke keeps a range of one byte visible.
        bars = alt.Chart(ChartRows(values=spans)).mark_rect(color=INK, stroke=INK, strokeWidth=1.0)
        layers.append(bars.encode(x="from:Q", x2="to:Q", y=alt.value(27), y2=alt.value(33)))
    figure: alt.TopLevelMixin = alt.layer(*layers).properties(width=STRIP_WIDTH, height=36)
    return figure


def findings_timeline(
    findings: Sequence[FoundAt], phases: Sequence[PhaseBand], *, end_s: float
) -> alt.TopLevelMixin | None:
    """Findings by name over the phases, above the pages each phase verified and wrote per second.

    Parameters
    ----------
    findings, phases : sequences of rows
        Findings with their names in the order to show; phases in the order they ran.
    end_s : float
        End of the time axis, seconds.
    """
    if not findings or not phases:
        return None
    divisor, unit = (60, "min") if end_s > 600 else (1, "s")
    scale = alt.Scale(domain=[0, max(end_s, 0.001) / divisor], nice=False)

    def x(field: str, *, last: bool) -> alt.X:
        axis = alt.Axis(grid=False, labels=last, ticks=last, tickCount=10, format=".6~g")
        title = f"time since the first phase began ({unit})" if last else None
        return alt.X(field, title=title, axis=axis, scale=scale)

    bands = [{"from": phase["start_s"] / divisor, "to": phase["end_s"] / divisor, "label": phase["label"],
              "shade": 0.2 if phase["odd"] else 0.0} for phase in phases]  # fmt: skip
    spans = alt.Chart(ChartRows(values=bands))

    def shading(*, last: bool) -> alt.Chart:
        opacity = alt.Opacity("shade:Q", scale=None, legend=None)
        drawn: alt.Chart = spans.mark_rect(color=BAND).encode(x=x("from:Q", last=last), x2="to:Q", opacity=opacity)
        return drawn

    labels = spans.transform_filter("datum.label != ''").mark_text(
        align="left", baseline="bottom", fontSize=10, color=INK, dy=-3
    ).encode(x=x("from:Q", last=False), y=alt.value(0), text="label:N")  # fmt: skip
    kinds = ordered(findings, "name")
    marks = [{**row, "t": row["t_s"] / divisor} for row in findings]
    lasting = ["persistent", "transient"]
    hues, shapes = [COLOURS[4], COLOURS[0]], ["circle", "triangle-up"]
    points = alt.Chart(ChartRows(values=marks)).mark_point(size=46, filled=True, opacity=0.85).encode(
        x=x("t:Q", last=False),
        y=alt.Y("name:N", sort=kinds, title=None, axis=alt.Axis(grid=True, labelLimit=120, minExtent=110)),
        color=alt.Color("lasting:N", scale=alt.Scale(domain=lasting, range=hues),
                        legend=alt.Legend(orient="right", title="finding")),
        shape=alt.Shape("lasting:N", scale=alt.Scale(domain=lasting, range=shapes),
                        legend=alt.Legend(orient="right", title="finding")),
    )  # fmt: skip
    above = alt.layer(shading(last=False), labels, points).properties(width=TIME_WIDTH, height=max(50, 22 * len(kinds)))
    verified, written = [one["verified_per_s"] for one in phases], [one["written_per_s"] for one in phases]
    rates = [
        {"t": t / divisor, "series": name, "rate": rate, "phase": number}
        for name, each in (("verified", verified), ("written", written))
        for number, (phase, rate) in enumerate(zip(phases, each, strict=True))
        for t in (phase["start_s"], phase["end_s"])
    ]
    lines = alt.Chart(ChartRows(values=rates)).mark_line(strokeWidth=2.0).encode(
        x=x("t:Q", last=True),
        y=alt.Y("rate:Q", title="pages per second", axis=alt.Axis(format="~s", tickCount=4, minExtent=110)),
        color=colour("series", ["verified", "written"], "pages", orient="right", columns=1),
        detail="phase:N",
        strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=["verified", "written"], range=[[1, 0], [6, 3]]),
                                  legend=alt.Legend(orient="right", title="pages")),
    )  # fmt: skip
    below = alt.layer(shading(last=True), lines).properties(width=TIME_WIDTH, height=84)
    figure: alt.TopLevelMixin = alt.vconcat(above, below, spacing=12).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    return figure

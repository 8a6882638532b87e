"""A load and the served array beneath it on one time axis: states shaded, events marked and numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from assay.document.charts import ordered
from assay.document.palette import BAND, COLOURS, INK, LIMIT
from assay.document.series_charts import SPACING, WIDTH, lines, panel_height

Row = Mapping[str, Any]

SHADES = {
    "warm-up": (BAND, 0.22),
    "degraded": (COLOURS[1], 0.22),
    "rebuilding": (COLOURS[0], 0.16),
    "no power": (LIMIT, 0.3),
}
"""Colour and opacity of the states of an array; a healthy one is not shaded."""

LETTER_PX = 6
PANEL_MAX_PX = 120


def fault_timeline(
    rows: Sequence[Row], spans: Sequence[Row], marks: Sequence[Row], *, end_s: float
) -> alt.TopLevelMixin | None:
    """Panels over one time axis.

    Parameters
    ----------
    rows : sequence of rows
        As of `series_charts.timeline`.
    spans : sequence of rows
        `start_s`, `end_s`, `kind` (a key of `SHADES`).
    marks : sequence of rows
        Events: `t_s`, `label`.
    end_s : float
        End of the time axis, seconds.
    """
    panels = ordered(rows, "panel")
    if not panels:
        return None
    divisor, unit = (60, "min") if end_s > 600 else (1, "s")
    scale = alt.Scale(domain=[0, max(end_s, 1.0) / divisor], nice=False)
    charts = []
    for number, panel in enumerate(panels):
        own = [{**row, "t": row["t_s"] / divisor} for row in rows if row["panel"] == panel]
        is_last = number == len(panels) - 1
        axis = alt.Axis(grid=False, labels=is_last, ticks=is_last, tickCount=10, format=".6~g")
        x = alt.X("t:Q", title=f"time ({unit})" if is_last else None, axis=axis, scale=scale)
        layers = _shading(spans, x, divisor, end_s, is_labelled=number == 0)
        layers.append(lines(own, panel, x))
        if marks:
            layers += _marks(marks, x, divisor, is_labelled=number == 0)
        height = min(panel_height(len(panels)), PANEL_MAX_PX)
        charts.append(alt.layer(*layers).properties(width=WIDTH, height=height))
    figure: alt.TopLevelMixin = alt.vconcat(*charts, spacing=SPACING).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return figure


def _shading(spans: Sequence[Row], x: alt.X, divisor: float, end_s: float, *, is_labelled: bool) -> list[alt.Chart]:
    layers = []
    for kind, (hue, opacity) in SHADES.items():
        own = [span for span in spans if span["kind"] == kind]
        if not own:
            continue
        data = [
            {
                "t": span["start_s"] / divisor,
                "end": span["end_s"] / divisor,
                "label": kind if (span["end_s"] - span["start_s"]) / end_s * WIDTH >= LETTER_PX * len(kind) else "",
            }
            for span in own
        ]
        base = alt.Chart(alt.InlineData(values=data)).encode(x=x)
        layers.append(base.mark_rect(color=hue, opacity=opacity).encode(x2="end:Q"))
        if is_labelled:
            named = base.transform_filter("datum.label != ''")
            labels = named.mark_text(align="left", baseline="bottom", fontSize=10, color=INK, dy=-14)
            layers.append(labels.encode(y=alt.value(0), text="label:N"))
    return layers


def _marks(marks: Sequence[Row], x: alt.X, divisor: float, *, is_labelled: bool) -> list[alt.Chart]:
    data = [{"t": mark["t_s"] / divisor, "label": mark["label"]} for mark in marks]
    base = alt.Chart(alt.InlineData(values=data)).encode(x=x)
    layers = [base.mark_rule(color=INK, strokeWidth=1)]
    if is_labelled:
        text = base.mark_text(align="center", baseline="bottom", fontSize=10, fontWeight="bold", color=INK, dy=-3)
        layers.append(text.encode(y=alt.value(0), text="label:N"))
    return layers

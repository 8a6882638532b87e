"""A load and the served array beneath it on one time axis: states shaded, events marked and numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from assay.document.palette import BAND, COLOURS, INK, LIMIT
from assay.document.series_charts import WIDTH, TimeAxis, lines, panels_over_time

Row = Mapping[str, Any]

SHADES = {
    "warm-up": (BAND, 0.22),
    "degraded": (COLOURS[1], 0.22),
    "rebuilding": (COLOURS[0], 0.16),
    "rebalancing": (COLOURS[2], 0.16),
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

    def layers(own: list[dict[str, Any]], panel: str, axis: TimeAxis) -> list[alt.Chart]:
        shading = _shading(spans, axis.x, axis.divisor, end_s, is_labelled=axis.is_first)
        marked = _marks(marks, axis.x, axis.divisor, is_labelled=axis.is_first) if marks else []
        return [*shading, lines(own, panel, axis.x), *marked]

    return panels_over_time(rows, layers, end_s=end_s, height_max_px=PANEL_MAX_PX)


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

"""Figures of reliability: how far the ratios range with the inputs, and how losses follow each input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from assay.base.units import format_when
from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.palette import INK, MAX_SERIES, colour, log_scale, shape


class RatioRow(TypedDict):
    """A ratio over the range of an input: `panel` says which ratio, `basis` what is compared."""

    panel: str
    input: str
    basis: str
    low: float
    high: float
    stated: float


class LossRow(TypedDict):
    """The loss probability of a policy at a value of an input, whose label has its unit."""

    input: str
    value: float
    policy: str
    stated: bool
    loss_probability: float


PANEL_WIDTH = 210
CURVE_WIDTH = 262
ROW_PX = 34
TICKS_MAX = 5


def ratio_ranges(rows: Sequence[RatioRow]) -> alt.TopLevelMixin | None:
    """Bars from the smallest to the largest ratio, one row an input, one panel a ratio; a line at the stated inputs.

    Parameters
    ----------
    rows : sequence of rows
        The ratios, in the order to show.
    """
    if not rows:
        return None
    inputs, bases = _ordered(rows, "input"), _ordered(rows, "basis")
    panels = []
    for number, panel in enumerate(_ordered(rows, "panel")):
        data = [row for row in rows if row["panel"] == panel]
        scale, ticks = log_scale([edge for row in data for edge in (row["low"], row["high"])], TICKS_MAX)
        axis = alt.Axis(labelLimit=250, ticks=False, labels=number == 0)
        base = alt.Chart(ChartRows(values=data)).encode(
            y=alt.Y("input:N", sort=inputs, title=None, axis=axis),
            yOffset=alt.YOffset("basis:N", sort=bases, scale=alt.Scale(paddingInner=0.15)),
        )
        x = alt.X("low:Q", title="times as often as RAID-DP (log)", scale=scale, axis=_axis(ticks))
        bars = base.mark_bar().encode(x=x, x2="high:Q", color=colour("basis", bases, "compared on the"))
        stated = base.mark_tick(color=INK, thickness=2, orient="vertical").encode(x=alt.X("stated:Q", scale=scale))
        height = ROW_PX * len(inputs)
        panels.append(alt.layer(bars, stated).properties(width=PANEL_WIDTH, height=height, title=panel))
    figure: alt.TopLevelMixin = alt.hconcat(*panels, spacing=18).resolve_scale(color="shared")
    return figure


def loss_curves(rows: Sequence[LossRow], years: float) -> alt.TopLevelMixin | None:
    """Loss probability of each policy over the range of each input; rings mark the stated value.

    Parameters
    ----------
    rows : sequence of rows
        The probabilities, in the order to show.
    years : float
        Service life.
    """
    shown = [row for row in rows if row["loss_probability"] > 0]
    policies = _ordered(shown, "policy")
    if not shown:
        return None
    if len(policies) > MAX_SERIES:
        raise ValueError(f"a figure holds at most {MAX_SERIES} series, got {len(policies)}")
    y_scale, y_ticks = log_scale([row["loss_probability"] for row in shown], TICKS_MAX)
    panels = []
    for label in _ordered(shown, "input"):
        data = [row for row in shown if row["input"] == label]
        scale, ticks = log_scale([row["value"] for row in data], TICKS_MAX)
        base = alt.Chart(ChartRows(values=data)).encode(
            x=alt.X("value:Q", title=f"{label} (log)", scale=scale, axis=_axis(ticks)),
            y=alt.Y("loss_probability:Q", title=f"loss {format_when(years)} (log)", scale=y_scale,
                    axis=_axis(y_ticks)),
            color=colour("policy", policies),
        )  # fmt: skip
        marks = base.mark_point(size=70, filled=True, opacity=1).encode(shape=shape("policy", policies))
        lines = base.mark_line(strokeWidth=1.6)
        stated = marks.transform_filter("datum.stated")
        panels.append(alt.layer(lines, stated).properties(width=CURVE_WIDTH, height=190))
    figure: alt.TopLevelMixin = (
        alt.concat(*panels, columns=2, spacing=22).resolve_scale(color="shared", shape="shared")
    )  # fmt: skip
    return figure


def _axis(ticks: Sequence[float]) -> alt.Axis:
    """Axis with ticks of its own; small numbers as powers of ten."""
    shown = "datum.value < 0.01 ? format(datum.value, '~e') : format(datum.value, datum.value < 1000 ? '~g' : ',.0f')"
    return alt.Axis(values=list(ticks), labelExpr=shown, grid=True)


def _ordered(rows: Sequence[Mapping[str, object]], field: str) -> list[str]:
    return list(dict.fromkeys(str(row[field]) for row in rows))

"""Figures of studies: a figure at each level with its interval, and published figures beside a model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from assay.base.units import bytes_unit
from assay.document.charts import DOTS_LEAST, PANEL_WIDTH, ChartRows, ordered
from assay.document.drawing import alt
from assay.document.palette import BAND, COLOURS, COUNT, INK, MAX_SERIES, colour, latency_unit, shape
from assay.insight.studies.words import full_name_of


class LevelRow(TypedDict):
    """A figure at a level, with its interval and the band of a model, in its base unit; None where there is none.

    `series` is one text for all where there is one; `load` is the level as a number where levels are loads; `group` is
    what series share, and `told` names both in the text that stands for the figure.
    """

    level: str
    load: NotRequired[float]
    series: str
    group: NotRequired[str]
    told: NotRequired[str]
    unit: str
    value: float
    low: float | None
    high: float | None
    band_low: float | None
    band_high: float | None
    point_ids: list[str]


class PublishedRow(TypedDict):
    """The error of a model against a published figure, with its interval and band, as shares of it."""

    title: str
    fit: bool | None
    point_ids: list[str | None]
    error: float
    low: float | None
    high: float | None
    band_low: float | None
    band_high: float | None


class LegendRoom(TypedDict, total=False):
    """Columns of a legend, and pixels of a label."""

    columns: int
    labelLimit: int


class PercentRow(TypedDict):
    """An error in percent, and whether the model was fitted to what was published."""

    title: str
    used: str
    point_ids: list[str | None]
    error: float
    low: float | None
    high: float | None
    band_low: float | None
    band_high: float | None


TEXTS_MAX = 16
"""Most bars with their value above them: more would overlap."""
BAR_MAX_PX = 80
"""Widest bar: one as wide as it is high looks like an area."""
ASIDE_PX = 5
"""Half the room of a series beside the others at a level, in pixels."""
TOLERATED_PERCENT = 10
"""Half-width of the grey band in the figure of published values: what a calibrated model must reach."""

LETTER_PX = 5.5
"""Mean width of a letter of a label."""


SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0}
"""Units of times of which an axis has two or more."""


def level_figure(
    rows: Sequence[LevelRow], figure: str, factor_title: str, *, joined: bool, full_name: str | None = None
) -> alt.TopLevelMixin | None:
    """A figure at each level: bars, or lines where the levels rise.

    Thin whiskers are 95 % intervals; wide pale ones show how far a model may be off.

    Parameters
    ----------
    rows : sequence of rows
        The figure at each level, in the order to show.
    figure : str
        `iops`, `nopm`, `response_p90`, ...: one of `assay.insight.studies.result.study_figures`.
    factor_title : str
        What the levels are of.
    joined : bool
        Lines instead of bars, where they have enough points.
    full_name : str, optional
        The figure in words; those of the kind that was registered first unless given.
    """
    if not rows:
        return None
    joined, series, levels = joined and len(rows) >= DOTS_LEAST, ordered(rows, "series"), ordered(rows, "level")
    if len(series) > MAX_SERIES:
        raise ValueError(f"a figure holds at most {MAX_SERIES} series, got {len(series)}")
    factor, title = _unit(rows, full_name or full_name_of(figure))
    data: list[LevelRow] = [
        {
            **row,
            "value": row["value"] / factor,
            "low": _over(row["low"], factor),
            "high": _over(row["high"], factor),
            "band_low": _over(row["band_low"], factor),
            "band_high": _over(row["band_high"], factor),
        }
        for row in rows
    ]
    most = max(
        value or 0.0
        for row in data
        for value in (row["value"], row["low"], row["high"], row["band_low"], row["band_high"])
    )
    y_axis = alt.Axis(format=COUNT, tickCount=6)
    y = alt.Y("value:Q", title=title, axis=y_axis, scale=alt.Scale(domain=[0, most * 1.12 or 1], nice=False))
    step = PANEL_WIDTH[1] / len(levels)
    fit = max(len(level) for level in levels) * LETTER_PX <= step
    x_axis = _level_axis(step, fit=fit)
    gap = 1 - min(0.9, BAR_MAX_PX * len(series) / step)
    spread = alt.Scale(type="point", padding=0.5) if joined else alt.Scale(paddingInner=gap, paddingOuter=gap / 2)
    x = alt.X("level:N", sort=levels, title=factor_title, axis=x_axis, scale=spread)
    base = alt.Chart(ChartRows(values=data))
    alone = len(series) == 1
    hues = alt.value(COLOURS[0]) if alone else colour("series", series, **_legend(series))
    layers = (
        _lines(base, x, y, series, hues)
        if joined
        else _bars(base, x, y, series, hues, texts=len(data), form=",.0f" if most >= 1000 else ",.4~r")
    )
    chart: alt.TopLevelMixin = alt.layer(*layers).properties(width=PANEL_WIDTH[1], height=230)
    return chart


def _level_axis(step: float, *, fit: bool) -> alt.Axis:
    """The axis of levels: leaned labels pass each other, so that each level has its name where a line fits."""
    return alt.Axis(
        labelAngle=0 if fit else -35, grid=False, labelLimit=step if fit else 160, labelOverlap=step < 2 * LETTER_PX
    )


def _over(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor


def _legend(series: Sequence[str]) -> LegendRoom:
    """Two columns where the names are long."""
    return {"columns": 2, "labelLimit": 320} if max(map(len, series)) > 30 else {}


def _unit(rows: Sequence[LevelRow], title: str) -> tuple[float, str]:
    match rows[0]["unit"]:
        case "ns":
            factor, unit = latency_unit(row["value"] for row in rows)
            return factor, f"{title} ({unit})"
        case "bytes":
            factor, unit = bytes_unit(row["value"] for row in rows)
            return factor, f"{title} ({unit})"
        case "bytes_per_s":
            return 1e6, f"{title} (MB/s)"
        case "share":
            return 0.01, f"{title} (%)"
        case "s":
            most = max((row["value"] or 0.0 for row in rows), default=0.0)
            unit = next((unit for unit, length in SECONDS.items() if most >= 2 * length), "s")
            return SECONDS[unit], f"{title} ({unit})"
        case _:
            return 1.0, title


def _bars(
    base: alt.Chart, x: alt.X, y: alt.Y, series: list[str], hues: Any, *, texts: int, form: str
) -> list[alt.Chart]:
    offset = alt.XOffset("series:N", sort=series, scale=alt.Scale(paddingInner=0.12))
    placed = base.encode(x=x) if len(series) == 1 else base.encode(x=x, xOffset=offset)
    layers = [placed.mark_bar().encode(y=y, color=hues), *_intervals(placed, alt.value(INK))]
    if texts <= TEXTS_MAX:
        highest = (
            "max(datum.value, isValid(datum.high) ? datum.high : 0, isValid(datum.band_high) ? datum.band_high : 0)"
        )
        tops = placed.transform_calculate(top=highest)
        shown = alt.Text("value:Q", format=form)
        layers.append(tops.mark_text(dy=-7, fontSize=9, color=INK).encode(y=alt.Y("top:Q"), text=shown))
    return layers


def _lines(base: alt.Chart, x: alt.X, y: alt.Y, series: list[str], hues: Any) -> list[alt.Chart]:
    # Series of equal values stand beside each other, so that each is seen with its intervals.
    aside = alt.XOffset(
        "series:N", sort=series, scale=alt.Scale(range=[-ASIDE_PX * len(series), ASIDE_PX * len(series)])
    )
    placed = base.encode(x=x) if len(series) == 1 else base.encode(x=x, xOffset=aside)
    detail = placed.encode(detail="series:N")
    # Colour and shape share one legend only where both say the same of it.
    room = _legend(series)
    marks = (
        alt.value("circle")
        if len(series) == 1
        else shape("series", series).legend(
            orient="top", title=None, labelLimit=room.get("labelLimit", 230), symbolLimit=0,
            columns=room.get("columns", 4),
        )
    )  # fmt: skip
    return [
        *_intervals(detail, hues),
        detail.mark_line(strokeWidth=1.6).encode(y=y, color=hues),
        detail.mark_point(size=44, filled=True, opacity=1).encode(y=y, color=hues, shape=marks),
    ]


def _intervals(base: alt.Chart, hue: Any) -> list[alt.Chart]:
    bands = base.transform_filter("isValid(datum.band_low)").mark_rule(strokeWidth=8, strokeOpacity=0.25)
    spans = base.transform_filter("isValid(datum.low)")
    ends = [
        spans.mark_tick(size=7, thickness=1.2, opacity=1, orient="horizontal").encode(y=alt.Y(f"{end}:Q"), color=hue)
        for end in ("low", "high")
    ]
    return [
        bands.encode(y=alt.Y("band_low:Q"), y2="band_high:Q", color=hue),
        spans.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q"), y2="high:Q", color=hue),
        *ends,
    ]


def published_figure(rows: Sequence[PublishedRow]) -> alt.TopLevelMixin | None:
    """Error of the model against published figures: 0 is the published one, the grey band 10 % to either side.

    Parameters
    ----------
    rows : sequence of rows
        The errors, in the order to show.
    """
    if len(rows) < DOTS_LEAST:
        return None
    data: list[PercentRow] = [
        {
            "title": row["title"],
            "used": "fitted to" if row["fit"] else "predicted",
            "point_ids": row["point_ids"],
            "error": row["error"] * 100,
            "low": _percent(row["low"]),
            "high": _percent(row["high"]),
            "band_low": _percent(row["band_low"]),
            "band_high": _percent(row["band_high"]),
        }
        for row in rows
    ]
    titles, used = (
        ordered(data, "title"),
        [word for word in ("fitted to", "predicted") if word in ordered(data, "used")],
    )
    ends = [(row["error"], row["low"], row["high"], row["band_low"], row["band_high"]) for row in data]
    most = max(TOLERATED_PERCENT * 1.5, *(abs(value or 0.0) * 1.1 for own in ends for value in own))
    axis = "model against published (%)"
    x = alt.X("error:Q", title=axis, scale=alt.Scale(domain=[-most, most], nice=False), axis=alt.Axis(format="+.3~g"))
    y = alt.Y("title:N", sort=titles, title=None, axis=alt.Axis(labelLimit=300, ticks=False))
    base = alt.Chart(ChartRows(values=data)).encode(y=y)
    hues = colour("used", used)
    edges = ChartRows(values=[{"from": -TOLERATED_PERCENT, "to": TOLERATED_PERCENT}])
    layers = [
        alt.Chart(edges).mark_rect(color=BAND, opacity=0.2).encode(x=alt.X("from:Q", title=axis), x2="to:Q"),
        alt.Chart(ChartRows(values=[{"zero": 0}])).mark_rule(color=INK).encode(x=alt.X("zero:Q", title=axis)),
        base.transform_filter("isValid(datum.band_low)")
        .mark_rule(strokeWidth=8, strokeOpacity=0.25)
        .encode(x=alt.X("band_low:Q", title=axis), x2="band_high:Q", color=hues),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.4)
        .encode(x=alt.X("low:Q", title=axis), x2="high:Q", color=hues),
        base.mark_point(size=60, filled=True, opacity=1).encode(x=x, color=hues, shape=shape("used", used)),
    ]
    chart: alt.TopLevelMixin = alt.layer(*layers).properties(width=330, height=max(80, 30 * len(titles)))
    return chart


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100

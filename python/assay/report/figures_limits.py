"""The figure of the first page: measured values as bars against their limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.palette import INK, LIMIT

BARS_MAX = 8
"""Most bars: a reader takes in no more at a glance."""
SHARE_MAX = 2.0
"""Where a bar ends that is longer: one far beyond its limit would press the others flat. Its text has the value."""
MET, MISSED, UNKNOWN, EXCUSED = "met", "missed", "unknown", "missed, not by the storage"
"""States of a bar."""
HUES = {MET: "#9DB8CC", MISSED: LIMIT, UNKNOWN: "#CCCCCC", EXCUSED: "#777777"}
"""Bars within their limits are pale, so that those beyond them are darker in grey print as well."""
WIDTH = 190
"""Pixels of the bars; labels stand left of them, values and limits right."""


class LimitBar(TypedDict):
    """A value as a share of its limit, 1 at the limit; its text has value and limit, its state is a key of `HUES`."""

    label: str
    share: float
    text: str
    state: str


class NumberedBar(LimitBar):
    """A bar at its place, cut to `SHARE_MAX`; `shown` is in percent."""

    number: int
    shown: float


def limit_bars(rows: Sequence[LimitBar]) -> alt.TopLevelMixin | None:
    """Bars of values as shares of their limits; the limit is a line at 100 %.

    Parameters
    ----------
    rows : sequence of rows
        The bars in the order to show, at most `BARS_MAX`.
    """
    if not rows:
        return None
    if len(rows) > BARS_MAX:
        raise ValueError(f"a figure holds at most {BARS_MAX} bars, got {len(rows)}")
    most = min(SHARE_MAX, max(1.0, *(row["share"] for row in rows))) * 104
    # A number before each label keeps bars with equal labels apart.
    data: list[NumberedBar] = [
        {**row, "number": number, "shown": 100 * min(row["share"], SHARE_MAX)}
        for number, row in enumerate(rows, start=1)
    ]
    names = " : ".join(f"datum.value == {row['number']} ? {_quoted(row['label'])}" for row in data)
    y = alt.Y("number:O", title=None, scale=alt.Scale(paddingInner=0.35),
              axis=alt.Axis(labelExpr=f"{names} : ''", labelLimit=300, ticks=False, domain=False))  # fmt: skip
    x = alt.X("shown:Q", title="% of the limit", scale=alt.Scale(domain=[0, most], nice=False),
              axis=alt.Axis(format="d", values=[0, 25, 50, 75, 100, 150, 200]))  # fmt: skip
    base = alt.Chart(ChartRows(values=data)).encode(y=y)
    hues = alt.Color("state:N", scale=alt.Scale(domain=list(HUES), range=list(HUES.values())), legend=None)
    bars = base.mark_bar().encode(x=x, color=hues)
    texts = base.mark_text(align="left", fontSize=10, color=INK).encode(x=alt.value(WIDTH + 8), text="text:N")
    mark = alt.Chart(ChartRows(values=[{"shown": 100}])).mark_rule(color=INK, strokeWidth=1.6).encode(x=x)
    chart: alt.TopLevelMixin = alt.layer(bars, mark, texts).properties(width=WIDTH, height=alt.Step(22))
    return chart


def _quoted(text: str) -> str:
    """A text as a string of Vega's expressions."""
    return json.dumps(text)

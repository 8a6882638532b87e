"""The series of a run on a time axis: rows of panels from the tall table, and the axis itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import polars as pl

MAX_STEPS = 400
"""Steps along the time axis: a line of 500 pixels cannot show more."""

NICE_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


class PanelRow(TypedDict):
    """A value of a panel.

    `panel` is the title of its axis, unit included; `t_s` seconds since the start; a `value` of None breaks the line;
    `log` says whether the panel's axis is logarithmic.
    """

    panel: str
    series: str
    t_s: float
    value: float | None
    log: bool


@dataclass(frozen=True)
class SeriesClock:
    """Time axis of the figure: where it starts, how long it is and how wide a step is."""

    start_ns: int
    end_s: float
    step_s: float


def rate(frame: pl.DataFrame, metric: str, unit: float = 1.0) -> pl.DataFrame:
    """Sum over entities and hosts of a delta, per second of the time it covers."""
    import polars as pl

    own = frame.filter(pl.col("metric") == metric)
    per_entity = own.group_by("step", "entity", *host_column(frame))
    summed = per_entity.agg(pl.col("value").sum(), pl.col("interval_ns").sum())
    total = summed.group_by("step", *host_column(frame)).agg(pl.col("value").sum(), pl.col("interval_ns").max())
    per_second = pl.col("value") / (pl.col("interval_ns") / 1e9) / unit
    return over_hosts(total.select("step", *host_column(frame), value=per_second))


def gauge(frame: pl.DataFrame, metric: str, unit: float = 1.0) -> pl.DataFrame:
    """Mean over time of a gauge, added over entities; over hosts added too, but for a share, which is a mean."""
    import polars as pl

    per_entity = frame.filter(pl.col("metric") == metric).group_by("step", "entity", *host_column(frame))
    weighted = (pl.col("value") * pl.col("interval_ns")).sum() / pl.col("interval_ns").sum()
    added = per_entity.agg(value=weighted / unit).group_by("step", *host_column(frame)).agg(pl.col("value").sum())
    return over_hosts(added, is_share=metric.endswith(SHARE))


SHARE = "_share"
"""How a metric ends whose values do not add up over hosts."""


def host_column(frame: pl.DataFrame) -> list[str]:
    """The column of hosts, where there is one."""
    return ["host"] if "host" in frame.columns else []


def over_hosts(per_host: pl.DataFrame, *, is_share: bool = False) -> pl.DataFrame:
    """Values of all hosts together at each step, from `step`, `host` and `value`: their sum, or the mean of shares.

    Hosts do not count at the same moments. A value stands for the steps since the host's one before it, and the last
    one for as long again, so that no sum lacks a host that was at work.
    """
    import polars as pl

    if "host" not in per_host.columns or per_host["host"].n_unique() < 2:
        return per_host.select("step", "value")
    steps = per_host.select("step").unique().sort("step")
    filled = [_at_steps(own.select("step", "value"), steps) for own in per_host.partition_by("host")]
    value = pl.col("value").mean() if is_share else pl.col("value").sum()
    return pl.concat(filled).group_by("step").agg(value)


def _at_steps(own: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """One host's values at the steps of all, as far as they reach."""
    import polars as pl

    own = own.sort("step").with_columns(at=pl.col("step"))
    reach = _usual_gap(own["step"])
    after = steps.join_asof(own, on="step", strategy="forward", tolerance=2 * reach - 1)
    before = steps.join_asof(own, on="step", strategy="backward", tolerance=reach)
    first = pl.col("at").is_not_null()
    both = after.with_columns(until=before["value"])
    return both.select("step", value=pl.when(first).then("value").otherwise("until")).drop_nulls("value")


def _usual_gap(steps: pl.Series) -> int:
    """Steps between values that follow each other, mostly."""
    usual = steps.sort().diff().median()
    return max(int(usual), 1) if isinstance(usual, int | float) else 1


def largest(frame: pl.DataFrame, metric: str, unit: float) -> pl.DataFrame:
    """Largest value of a percentile: percentiles cannot be averaged."""
    import polars as pl

    return frame.filter(pl.col("metric") == metric).group_by("step").agg(value=pl.col("value").max() / unit)


def weighted(frame: pl.DataFrame, side: str, unit: float) -> pl.DataFrame:
    """Mean latency over volumes and time, weighted by the I/Os each mean stands for."""
    import polars as pl

    key = ["t_ns", "entity", "step", *host_column(frame)]
    means = frame.filter(pl.col("metric") == f"{side}_latency_mean_ns").select(*key, "value")
    counts = frame.filter(pl.col("metric") == f"{side}_ios_count").select(*key, count="value")
    both = means.join(counts, on=key).filter(pl.col("count") > 0)
    weighted = (pl.col("value") * pl.col("count")).sum() / pl.col("count").sum()
    return both.group_by("step").agg(value=weighted / unit)


def hosts_text(frame: pl.DataFrame) -> str:
    """What was added over hosts, as a sentence; empty for rows of one host."""
    count = frame["host"].n_unique() if "host" in frame.columns else 1
    return (
        f"Counts and rates are sums over {count} hosts, shares are their means; what hosts on one machine all saw"
        " counts once."
        if count > 1
        else ""
    )


RESENT_PANEL = "TCP resent (%)"
"""Segments to storage that were sent again, of each interface."""

RESENT_TEXT = (
    "TCP resent: the share of segments to storage on the network (NFS, iSCSI, NVMe/TCP, SMB) that were sent again, by"
    " the interface they left through."
)


def resent_rows(frame: pl.DataFrame, clock: SeriesClock) -> list[PanelRow]:
    """Rows of `RESENT_PANEL`; none without storage on the network."""
    import polars as pl

    sent = frame.filter(pl.col("metric") == "storage_segments_out_count")
    again = frame.filter(pl.col("metric") == "storage_segments_retransmitted_count")
    columns = {}
    for name in sorted(sent["entity"].unique()):
        counts = [own.filter(pl.col("entity") == name).group_by("step").agg(value=pl.col("value").sum())
                  for own in (again, sent)]  # fmt: skip
        both = counts[0].join(counts[1], on="step", suffix="_out").filter(pl.col("value_out") > 0)
        columns[name] = both.select("step", value=pl.col("value") / pl.col("value_out") * 100)
    return panel_rows(RESENT_PANEL, clock, columns)


def panel_rows(
    panel: str, clock: SeriesClock, columns: dict[str, pl.DataFrame], *, log: bool = False
) -> list[PanelRow]:
    """Rows of one panel; more than two missing values break the line with a row without value.

    A series may have its values several steps apart, as telemetry has where the load counts in quarters of a second.
    """
    rows: list[PanelRow] = []
    for name, frame in columns.items():
        before: int | None = None
        apart = 2 * _usual_gap(frame["step"])
        for step, value in frame.sort("step").iter_rows():
            if value is None or not math.isfinite(value):
                continue
            if before is not None and step > before + apart:
                rows.append(
                    {"panel": panel, "series": name, "t_s": (before + 1) * clock.step_s, "value": None, "log": log}
                )
            middle = min((step + 0.5) * clock.step_s, clock.end_s)
            rows.append(
                {"panel": panel, "series": name, "t_s": round(middle, 3), "value": float(f"{value:.5g}"), "log": log}
            )
            before = step
    return rows


def whole_rows(panel: str, clock: SeriesClock, columns: dict[str, pl.DataFrame]) -> list[PanelRow]:
    """Rows of a panel with a value of every series at every step, zero where there is none: areas need them all."""
    if not columns:
        return []
    steps = range(int(clock.end_s / clock.step_s + 0.999999))
    rows: list[PanelRow] = []
    for name, frame in columns.items():
        values = {int(step): float(value) for step, value in frame.select("step", "value").iter_rows()}
        for step in steps:
            middle = min((step + 0.5) * clock.step_s, clock.end_s)
            value = float(f"{values.get(step, 0.0):.5g}")
            rows.append({"panel": panel, "series": name, "t_s": round(middle, 3), "value": value, "log": False})
    return rows


def point_clock(point: Mapping[str, Any]) -> SeriesClock | None:
    """Time axis of a point, warm-up included."""
    start_ns = point.get("started_utc_ns")
    length = float(point.get("warmup_s") or 0) + float(point.get("measured_s") or 0)
    if start_ns is None or length <= 0:
        return None
    wanted = length / MAX_STEPS
    return SeriesClock(int(start_ns), length, float(next((nice for nice in NICE_SECONDS if nice >= wanted), wanted)))


def of_point(frame: pl.DataFrame, clock: SeriesClock) -> pl.DataFrame:
    """Rows that end within the point, with the step each falls into."""
    import polars as pl

    step_ns = round(clock.step_s * 1e9)
    end_ns = clock.start_ns + round(clock.end_s * 1e9)
    inside = frame.filter((pl.col("t_ns") > clock.start_ns) & (pl.col("t_ns") <= end_ns))
    text = [pl.col(name).cast(pl.String) for name in ("source", "entity", "role", "metric", *host_column(frame))]
    return inside.with_columns(*text, step=((pl.col("t_ns") - 1 - clock.start_ns) // step_ns))


def by_role(block: pl.DataFrame, figure: Callable[[pl.DataFrame, str], pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """A figure of reads and writes for the devices of each role; a device of several roles goes by its own name.

    Directions that did nothing are left out.
    """
    import polars as pl

    role = pl.col("role")
    named = block.with_columns(
        place=pl.when((role == "") | role.str.contains("+", literal=True)).then("entity").otherwise(role)
    )
    columns = {}
    for place in sorted(str(name) for name in named["place"].unique()):
        own = named.filter(pl.col("place") == place)
        for side in ("read", "write"):
            if own.filter(pl.col("metric") == f"{side}_ios_count")["value"].sum() > 0:
                columns[f"{place} {side}"] = figure(own, side)
    return columns

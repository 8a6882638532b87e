"""What a recording says of the load on storage: p95 and peak of each device and of all, busiest hours, share of load.

The 95th percentile over intervals is what storage is sized for; a peak is named with its time. Figures of all devices
are percentiles of their sum at each moment: peaks of devices at different times are never added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.record.ranks import median_slope
from assay.record.rolled import quantile

if TYPE_CHECKING:
    import polars as pl

    from assay.record.flight import Spread

_STACKED = re.compile(r"^(dm-|md\d|loop|ram|zram|sr\d|drbd|bcache)")
"""Devices that lie on others, or hold no data: the sum of all leaves them out."""

SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS

_METRICS = (
    "read_ios_count", "write_ios_count", "ios_count", "read_bytes", "write_bytes", "read_latency_mean_ns",
    "write_latency_mean_ns", "latency_mean_ns", "queue_mean_count", "busy_share",
)  # fmt: skip

SAMPLES_MIN = 3
"""Intervals below which a device has no percentile."""

HOURS_SHOWN = 5


def recorded_s(rows: pl.DataFrame) -> float:
    """Seconds with a value: those of the series, or the device, that has the most."""
    import polars as pl

    keys = [name for name in ("host", "source", "entity", "metric") if name in rows.columns]
    found: Any = rows.group_by(keys).agg(pl.col("interval_ns").sum())["interval_ns"].max()
    return float(found or 0) / SECOND_NS


@dataclass(frozen=True, kw_only=True)
class DeviceLoad:
    """Load on a device, or on all together.

    Attributes
    ----------
    iops_p95, iops_peak, bytes_per_s_p95, bytes_per_s_peak
        Over intervals.
    peak_ns
        End of the interval with most I/Os, UTC.
    read_share, size_mean_bytes
        Of all I/Os; None where the recording does not tell reads from writes, or no I/O was done.
    read_latency_ns, write_latency_ns, latency_ns
        Means over I/Os, never over intervals; `latency_ns` where reads and writes are not apart.
    queue_p95, busy_p95
        Over intervals.
    share
        Of the I/Os of all devices; None for those that lie on others.
    """

    host: str
    name: str
    role: str = ""
    samples: int
    iops_p95: float
    iops_peak: float
    peak_ns: int
    bytes_per_s_p95: float
    bytes_per_s_peak: float
    read_share: float | None = None
    size_mean_bytes: float | None = None
    read_latency_ns: float | None = None
    write_latency_ns: float | None = None
    latency_ns: float | None = None
    queue_p95: float | None = None
    busy_p95: float | None = None
    share: float | None = None


def gaps_told(recording: Mapping[str, Any]) -> list[str]:
    """A sentence on the times in which a recorder did not run, of what a manifest says of its recording."""
    from assay.base.units import count_of
    from assay.document.text import moment

    gaps = recording.get("gaps_utc_ns") or []
    if not gaps:
        return []
    longest = max(gaps, key=lambda gap: gap[1] - gap[0])
    return [
        f"Nothing was recorded in {count_of(len(gaps), 'gap')}; the longest is from {moment(longest[0])} to"
        f" {moment(longest[1])}."
    ]


def is_stacked(name: str) -> bool:
    """Whether a device lies on others, or holds no data.

    Examples
    --------
    >>> [is_stacked(name) for name in ("dm-0", "loop3", "sda", "nvme0n1", "0 C:")]
    [True, True, False, False, False]
    """
    return _STACKED.match(name) is not None


def device_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A row for each interval of each device, with what it did then.

    Returns
    -------
    polars.DataFrame
        `t_ns`, `interval_ns`, `host`, `entity`, `role`, `seconds`, the metrics of devices (null where they are not
        recorded), `ios` and `bytes` in the interval; by time. Of volumes where no device is recorded.
    """
    import polars as pl

    # Texts have numbers in a series, and become texts again in what is left of it: a day is millions of rows.
    source = "block" if (frame["source"] == "block").any() else "volume"
    of_metrics = pl.any_horizontal(pl.col("metric") == name for name in _METRICS)
    chosen = frame.filter((pl.col("interval_ns") > 0) & (pl.col("source") == source) & of_metrics)
    index = ["t_ns", "interval_ns", "host", "entity", "role"]
    chosen = chosen.select(*index, pl.col("metric").cast(pl.String), "value")
    wide = chosen.pivot(on="metric", index=index, values="value", aggregate_function="first")
    wide = wide.with_columns(pl.col(name).cast(pl.String) for name in ("host", "entity", "role"))
    missing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in _METRICS if name not in wide.columns]
    both = pl.sum_horizontal("read_ios_count", "write_ios_count")
    apart = pl.any_horizontal(pl.col("read_ios_count", "write_ios_count").is_not_null())
    return (
        wide.with_columns(missing)
        .with_columns(
            seconds=pl.col("interval_ns") / SECOND_NS,
            ios=pl.when(apart).then(both).otherwise(pl.col("ios_count").fill_null(0.0)),
            bytes=pl.sum_horizontal("read_bytes", "write_bytes"),
        )
        .sort("t_ns", "host", "entity")
    )


def loads_of(rows: pl.DataFrame, spreads: Mapping[tuple[str, str, str, str], Spread] | None = None) -> list[DeviceLoad]:
    """Load of each device, the busiest first.

    Parameters
    ----------
    spreads
        Of a flight recording: percentiles and peaks over all its intervals, also where rows are minutes.
    """
    total = _sum(_own(rows)["ios"])
    found = []
    for (host, name, role), own in rows.group_by("host", "entity", "role", maintain_order=True):
        if own.height >= SAMPLES_MIN:
            share = None if is_stacked(str(name)) else _sum(own["ios"]) / total if total else 0.0
            load = _load(own, host=str(host), name=str(name), role=str(role), share=share)
            found.append(_spread(load, spreads or {}))
    return sorted(found, key=lambda load: (-load.iops_p95, -load.bytes_per_s_p95, load.host, load.name))


def _spread(load: DeviceLoad, spreads: Mapping[tuple[str, str, str, str], Spread]) -> DeviceLoad:
    """A load with the percentiles and peaks of what was recorded before it became minutes."""
    ios, moved = (spreads.get((load.host, "block", load.name, metric)) for metric in ("ios_count", "bytes"))
    if ios is None or moved is None:
        return load
    return replace(
        load,
        iops_p95=quantile(ios.histogram, 0.95) or 0.0,
        iops_peak=max(ios.most, 0.0),
        peak_ns=ios.most_ns,
        bytes_per_s_p95=quantile(moved.histogram, 0.95) or 0.0,
        bytes_per_s_peak=max(moved.most, 0.0),
    )


@dataclass(frozen=True, kw_only=True)
class FillTrend:
    """How full a file system or database is, and how fast it fills.

    Attributes
    ----------
    used_bytes, size_bytes
        At the end; the size None where it has none of its own.
    per_day, low, high
        Growth in bytes a day, and its 95 % interval.
    full_days
        Until it is full, where it grows for certain; the earliest and the latest of the interval.
    """

    host: str
    name: str
    used_bytes: float
    size_bytes: float | None
    per_day: float
    low: float
    high: float
    full_days: tuple[float, float] | None


TREND_MIN_NS = 24 * HOUR_NS
"""A trend is said of a day or more: of less it is the hour of the day."""

TREND_STEPS = 500
"""Points that a trend is fitted to: pairs grow with their square."""


def trends(frame: pl.DataFrame) -> list[FillTrend]:
    """Growth of file systems and databases, as the median slope (`median_slope`)."""
    import numpy as np
    import polars as pl

    names = ("host", "entity", "metric", "source")
    sizes = (pl.col("metric") == "used_bytes") | (pl.col("metric") == "size_bytes")
    rows = frame.filter(sizes).with_columns(pl.col(name).cast(pl.String) for name in names)
    wanted = ((pl.col("source") == "volume") & (pl.col("metric") == "used_bytes")) | (
        (pl.col("source") != "volume") & (pl.col("metric") == "size_bytes")
    )
    found = []
    for (host, name, source), own in rows.filter(wanted).group_by("host", "entity", "source", maintain_order=True):
        times, values = own["t_ns"].to_numpy(), own["value"].to_numpy()
        if times.size < SAMPLES_MIN or times.max() - times.min() < TREND_MIN_NS:
            continue
        chosen = np.unique(np.linspace(0, times.size - 1, min(times.size, TREND_STEPS)).astype(int))
        days = (times[chosen] - times[0]) / (24 * HOUR_NS)
        slope, low, high = median_slope(days, values[chosen])
        of_size = rows.filter(
            (pl.col("source") == source) & (pl.col("metric") == "size_bytes") & (pl.col("entity") == name)
            & (pl.col("host") == host)
        )  # fmt: skip
        size = float(of_size["value"][-1]) if source == "volume" and of_size.height else None
        used = float(values[-1])
        full = ((size - used) / high, (size - used) / low) if size is not None and low > 0 else None
        found.append(
            FillTrend(
                host=str(host), name=str(name), used_bytes=used, size_bytes=size, per_day=slope, low=low, high=high,
                full_days=full,
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: (one.full_days or (float("inf"), 0.0))[0])


def load_of_all(rows: pl.DataFrame) -> DeviceLoad | None:
    """Load of all devices together at each moment; None below `SAMPLES_MIN` moments."""
    import polars as pl

    own = _own(rows)
    if own.is_empty():
        return None
    step_ns = step_of(own)
    moments = (
        own.with_columns(step=(pl.col("t_ns") - 1) // step_ns)
        .group_by("step")
        .agg(
            pl.col("t_ns").max(),
            pl.col("ios", "bytes", "read_ios_count", "write_ios_count", "read_bytes", "write_bytes").sum(),
            _weighted("read_latency_mean_ns", "read_ios_count"),
            _weighted("write_latency_mean_ns", "write_ios_count"),
            _weighted("latency_mean_ns", "ios"),
            pl.col("queue_mean_count").sum(),
        )
        .with_columns(seconds=pl.lit(step_ns / SECOND_NS), busy_share=pl.lit(None, dtype=pl.Float64))
        .sort("t_ns")
    )
    return _load(moments, host="", name="all devices") if moments.height >= SAMPLES_MIN else None


def step_of(rows: pl.DataFrame) -> int:
    """The longest of the usual intervals of the hosts, in nanoseconds: each step holds a sample of each."""
    usual = rows.group_by("host").agg(interval=rows_median())["interval"]
    longest: float = max((value for value in usual.to_list() if value is not None), default=SECOND_NS)
    return max(int(longest), SECOND_NS)


def rows_median() -> pl.Expr:
    """Median of intervals."""
    import polars as pl

    return pl.col("interval_ns").median()


def busiest_hours(rows: pl.DataFrame, most: int = HOURS_SHOWN) -> list[tuple[int, float, float]]:
    """Hours (UTC, their beginning in nanoseconds) with most I/Os, with mean I/Os and bytes per second; most first."""
    import polars as pl

    own = _own(rows)
    hours = (
        own.with_columns(hour=(pl.col("t_ns") - 1) // HOUR_NS * HOUR_NS)
        .group_by("hour")
        .agg(
            pl.col("ios", "bytes").sum(), covered=(pl.col("interval_ns").sum() / pl.struct("host", "entity").n_unique())
        )
        .with_columns(seconds=(pl.col("covered") / SECOND_NS).clip(lower_bound=1.0))
        .with_columns(iops=pl.col("ios") / pl.col("seconds"), rate=pl.col("bytes") / pl.col("seconds"))
        .sort("iops", descending=True)
    )
    return [
        (int(hour), float(iops), float(rate))
        for hour, iops, rate in hours.select("hour", "iops", "rate").head(most).iter_rows()
    ]


def _own(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of devices that do not lie on others."""
    import polars as pl

    names: Sequence[str] = [name for name in rows["entity"].unique().to_list() if not is_stacked(str(name))]
    return rows.filter(pl.col("entity").is_in(names))


def _load(own: pl.DataFrame, *, host: str, name: str, role: str = "", share: float | None = None) -> DeviceLoad:
    iops, rate = own["ios"] / own["seconds"], own["bytes"] / own["seconds"]
    peak = iops.arg_max() or 0
    ios, moved = _sum(own["ios"]), _sum(own["bytes"])
    apart = own["read_ios_count"].is_not_null().any() or own["write_ios_count"].is_not_null().any()
    reads = _sum(own["read_ios_count"])
    writes = _sum(own["write_ios_count"])
    return DeviceLoad(
        host=host,
        name=name,
        role=role,
        samples=own.height,
        iops_p95=_p95(iops) or 0.0,
        iops_peak=float(iops[peak] or 0.0),
        peak_ns=int(own["t_ns"][peak]),
        bytes_per_s_p95=_p95(rate) or 0.0,
        bytes_per_s_peak=_most(rate),
        read_share=reads / (reads + writes) if apart and reads + writes else None,
        size_mean_bytes=moved / ios if ios else None,
        read_latency_ns=_mean_over(own, "read_latency_mean_ns", "read_ios_count"),
        write_latency_ns=_mean_over(own, "write_latency_mean_ns", "write_ios_count"),
        latency_ns=None if apart and reads + writes else _mean_over(own, "latency_mean_ns", "ios"),
        queue_p95=_p95(own["queue_mean_count"]),
        busy_p95=_p95(own["busy_share"]),
        share=share,
    )


def _sum(values: pl.Series) -> float:
    total: Any = values.sum()
    return float(total or 0.0)


def _most(values: pl.Series) -> float:
    most: Any = values.max()
    return float(most or 0.0)


def _p95(values: pl.Series) -> float | None:
    """The 95th percentile of what is known: 95 % of the values are this or less, of few values as of many."""
    found = values.drop_nulls().quantile(0.95, "higher")
    return None if found is None else float(found)


def _mean_over(own: pl.DataFrame, latency: str, count: str) -> float | None:
    """Mean latency over I/Os: intervals weigh as many as they had."""
    known = own.drop_nulls([latency, count])
    ios = _sum(known[count])
    return _sum(known[latency] * known[count]) / ios if ios else None


def _weighted(latency: str, count: str) -> pl.Expr:
    import polars as pl

    known = pl.col(latency).is_not_null() & pl.col(count).is_not_null()
    weight = pl.when(known).then(pl.col(count))
    return (pl.when(weight.sum() > 0).then((pl.col(latency) * weight).sum() / weight.sum())).alias(latency)

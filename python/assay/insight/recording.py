"""What a recording says of the load on storage: p95 and peak of each device and of all, busiest hours, share of load.

The 95th percentile over intervals is what storage is sized for; a peak is named with its time. Figures of all devices
are percentiles of their sum at each moment: peaks of devices at different times are never added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from assay.record.ranks import median_slope
from assay.record.rolled import quantile
from assay.record.rows import Groups, Numbers, Places, Rows, grouped, over

if TYPE_CHECKING:
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


def recorded_s(rows: Rows) -> float:
    """Seconds with a value: those of the series that has the most."""
    each = rows.groups("host", "source", "entity", "metric")
    return float(each.sums(rows.interval_ns).max()) / SECOND_NS if len(rows) else 0.0


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


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceRows:
    """A row for each interval of each device, with what it did then, by time.

    Attributes
    ----------
    rows
        Of each the time, the interval, host, entity and role.
    metrics
        The metrics of devices (NaN where they are not recorded), and `ios` and `bytes` in the interval.
    """

    rows: Rows
    metrics: Mapping[str, Numbers]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, metric: str) -> Numbers:
        return self.metrics[metric]

    @property
    def seconds(self) -> Numbers:
        """Length of the intervals."""
        return np.asarray(self.rows.interval_ns / SECOND_NS)

    @property
    def recorded_s(self) -> float:
        """Seconds that were recorded: those of the device that has the most."""
        return float(self.rows.groups("host", "entity").sums(self.seconds).max()) if len(self) else 0.0

    def where(self, chosen: Places) -> DeviceRows:
        """Give the chosen rows."""
        return DeviceRows(
            rows=self.rows.where(chosen), metrics={name: values[chosen] for name, values in self.metrics.items()}
        )

    def own(self) -> DeviceRows:
        """Give the rows of devices that do not lie on others."""
        return self.where(self.rows.matching("entity", lambda name: not is_stacked(name)))

    def covered_ns(self, groups: Groups) -> Numbers:
        """Time that groups of rows cover, of all their devices together."""
        devices = self.rows.groups("host", "entity", by=[groups.of_row])
        count = np.bincount(groups.of_row[devices.first], minlength=len(groups.first))
        return groups.sums(self.rows.interval_ns) / count


def device_rows(series: Rows) -> DeviceRows:
    """What devices did in each interval; of volumes where no device is recorded."""
    source = "block" if series.are("source", "block").any() else "volume"
    chosen = series.where((series.interval_ns > 0) & series.are("source", source) & series.are("metric", *_METRICS))
    each = chosen.groups("host", "entity", "role", by=[chosen.t_ns, chosen.interval_ns])
    metrics: dict[str, Numbers] = {}
    for name in _METRICS:
        # Of two values of one interval the first counts.
        places = np.flatnonzero(chosen.are("metric", name))[::-1]
        metrics[name] = np.full(len(each.first), np.nan)
        metrics[name][each.of_row[places]] = chosen.value[places]
    reads, writes = metrics["read_ios_count"], metrics["write_ios_count"]
    apart = np.isfinite(reads) | np.isfinite(writes)
    metrics["ios"] = np.where(apart, np.nan_to_num(reads) + np.nan_to_num(writes), np.nan_to_num(metrics["ios_count"]))
    metrics["bytes"] = np.nan_to_num(metrics["read_bytes"]) + np.nan_to_num(metrics["write_bytes"])
    firsts = chosen.where(each.first)
    names = [np.array(firsts.texts[name].column(), np.str_) for name in ("entity", "host")]
    return DeviceRows(rows=firsts, metrics=metrics).where(np.lexsort((*names, firsts.t_ns)))


def loads_of(rows: DeviceRows, spreads: Mapping[tuple[str, str, str, str], Spread] | None = None) -> list[DeviceLoad]:
    """Load of each device, the busiest first.

    Parameters
    ----------
    spreads
        Of a flight recording: percentiles and peaks over all its intervals, also where rows are minutes.
    """
    total = float(rows.own()["ios"].sum())
    found = []
    each = rows.rows.groups("host", "entity", "role")
    for first, places in zip(each.first.tolist(), each.places(), strict=True):
        if len(places) >= SAMPLES_MIN:
            own = rows.where(places)
            host, name, role = (rows.rows.at(column, first) for column in ("host", "entity", "role"))
            share = None if is_stacked(name) else float(own["ios"].sum()) / total if total else 0.0
            load = _load(own.rows.t_ns, own.seconds, own.metrics, host=host, name=name, role=role, share=share)
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


def trends(series: Rows) -> list[FillTrend]:
    """Growth of file systems and databases, as the median slope (`median_slope`)."""
    rows = series.where(series.are("metric", "used_bytes", "size_bytes"))
    of_volume = rows.are("source", "volume")
    found = []
    for (host, name, source), own in rows.where(of_volume == rows.are("metric", "used_bytes")).apart(
        "host", "entity", "source"
    ):
        times, values = own.t_ns, own.value
        if times.size < SAMPLES_MIN or times.max() - times.min() < TREND_MIN_NS:
            continue
        chosen = np.unique(np.linspace(0, times.size - 1, min(times.size, TREND_STEPS)).astype(int))
        days = (times[chosen] - times[0]) / (24 * HOUR_NS)
        slope, low, high = median_slope(days, values[chosen])
        sizes = rows.of(source=source, metric="size_bytes", entity=name, host=host).value
        size = float(sizes[-1]) if source == "volume" and len(sizes) else None
        used = float(values[-1])
        full = ((size - used) / high, (size - used) / low) if size is not None and low > 0 else None
        found.append(
            FillTrend(
                host=host, name=name, used_bytes=used, size_bytes=size, per_day=slope, low=low, high=high,
                full_days=full,
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: (one.full_days or (float("inf"), 0.0))[0])


def load_of_all(rows: DeviceRows) -> DeviceLoad | None:
    """Load of all devices together at each moment; None below `SAMPLES_MIN` moments."""
    own = rows.own()
    if not len(own):
        return None
    step_ns = step_of(own)
    moments = grouped((own.rows.t_ns - 1) // step_ns)
    if len(moments.first) < SAMPLES_MIN:
        return None
    summed = ("ios", "bytes", "read_ios_count", "write_ios_count", "read_bytes", "write_bytes", "queue_mean_count")
    metrics = {name: moments.sums(np.nan_to_num(own[name])) for name in summed}
    for latency, count in (
        ("read_latency_mean_ns", "read_ios_count"), ("write_latency_mean_ns", "write_ios_count"),
        ("latency_mean_ns", "ios"),
    ):  # fmt: skip
        weights = np.where(np.isfinite(own[latency]), np.nan_to_num(own[count]), 0.0)
        metrics[latency] = over(moments.sums(np.nan_to_num(own[latency]) * weights), moments.sums(weights))
    metrics["busy_share"] = np.full(len(moments.first), np.nan)
    t_ns = moments.most(own.rows.t_ns).astype(np.int64)
    order = np.argsort(t_ns)
    seconds = np.full(len(order), step_ns / SECOND_NS)
    return _load(
        t_ns[order], seconds, {name: values[order] for name, values in metrics.items()}, host="", name="all devices"
    )


def step_of(rows: DeviceRows) -> int:
    """The longest of the usual intervals of the hosts, in nanoseconds: each step holds a sample of each."""
    usual = [float(np.median(own.interval_ns)) for _, own in rows.rows.apart("host")]
    return max(int(max(usual, default=SECOND_NS)), SECOND_NS)


def hours_of(rows: DeviceRows) -> npt.NDArray[np.int64]:
    """The hour that each row ends in: its beginning in nanoseconds, UTC."""
    return (rows.rows.t_ns - 1) // HOUR_NS * HOUR_NS


def busiest_hours(rows: DeviceRows, most: int = HOURS_SHOWN) -> list[tuple[int, float, float]]:
    """Hours (UTC, their beginning in nanoseconds) with most I/Os, with mean I/Os and bytes per second; most first."""
    own = rows.own()
    begins = hours_of(own)
    hours = grouped(begins)
    seconds = np.maximum(own.covered_ns(hours) / SECOND_NS, 1.0)
    iops, rate = hours.sums(own["ios"]) / seconds, hours.sums(own["bytes"]) / seconds
    order = np.argsort(-iops, kind="stable")[:most]
    return list(zip(begins[hours.first][order].tolist(), iops[order].tolist(), rate[order].tolist(), strict=True))


def _load(
    t_ns: npt.NDArray[np.int64],
    seconds: Numbers,
    metrics: Mapping[str, Numbers],
    *,
    host: str,
    name: str,
    role: str = "",
    share: float | None = None,
) -> DeviceLoad:
    iops, rate = metrics["ios"] / seconds, metrics["bytes"] / seconds
    peak = int(iops.argmax())
    ios, moved = float(metrics["ios"].sum()), float(metrics["bytes"].sum())
    apart = bool(np.isfinite(metrics["read_ios_count"]).any() or np.isfinite(metrics["write_ios_count"]).any())
    reads, writes = (float(np.nansum(metrics[f"{side}_ios_count"])) for side in ("read", "write"))
    return DeviceLoad(
        host=host,
        name=name,
        role=role,
        samples=len(t_ns),
        iops_p95=_p95(iops) or 0.0,
        iops_peak=float(iops[peak]),
        peak_ns=int(t_ns[peak]),
        bytes_per_s_p95=_p95(rate) or 0.0,
        bytes_per_s_peak=float(rate.max()),
        read_share=reads / (reads + writes) if apart and reads + writes else None,
        size_mean_bytes=moved / ios if ios else None,
        read_latency_ns=_mean_over(metrics["read_latency_mean_ns"], metrics["read_ios_count"]),
        write_latency_ns=_mean_over(metrics["write_latency_mean_ns"], metrics["write_ios_count"]),
        latency_ns=None if apart and reads + writes else _mean_over(metrics["latency_mean_ns"], metrics["ios"]),
        queue_p95=_p95(metrics["queue_mean_count"]),
        busy_p95=_p95(metrics["busy_share"]),
        share=share,
    )


def _p95(values: Numbers) -> float | None:
    """The 95th percentile of the known values: at least 95 % of them are this or less, even if they are few."""
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.95, method="higher")) if len(known) else None


def _mean_over(latencies: Numbers, counts: Numbers) -> float | None:
    """Mean latency over I/Os: intervals weigh as many as they had."""
    known = np.isfinite(latencies) & np.isfinite(counts)
    ios = float(counts[known].sum())
    return float((latencies[known] * counts[known]).sum()) / ios if ios else None

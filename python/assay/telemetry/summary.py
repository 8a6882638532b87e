"""What rows of the series say of a window of time: sums and means of each metric, and the telemetry of a point.

A row counts with the share of its interval that lies in the window: gauges as their mean over that time, deltas in
proportion, mean latencies of devices by the I/Os of their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from assay.record.rows import Rows

    Numbers = npt.NDArray[np.float64]

_CPU_METRICS = ("user_share", "system_share", "iowait_share", "steal_share")


class Sum(NamedTuple):
    """One metric of one entity in a window.

    Attributes
    ----------
    total
        Sum of the values, each times its weight: of deltas the count in the window, of mean latencies of devices the
        time of all I/Os in it, of other gauges value times nanoseconds.
    covered_ns
        Time in the window for which there are rows.
    ended
        Sum of the values whose intervals end in the window, each as a whole.
    """

    source: str
    entity: str
    metric: str
    kind: str
    total: float
    covered_ns: float
    ended: float

    @property
    def per_ns(self) -> float:
        """Rate of deltas, mean of gauges, over the time covered."""
        return self.total / self.covered_ns


def sums(parts: Sequence[Rows], start_ns: int, end_ns: int) -> list[Sum]:
    """Sums over a window of what its rows hold, one for each metric of an entity.

    Parameters
    ----------
    parts
        Rows of the series.
    start_ns, end_ns
        The window, in the clock of the rows.
    """
    if not parts:
        return []
    rows, totals = _grouped(parts, start_ns, end_ns)
    texts = (rows.texts[name].column() for name in ("source", "entity", "metric", "kind"))
    numbers = (column.tolist() for column in (totals.total, totals.covered_ns, totals.ended))
    return [Sum(*one) for one in zip(*texts, *numbers, strict=True)]


def folded(parts: Sequence[Rows], start_ns: int) -> list[Rows]:
    """Rows of a long time as one of each metric and entity, from the beginning of a window on.

    For a window that ends after them, `sums` finds the same: deltas are added up, gauges are means.

    Parameters
    ----------
    parts
        Rows of the series, older than those that are not folded; may hold folded ones.
    start_ns
        Beginning of the window. What was before is left out.
    """
    import numpy as np

    if not any(map(len, parts)):
        return []
    # All get the last time, so that mean latencies are found with their counts when they are folded again.
    end_ns = max(int(part.t_ns.max()) for part in parts if len(part))
    rows, totals = _grouped(parts, start_ns, end_ns)
    is_mean = ~rows.are("kind", "delta") & (totals.weight > 0)
    made = replace(
        rows,
        t_ns=np.full(len(rows), end_ns),
        interval_ns=totals.covered_ns.astype(np.int64),
        value=np.divide(totals.total, totals.weight, out=totals.total.copy(), where=is_mean),
    )
    return [made] if len(made) else []


class _Totals(NamedTuple):
    """The fields of `Sum` and the sum of the weights, for each metric of an entity."""

    total: Numbers
    covered_ns: Numbers
    ended: Numbers
    weight: Numbers


def _grouped(parts: Sequence[Rows], start_ns: int, end_ns: int) -> tuple[Rows, _Totals]:
    """The first row of each metric of an entity in a window, and the sums of all its rows."""
    import numpy as np

    from assay.record.rows import joined_rows

    rows = joined_rows(parts)
    covered_ns = np.minimum(rows.t_ns, end_ns) - np.maximum(rows.t_ns - rows.interval_ns, start_ns)
    chosen = np.flatnonzero(covered_ns > 0)
    ios = _ios_of_latencies(rows)[chosen]
    rows, covered_ns = rows.where(chosen), covered_ns[chosen]
    by_share = rows.are("kind", "delta") | ~np.isnan(ios)
    weights = np.where(by_share, covered_ns / rows.interval_ns, covered_ns) * np.nan_to_num(ios, nan=1.0)
    each = rows.groups("source", "entity", "metric")
    ended = np.where(rows.t_ns <= end_ns, rows.value, 0.0)
    summed = (rows.value * weights, covered_ns, ended, weights)
    return rows.where(each.first), _Totals(*map(each.sums, summed))


def _ios_of_latencies(rows: Rows) -> Numbers:
    """I/Os of the interval of each row that has a device's mean latency; NaN for the other rows."""
    import numpy as np

    moments = rows.groups("entity", by=[rows.t_ns])
    is_block = rows.are("source", "block")
    ios = np.full(len(rows), np.nan)
    for side in ("read", "write"):
        counts = is_block & rows.are("metric", f"{side}_ios_count")
        latencies = is_block & rows.are("metric", f"{side}_latency_mean_ns")
        counted = np.zeros(len(moments.first))
        counted[moments.of_row[counts]] = rows.value[counts]
        ios[latencies] = counted[moments.of_row[latencies]]
    return ios


def summarise(
    parts: Sequence[Rows], start_ns: int, end_ns: int, *, devices: Collection[str] | None = None
) -> dict[str, float | None]:
    """Telemetry of a point (docs/results.md) from the rows of its window of time.

    Rates are per time covered by rows, which may be less than the window.

    Parameters
    ----------
    parts
        Rows of the series; those of other sources are ignored.
    start_ns, end_ns
        The window, in the clock of the rows.
    devices
        Block devices to add up; all in the rows if None. A stack's devices must not be added up: name its top.

    Returns
    -------
    dict
        `cpu_share` (user and system), `iowait_share`, `steal_share`, `tcp_retransmit_share` (segments sent again over
        segments sent), `memory_available_bytes`, `device_iops`, `device_bytes_per_s`, `device_queue` (mean I/Os in
        flight, of all devices together); null where no row covers the window or nothing was sent.
    """
    found = {(one.source, one.entity, one.metric): one for one in sums(parts, start_ns, end_ns)}
    cpu = {metric: _mean(found.get(("host", "cpu", metric))) for metric in _CPU_METRICS}
    block = [one for one in found.values() if one.source == "block" and (devices is None or one.entity in devices)]
    user, system = cpu["user_share"], cpu["system_share"]
    return {
        "cpu_share": None if user is None or system is None else min(1.0, user + system),
        "iowait_share": cpu["iowait_share"],
        "steal_share": cpu["steal_share"],
        "tcp_retransmit_share": _retransmit_share(found),
        "memory_available_bytes": _mean(found.get(("host", "memory", "available_bytes"))),
        "device_iops": _per_second(block, "read_ios_count", "write_ios_count"),
        "device_bytes_per_s": _per_second(block, "read_bytes", "write_bytes"),
        "device_queue": _added_up(block, "queue_mean_count"),
    }


def _mean(found: Sum | None) -> float | None:
    return None if found is None else found.per_ns


def _added_up(found: Sequence[Sum], *metrics: str) -> float | None:
    """Means over time of these metrics, added up over devices."""
    means = [one.per_ns for one in found if one.metric in metrics]
    return sum(means) if means else None


def _per_second(found: Sequence[Sum], *metrics: str) -> float | None:
    per_ns = _added_up(found, *metrics)
    return None if per_ns is None else per_ns * 10**9


def _retransmit_share(found: Mapping[tuple[str, str, str], Sum]) -> float | None:
    """Share from the sums of both counts, since a mean of shares would weigh idle seconds like busy ones."""
    out = found.get(("net", "tcp", "segments_out_count"))
    again = found.get(("net", "tcp", "segments_retransmitted_count"))
    if out is None or again is None or out.total == 0:
        return None
    return min(1.0, again.total / out.total)

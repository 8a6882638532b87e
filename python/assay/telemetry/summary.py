"""What rows of the series say of a window of time: sums and means of each metric, and the telemetry of a point.

A row counts with the share of its interval that lies in the window: gauges as their mean over that time, deltas in
proportion, mean latencies of devices by the I/Os of their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

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


def sums(batches: Sequence[pa.RecordBatch], start_ns: int, end_ns: int) -> list[Sum]:
    """Sums over a window of what its rows hold, one for each metric of an entity.

    Parameters
    ----------
    batches
        Rows of the series.
    start_ns, end_ns
        The window, in the clock of the rows.
    """
    if not batches:
        return []
    rows, totals = _grouped(batches, start_ns, end_ns)
    texts = (rows[name].to_pylist() for name in ("source", "entity", "metric", "kind"))
    numbers = (column.tolist() for column in (totals.total, totals.covered_ns, totals.ended))
    return [Sum(*one) for one in zip(*texts, *numbers, strict=True)]


def folded(batches: Sequence[pa.RecordBatch], start_ns: int) -> list[pa.RecordBatch]:
    """Rows of a long time as one of each metric and entity, from the beginning of a window on.

    For a window that ends after them, `sums` finds the same: deltas are added up, gauges are means.

    Parameters
    ----------
    batches
        Rows of the series, older than those that are not folded; may hold folded ones.
    start_ns
        Beginning of the window. What was before is left out.
    """
    import numpy as np
    import pyarrow as pa

    if not batches:
        return []
    # All get the last time, so that mean latencies are found with their counts when they are folded again.
    end_ns = max(int(batch["t_ns"].to_numpy().max()) for batch in batches)
    rows, totals = _grouped(batches, start_ns, end_ns)
    is_mean = ~_are(rows, "kind", "delta") & (totals.weight > 0)
    columns = {
        **dict(zip(rows.schema.names, rows.columns, strict=True)),
        "t_ns": np.full(rows.num_rows, end_ns),
        "interval_ns": totals.covered_ns.astype(np.int64),
        "value": np.divide(totals.total, totals.weight, out=totals.total.copy(), where=is_mean),
    }
    return [pa.RecordBatch.from_pydict(columns, schema=rows.schema)] if rows.num_rows else []


class _Totals(NamedTuple):
    """The fields of `Sum` and the sum of the weights, for each metric of an entity."""

    total: Numbers
    covered_ns: Numbers
    ended: Numbers
    weight: Numbers


def _grouped(batches: Sequence[pa.RecordBatch], start_ns: int, end_ns: int) -> tuple[pa.RecordBatch, _Totals]:
    """The first row of each metric of an entity in a window, and the sums of all its rows."""
    import numpy as np
    import pyarrow as pa

    rows = pa.concat_batches(batches)
    t_ns, interval_ns, values = (rows[name].to_numpy() for name in ("t_ns", "interval_ns", "value"))
    covered_ns = np.minimum(t_ns, end_ns) - np.maximum(t_ns - interval_ns, start_ns)
    chosen = np.flatnonzero(covered_ns > 0)
    ios = _ios_of_latencies(rows)[chosen]
    rows, t_ns, interval_ns, values = rows.take(chosen), t_ns[chosen], interval_ns[chosen], values[chosen]
    covered_ns = covered_ns[chosen]
    by_share = _are(rows, "kind", "delta") | ~np.isnan(ios)
    weights = np.where(by_share, covered_ns / interval_ns, covered_ns) * np.nan_to_num(ios, nan=1.0)
    codes = np.zeros(len(chosen), np.int64)
    for name in ("source", "entity", "metric"):
        codes = codes * len(rows[name].dictionary) + rows[name].indices.to_numpy()
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    summed = (values * weights, covered_ns, np.where(t_ns <= end_ns, values, 0.0), weights)
    return rows.take(first), _Totals(*(np.bincount(group, column, len(first)).astype(np.float64) for column in summed))


def _ios_of_latencies(rows: pa.RecordBatch) -> Numbers:
    """I/Os of the interval of each row that has a device's mean latency; NaN for the other rows."""
    import numpy as np

    entities = rows["entity"]
    moments, moment = np.unique(rows["t_ns"].to_numpy(), return_inverse=True)
    places = moment * len(entities.dictionary) + entities.indices.to_numpy()
    values, is_block = rows["value"].to_numpy(), _are(rows, "source", "block")
    ios = np.full(rows.num_rows, np.nan)
    for side in ("read", "write"):
        counts = is_block & _are(rows, "metric", f"{side}_ios_count")
        latencies = is_block & _are(rows, "metric", f"{side}_latency_mean_ns")
        counted = np.zeros(len(moments) * len(entities.dictionary))
        counted[places[counts]] = values[counts]
        ios[latencies] = counted[places[latencies]]
    return ios


def _are(rows: pa.RecordBatch, name: str, text: str) -> npt.NDArray[np.bool_]:
    """Which rows have this text in a column."""
    return rows[name].indices.to_numpy() == rows[name].dictionary.index(text).as_py()  # type: ignore[no-any-return]


def summarise(
    batches: Sequence[pa.RecordBatch], start_ns: int, end_ns: int, *, devices: Collection[str] | None = None
) -> dict[str, float | None]:
    """Telemetry of a point (docs/results.md) from the rows of its window of time.

    Rates are per time covered by rows, which may be less than the window.

    Parameters
    ----------
    batches
        Rows of the series; those of other sources are ignored.
    start_ns, end_ns
        The window, in the clock of the rows.
    devices
        Block devices to add up; all in the rows if None. A stack's devices must not be added up: name its top.

    Returns
    -------
    dict
        `cpu_share` (user and system), `iowait_share`, `steal_share`, `tcp_retransmit_share` (segments sent again over
        segments sent), `device_iops`, `device_bytes_per_s`, `device_queue` (mean I/Os in flight, of all devices
        together); null where no row covers the window or nothing was sent.
    """
    found = {(one.source, one.entity, one.metric): one for one in sums(batches, start_ns, end_ns)}
    cpu = {metric: _mean(found.get(("host", "cpu", metric))) for metric in _CPU_METRICS}
    block = [one for one in found.values() if one.source == "block" and (devices is None or one.entity in devices)]
    user, system = cpu["user_share"], cpu["system_share"]
    return {
        "cpu_share": None if user is None or system is None else min(1.0, user + system),
        "iowait_share": cpu["iowait_share"],
        "steal_share": cpu["steal_share"],
        "tcp_retransmit_share": _retransmit_share(found),
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

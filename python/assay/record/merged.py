"""One point out of the points of several hosts that were measured at the same time.

A number is added up only where its name says that it adds up, and a percentile comes from merged histograms alone. What
neither adds up nor is the same on all hosts becomes null: it is not known, and nothing stands in its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from assay.base.tables import Record

if TYPE_CHECKING:
    from assay._core import Histogram


ADDED = frozenset(
    {
        *("count", "iops", "bytes_per_s", "per_s", "ios", "total_ns", "unfinished", "rate", "outstanding", "workers"),
        *("users", "streams", "device_iops", "device_bytes_per_s", "rows", "bytes", "burst_bytes", "size_bytes"),
        *("read_iops", "write_iops", "read_bytes_per_s", "write_bytes_per_s", "rows_per_s", "violations", "checked"),
    }
)
"""Names of numbers that add up over hosts, whatever the kind of workload."""

HIGHEST = frozenset(
    {
        *("longest_ns", "oldest_unfinished_ns", "oldest_ns", "fullest_worker_share", "cpu_share", "iowait_share"),
        *("steal_share", "tcp_retransmit_share", "schedule_lag_p99_ns", "lag_p99_ns", "lag_max_ns", "device_queue"),
        *("clock_ns", "warmup_s", "half_width_share", "completion_s", "seconds", "server_cpu_share"),
    }
)
"""Names of numbers of which the highest is told: the busiest host, the longest wait."""

LEAST = frozenset({"window_s", "buffer_hit_share"})
"""Names of numbers of which the least is told."""

ALL_OF = frozenset(
    {"sustained", "reached", "complete", "settled", "met", "pass_mix", "pass_latency", "passed", "audited", "verified"}
)
"""Names of flags that are true where they are true on every host, and unknown where a host cannot tell.

Other flags are true where they are on any host.
"""

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}
ADDED_WITHIN = frozenset({"kinds", "operations"})
"""Names of records whose numbers are counts by name."""


def merged(values: Sequence[Any], name: str = "", adds: Collection[str] = (), *, within: str = "") -> Any:
    """What one key of several hosts' figures comes to.

    Parameters
    ----------
    values
        That of each host.
    name
        The key.
    adds
        Names of numbers that add up besides `ADDED`, those of a kind of workload.
    within
        Key of the record that the key is in.

    Examples
    --------
    >>> merged([{"count": 2, "note": "a"}, {"count": 3, "note": "b"}])
    {'count': 5, 'note': 'a; b'}
    >>> merged([0.5, 0.7], "share_of_something") is None
    True
    """
    there = [value for value in values if value is not None]
    if not there:
        return None
    if all(isinstance(value, Mapping) for value in there):
        return _record(there, name, adds)
    if all(isinstance(value, (list, tuple)) for value in there):
        return _list(there, name, adds, within)
    if all(isinstance(value, bool) for value in there):
        if name not in ALL_OF:
            return any(there)
        return None if all(there) and len(there) < len(values) else all(there)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in there):
        return _number(values, name, adds, within)
    if all(value == there[0] for value in there):
        return there[0]
    if all(isinstance(value, str) for value in there):
        return "; ".join(dict.fromkeys(there))
    return None


def _number(values: Sequence[Any], name: str, adds: Collection[str], within: str) -> Any:
    there = [value for value in values if value is not None]
    if name in HIGHEST and name not in adds:
        return max(there)
    if name in LEAST and name not in adds:
        return min(there)
    if name in ADDED or name in adds or within in ADDED_WITHIN or within in adds:
        # A host that cannot tell makes the sum unknown.
        return sum(there) if len(there) == len(values) else None
    return there[0] if len(there) == len(values) and all(value == there[0] for value in there) else None


def _record(records: Sequence[Record], name: str, adds: Collection[str]) -> dict[str, Any]:
    if len(records) == 1:
        # That of one host alone, as of a volume of its own: nothing to decode.
        return dict(records[0])
    keys = list(dict.fromkeys(key for record in records for key in record))
    found: dict[str, Any] = {}
    for key in keys:
        if key in ("latency_ns", "histogram"):
            continue
        found[key] = merged([record.get(key) for record in records], key, adds, within=name)
    if "latency_ns" in keys:
        found |= _latency(records, keys)
    return found


def _list(lists: Sequence[Sequence[Any]], name: str, adds: Collection[str], within: str) -> list[Any]:
    if all(list(one) == list(lists[0]) for one in lists) and not _adds_up(lists[0], name, adds):
        return list(lists[0])
    items = [item for one in lists for item in one]
    if all(isinstance(item, Mapping) and "name" in item for item in items):
        names = list(dict.fromkeys(item["name"] for item in items))
        return [_record([item for item in items if item["name"] == one], name, adds) for one in names]
    numbers = all(item is None or isinstance(item, (int, float)) for item in items)
    if numbers and _adds_up(items, name, adds):
        length = min(map(len, lists))
        return [merged([one[place] for one in lists], name, adds, within=within) for place in range(length)]
    return items if not numbers else []


def _adds_up(items: Sequence[Any], name: str, adds: Collection[str]) -> bool:
    return bool(items) and not isinstance(items[0], (Mapping, str)) and (name in ADDED or name in adds)


# Latencies


def histogram_sum(texts: Sequence[str]) -> Histogram:
    """Histogram of all that serialised histograms counted."""
    from assay.record.histograms import histogram_of

    found: Histogram | None = None
    for text in texts:
        one = histogram_of({"histogram": text})
        if one is None:
            continue
        if found is None:
            found = one
        else:
            found.merge(one)
    if found is None:
        from assay._core import Histogram

        return Histogram()
    return found


def _latency(records: Sequence[Record], keys: Collection[str]) -> dict[str, Any]:
    """Latency, and histogram where all have one: percentiles of hosts say nothing of all of them together."""
    weighed = [(record, _weight(record)) for record in records if record.get("latency_ns")]
    if not weighed:
        return {"latency_ns": None, **({"histogram": None} if "histogram" in keys else {})}
    names = list(dict.fromkeys(key for record, _ in weighed for key in record["latency_ns"]))
    latency: dict[str, Any] = dict.fromkeys(names)
    total = sum(weight for _, weight in weighed)
    means = [(record["latency_ns"].get("mean"), weight) for record, weight in weighed]
    if total and all(mean is not None for mean, _ in means):
        latency["mean"] = math.fsum(mean * weight for mean, weight in means) / total
    if "max" in names:
        highest = [record["latency_ns"].get("max") for record, _ in weighed]
        latency["max"] = None if None in highest else max(highest)
    if any(not record.get("histogram") for record, _ in weighed):
        return {"latency_ns": latency, **({"histogram": None} if "histogram" in keys else {})}
    together = histogram_sum([record["histogram"] for record, _ in weighed])
    for name, percentile in PERCENTILES.items():
        if name in names and together.count:
            # As the core gives them: no percentile is above the largest latency.
            found = together.percentile(percentile)
            latency[name] = found if latency.get("max") is None else min(found, latency["max"])
    return {"latency_ns": latency, "histogram": together.to_base64()}


def _weight(record: Record) -> float:
    return float(record.get("count") or record.get("iops") or 0)


def merged_batches(values: Sequence[Record | None]) -> dict[str, Any]:
    """Means of equal parts of the window: throughput adds up, latencies weigh by it."""
    there = [value for value in values if value and value.get("seconds")]
    if len(there) < len(values) or len({value["seconds"] for value in there}) > 1:
        return {"seconds": None}
    table: dict[str, Any] = {"seconds": there[0]["seconds"]}
    for side in dict.fromkeys(key for value in there for key in value if key != "seconds"):
        series = [value[side] for value in there if value.get(side)]
        rates = {key: [one.get(key) or [] for one in series] for key in series[0] if key != "latency_mean_ns"}
        table[side] = {
            key: [sum(part or 0.0 for part in parts) for parts in zip(*lists, strict=False)]
            for key, lists in rates.items()
        }
        if "latency_mean_ns" in series[0] and "iops" in rates:
            pairs = [zip_longest(one["latency_mean_ns"], one["iops"]) for one in series]
            table[side]["latency_mean_ns"] = [_weighed_mean(parts) for parts in zip(*pairs, strict=False)]
    return table


def _weighed_mean(parts: Sequence[tuple[float | None, float | None]]) -> float | None:
    there = [(value, weight) for value, weight in parts if value is not None and weight]
    total = sum(weight for _, weight in there)
    return sum(value * weight for value, weight in there) / total if total else None


HOSTS_BYTES_MAX = 8 << 20
"""What hosts' own points take in a point, of which a run folder holds 16 MiB at most."""


def slimmed(hosts: Sequence[Record]) -> list[dict[str, Any]]:
    """Points of hosts as a merged point keeps them: without the histograms of single roles, volumes and activities.

    With so many hosts that they would not fit, without any.
    """
    slim = [
        {**host, "point": {key: _plain(value) if key in _SINGLE else value for key, value in host["point"].items()}}
        for host in hosts
    ]
    if sum(len(json.dumps(host)) for host in slim) <= HOSTS_BYTES_MAX:
        return slim
    return [{**host, "point": _plain(host["point"])} for host in slim]


_SINGLE = frozenset({"roles", "volumes", "activities"})


def _plain(value: Any) -> Any:
    """A value without histograms."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if key != "histogram"}
    return [_plain(one) for one in value] if isinstance(value, list) else value


TIMES = ("started_utc_ns", "measured_from_utc_ns", "measured_to_utc_ns")


def merged_point(points: Sequence[Record], adds: Collection[str] = ()) -> dict[str, Any]:
    """Figures of one point from those that hosts measured at the same time; their times are on one clock by now."""
    keys = list(dict.fromkeys(key for point in points for key in point))
    values = {key: [point.get(key) for point in points] for key in keys}
    found = {key: merged(values[key], key, adds) for key in keys if key not in (*TIMES, "batches", "measured_s")}
    if "batches" in values:
        found["batches"] = merged_batches(values["batches"])
    if "measured_s" in values:
        found["measured_s"] = min(value for value in values["measured_s"] if value is not None)
    for key, most in zip(TIMES, (min, max, min), strict=True):
        there = [value for value in values.get(key, ()) if value is not None]
        if there:
            found[key] = most(there)
    ends = [value for value in values.get("ended_by", ()) if value]
    if ends:
        found["ended_by"] = ends[0] if len({*ends}) == 1 else next(end for end in ends if end != "time")
    if (steady := found.get("steady")) is not None:
        slopes = [one["slope_share"] for one in values["steady"] if one and one.get("slope_share") is not None]
        steady["slope_share"] = max(slopes, key=abs, default=None)
    return found

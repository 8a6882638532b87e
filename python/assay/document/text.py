"""How workloads, loads and measured values read in tables, captions and legends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from assay.results.source import Record
from assay.units import count_of, format_bytes, format_duration, format_iops, format_latency, format_throughput

NOT_MEASURED = "not measured"
DASH = "-"


def shorten(name: str, length: int = 60) -> str:
    """Name with its middle left out when it is longer than `length` characters.

    Examples
    --------
    >>> shorten("/data/a/very/long/path", 12)
    '/data…g/path'
    """
    if len(name) <= length:
        return name
    head = (length - 1) // 2
    return name[:head] + "…" + name[len(name) - (length - 1 - head) :]


def block_bytes_of(workload: Record) -> float:
    """Block size for sorting, bytes: the mean of a weighted mix.

    Examples
    --------
    >>> block_bytes_of({"block_bytes": {"512": 1, "1024": 1}})
    768.0
    """
    block = workload.get("block_bytes")
    if isinstance(block, Mapping):
        weights = [(float(size), float(share)) for size, share in block.items()]
        total = sum(share for _, share in weights)
        return sum(size * share for size, share in weights) / total if total else 0.0
    return float(block or 0)


def block_label(workload: Record) -> str:
    """Block size as people say it; a mix by its ends.

    Examples
    --------
    >>> block_label({"block_bytes": 8192}), block_label({"block_bytes": {"512": 0.5, "4096": 0.5}})
    ('8 KiB', '512 B to 4 KiB mix')
    """
    block = workload.get("block_bytes")
    if isinstance(block, Mapping):
        sizes = sorted(int(size) for size in block)
        return f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])} mix" if sizes else DASH
    return format_bytes(float(block)) if block else DASH


def mix_label(workload: Record) -> str:
    """Shares of reads and writes.

    Examples
    --------
    >>> mix_label({"read_share": 0.7}), mix_label({"read_share": 1.0})
    ('70/30', '100 % read')
    """
    share = workload.get("read_share")
    if share is None:
        return "mix"
    if share in (0, 1):
        return "100 % read" if share == 1 else "100 % write"
    return f"{share * 100:.3g}/{(1 - share) * 100:.3g}"


def order_label(workload: Record) -> str:
    """Random, sequential, or the share of random accesses."""
    share = workload.get("random_share")
    if share is None:
        return ""
    if share in (0, 1):
        return "random" if share == 1 else "sequential"
    return f"{share * 100:.3g} % random"


def workload_label(workload: Record) -> str:
    """Name of a workload, as the plan gives it or from its parameters.

    Examples
    --------
    >>> workload_label({"kind": "integrity", "name": "audit"})
    'integrity: audit'
    """
    if workload.get("kind") == "integrity":
        return f"integrity: {workload.get('name') or DASH}"
    if workload.get("name"):
        return str(workload["name"])
    words = (block_label(workload), order_label(workload), mix_label(workload))
    return " ".join(word for word in words if word)


def load_label(load: Record) -> str:
    """Load of a point.

    Examples
    --------
    >>> load_label({"queue_depth": 8, "workers": 12, "outstanding": 96})
    '96 out (8 x 12)'
    >>> load_label({"rate": 5000.0, "arrivals": "poisson"})
    '5,000/s poisson'
    >>> load_label({"users": 1})
    '1 user'
    """
    if load.get("rate") is not None:
        return f"{format_iops(load['rate'])}/s {load.get('arrivals', '')}".strip()
    if load.get("outstanding") is not None:
        depth, workers = load.get("queue_depth"), load.get("workers")
        split = f" ({depth} x {workers})" if depth is not None and (workers or 1) > 1 else ""
        return f"{load['outstanding']} out{split}"
    if load.get("users") is not None:
        return count_of(load["users"], "user")
    return str(load.get("kind") or DASH)


def load_size(load: Record) -> float:
    """Size of a load for sorting: the rate, the outstanding I/Os, or the users."""
    return float(load.get("rate") or load.get("outstanding") or load.get("queue_depth") or load.get("users") or 0)


def value_text(value: Any, unit: str | None) -> str:
    """Measured value in its unit of display; the run folder holds base units."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, (str, bool)):
        return str(value)
    match unit:
        case "iops":
            return f"{format_iops(value)} IOPS"
        case "nopm":
            return f"{value:,.0f} NOPM"
        case "ns":
            return format_latency(value)
        case "bytes_per_s":
            return format_throughput(value)
        case "bytes":
            return format_bytes(value)
        case "share":
            return percent(value)
        case "s":
            return format_duration(value)
        case "count" | None | "":
            return f"{value:,.6g}"
        case _:
            return f"{value:,.4g} {unit}"


def percent(share: float | None) -> str:
    """Share as a percentage of three significant digits.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3 %', '-')
    """
    return DASH if share is None else f"{share * 100:.3g} %"


def iops_text(direction: Record | None) -> str:
    """IOPS of one direction; a dash when it did none. Below ten, whole numbers would hide the value."""
    if not direction or direction.get("iops") is None:
        return DASH
    iops = direction["iops"]
    return format_iops(iops) if iops >= 10 or iops == 0 else f"{iops:.2g}"


def latency_text(direction: Record | None, statistic: str) -> str:
    """One latency of one direction; a dash when there is none."""
    value = latency_of(direction, statistic)
    return DASH if value is None else format_latency(value)


def latency_of(direction: Record | None, statistic: str) -> float | None:
    """One latency of one direction, nanoseconds, or None."""
    value = ((direction or {}).get("latency_ns") or {}).get(statistic)
    return None if value is None else float(value)


def throughput_texts(bytes_per_s: float | None) -> tuple[str, str]:
    """MiB/s and MB/s without their units, for two columns that carry the units in their headings.

    Examples
    --------
    >>> throughput_texts(104857600)
    ('100', '105')
    """
    if bytes_per_s is None:
        return DASH, DASH
    binary, decimal = format_throughput(bytes_per_s).removesuffix(" MB/s)").split(" MiB/s (")
    return binary, decimal


def moment(utc_ns: int | None) -> str:
    """Time in UTC, to the second."""
    if not utc_ns:
        return DASH
    return datetime.fromtimestamp(utc_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def joined(words: Iterable[str], *, last: str = "and") -> str:
    """Words with commas, and `last` before the last of them.

    Examples
    --------
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def id_range(ids: Iterable[str | None]) -> str:
    """Ids of points, runs of neighbours joined: the trace of a figure back to its points.

    Examples
    --------
    >>> id_range(["p0001", "p0002", "p0003", "p0007"])
    'p0001-p0003, p0007'
    """
    runs: list[list[str]] = []
    for point_id in sorted({point_id for point_id in ids if point_id}):
        if runs and _follows(runs[-1][-1], point_id):
            runs[-1].append(point_id)
        else:
            runs.append([point_id])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}{', ' if len(run) == 2 else '-'}{run[-1]}" for run in runs)


def _follows(before: str, after: str) -> bool:
    """Whether two ids of points are neighbours, such as p0001 and p0002."""
    numbers = before[1:], after[1:]
    return all(number.isdecimal() and number.isascii() for number in numbers) and int(numbers[1]) == int(numbers[0]) + 1

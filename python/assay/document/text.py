"""How workloads, loads and measured values read in tables, captions and legends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes, format_duration, format_iops, format_latency, format_throughput
from assay.record.points import MEMORY_AXIS

NOT_MEASURED = "not measured"
DASH = "-"

BASE_UNITS = frozenset({"iops", "ns", "bytes_per_s", "bytes", "share", "s", "count", "", None})
"""Units that `value_text` has words for; those of other figures have words of their own."""


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


_JOINTS = (" and", " of", " with", " on", " the", " a", " in", " for")


def cut(text: str, length: int) -> str:
    """Text that ends at a word, with an ellipsis, when it is longer than `length` characters.

    Examples
    --------
    >>> cut("Storage examined: PS6100XV and two more", 28), cut("Two words", 9), cut("abcdefgh", 5)
    ('Storage examined: PS6100XV…', 'Two words', 'abcd…')
    """
    if len(text) <= length:
        return text
    words = text[:length].rpartition(" ")[0].rstrip(" ,;:.-")
    while words.endswith(_JOINTS):
        words = words.rpartition(" ")[0].rstrip(" ,;:.-")
    return f"{words or text[: length - 1]}…"


def load_words(load: Record) -> str:
    """A load as a reader of the first page alone understands it."""
    outstanding = load.get("outstanding")
    return load_label(load) if outstanding is None else count_of(outstanding, "outstanding I/O")


def load_label(load: Record) -> str:
    """Load of a point.

    Examples
    --------
    >>> load_label({"queue_depth": 8, "workers": 12, "outstanding": 96})
    '96 out (8 x 12)'
    >>> load_label({"queue_depth": 8, "workers": 12, "outstanding": 97})
    '97 out (8-9 x 12)'
    >>> load_label({"rate": 5000.0, "arrivals": "poisson"})
    '5,000/s poisson'
    >>> load_label({"users": 1}), load_label({"clients": 2000})
    ('1 user', '2,000 clients')
    """
    if load.get("speed") is not None:
        return f"speed {load['speed']:.3g}"
    if load.get("rate") is not None:
        return f"{format_iops(load['rate'])}/s {load.get('arrivals', '')}".strip()
    if load.get("outstanding") is not None:
        depth, workers = load.get("queue_depth"), load.get("workers")
        each = depth if depth is None or load["outstanding"] % (workers or 1) == 0 else f"{depth}-{depth + 1}"
        split = f" ({each} x {workers})" if each is not None and (workers or 1) > 1 else ""
        return f"{load['outstanding']} out{split}"
    if load.get("users") is not None:
        return count_of(load["users"], "user")
    others = [
        f"{format_bytes(value)} of memory" if name == MEMORY_AXIS else f"{value:,g} {name}"
        for name, value in load.items()
        if isinstance(value, (int, float))
    ]
    return ", ".join(others) or str(load.get("kind") or DASH)


LOAD_AXES = {
    "speed": "speed",
    "rate": "rate",
    "outstanding": "outstanding I/Os",
    "queue_depth": "queue depth",
    "users": "users",
}
"""What a load is ordered by, the first that it has, and its words."""


def load_size(load: Record) -> float:
    """Size of a load for sorting: the speed, the rate, the outstanding I/Os, or the users."""
    return float(next((load[name] for name in LOAD_AXES if load.get(name)), 0))


def load_axis(load: Record) -> str:
    """What the size of a load counts.

    Examples
    --------
    >>> load_axis({"queue_depth": 4, "outstanding": 48}), load_axis({"users": 8}), load_axis({})
    ('outstanding I/Os', 'users', 'load')
    """
    return next((words for name, words in LOAD_AXES.items() if load.get(name)), "load")


def value_text(value: Any, unit: str | None) -> str:
    """Measured value in its unit of display; the run folder holds base units."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, (str, bool)):
        return str(value)
    match unit:
        case "iops":
            return f"{format_iops(value)} IOPS"
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
    >>> id_range(["R1.p0001", "R1.p0002", "R1.p0003", "R2.p0004"])
    'R1.p0001-p0003, R2.p0004'
    """
    runs: list[list[str]] = []
    for point_id in sorted({point_id for point_id in ids if point_id}):
        if runs and _follows(runs[-1][-1], point_id):
            runs[-1].append(point_id)
        else:
            runs.append([point_id])
    return ", ".join(
        run[0] if len(run) == 1 else ", ".join(run) if len(run) == 2 else f"{run[0]}-{run[-1].rpartition('.')[2]}"
        for run in runs
    )


_POINT_ID = re.compile(r"(R[0-9]+\.)?p([0-9]+)")


def _follows(before: str, after: str) -> bool:
    """Whether two ids of points are neighbours, such as p0001 and p0002."""
    one, other = _POINT_ID.fullmatch(before), _POINT_ID.fullmatch(after)
    return one is not None and other is not None and one[1] == other[1] and int(other[2]) == int(one[2]) + 1


def sentence(text: str) -> str:
    """Text with a capital letter and a full stop, as a notice of its own needs; a name with a digit stays as it is.

    Examples
    --------
    >>> sentence("no limit was set"), sentence("nvme0n1 (M) was at up to 81 degrees")
    ('No limit was set.', 'nvme0n1 (M) was at up to 81 degrees.')
    """
    word = text.partition(" ")[0]
    first = text if any(letter.isdigit() for letter in word) else text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else first + "."


def server_text(database: Record) -> str:
    """Kind and version of a database server."""
    kind = str(database.get("kind") or DASH)
    names = {"postgresql": "PostgreSQL", "embedded": "embedded PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL",
             "mssql": "SQL Server", "duckdb": "DuckDB", "spark": "Spark"}  # fmt: skip
    return shorten(f"{names.get(kind, kind)} {database.get('version') or ''}".strip(), 60)


def interval_text(interval: Sequence[float] | None, words: Callable[[float], str]) -> str:
    """The 95 % interval after a value, in brackets; empty where there is none.

    Examples
    --------
    >>> interval_text((1.0, 2.0), "{:.0f}".format)
    ' (95 % interval 1 to 2)'
    >>> interval_text((19.0, 21.0), "{:.0f} transactional IOPS".format)
    ' (95 % interval 19 to 21 transactional IOPS)'
    """
    if not interval:
        return ""
    low, high = words(interval[0]), words(interval[1])
    # A unit that both have is said once.
    low = low.partition(" ")[0] if low.partition(" ")[2] == high.partition(" ")[2] else low
    return f" (95 % interval {low} to {high})"


BREAK = "\u200b"
"""Where a word may break. Renderers put what breaks without a letter in its place, so that copied paths are paths."""
LONG_LETTERS = 18
_LONG_WORD = re.compile(rf"\S{{{LONG_LETTERS},}}")
_BREAKS = re.compile(r"(?<=[/_\-.,:;=])(?=\S)")


def breakable(text: str) -> str:
    r"""Text whose long words may break: after punctuation, and after every eighth letter of a long run without any.

    Examples
    --------
    >>> breakable("/data/long/path/to/a/file").split("\u200b")
    ['/', 'data/', 'long/', 'path/', 'to/', 'a/', 'file']
    >>> breakable("generator-saturated").split("\u200b")
    ['generator-', 'saturated']
    """

    def broken(match: re.Match[str]) -> str:
        pieces = _BREAKS.split(match[0])
        widths = [8 if len(piece) >= LONG_LETTERS else LONG_LETTERS for piece in pieces]
        return BREAK.join(
            piece[at : at + width]
            for piece, width in zip(pieces, widths, strict=True)
            for at in range(0, len(piece), width)
        )

    return _LONG_WORD.sub(broken, text)

"""Lines of a figure over time: what is asked for, and how lines of many members become one.

Entities have names such as `member0/disk3`. A figure shows the groups below one of them, each as the sum or mean of
what it holds, so that a reader goes from a group to its members and from a member to its disks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError

LINES_MAX = 8
STEPS_MAX = 1200
QUERIES_MAX = 24
TEXT_MAX = 300

Values = list[float | None]


@dataclass(frozen=True, kw_only=True)
class Query:
    """What one figure shows.

    Attributes
    ----------
    under
        Entities below this one, by their next name; empty for all.
    """

    host: str
    source: str
    metric: str
    under: str = ""

    def takes(self, host: str, source: str, metric: str, entity: str) -> bool:
        """Whether a series is of it."""
        if (host, source, metric) != (self.host, self.source, self.metric):
            return False
        return not self.under or entity == self.under or entity.startswith(f"{self.under}/")

    def group(self, entity: str) -> str:
        """The line that an entity belongs to."""
        rest = entity.removeprefix(self.under).lstrip("/") if self.under else entity
        name = rest.split("/", 1)[0]
        return f"{self.under}/{name}" if self.under and name else name or entity


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Figures of one time."""

    from_ns: int
    to_ns: int
    steps: int
    queries: Sequence[Query]


def parse_asked(data: Mapping[str, Any]) -> Asked:
    """What a page asks for: `from_s`, `to_s`, `steps`, `queries`.

    Raises
    ------
    UsageError
        It has another form.
    """
    try:
        from_s, to_s = float(data["from_s"]), float(data["to_s"])
        queries = [
            Query(**{key: str(one[key])[:TEXT_MAX] for key in ("host", "source", "metric")},
                  under=str(one.get("under", ""))[:TEXT_MAX])
            for one in data["queries"]
        ]  # fmt: skip
        steps = int(data.get("steps", 400))
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError("what is asked for has another form; accepted: from_s, to_s, steps and queries") from None
    if not (math.isfinite(from_s) and math.isfinite(to_s) and 0 <= from_s < to_s < 2**33):
        raise UsageError("from_s and to_s: accepted: seconds since 1970, the second later than the first")
    if len(queries) > QUERIES_MAX:
        raise UsageError(f"queries: at most {QUERIES_MAX} at a time")
    return Asked(
        from_ns=round(from_s * 1e9), to_ns=round(to_s * 1e9), steps=min(max(steps, 2), STEPS_MAX), queries=queries
    )


def is_mean(metric: str, kind: str) -> bool:
    """Whether several members have the mean of their values, as shares and latencies do, and not the sum.

    Examples
    --------
    >>> is_mean("busy_share", "gauge"), is_mean("read_ios_count", "delta"), is_mean("dirty_bytes", "gauge")
    (True, False, False)
    """
    return (kind != "delta" and not metric.endswith(("_bytes", "_count"))) or "_mean_" in metric


def grouped(query: Query, found: Sequence[tuple[str, str, Values]]) -> list[dict[str, Any]]:
    """Lines of a figure, the largest first.

    Parameters
    ----------
    found
        Entity, kind and values of every series that the query takes.
    """
    members: dict[str, list[tuple[str, str, Values]]] = {}
    for one in found:
        members.setdefault(query.group(one[0]), []).append(one)
    lines: list[dict[str, Any]] = []
    for name, own in members.items():
        # A group's own figures stand for it, where there are any.
        itself = [one for one in own if one[0] == name]
        chosen = itself or own
        combine = _mean if is_mean(query.metric, chosen[0][1]) else _sum
        values = chosen[0][2] if len(chosen) == 1 else _each(combine, [one[2] for one in chosen])
        has_more = any(one[0].startswith(f"{name}/") for one in own)
        lines.append({"entity": name, "values": [_short(value) for value in values], "opens": has_more})
    if len(lines) > LINES_MAX:
        return sorted(lines, key=lambda line: -_size(line["values"]))[:LINES_MAX]
    return sorted(lines, key=lambda line: str(line["entity"]))


def _each(combine: Callable[[list[float]], float], columns: Sequence[Values]) -> Values:
    known = ([value for value in row if value is not None] for row in zip(*columns, strict=True))
    return [combine(row) if row else None for row in known]


def _sum(values: list[float]) -> float:
    return math.fsum(values)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _short(value: float | None) -> float | None:
    """A value as a figure shows it; more digits would only make the answer longer."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def _size(values: Sequence[float | None]) -> float:
    return sum(abs(value) for value in values if value is not None)

"""Acceptance limits: `read.mean<=20ms`, `log.write.p99<5ms`, `cpu<80%`.

A limit without a role is judged for every role and every volume, each on its own (the method's rule: a mean over
volumes would hide the slow one).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.units import format_latency, parse_bytes, parse_duration, parse_percent

ROLES = ("data", "log", "tempdb")
DIRECTIONS = ("read", "write", "total", "flush")
LATENCIES = ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
RATES = ("iops", "throughput")
SYSTEM = {
    "cpu": "cpu_share",
    "iowait": "iowait_share",
    "steal": "steal_share",
    "tcp.retransmit": "tcp_retransmit_share",
}
RESPONSE = "response"
"""The latency of transactions, for each type of them; I/O workloads do not measure it."""

_LIMIT = re.compile(r"\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*(\S.*?)\s*")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One acceptance limit. `value` is in ns, shares, I/Os per s or bytes per s, as `unit` says."""

    text: str
    role: str | None
    direction: str | None
    metric: str
    operator: str
    value: float
    unit: str

    def met_by(self, measured: float) -> bool:
        """Whether a measured value in the limit's unit meets it."""
        return {
            "<=": measured <= self.value,
            "<": measured < self.value,
            ">=": measured >= self.value,
            ">": measured > self.value,
        }[self.operator]

    @property
    def is_upper(self) -> bool:
        """Whether the limit bounds from above."""
        return self.operator.startswith("<")


def parse_limits(texts: Iterable[str]) -> list[Limit]:
    """Limits from their texts, checked against each other.

    Raises
    ------
    UsageError
        A metric is unknown, a value has the wrong unit, or two limits cannot both be met.

    Examples
    --------
    >>> [limit.value for limit in parse_limits(["read.mean<=20ms", "cpu<80%"])]
    [20000000.0, 0.8]
    """
    limits = [_parse_limit(text) for text in texts]
    for index, limit in enumerate(limits):
        for other in limits[:index]:
            _refuse_contradiction(other, limit)
    return limits


def _parse_limit(text: str) -> Limit:
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"limit {text!r}: expected METRIC<=VALUE, as in read.p99<=2ms")
    name, operator, value = match.groups()
    if name in SYSTEM:
        share = parse_percent(value, what=f"limit {text!r}")
        return Limit(text=text, role=None, direction=None, metric=name, operator=operator, value=share, unit="share")
    parts = name.split(".", 1)
    role = None
    if parts[0] in ROLES and len(parts) == 2:
        role, name = parts
        parts = name.split(".", 1)
    direction, metric = parts[0], parts[1] if len(parts) == 2 else ""
    known = metric in LATENCIES or metric in RATES
    known = metric in LATENCIES and role is None if direction == RESPONSE else known and direction in DIRECTIONS
    if not known:
        raise UsageError(f"limit {text!r}: unknown metric {match[1]!r}{_meant(match[1])}")
    if metric == "iops":
        number = _plain_number(value, text)
        return Limit(
            text=text, role=role, direction=direction, metric=metric, operator=operator, value=number, unit="iops"
        )
    if metric == "throughput":
        rate = float(parse_bytes(value.removesuffix("/s"), what=f"limit {text!r}"))
        return Limit(
            text=text, role=role, direction=direction, metric=metric, operator=operator, value=rate, unit="bytes_per_s"
        )
    if re.fullmatch(r"[0-9.]+", value):
        raise UsageError(f"limit {text!r}: {value!r} has no unit; accepted: ns, us, ms, s")
    latency_ns = float(parse_duration(value, what=f"limit {text!r}"))
    return Limit(
        text=text, role=role, direction=direction, metric=metric, operator=operator, value=latency_ns, unit="ns"
    )


def _plain_number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise UsageError(f"limit {text!r}: {value!r} is not a number of I/Os per second")
    return number


def _meant(name: str) -> str:
    names = [f"{direction}.{metric}" for direction in DIRECTIONS for metric in (*LATENCIES, *RATES)]
    names += [f"{role}.{known}" for role in ROLES for known in names]
    names += [*SYSTEM, *(f"{RESPONSE}.{metric}" for metric in LATENCIES)]
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    volumes = "[data.|log.|tempdb.]read|write|total|flush.mean|p50|...|p99.99|max|iops|throughput"
    return f"; known: {volumes}, {RESPONSE}.mean|p50|...|max, {', '.join(SYSTEM)}"


def _refuse_contradiction(one: Limit, other: Limit) -> None:
    """Refuse bounds that leave no room: an upper bound on a percentile is one on every smaller percentile."""
    upper, lower = (one, other) if one.is_upper else (other, one)
    if not upper.is_upper or lower.is_upper or upper.unit != lower.unit or upper.direction != lower.direction:
        return
    if upper.role is not None and lower.role is not None and upper.role != lower.role:
        return
    comparable = upper.metric == lower.metric
    if upper.metric in LATENCIES and lower.metric in LATENCIES and "mean" not in (upper.metric, lower.metric):
        comparable = LATENCIES.index(lower.metric) <= LATENCIES.index(upper.metric)
    strict = "=" not in upper.operator or "=" not in lower.operator
    if comparable and (lower.value > upper.value or (strict and lower.value == upper.value)):
        raise UsageError(f"limits {upper.text!r} and {lower.text!r} contradict each other: no result can meet both")


def judge(limits: Sequence[Limit], point: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every limit against a point, per role and per volume.

    Returns
    -------
    list of dict
        The `limits` of docs/results.md; `met` is None where nothing was measured.
    """
    return [verdict for limit in limits for verdict in _judge_one(limit, point)]


def met(verdicts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no limit is missed. What was not measured misses nothing."""
    return all(verdict["met"] is not False for verdict in verdicts)


def _judge_one(limit: Limit, point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if limit.metric in SYSTEM:
        yield _of_system(limit, point)
        return
    scopes = list(_scopes(limit, point))
    measured = [(scope, value) for scope, value in scopes if value is not None]
    if not measured:
        yield _verdict(limit, limit.role or "all", None)
    for scope, value in measured:
        yield _verdict(limit, scope, value)


def _of_system(limit: Limit, point: Mapping[str, Any]) -> dict[str, Any]:
    """The host against a limit; of a database's CPU only the server's share counts, not that of the load."""
    if limit.metric == "cpu" and point.get("oltp"):
        storage = point["oltp"]["storage"] or {}
        return _verdict(limit, "server", storage.get("server_cpu_share"))
    return _verdict(limit, "host", (point.get("telemetry") or {}).get(SYSTEM[limit.metric]))


def _scopes(limit: Limit, point: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Roles, then each role's volumes where it has several, or where volumes carry several roles.

    Of transactions the scopes are their types.
    """
    if limit.direction == RESPONSE:
        for name, figures in (point.get("oltp") or {}).get("by_transaction", {}).items():
            yield name, _latency(limit, figures)
        return
    volumes = point.get("volumes") or []
    for role, directions in (point.get("roles") or {}).items():
        if limit.role is not None and role != limit.role:
            continue
        yield role, _value(limit, directions)
        of_role = [volume for volume in volumes if volume.get("role") == role]
        if len(of_role) > 1:
            for volume in of_role:
                yield f"{role}/{volume['name']}", _value(limit, volume)


def _value(limit: Limit, directions: Mapping[str, Any]) -> float | None:
    figures = directions.get(limit.direction or "")
    if not figures:
        return None
    if limit.metric in RATES:
        return float(figures["iops" if limit.metric == "iops" else "bytes_per_s"])
    return _latency(limit, figures)


def _latency(limit: Limit, figures: Mapping[str, Any]) -> float | None:
    """The latency that is limited; None where it is not known, such as percentiles of a device's counters."""
    latency: float | None = (figures["latency_ns"] or {}).get(limit.metric.replace(".", "_"))
    return latency


def _verdict(limit: Limit, scope: str, value: float | None) -> dict[str, Any]:
    is_met = None if value is None else limit.met_by(value)
    return {"limit": limit.text, "scope": scope, "value": value, "unit": limit.unit, "met": is_met}


def show_value(value: float | None, unit: str) -> str:
    """A judged value for people."""
    if value is None:
        return "not measured"
    if unit == "ns":
        return format_latency(value)
    if unit == "share":
        return f"{value * 100:.3g} %"
    if unit == "nopm":
        return f"{value:,.0f} NOPM"
    return f"{value:,.0f}" if unit in ("iops", "count") else f"{value / 2**20:,.0f} MiB/s"

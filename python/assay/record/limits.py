"""Acceptance limits: `read.mean<=20ms`, `log.write.p99<5ms`, `cpu<80%`.

A limit without a role is judged for every role and every volume, each on its own (the method's rule: a mean over
volumes would hide the slow one).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.base.errors import UsageError
from assay.base.units import format_latency, parse_bytes, parse_duration, parse_percent
from assay.record.common_figures import COMMON_FIGURES, DIRECTIONS, RATES, RESPONSE, ROLES, share_words
from assay.record.figures import STATISTICS, Figure

_LIMIT = re.compile(r"\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*(\S.*?)\s*")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One acceptance limit. `value` is in the base unit that `unit` names."""

    text: str
    role: str | None
    direction: str | None
    metric: str
    operator: str
    value: float
    unit: str

    @property
    def name(self) -> str:
        """What it bounds, without the role."""
        return self.metric if self.direction is None else f"{self.direction}.{self.metric}"

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


def parse_limits(texts: Iterable[str], figures: Iterable[Figure] = ()) -> list[Limit]:
    """Limits from their texts, checked against each other.

    Parameters
    ----------
    texts
        The limits.
    figures
        A kind's own figures, which may be bounded besides those that are common to all.

    Raises
    ------
    UsageError
        A metric is unknown, a value has the wrong unit, or two limits cannot both be met.

    Examples
    --------
    >>> [limit.value for limit in parse_limits(["read.mean<=20ms", "cpu<80%"])]
    [20000000.0, 0.8]
    """
    known = bounded_figures(figures)
    limits = [_parse_limit(text, known) for text in texts]
    for index, limit in enumerate(limits):
        for other in limits[:index]:
            _refuse_contradiction(other, limit)
    return limits


def bounded_figures(figures: Iterable[Figure]) -> dict[str, Figure]:
    """Figures by the name that limits have for them; a kind's own replace the common ones."""
    return {figure.limit: figure for figure in (*COMMON_FIGURES.values(), *figures) if figure.limit}


def _parse_limit(text: str, known: Mapping[str, Figure]) -> Limit:
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"limit {text!r}: expected METRIC<=VALUE, as in read.p99<=2ms")
    written, operator, value = match.groups()
    before, _, name = written.partition(".")
    role = before if before in ROLES and name.split(".")[0] in DIRECTIONS else None
    name = written if role is None else name
    figure = known.get(name)
    if figure is None:
        raise UsageError(f"limit {text!r}: unknown metric {written!r}{_meant(written, known)}")
    direction, _, metric = name.partition(".")
    is_direct = metric not in (*STATISTICS, *RATES)
    return Limit(
        text=text,
        role=role,
        direction=None if is_direct else direction,
        metric=name if is_direct else metric,
        operator=operator,
        value=_value(value, figure, f"limit {text!r}"),
        unit=figure.unit,
    )


def _value(text: str, figure: Figure, what: str) -> float:
    """The bound in the figure's base unit."""
    if figure.unit == "share":
        return parse_percent(text, what=what)
    if figure.unit == "bytes_per_s":
        return float(parse_bytes(text.removesuffix("/s"), what=what))
    if figure.unit == "ns":
        if re.fullmatch(r"[0-9.]+", text):
            raise UsageError(f"{what}: {text!r} has no unit; accepted: ns, us, ms, s")
        return float(parse_duration(text, what=what))
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise UsageError(f"{what}: {text!r} is not a number of {figure.noun or figure.title}")
    return number


LATENCY_ELSEWHERE = ("lat", "clat", "latency", "response_time")
"""What other tools call a latency, without saying whose and which."""


def _meant(name: str, known: Mapping[str, Figure]) -> str:
    asked = "mean" if name in LATENCY_ELSEWHERE else name
    if whole := [limit for limit in known if limit.partition(".")[2] == asked]:
        return f"; did you mean {whole[0]!r}?" + (f" Others: {', '.join(whole[1:])}" if whole[1:] else "")
    of_roles = [limit for limit in known if limit.split(".")[0] in DIRECTIONS]
    close = difflib.get_close_matches(name, [*known, *(f"{role}.{limit}" for role in ROLES for limit in of_roles)], n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    volumes = "[data.|log.|tempdb.]read|write|total|flush.mean|p50|...|p99.99|max|iops|throughput"
    own = [limit for limit in known if limit.split(".")[0] not in (*DIRECTIONS, RESPONSE)]
    return f"; known: {volumes}, {RESPONSE}.mean|p50|...|max, {', '.join(own)}"


def _refuse_contradiction(one: Limit, other: Limit) -> None:
    """Refuse bounds that leave no room: an upper bound on a percentile is one on every smaller percentile."""
    upper, lower = (one, other) if one.is_upper else (other, one)
    if not upper.is_upper or lower.is_upper or upper.unit != lower.unit or upper.direction != lower.direction:
        return
    if upper.role is not None and lower.role is not None and upper.role != lower.role:
        return
    comparable = upper.metric == lower.metric
    if upper.metric in STATISTICS and lower.metric in STATISTICS and "mean" not in (upper.metric, lower.metric):
        comparable = STATISTICS.index(lower.metric) <= STATISTICS.index(upper.metric)
    strict = "=" not in upper.operator or "=" not in lower.operator
    if comparable and (lower.value > upper.value or (strict and lower.value == upper.value)):
        raise UsageError(f"limits {upper.text!r} and {lower.text!r} contradict each other: no result can meet both")


def show_value(value: float | None, unit: str) -> str:
    """A judged value for people.

    Examples
    --------
    >>> show_value(20e6, "ns"), show_value(0.8, "share"), show_value(5037.2, "iops"), show_value(30898.0, "nopm")
    ('20.0 ms', '80 %', '5,037', '30,898 NOPM')
    """
    if value is None:
        return "not measured"
    if unit == "ns":
        return format_latency(value)
    if unit == "share":
        return share_words(value)
    if unit == "bytes_per_s":
        return f"{value / 2**20:,.0f} MiB/s"
    number = f"{value:,.0f}"
    return (
        number
        if unit in ("iops", "count")
        else f"{number} {unit.replace('_per_', '/').replace('_', ' ') if '_' in unit else unit.upper()}"
    )

"""Quantities of a contract that needs do not have: shares, moments, days of the week, latencies of single I/Os."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from assay.base.fields import unnamed
from assay.base.units import parse_duration
from assay.insight.sizing.quantities import percent_of

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _time_ns(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("is no time; write it as 2ms")
    if not any(letter.isalpha() for letter in str(value)):
        raise ValueError(f"{value} has no unit; write it as 2ms")
    return float(unnamed(parse_duration)(value))


def _share(value: Any) -> float:
    share = percent_of(value)
    if share > 1:
        raise ValueError(f"{value} is above 100%")
    return share


def _moment_ns(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is no moment; write it as 2026-11-01T02:00:00Z") from None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("is no moment with a time zone; write it as 2026-11-01T02:00:00Z")
    return round(value.astimezone(UTC).timestamp()) * 10**9


def _day(value: Any) -> int:
    word = str(value).strip().lower()[:3]
    if word not in DAYS:
        raise ValueError(f"{value!r} is no day of the week; write it as Sun")
    return DAYS.index(word)


TimeNs = Annotated[float, BeforeValidator(_time_ns), Field(gt=0, le=600e9)]
"""Latency of an I/O, or a time that one takes, in nanoseconds."""
PromisedShare = Annotated[float, BeforeValidator(_share)]
"""A share of a whole, written in percent."""
MomentNs = Annotated[int, BeforeValidator(_moment_ns), Field(gt=0, lt=2**62)]
"""A moment in UTC, in nanoseconds since 1970."""
Weekday = Annotated[int, BeforeValidator(_day)]
"""A day of the week; Monday is 0."""

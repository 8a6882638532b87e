"""Quantities of a need: each with its unit, because a number without one is a mistake waiting to be bought."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from assay.base.fields import unnamed
from assay.base.units import parse_bytes, parse_duration

_PERCENT = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]*)?)\s*%\s*")
_RATE = re.compile(r"\s*(.+?)\s*/\s*s\s*")
_POWER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*(k?)W\s*", re.IGNORECASE)


BLOCKS = 512, 4 << 20
"""Smallest and largest I/O that a database asks for."""


def _with_unit(value: Any, example: str) -> str:
    """The text of a quantity that has a unit.

    Raises
    ------
    ValueError
        It has none.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"is no quantity; write it as {example}")
    text = str(value).strip()
    if not re.search(r"[a-zA-Z%]", text):
        raise ValueError(f"{text} has no unit; write it as {example}")
    return text


def _bytes(value: Any) -> int:
    return unnamed(parse_bytes)(_with_unit(value, "600GB"))


def _latency_s(value: Any) -> float:
    return float(unnamed(parse_duration)(_with_unit(value, "20ms"))) / 1e9


def percent_of(value: Any) -> float:
    """A share, which may be above 1, from `30%`.

    Raises
    ------
    ValueError
        It is no percentage, or is negative.

    Examples
    --------
    >>> percent_of("30%"), percent_of("150%")
    (0.3, 1.5)
    """
    text = str(value).strip()
    match = _PERCENT.fullmatch(text)
    if match is None:
        hint = "has no unit" if re.fullmatch(r"[+-]?[0-9.]+", text) else "is no percentage"
        raise ValueError(f"{text} {hint}; write it as 30%")
    share = float(match[1]) / 100
    if share < 0:
        raise ValueError(f"{text} is negative; accepted: 0% and more")
    if share > 100:
        raise ValueError(f"{text} is above 10000%")
    return share


def _part(value: Any) -> float:
    share = percent_of(value)
    if share > 1:
        raise ValueError(f"{value} is above 100%")
    return share


def _block(value: int) -> int:
    if not BLOCKS[0] <= value <= BLOCKS[1]:
        raise ValueError(f"{value:,} bytes are no size of an I/O; accepted: 512B to 4MiB")
    return value


def _bytes_per_s(value: Any) -> float:
    text = _with_unit(value, "200MB/s")
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no rate; write it as 200MB/s")
    return float(unnamed(parse_bytes)(match[1]))


def _watts(value: Any) -> float:
    match = _POWER.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{value} is no power; write it as 500W")
    return float(match[1]) * (1000 if match[2] else 1)


def _hours(value: Any) -> tuple[int, ...]:
    """Hours of the day from `8-18`: from 8:00 until 18:00; a later beginning goes over midnight."""
    match = re.fullmatch(r"\s*([0-9]{1,2})\s*-\s*([0-9]{1,2})\s*", str(value))
    if match is None or int(match[1]) > 24 or int(match[2]) > 24 or int(match[1]) % 24 == int(match[2]) % 24:
        raise ValueError(f"{value!r} are no hours of the day; write them as 8-18, or 22-6 over midnight")
    first, last = int(match[1]) % 24, int(match[2])
    count = (last - first) % 24 or 24
    return tuple(sorted((first + hour) % 24 for hour in range(count)))


Size = Annotated[int, BeforeValidator(_bytes), Field(gt=0, lt=1 << 60)]
Block = Annotated[Size, AfterValidator(_block)]
"""Size of an I/O: a sector at least; what is larger than 4 MiB is split on its way anyway."""
Latency = Annotated[float, BeforeValidator(_latency_s), Field(gt=0, le=600 * 86400)]
Percent = Annotated[float, BeforeValidator(percent_of)]
"""A share that may be above 1, such as growth."""
Part = Annotated[float, BeforeValidator(_part)]
"""A share of a whole."""
Throughput = Annotated[float, BeforeValidator(_bytes_per_s), Field(gt=0, lt=1e15)]
Power = Annotated[float, BeforeValidator(_watts)]
Hours = Annotated[tuple[int, ...], BeforeValidator(_hours)]

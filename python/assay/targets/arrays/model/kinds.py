"""Kinds of parameters: units they may be given in, and how a value is read.

Base units are nanoseconds, bytes, bytes per second, shares and counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

_BYTES = {
    "B": 1.0,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGTP", start=1)},
    **{f"{letter}B": 1000.0**power for power, letter in enumerate("KMGTP", start=1)},
}
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
_RATES = {f"{unit}/s": factor for unit, factor in _BYTES.items()} | {
    f"{letter}bit/s": 1000.0**power / 8 for power, letter in enumerate("KMGT", start=1)
}

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+)\s*([a-zA-Zµ%/]*)\s*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a parameter is a quantity of.

    Attributes
    ----------
    name
        As messages call it.
    units
        Accepted units with their factor to the base unit; empty for names and truth values.
    whole
        Whether the base unit is not divided further.
    bare
        Whether an option may leave the unit out.
    """

    name: str
    units: dict[str, float] = field(default_factory=dict)
    whole: bool = False
    bare: bool = False

    @property
    def accepted(self) -> str:
        """Its units for a message."""
        return ", ".join(unit for unit in self.units if unit != "µs")

    def from_number(self, number: object, unit: str) -> float | int:
        """A value in base units.

        Raises
        ------
        ValueError
            It is no number, below 0, a count that is not whole, or the unit is of another kind.
        """
        if unit not in self.units:
            raise ValueError(f"is a {self.name}, and {unit!r} is no unit of it; accepted: {self.accepted}")
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"is a {self.name}, and {_shown(number)} is no number")
        try:
            value = float(number) * self.units[unit]
        except OverflowError:
            value = math.inf
        if not 0 <= value < 1e30:
            raise ValueError(f"{_shown(number)} is out of range")
        if self is COUNT and value != int(value):
            raise ValueError(f"{number} is not a whole number")
        # Nanoseconds and bytes are rounded: 0.0035 ms is not exact in binary.
        return round(value) if self.whole else value

    def from_text(self, text: str) -> tuple[float | int, float, str]:
        """Value in base units, number and unit of an option such as `0.5ms`.

        Raises
        ------
        ValueError
            It is no quantity of this kind.
        """
        match = _QUANTITY.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no {self.name}; accepted: a number with {self.accepted}")
        unit = match[2] or (next(iter(self.units)) if self.bare else "")
        if not unit:
            raise ValueError(f"{text!r} has no unit; accepted: {self.accepted}")
        if unit not in self.units:
            # `2G` and `2g` are GiB, as everywhere else on the command line.
            by_lower = {known.lower(): known for known in self.units}
            unit = by_lower.get(unit.lower()) or by_lower.get(f"{unit.lower()}ib") or unit
        return self.from_number(float(match[1]), unit), float(match[1]), unit


TIME = Kind(name="time", units=_TIMES, whole=True)
BYTES = Kind(name="number of bytes", units=_BYTES, whole=True)
RATE = Kind(name="rate", units=_RATES)
SHARE = Kind(name="share", units={"share": 1.0, "%": 0.01}, bare=True)
RATIO = Kind(name="ratio", units={"times": 1.0}, bare=True)
COUNT = Kind(name="count", units={"count": 1.0}, whole=True, bare=True)
WORD = Kind(name="name")
FLAG = Kind(name="truth value")


def show_value(kind: Kind, value: Any) -> str:
    """A value in base units for people.

    Examples
    --------
    >>> show_value(TIME, 700_000), show_value(BYTES, 65536), show_value(RATE, 125e6), show_value(FLAG, True)
    ('0.7 ms', '64 KiB', '125 MB/s', 'true')
    """
    if kind is FLAG:
        return "true" if value else "false"
    if kind is WORD:
        return str(value)
    if kind is TIME:
        unit = next((unit for unit in ("s", "ms", "us") if value >= _TIMES[unit] / 10), "ns")
    elif kind is BYTES:
        # Capacities are decimal and chunks binary: the shorter number is the one that was meant.
        fitting = [unit for unit in _BYTES if value >= _BYTES[unit]] or ["B"]
        unit = min(fitting, key=lambda unit: (len(f"{value / _BYTES[unit]:.6g}"), -_BYTES[unit]))
    elif kind is RATE:
        unit = next((unit for unit in ("GB/s", "MB/s", "KB/s") if value >= _RATES[unit]), "B/s")
    else:
        return f"{value:.6g}"
    return f"{value / kind.units[unit]:.6g} {unit}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

"""Numbers as programs print them: decimal points and commas, percent signs, letters for thousands of bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

_BINARY = "kMGTPE"
_SCALED = re.compile(r"([+-]?\d+(?:[.,]\d+)?)\s?([kKMGTPE])(?:i?B)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
_GROUPED_BY_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+", re.ASCII)

NOTHING = frozenset({"", "-", "--", "n/a", "na", "nan", "-nan", "null", "none", "?"})
"""What programs print where they have no value."""


class Amount(NamedTuple):
    """A number as it was printed.

    Attributes
    ----------
    is_bytes
        Whether a letter made it bytes, as `1.6M`: then the unit of its column is not that of the number.
    """

    value: float
    is_bytes: bool = False


def number(text: str) -> float | None:
    """A number as tools write it, with a point or a comma; None for what is none, as a blank.

    Examples
    --------
    >>> number(" 12.5"), number("0,25"), number(" "), number("n/a"), number("nan")
    (12.5, 0.25, None, None, None)
    >>> number("1,234.5"), number("1.234,5")
    (1234.5, 1234.5)
    """
    try:
        value = float(text)
    except ValueError:
        if "," not in text:
            return None
        shown = text.strip()
        if _GROUPED.fullmatch(shown) and "." in shown:
            shown = shown.replace(",", "")
        elif _GROUPED_BY_POINTS.fullmatch(shown):
            shown = shown.replace(".", "").replace(",", ".")
        elif "." not in shown:
            shown = shown.replace(",", ".")
        try:
            value = float(shown)
        except ValueError:
            return None
    return value if value - value == 0.0 else None


def amount_of(text: str) -> Amount | None:
    """A number with its unit, as `--human` of sysstat prints it: `99.6%`, `8.0k`; None for what is none.

    Letters stand for powers of 1,024, as in sysstat (`cprintf_unit`).

    Examples
    --------
    >>> amount_of("99.6%"), amount_of("8.0k"), amount_of("0.0B")
    (Amount(value=99.6, is_bytes=False), Amount(value=8192.0, is_bytes=True), Amount(value=0.0, is_bytes=True))
    >>> amount_of("x"), amount_of("1.5")
    (None, Amount(value=1.5, is_bytes=False))
    """
    value = number(text)
    if value is not None:
        return Amount(value)
    shown = text.strip()
    if shown.endswith("%"):
        value = number(shown[:-1])
        return None if value is None else Amount(value)
    if shown[-1:] == "B" and (value := number(shown[:-1])) is not None:
        return Amount(value, is_bytes=True)
    match = _SCALED.fullmatch(shown)
    if match is None:
        return None
    whole = number(match[1])
    return None if whole is None else Amount(whole * 1024.0 ** (1 + _BINARY.index(match[2].replace("K", "k"))), True)

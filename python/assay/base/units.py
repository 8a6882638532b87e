"""Reading and showing quantities: bytes, durations, shares, rates.

Inside Assay values are base units (bytes, nanoseconds, shares 0..1). `K`, `M`, `G`, `T` and `KiB`, ... are binary,
`KB`, `MB`, ... are decimal, as in fio and the IEC 80000-13 standard.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from assay.base.errors import UsageError

_BYTE_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _BYTE_UNITS[_letter] = _BYTE_UNITS[f"{_letter}ib"] = 1024**_power
    _BYTE_UNITS[f"{_letter}b"] = 1000**_power

_DURATION_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9,
                   "h": 3600 * 10**9, "d": 86400 * 10**9}  # fmt: skip

_LARGEST = 1e18
"""No quantity is larger, in whatever unit: beyond it floating point would overflow."""

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Zµ%]*)\s*")


def _split(text: str, what: str, accepted: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UsageError(f"{what}: {text!r} is not a quantity; accepted: {accepted}")
    number = float(match[1])
    if number > _LARGEST:
        raise UsageError(f"{what}: {text!r} is too large")
    return number, match[2]


def _number(value: object, what: str, accepted: str) -> int | float:
    """A number from TOML, JSON or Python: not negative, not infinite, no truth value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise UsageError(f"{what}: {value!r} is not a quantity; accepted: {accepted}")
    if value > _LARGEST:
        raise UsageError(f"{what}: {value!r} is too large")
    return value


def parse_bytes(text: str | int | float, *, what: str = "size") -> int:
    """Bytes from `8K`, `64KiB`, `1.5G`, `512`.

    Raises
    ------
    UsageError
        The unit is unknown, or the result is negative or not a whole number of bytes.

    Examples
    --------
    >>> parse_bytes("8K"), parse_bytes("1.5GiB"), parse_bytes("1MB")
    (8192, 1610612736, 1000000)
    """
    accepted = "a number with K, M, G, T (binary), KiB ... or KB ... (decimal)"
    if isinstance(text, str):
        number, unit = _split(text, what, accepted)
        factor = _BYTE_UNITS.get(unit.lower())
        if factor is None:
            raise UsageError(f"{what}: unknown unit {unit!r} in {text!r}; accepted: {accepted}")
        # Beyond 2**53 a float is not exact any more, so plain digits stay whole numbers.
        value = int(text) if text.strip().isdecimal() else number * factor
    else:
        value = _number(text, what, accepted)
    if value != int(value):
        raise UsageError(f"{what}: {text!r} is not a whole number of bytes")
    return int(value)


def parse_duration(text: str | int | float, *, what: str = "duration") -> int:
    """Nanoseconds from `30s`, `5m`, `1.5h`, `20ms`; a bare number is seconds.

    Raises
    ------
    UsageError
        The unit is unknown.

    Examples
    --------
    >>> parse_duration("20ms"), parse_duration(2)
    (20000000, 2000000000)
    """
    accepted = "a number with ns, us, ms, s, m, h or d"
    if not isinstance(text, str):
        return round(_number(text, what, accepted) * 10**9)
    number, unit = _split(text, what, accepted)
    factor = _DURATION_UNITS.get(unit.lower() or "s")
    if factor is None:
        raise UsageError(f"{what}: unknown unit {unit!r} in {text!r}; accepted: {accepted}")
    return round(number * factor)


def parse_share(text: str | int | float, *, what: str = "share") -> float:
    """Share 0..1 from `0.7` or `70%`.

    Raises
    ------
    UsageError
        The value lies outside 0..1.

    Examples
    --------
    >>> parse_share("70%"), parse_share(0.25)
    (0.7, 0.25)
    """
    if isinstance(text, str):
        number, unit = _split(text, what, "0 to 1, or 0% to 100%")
        if unit not in ("", "%"):
            raise UsageError(f"{what}: unknown unit {unit!r} in {text!r}; accepted: 0 to 1, or 0% to 100%")
        value = number / 100 if unit == "%" else number
    else:
        value = _number(text, what, "0 to 1, or 0% to 100%")
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{what}: {text} is outside 0 to 1 (0 % to 100 %)")
    return value


def parse_percent(text: str | int | float, *, what: str = "percentage") -> float:
    """Share 0..1 from a percentage as the command line takes it: `70` or `70%`.

    Raises
    ------
    UsageError
        The value lies outside 0..100, or it is below 1 without its sign: `0.7` may mean 70 % or 0.7 %.

    Examples
    --------
    >>> parse_percent("70"), parse_percent("62.5%"), parse_percent("0.7%")
    (0.7, 0.625, 0.006999999999999999)
    """
    number, unit = _split(text, what, "0 to 100") if isinstance(text, str) else (_number(text, what, "0 to 100"), "")
    if unit not in ("", "%") or not 0 <= number <= 100:
        raise UsageError(f"{what}: {text} is outside 0 to 100 %")
    if not unit and 0 < number < 1:
        raise UsageError(f"{what}: {text} has two readings; write {number * 100:g}% or {number:g}%")
    return number / 100


def format_bytes(count: float) -> str:
    """Bytes with the largest binary unit that keeps the number at or above 1.

    Examples
    --------
    >>> format_bytes(8192), format_bytes(512), format_bytes(1.5 * 2**30)
    ('8 KiB', '512 B', '1.5 GiB')
    """
    for power, unit in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(count) >= 1024**power:
            return f"{count / 1024**power:.4g} {unit}"
    return f"{count:.4g} B"


def format_decimal(count: float) -> str:
    """Format bytes in decimal units, as capacities and endurance of drives are told.

    Examples
    --------
    >>> format_decimal(15_800_000_000), format_decimal(8_388_608), format_decimal(3.84e12), format_decimal(512)
    ('15.8 GB', '8.39 MB', '3.84 TB', '512 B')
    """
    unit, name = next((each for each in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= each[0]),
                      (1.0, "B"))  # fmt: skip
    return f"{_three_digits(count / unit)} {name}"


def bytes_unit(counts: Iterable[float]) -> tuple[float, str]:
    """Bytes and name of the decimal unit that suits an axis, as published studies count them.

    Examples
    --------
    >>> bytes_unit([0, 26_738_688]), bytes_unit([13_000]), bytes_unit([0])
    ((1000000.0, 'MB'), (1000.0, 'kB'), (1.0, 'bytes'))
    """
    largest = max(counts, default=0.0)
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((unit for unit in units if largest >= unit[0]), (1.0, "bytes"))


def format_throughput(bytes_per_s: float) -> str:
    """Throughput in MiB/s with MB/s beside it.

    Examples
    --------
    >>> format_throughput(104857600)
    '100 MiB/s (105 MB/s)'
    """
    return f"{_three_digits(bytes_per_s / 2**20)} MiB/s ({_three_digits(bytes_per_s / 1e6)} MB/s)"


def format_latency(latency_ns: float | None) -> str:
    """Latency in us, ms or s to three significant digits.

    Examples
    --------
    >>> format_latency(83_412), format_latency(20e6), format_latency(None)
    ('83.4 us', '20.0 ms', '-')
    """
    if latency_ns is None:
        return "-"
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if latency_ns >= factor * 0.9995:
            return f"{_three_digits(latency_ns / factor)} {unit}"
    return f"{latency_ns:.0f} ns"


def format_iops(iops: float) -> str:
    """I/Os per second, whole, with thousands separated.

    Examples
    --------
    >>> format_iops(21312.4)
    '21,312'
    """
    return f"{iops:,.0f}"


def format_share(share: float, decimals: int = 0) -> str:
    """A share in percent.

    Examples
    --------
    >>> format_share(0.664), format_share(0.9734, 1), format_share(0.002), format_share(0.0)
    ('66 %', '97.3 %', '<1 %', '0 %')
    """
    if 0 < share < 0.005 and not decimals:
        return "<1 %"
    return f"{share * 100:,.{decimals}f} %"


def count_of(count: int, noun: str) -> str:
    """A count with its noun, whose plural is regular.

    Examples
    --------
    >>> count_of(1, "user"), count_of(2048, "user"), count_of(0, "limit")
    ('1 user', '2,048 users', '0 limits')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_years(years: float) -> str:
    """A number of years in words.

    Examples
    --------
    >>> format_years(1), format_years(2.5), format_years(0)
    ('1 year', '2.5 years', '0 years')
    """
    return f"{years:g} year" if years == 1 else f"{years:g} years"


def format_when(years: float) -> str:
    """A time that is a number of years from now, in words.

    Examples
    --------
    >>> format_when(3), format_when(0)
    ('in 3 years', 'now')
    """
    return f"in {format_years(years)}" if years else "now"


def format_duration(seconds: float) -> str:
    """Duration for people.

    Examples
    --------
    >>> format_duration(75), format_duration(8), format_duration(3720)
    ('1 min 15 s', '8 s', '1 h 2 min')
    """
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole} s" if seconds >= 1 or seconds == 0 else f"{seconds:.2g} s"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"

"""Values of foreign documents on drives: typed and bounded, or not known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import cast

from assay.base.paths import plain

Document = Mapping[str, object]

COUNT_MAX = 2**63 - 1
"""What a run folder holds of a counter (`assay.record.shapes.terms.INTEGER_MAX`)."""
TEXT_MAX = 64
_DIGITS_MAX = 39
"""Digits of a 128-bit number."""
_CELSIUS = range(-60, 200)
"""What a drive's sensor can say."""
KELVIN = 273
"""What NVM Express, nvme-cli and smartctl take off a temperature in kelvin."""


def document_of(text: bytes) -> Document | None:
    """The object of a JSON text; None where it is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def object_at(told: object, *keys: str) -> Document:
    """The object below keys; an empty one where there is none."""
    for key in keys:
        told = told.get(key) if isinstance(told, Mapping) else None
    return cast(Document, told) if isinstance(told, Mapping) else {}


def objects_at(told: object, key: str, most: int) -> Iterator[Document]:
    """The first objects of a list below a key."""
    listed = told.get(key) if isinstance(told, Mapping) else None
    for one in listed[:most] if isinstance(listed, list) else ():
        if isinstance(one, Mapping):
            yield cast(Document, one)


def count_of(value: object) -> int | None:
    """A counter: nvme-cli writes those of 128 bits as numbers, as floats or as texts, by its version.

    Examples
    --------
    >>> count_of(12), count_of(12.0), count_of("12"), count_of("1,234"), count_of(True), count_of(-1), count_of("x")
    (12, 12, 12, 1234, None, None, None)
    """
    if isinstance(value, str):
        digits = value.replace(",", "")
        value = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX else None
    elif isinstance(value, float):
        value = int(value) if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= COUNT_MAX else None


def bytes_of(value: object, unit: int) -> int | None:
    """A counter of units in bytes."""
    count = count_of(value)
    return None if count is None or count * unit > COUNT_MAX else count * unit


def percent_of(value: object) -> float | None:
    """A share that is told in percent; wear may pass 100 (NVM Express: up to 255)."""
    count = count_of(value)
    return None if count is None or count > 255 else count / 100


def celsius_of(value: object, zero: int = 0) -> float | None:
    """A temperature; `zero` is taken off it. 0 kelvin is none."""
    count = count_of(value) if not isinstance(value, int) or isinstance(value, bool) else value
    return float(count - zero) if count is not None and count - zero in _CELSIUS else None


def words_of(value: object) -> str | None:
    """A short text on one line."""
    return plain(value)[:TEXT_MAX].strip() or None if isinstance(value, str) else None

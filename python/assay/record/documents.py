"""JSON of a run folder, read strictly: what a file may hold that Python's reader takes and no run has is refused."""

from __future__ import annotations

import json
import math
from typing import Any

REASON_LETTERS_MAX = 160
NESTING_MAX = 64
"""Objects and lists within each other; no file of a run has a third of it, and what reads them goes down by calls."""

_CONTAINERS = frozenset({dict, list})


def parsed(text: bytes) -> Any:
    """Value of one JSON document in UTF-8.

    Numbers are finite (RFC 8259 has no others), and nesting is at most `NESTING_MAX` deep.

    Raises
    ------
    ValueError
        It is no such document; the message is one short line.

    Examples
    --------
    >>> parsed(b'{"iops": 5.5}')
    {'iops': 5.5}
    >>> parsed(b'{"iops": 1e999}')
    Traceback (most recent call last):
    ...
    ValueError: the number 1e999 is not finite
    """
    try:
        value = json.loads(text.decode("utf-8"), parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(str(error)[:REASON_LETTERS_MAX]) from None
    if not _is_shallow(value):
        raise ValueError("it is nested too deeply")
    return value


def _is_shallow(value: Any) -> bool:
    """Whether values lie within each other no deeper than they may."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(NESTING_MAX):
        level = [
            held
            for each in level
            for held in (each.values() if type(each) is dict else each)
            if type(held) in _CONTAINERS
        ]
        if not level:
            return True
    return False


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _refuse(text: str) -> None:
    raise ValueError(f"the number {text[:40]} is not finite")

"""JSON of a run folder, read strictly: what a file may hold that Python's reader takes and no run has is refused."""

from __future__ import annotations

import json
import math
from typing import Any

REASON_LETTERS_MAX = 160


def parsed(text: bytes) -> Any:
    """Value of one JSON document in UTF-8.

    Numbers are finite (RFC 8259 has no others), and nesting is no deeper than the interpreter bears.

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
        return json.loads(text.decode("utf-8"), parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(str(error)[:REASON_LETTERS_MAX]) from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _refuse(text: str) -> None:
    raise ValueError(f"the number {text[:40]} is not finite")

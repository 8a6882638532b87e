"""Cases of a test of which few are tried by `make test`, and the others by `make test-all`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], quick: Collection[Any], *, reason: str) -> list[Any]:
    """All cases, those that are not among the quick ones marked slow; a quick one that is no case is an error."""
    cases = list(cases)
    strange = [one for one in quick if one not in cases]
    if strange:
        raise ValueError(f"no such cases: {strange}")
    mark = pytest.mark.slow(reason=reason)
    return [
        one if one in quick else pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=mark) for one in cases
    ]

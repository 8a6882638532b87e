"""Figures: what a point says in one number, defined once for all who ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Point = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a workload's points.

    Attributes
    ----------
    name
        As options, limits and documents name it, with its unit last where it has one.
    unit
        Base unit of its values: `iops`, `bytes_per_s`, `ns`, `share`, `count`, `nopm`, ...
    title
        As tables head it.
    better
        Which way is better; None where neither is.
    value
        Its value in a point; None where nothing was measured.
    batches
        The same over equal parts of the window, from which intervals are computed; empty where there are none.
    words
        A value with its unit, for people.
    """

    name: str
    unit: str
    title: str
    better: Literal["higher", "lower"] | None
    value: Callable[[Point], float | None]
    words: Callable[[float], str]
    batches: Callable[[Point], Sequence[float]] = lambda _point: ()

"""Whether answers are right: against the published ones, and of two engines against each other.

Clause 2.1.3.5 of the specification: counts and single values must match, sums may be off by 100, averages and ratios
by 1 %. Rows that the order of a query leaves open may come in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

Kind = Literal["exact", "sum", "mean"]
Cell = str | Decimal
Row = tuple[Any, ...]

SUM_OFF_MAX = Decimal(100)
MEAN_OFF_SHARE = 0.01
"""Tolerances against the published answers."""

ENGINES_SUM_OFF_MAX = Decimal("0.01")
ENGINES_MEAN_OFF_SHARE = 1e-4
"""Tolerances between engines: sums are exact in all, quotients have at least four digits."""

KINDS: Mapping[int, Mapping[int, Kind]] = {
    1: {3: "sum", 4: "sum", 5: "sum", 6: "mean", 7: "mean", 8: "mean"},
    3: {1: "sum"}, 5: {1: "sum"}, 6: {0: "sum"}, 7: {3: "sum"}, 8: {1: "mean"}, 9: {2: "sum"}, 10: {2: "sum"},
    11: {1: "sum"}, 14: {0: "mean"}, 15: {4: "sum"}, 17: {0: "mean"}, 19: {0: "sum"}, 22: {2: "sum"},
}  # fmt: skip
"""Columns that are sums, averages or ratios; all others must match."""

ORDER: Mapping[int, tuple[int, ...]] = {
    1: (0, 1), 2: (0, 2, 1, 3), 3: (1, 2), 4: (0,), 5: (1,), 7: (0, 1, 2), 8: (0,), 9: (0, 1), 10: (2,), 11: (1,),
    12: (0,), 13: (1, 0), 15: (0,), 16: (3, 0, 1, 2), 18: (4, 3), 20: (0,), 21: (1, 0), 22: (0,),
}  # fmt: skip
"""Columns by which the rows of a query are ordered."""

CUT = {11: 2}
"""Published answers whose first column lacks its last digits in the text of crate tpchgen 4.0.0: how many."""

_Alike = Callable[[Cell, Cell, Kind], bool]


def compare_published(number: int, rows: Sequence[Row], published: str) -> str | None:
    """What differs first between an answer and the published one; None where nothing does.

    Parameters
    ----------
    number
        The query.
    rows
        As the driver gave them.
    published
        A line of column names, then rows, with `|` between cells.
    """
    lines = [line for line in published.splitlines() if line.strip()]
    wanted = [tuple(_cell(cell) for cell in line.split("|")) for line in lines[1:]]
    if number in CUT:
        rows = [(str(row[0])[: -CUT[number]], *row[1:]) for row in rows]
    return _compare(number, [tuple(map(_cell, row)) for row in rows], wanted, _near_published)


def compare_answers(number: int, rows: Sequence[Row], others: Sequence[Row]) -> str | None:
    """What differs first between the answers of two engines; None where nothing does."""
    return _compare(
        number, [tuple(map(_cell, row)) for row in rows], [tuple(map(_cell, row)) for row in others], _near_engine
    )


def _compare(number: int, rows: list[tuple[Cell, ...]], wanted: list[tuple[Cell, ...]], alike: _Alike) -> str | None:
    if len(rows) != len(wanted):
        return f"{len(rows)} rows, not {len(wanted)}"
    kinds = KINDS.get(number, {})
    for place, (row, other) in enumerate(zip(rows, wanted, strict=True), 1):
        if len(row) != len(other):
            return f"row {place} has {len(row)} columns, not {len(other)}"
        for column in ORDER.get(number, ()):
            if not alike(row[column], other[column], kinds.get(column, "exact")):
                return f"row {place}, column {column + 1}: {row[column]}, not {other[column]}"
    exact = [column for column in range(len(rows[0])) if column not in kinds] if rows else []

    def key(row: tuple[Cell, ...]) -> tuple[str, ...]:
        return tuple(_text(row[column]) for column in exact)

    for row, other in zip(sorted(rows, key=key), sorted(wanted, key=key), strict=True):
        for column, (found, expected) in enumerate(zip(row, other, strict=True)):
            if not alike(found, expected, kinds.get(column, "exact")):
                return f"column {column + 1}: {found}, not {expected}, in a row with {', '.join(map(str, row[:4]))}"
    return None


def _cell(value: Any) -> Cell:
    """A value as it is compared: numbers as numbers, all else as text without the blanks around it."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float | Decimal):
        return Decimal(str(value))
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    text = str(value).strip()
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _text(cell: Cell) -> str:
    """A cell as rows are sorted by it: numbers alike whatever digits they were written with."""
    return f"{cell.normalize():f}" if isinstance(cell, Decimal) else cell


def _near(found: Cell, expected: Cell, kind: Kind, sum_off: Decimal, mean_off: float) -> bool:
    if not isinstance(found, Decimal) or not isinstance(expected, Decimal):
        return found == expected
    if kind == "sum":
        return abs(found - expected) <= sum_off
    if kind == "mean":
        return math.isclose(found, expected, rel_tol=mean_off)
    return found == expected


def _near_published(found: Cell, expected: Cell, kind: Kind) -> bool:
    if kind == "mean" and isinstance(found, Decimal):
        # Averages and ratios are published with two digits, and compared so.
        found = round(found, 2)
    return _near(found, expected, kind, SUM_OFF_MAX, MEAN_OFF_SHARE)


def _near_engine(found: Cell, expected: Cell, kind: Kind) -> bool:
    return _near(found, expected, kind, ENGINES_SUM_OFF_MAX, ENGINES_MEAN_OFF_SHARE)

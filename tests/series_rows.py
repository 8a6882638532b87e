"""Rows of a series as tests write them down, one by one, as the batches that are handed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from assay.record.rows import TEXT_COLUMNS, Rows, TextColumn, no_rows

USUAL = {"clock": "wall", "interval_ns": 10**9, "tier": "storage", "host": "h", "role": "", "kind": "gauge"}
"""Columns that a row may leave out."""

NUMBERS = {"t_ns": pa.int64(), "interval_ns": pa.int64(), "value": pa.float64()}
SCHEMA = pa.schema(
    [
        pa.field(name, NUMBERS.get(name, pa.string()), nullable=False)
        for name in (
            "t_ns", "clock", "interval_ns", "tier", "host", "source", "entity", "role", "metric", "kind", "value",
        )
    ]
)  # fmt: skip
"""Columns of a series (docs/results.md), for files that another library writes."""


def series_of(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """The rows together."""
    given = [{**USUAL, **row} for row in rows]
    if not given:
        return no_rows()
    t_ns, interval_ns = (np.array([row[name] for row in given], np.int64) for name in ("t_ns", "interval_ns"))
    texts = {name: TextColumn.of([row[name] for row in given]) for name in TEXT_COLUMNS}
    return Rows(t_ns, interval_ns, np.array([row["value"] for row in given], np.float64), texts)


def batches_of(rows: Iterable[Mapping[str, Any]]) -> list[Rows]:
    """The rows as they are handed over; nothing without rows."""
    made = series_of(rows)
    return [made] if len(made) else []


def rows_of(parts: Iterable[Rows]) -> list[dict[str, Any]]:
    """The rows of all parts."""
    return [row for part in parts for row in part.records()]


def series_rows(
    source: str,
    entity: str,
    metric: str,
    values: Sequence[float | None],
    *,
    kind: str = "gauge",
    host: str = "db1",
    tier: str = "client",
    step_s: int = 1,
    role: str = "",
) -> list[dict[str, Any]]:
    """Rows of a metric, one a step; None leaves a step out."""
    return [
        {
            "t_ns": (place + 1) * step_s * 10**9, "clock": "wall", "interval_ns": step_s * 10**9, "tier": tier,
            "host": host, "source": source, "entity": entity, "role": role, "metric": metric, "kind": kind,
            "value": value,
        }
        for place, value in enumerate(values) if value is not None
    ]  # fmt: skip

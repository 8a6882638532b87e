"""Rows of a series as tests write them down, one by one, as the batches that are handed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from assay.record.series_schema import READ_SCHEMA

USUAL = {"clock": "wall", "interval_ns": 10**9, "tier": "storage", "host": "h", "role": ""}
"""Columns that a row may leave out."""


def batches_of(rows: Iterable[Mapping[str, Any]]) -> list[pa.RecordBatch]:
    """The rows as one batch; none without rows."""
    given = [{**USUAL, **row} for row in rows]
    return [pa.RecordBatch.from_pylist(given, READ_SCHEMA)] if given else []


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """The rows of batches."""
    return [row for batch in batches for row in batch.to_pylist()]


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

"""Columns of a series (docs/results.md, Series), as they are written and as they are kept in memory."""

from __future__ import annotations

import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("t_ns", pa.int64(), nullable=False),
        pa.field("clock", pa.string(), nullable=False),
        pa.field("interval_ns", pa.int64(), nullable=False),
        pa.field("tier", pa.string(), nullable=False),
        pa.field("host", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("entity", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""Columns of a series (docs/results.md, Series). `t_ns` is the end of the interval."""

TEXTS = tuple(field.name for field in SCHEMA if field.type == pa.string())
READ_SCHEMA = pa.schema(
    [
        pa.field(field.name, pa.dictionary(pa.int16(), pa.string()) if field.name in TEXTS else field.type, False)
        for field in SCHEMA
    ]
)
"""Columns in memory, before they are written and as they are read: each text once, and its number in every row."""

"""Rows of the core as Arrow batches, without copying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from assay._core import ColumnBuffer

Column: TypeAlias = "tuple[str, str, int, ColumnBuffer, ColumnBuffer | None, ColumnBuffer | None]"
"""A column as `ChunkRows.next_batch` gives it."""

DECIMAL_DIGITS = 15
"""Digits of money and shares, as tables have them: no cast is needed on the way in."""


def record_batch(rows: int, columns: Sequence[Column]) -> pa.RecordBatch:
    """Make an Arrow batch of the columns of `ChunkRows.next_batch`; it uses their memory."""
    arrays = [_array(rows, column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, [column[0] for column in columns])


def _array(rows: int, column: Column) -> pa.Array:
    _, kind, digits, values, offsets, valid = column
    buffers = [buffer if buffer is None else pa.py_buffer(buffer) for buffer in (valid, offsets, values)]
    if offsets is None:
        del buffers[1]
    return pa.Array.from_buffers(_type(kind, digits), rows, buffers)


def _type(kind: str, digits: int) -> pa.DataType:
    match kind:
        case "decimal64":
            return pa.decimal64(DECIMAL_DIGITS, digits)
        case "timestamp":
            return pa.timestamp("us")
        case _:
            return pa.type_for_alias(kind)

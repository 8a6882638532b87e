"""Rows of the core as Arrow batches, without copying what has the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import nanoarrow
import numpy as np
from arro3.core import Array, DataType, RecordBatch

if TYPE_CHECKING:
    from assay._core import ColumnBuffer

Column: TypeAlias = "tuple[str, str, int, ColumnBuffer, ColumnBuffer | None, ColumnBuffer | None]"
"""A column as `ChunkRows.next_batch` gives it."""

DECIMAL_DIGITS = 15
"""Digits of money and shares, as tables have them: no cast is needed on the way in."""

TYPES = {
    "int64": DataType.int64(),
    "string": DataType.string(),
    "date32": DataType.date32(),
    "timestamp": DataType.timestamp("us"),
}


def record_batch(rows: int, columns: Sequence[Column]) -> RecordBatch:
    """Make an Arrow batch of the columns of `ChunkRows.next_batch`; it uses their memory, but of decimals."""
    return RecordBatch.from_arrays(
        [_array(rows, column) for column in columns], names=[column[0] for column in columns]
    )


def _array(rows: int, column: Column) -> Array:
    _, kind, digits, values, offsets, valid = column
    if kind == "decimal64":
        # The libraries know decimals of 128 bits alone: the sign fills the upper half.
        wide = np.empty((rows, 2), np.int64)
        wide[:, 0] = np.frombuffer(values, np.int64, rows)  # type: ignore[call-overload]
        np.right_shift(wide[:, 0], 63, out=wide[:, 1])
        made = nanoarrow.c_array_from_buffers(DataType.decimal128(DECIMAL_DIGITS, digits), rows, [valid, wide])
    else:
        buffers = [valid, values] if offsets is None else [valid, offsets, values]
        made = nanoarrow.c_array_from_buffers(TYPES[kind], rows, buffers)
    return Array.from_arrow(made)

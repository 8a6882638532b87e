"""Rows of a series as Arrow streams and Parquet as they are written, by arro3; `series_reading` reads them.

Streams hold plain texts, so that each of their messages stands for itself. Parquet holds numbered ones.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, cast

import numpy as np
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_ipc_stream, write_parquet

from assay.record.arrow_messages import messages
from assay.record.rows import Rows
from assay.record.series_bounds import COLUMNS

NUMBER_TYPES = {"t_ns": DataType.int64(), "interval_ns": DataType.int64(), "value": DataType.float64()}
TEXT, NUMBERED = DataType.string(), DataType.dictionary(DataType.int16(), DataType.string())

MESSAGE_ROWS = 2**16
GROUP_ROWS = 2**17
"""Rows of a Parquet file that are compressed together, some 5 MB in memory."""
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""How an Arrow stream ends (Arrow columnar format, "IPC Streaming Format")."""


def _schema(text: DataType, metadata: Mapping[str, str] | None = None) -> Schema:
    fields = [Field(name, NUMBER_TYPES.get(name, text), nullable=False) for name in COLUMNS]
    return Schema(fields, metadata=dict(metadata or {}))


def _batch(rows: Rows, text: DataType) -> RecordBatch:
    columns = []
    for name in COLUMNS:
        if name in NUMBER_TYPES:
            kind = np.float64 if name == "value" else np.int64
            columns.append(Array.from_numpy(np.ascontiguousarray(getattr(rows, name), kind)))
        else:
            column = rows.texts[name]
            texts = Array(list(column.texts), type=TEXT)
            numbers = Array.from_numpy(np.ascontiguousarray(column.numbers, np.int32))
            columns.append((texts.cast(NUMBERED) if text is NUMBERED else texts).take(numbers))
    return RecordBatch.from_arrays(columns, schema=_schema(text))


# Streams


def stream_head(metadata: Mapping[str, str] | None = None) -> bytes:
    """How a stream of rows begins."""
    sink = io.BytesIO()
    write_ipc_stream(RecordBatchReader.from_batches(_schema(TEXT, metadata), []), sink)
    return next(messages(io.BytesIO(sink.getvalue())))


def stream_messages(rows: Rows) -> Iterator[bytes]:
    """Yield rows as messages of a stream."""
    for begin in range(0, len(rows), MESSAGE_ROWS):
        sink = io.BytesIO()
        write_ipc_stream(_batch(rows.where(slice(begin, begin + MESSAGE_ROWS)), TEXT), sink, compression="zstd")
        yield from list(messages(io.BytesIO(sink.getvalue())))[1:]


# Parquet


class _Sink(io.RawIOBase):
    """A file that stays open, and keeps the error that ended writing: the library gives its words alone."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Write bytes."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise


def write_rows(file: BinaryIO, parts: Iterable[Rows], metadata: Mapping[str, str] | None = None) -> None:
    """Write rows as a Parquet file, compressed with zstd; they are asked for as they are written.

    Raises
    ------
    OSError
        Writing failed.
    """
    sink = _Sink(file)
    batches = (_batch(rows.where(slice(begin, begin + GROUP_ROWS)), NUMBERED)
               for rows in parts for begin in range(0, len(rows), GROUP_ROWS))  # fmt: skip
    try:
        write_parquet(
            RecordBatchReader.from_batches(_schema(NUMBERED), batches), cast(BinaryIO, sink), compression="zstd(1)",
            max_row_group_size=GROUP_ROWS, key_value_metadata=dict(metadata or {}),
            # Times and values are seldom alike.
            column_dictionary_enabled=dict.fromkeys(NUMBER_TYPES, False),
        )  # fmt: skip
    except Exception:
        if sink.error is not None:
            raise sink.error from None
        raise

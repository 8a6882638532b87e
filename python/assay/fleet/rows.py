"""Rows of a series on their way from an agent: Arrow batches, bounded and checked before they are used."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.fleet.wire import NotAMessage

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 100_000
ROWS_MAX = 20_000_000
"""Of one point."""


def as_stream(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Rows as they go over a pipe; nothing for none."""
    if not batches:
        return b""
    import pyarrow as pa

    from assay.record.series_schema import SCHEMA

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch.cast(SCHEMA)]), max_chunksize=ROWS_AT_A_TIME)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_stream(data: bytes) -> list[pa.RecordBatch]:
    """Rows as `as_stream` sent them.

    Raises
    ------
    NotAMessage
        They are no rows of a series, or too many.
    """
    if not data:
        return []
    import pyarrow as pa

    from assay.record.series_bounds import messages
    from assay.record.series_schema import SCHEMA

    batches: list[pa.RecordBatch] = []
    try:
        schema, *others = map(pa.ipc.read_message, messages(io.BytesIO(data)))
        if not pa.ipc.read_schema(schema).equals(SCHEMA):
            raise ValueError("columns are not those of a series")
        for message in others:
            batch = pa.ipc.read_record_batch(message, SCHEMA)
            batch.validate(full=True)
            if any(column.null_count for column in batch.columns):
                raise ValueError("a value is missing")
            batches.append(batch)
            if sum(one.num_rows for one in batches) > ROWS_MAX:
                raise ValueError(f"more than {ROWS_MAX:,} rows")
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise NotAMessage(f"no rows of a series ({reason})") from None
    return batches


def of_host(batch: pa.RecordBatch, name: str, hostname: str, offset_ns: int) -> pa.RecordBatch:
    """Rows as those of a host, its wall clock set to this host's."""
    import pyarrow.compute as pc

    wall = pc.equal(batch.column("clock"), "wall")
    shifted = pc.if_else(wall, pc.subtract(batch.column("t_ns"), offset_ns), batch.column("t_ns"))
    hosts = batch.column("host")
    named = pc.if_else(pc.equal(hosts, hostname), name, hosts)
    for column, values in (("t_ns", shifted), ("host", named)):
        place = batch.schema.get_field_index(column)
        field_ = batch.schema.field(place)
        batch = batch.set_column(place, field_, values)
    return _numbered(batch)


def _numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as a series is held in memory, each text once."""
    import pyarrow as pa

    from assay.record.series_schema import READ_SCHEMA

    columns = [
        column.dictionary_encode().cast(field_.type) if pa.types.is_dictionary(field_.type) else column
        for column, field_ in zip(batch.columns, READ_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READ_SCHEMA)

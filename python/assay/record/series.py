"""The series of a run: one tall table of what was measured over time, in segments and then in one Parquet file.

Rows arrive in batches and go to an Arrow IPC stream `<id>.arrow.part`, which is synced and renamed when the segment is
closed. At the end all segments become `series.parquet`. Every segment carries an identity, and the Parquet file the
identities it contains, so that a crash between writing the one and removing the others neither loses nor doubles rows.

Files that are read may come from anywhere: they are regular files, what they unfold to is bounded before it is unfolded
(`assay.record.series_bounds`), and rows are kept with numbers for their texts, some 40 bytes each.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from assay.base.errors import RunFolderError
from assay.base.paths import let_go, printable
from assay.record import durable
from assay.record.flight import has_recording, read_recording
from assay.record.folder import Folder
from assay.record.series_bounds import check_pages, messages
from assay.record.series_schema import READ_SCHEMA, SCHEMA, TEXTS

SEGMENTS_NAME = "series"
PARQUET_NAME = "series.parquet"

ROWS_MAX = 25_000_000
"""Rows that are read, which take a gigabyte: those of 48 hours at 140 a second."""
TEXTS_MAX = 2**15 - 1
"""Different texts of a column."""
ROWS_AT_A_TIME = 2**16

_SEGMENT_KEY = b"assay.segment"
_MERGED_KEY = b"assay.merged_segments"
_READ_ATTEMPTS = 20


class _TooLarge(RunFolderError):
    """A series has more rows than are read."""


class SeriesWriter:
    """Writes the series of one run; the run must be locked (`RunFolder.series_writer` does that).

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._segments: Folder | None = None
        self._part: str | None = None
        self._stream: Any = None
        self._file: Any = None
        self._close_file: Any = None

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Append rows to the open segment; they reach the operating system before this returns.

        Parameters
        ----------
        batches
            Rows of `READ_SCHEMA`.

        Raises
        ------
        ValueError
            Columns are not those of a series, or hold a null.
        OutOfSpace, IoFailed
            Writing failed; rows of earlier calls are intact, these are lost.
        """
        if not batches:
            return
        batch = _plain(batches)
        if batch.num_rows == 0:
            return
        try:
            if self._stream is None:
                self._open_part()
            self._stream.write_batch(batch)
        except BaseException as error:
            # The stream may now end in the middle of a batch: leave it to be salvaged and begin another.
            self._abandon()
            if isinstance(error, OSError):
                raise durable.failure(error, f"cannot write to {printable(self._folder / SEGMENTS_NAME)}") from error
            raise

    def close_segment(self, name: str) -> Path | None:
        """Close the open segment durably as `<name>.arrow`.

        Parameters
        ----------
        name
            What the segment holds, such as a point's id; a number is added if the run has such a segment already.

        Returns
        -------
        Path or None
            The segment, or None if nothing was written since the last one.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed; what was written can still be salvaged by readers.
        """
        if self._part is None:
            return None
        assert self._segments is not None
        part, segments = self._part, self._segments
        closed = _free_name(segments, name)
        try:
            self._stream.close()
            os.fsync(self._file.fileno())
            self._close_file()
            segments.rename(part, closed)
            segments.sync()
        except OSError as error:
            raise durable.failure(error, f"cannot write {printable(segments.path / closed)}") from error
        finally:
            self._abandon()
        return segments.path / closed

    def compact(self) -> Path | None:
        """Merge all closed and left-over segments, and an earlier Parquet file, into `series.parquet`.

        The open segment is closed first. Rows are ordered by `t_ns` and compressed with zstd. The segments are removed
        only after the new file is on stable storage; a crash in between leaves both, and readers take each row once.

        Returns
        -------
        Path or None
            The Parquet file, or None if the run has no series.

        Raises
        ------
        RunFolderError
            A closed segment or the earlier Parquet file is damaged; nothing is removed.
        OutOfSpace, IoFailed
            Writing failed; nothing is removed.
        """
        self.close_segment("last")
        run = Folder.open(self._folder)
        segments = _segments(run)
        if segments is None:
            return self._folder / PARQUET_NAME if run.has(PARQUET_NAME) else None
        names = _segment_names(segments)
        try:
            table, merged = _merge(run, segments, names)
        except _TooLarge:
            # Readers take the segments one by one.
            return None
        if names:
            self._replace_parquet(run, segments, names, table, merged)
        with contextlib.suppress(OSError):
            # Other files may be kept there.
            os.rmdir(SEGMENTS_NAME, dir_fd=run.descriptor)
        return self._folder / PARQUET_NAME if run.has(PARQUET_NAME) else None

    def _replace_parquet(
        self, run: Folder, segments: Folder, names: Sequence[str], table: pa.Table, merged: Sequence[str]
    ) -> None:
        """Write the Parquet file, and remove the segments that are in it."""
        part = f".{secrets.token_hex(8)}.part"
        schema = SCHEMA.with_metadata({_MERGED_KEY: json.dumps(merged)})
        try:
            with os.fdopen(run.create(part), "wb") as file:
                with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                    for batch in table.to_batches(max_chunksize=2**18):
                        writer.write_table(pa.Table.from_batches([batch]).cast(schema))
                file.flush()
                os.fsync(file.fileno())
            run.rename(part, PARQUET_NAME)
            run.sync()
            for name in names:
                segments.unlink(name)
        except OSError as error:
            run.remove(part)
            raise durable.failure(error, f"cannot write {printable(self._folder / PARQUET_NAME)}") from error

    def _open_part(self) -> None:
        if self._segments is None:
            self._segments = Folder.open(self._folder).folder(SEGMENTS_NAME, make=True)
        identity = secrets.token_hex(8)
        self._part = f"{identity}.arrow.part"
        descriptor = self._segments.create(self._part)
        # A writer that is forgotten leaves its segment as a crash would.
        self._close_file = weakref.finalize(self, let_go, descriptor)
        self._file = os.fdopen(descriptor, "wb", buffering=0, closefd=False)
        schema = SCHEMA.with_metadata({_SEGMENT_KEY: identity})
        self._stream = ipc.new_stream(self._file, schema, options=ipc.IpcWriteOptions(compression="zstd"))

    def _abandon(self) -> None:
        with contextlib.suppress(OSError):
            if self._close_file is not None:
                self._close_file()
        self._part = self._stream = self._file = self._close_file = None


def read_series(folder: Path) -> pa.Table:
    """All rows of a run's series, by time: of segments, of what can be salvaged from a crash, of the Parquet file.

    Parameters
    ----------
    folder
        The run folder; the run may be going on.

    Returns
    -------
    pyarrow.Table
        Rows of `READ_SCHEMA` ordered by `t_ns`; empty if the run has no series.

    Raises
    ------
    RunFolderError
        A closed segment or the Parquet file is damaged, is no regular file, or there are more than `ROWS_MAX` rows.
    """
    if has_recording(folder):
        return read_recording(folder)
    run = Folder.open(folder)
    for _ in range(_READ_ATTEMPTS):
        # A file that vanishes between listing and reading was renamed or compacted by the run's own process.
        with contextlib.suppress(FileNotFoundError):
            segments = _segments(run)
            names = _segment_names(segments) if segments is not None else []
            return _merge(run, segments, names)[0]
    raise RunFolderError(
        f"{printable(folder)}: the series changes faster than it can be read; try again when the run has ended"
    )


def _free_name(segments: Folder, name: str) -> str:
    """A name that no segment has: a point that runs again after a crash has the id of the lost point."""
    if not name or "/" in name:
        raise ValueError(f"a segment cannot be named {name!r}")
    free, number = f"{name}.arrow", 2
    while segments.has(free):
        free, number = f"{name}-{number}.arrow", number + 1
    return free


def _plain(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows as they are written, with plain texts."""
    try:
        batch = pa.concat_batches(batches)
    except pa.ArrowInvalid as error:
        raise ValueError(f"rows do not fit the series schema: {error}") from error
    if not batch.schema.equals(READ_SCHEMA):
        raise ValueError(f"rows do not fit the series schema: {batch.schema}")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise ValueError(f"rows do not fit the series schema: {column.null_count} without {name}")
    return batch.cast(SCHEMA)


def _segments(run: Folder) -> Folder | None:
    try:
        return run.folder(SEGMENTS_NAME)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"{printable(run.path / SEGMENTS_NAME)} cannot be read: {error.strerror}") from error


def _segment_names(segments: Folder) -> list[str]:
    """Names of all segments, open or closed, at one moment."""
    previous: list[str] | None = None
    for _ in range(_READ_ATTEMPTS):
        names = [name for name in segments.names() if name.endswith((".arrow", ".arrow.part"))]
        # A scan of a large directory may miss a file that is renamed meanwhile; the next scan has it.
        if names == previous:
            break
        previous = names
    return names


def _merge(run: Folder, segments: Folder | None, names: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """All rows once, by time, and the identities of the segments read.

    Segments are read before the Parquet file, or a compaction in between would hide rows.
    """
    rows = _Rows()
    spans: list[tuple[str | None, int, int]] = []
    for name in names:
        assert segments is not None
        begin = rows.count
        spans.append((_read_segment(segments, name, rows), begin, rows.count))
    try:
        rows.take_held()
    except ValueError as error:
        raise _damaged(run.path / SEGMENTS_NAME, error) from error
    of_segments = rows.count
    merged = _read_parquet(run, rows)
    kept = [(begin, end) for identity, begin, end in spans if identity not in merged]
    count = rows.count - of_segments + sum(end - begin for begin, end in kept)
    if count > ROWS_MAX:
        raise _too_large(run.path, count)
    # Rows of one moment keep their order: those of the Parquet file were written first.
    return rows.table([(of_segments, rows.count), *kept]), [identity for identity, _, _ in spans if identity]


def _read_segment(segments: Folder, name: str, rows: _Rows) -> str | None:
    """Take the rows of a segment, and give its identity; None where it has none, or no rows."""
    identity = None
    for found, batch in _batches(segments, name):
        identity = found
        try:
            rows.hold(batch)
        except ValueError as error:
            raise _damaged(segments.path / name, error) from error
        if rows.count > ROWS_MAX:
            raise _too_large(segments.path / name, rows.count)
    return identity


def _batches(segments: Folder, name: str) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Identity and batches of a segment; of one that was not closed, those before the first cut off or torn."""
    identity = schema = None
    with _opened(segments, name) as file:
        try:
            for message in map(ipc.read_message, messages(file)):
                if schema is None:
                    schema = ipc.read_schema(message)
                    if not schema.equals(SCHEMA):
                        raise ValueError("its columns are not those of a series")
                    identity = (schema.metadata or {}).get(_SEGMENT_KEY, b"").decode() or None
                    continue
                batch = ipc.read_record_batch(message, schema)
                batch.validate(full=True)
                _check_whole(batch)
                yield identity, batch
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            if not name.endswith(".part"):
                raise _damaged(segments.path / name, error, "; remove it to go on without its rows") from error


def _read_parquet(run: Folder, rows: _Rows) -> set[str]:
    """Take the rows of the Parquet file, and give the identities of the segments that are in it."""
    path, before = run.path / PARQUET_NAME, rows.count
    if not run.has(PARQUET_NAME):
        return set()
    with _opened(run, PARQUET_NAME) as opened:
        try:
            metadata = pq.read_metadata(opened)
            _check_columns(metadata.schema.to_arrow_schema())
            if metadata.num_rows > ROWS_MAX:
                raise _too_large(path, metadata.num_rows)
            check_pages(opened, metadata)
            # ParquetFile rather than read_table, which would take "a=b" in the path's folders for partition columns.
            with pq.ParquetFile(opened, metadata=metadata, read_dictionary=list(TEXTS)) as file:
                for batch in file.iter_batches(ROWS_AT_A_TIME, use_threads=False):
                    _check_whole(batch)
                    rows.hold(batch)
                    if rows.count - before > ROWS_MAX:
                        raise _too_large(path, rows.count - before)
                rows.take_held()
                merged = json.loads((metadata.metadata or {}).get(_MERGED_KEY, b"[]"))
            return {str(identity) for identity in merged}
        except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError) as error:
            raise _damaged(path, error) from error


def _check_columns(found: pa.Schema) -> None:
    plain = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in found]
    if found.names != SCHEMA.names or plain != SCHEMA.types:
        raise ValueError("its columns are not those of a series")


def _check_whole(batch: pa.RecordBatch) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise ValueError(f"{column.null_count} rows without {name}")


def _opened(folder: Folder, name: str) -> BinaryIO:
    try:
        return os.fdopen(folder.open_regular(name), "rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        path = printable(folder.path / name)
        raise RunFolderError(f"{path} cannot be read: {error.strerror}; remove it to go on") from error


def _damaged(path: Path, error: Exception, advice: str = "") -> RunFolderError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return RunFolderError(f"{printable(path)} is damaged: {reason}{advice}")


def _too_large(path: Path, count: int) -> _TooLarge:
    return _TooLarge(f"{printable(path)} holds {count:,} rows; at most {ROWS_MAX:,} of a run are read, a gigabyte")


class _Rows:
    """Rows as they are read, each different text of a column once."""

    def __init__(self) -> None:
        self.count = 0
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in TEXTS}
        self._columns: dict[str, list[pa.Array]] = {name: [] for name in SCHEMA.names}

    def hold(self, batch: pa.RecordBatch) -> None:
        """Add a batch, its texts plain or numbered; many small ones are numbered together.

        Raises
        ------
        ValueError
            A column holds more texts than any series does.
        """
        if self._held_rows and self._held_rows + batch.num_rows > ROWS_AT_A_TIME:
            self.take_held()
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self.count += batch.num_rows

    def take_held(self) -> None:
        """Number the texts of the batches that are held; they are of one form.

        Raises
        ------
        ValueError
            A column holds more texts than any series does.
        """
        if not self._held:
            return
        table = pa.Table.from_batches(self._held).unify_dictionaries().combine_chunks()
        self._held, self._held_rows = [], 0
        for name, column in zip(table.column_names, table.columns, strict=True):
            self._columns[name] += [self._numbered(name, one) if name in TEXTS else one for one in column.chunks]

    def table(self, spans: Sequence[tuple[int, int]]) -> pa.Table:
        """The rows of these spans, by time; a column after the other is put in order and let go."""
        times = self._chosen("t_ns", spans)
        in_order = pc.all(pc.less_equal(times[:-1], times[1:])).as_py() if len(times) > 1 else True
        order = None if in_order else pc.array_sort_indices(times)
        columns = []
        for field in READ_SCHEMA:
            column = self._chosen(field.name, spans)
            del self._columns[field.name]
            column = column if order is None else column.take(order)
            if field.name in TEXTS:
                column = pa.DictionaryArray.from_arrays(column, pa.array(list(self._numbers[field.name]), pa.string()))
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=READ_SCHEMA)

    def _chosen(self, name: str, spans: Sequence[tuple[int, int]]) -> pa.Array:
        type_ = pa.int16() if name in TEXTS else SCHEMA.field(name).type
        whole = pa.chunked_array(self._columns[name], type_)
        chunks = [chunk for begin, end in spans for chunk in whole.slice(begin, end - begin).chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], type_)

    def _numbered(self, name: str, column: pa.Array) -> pa.Array:
        """Numbers of a column's texts, the same for all batches."""
        found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        numbers = self._numbers[name]
        mapping = [numbers.setdefault(text, len(numbers)) for text in found.dictionary.to_pylist()]
        if len(numbers) > TEXTS_MAX:
            raise ValueError(f"more than {TEXTS_MAX:,} different texts of {name}")
        return pc.take(pa.array(mapping, pa.int16()), found.indices)

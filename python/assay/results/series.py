"""The series of a run: one tall table of what was measured over time, in segments and then in one Parquet file.

Rows arrive in batches and go to an Arrow IPC stream `<id>.arrow.part`, which is synced and renamed when the segment is
closed. At the end all segments become `series.parquet`. Every segment carries an identity, and the Parquet file the
identities it contains, so that a crash between writing the one and removing the others neither loses nor doubles rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from assay.errors import RunFolderError
from assay.results import durable

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

SEGMENTS_NAME = "series"
PARQUET_NAME = "series.parquet"

_SEGMENT_KEY = b"assay.segment"
_MERGED_KEY = b"assay.merged_segments"
_READ_ATTEMPTS = 20


class _Segment(NamedTuple):
    path: Path
    identity: str | None
    """Null when the file was cut off before its schema was whole."""
    batches: list[pa.RecordBatch]


class SeriesWriter:
    """Writes the series of one run; the run must be locked (`RunFolder.series_writer` does that).

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._segments = self._folder / SEGMENTS_NAME
        self._part: Path | None = None
        self._stream: Any = None
        self._file: Any = None

    def write(self, rows: Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any]]) -> None:
        """Append rows to the open segment; they reach the operating system before this returns.

        Parameters
        ----------
        rows
            Rows, each with every column of `SCHEMA`; or columns of equal length by name (lists or arrays).

        Raises
        ------
        ValueError
            A column is missing or holds a null or a value of another type.
        OutOfSpace, IoFailed
            Writing failed; rows of earlier calls are intact, these are lost.
        """
        batch = _batch(rows)
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
                raise durable.failure(error, f"cannot write to {self._segments}") from error
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
        part, path = self._part, self._free_name(name)
        try:
            self._stream.close()
            self._file.close()
            durable.sync_file(part)
            part.rename(path)
            durable.sync_directory(self._segments)
        except OSError as error:
            raise durable.failure(error, f"cannot write {path}") from error
        finally:
            self._abandon()
        return path

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
        path = self._folder / PARQUET_NAME
        part = path.with_name(path.name + ".part")
        segments = list(_read_segments(self._folder))
        if not segments:
            return path if path.exists() else None
        merged = json.dumps([segment.identity for segment in segments if segment.identity])
        table = _merge(self._folder, segments).replace_schema_metadata({_MERGED_KEY: merged})
        try:
            pq.write_table(table, part, compression="zstd")
            durable.sync_file(part)
            part.replace(path)
            durable.sync_directory(self._folder)
            for segment in segments:
                segment.path.unlink()
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise durable.failure(error, f"cannot write {path}") from error
        with contextlib.suppress(OSError):
            # Somebody may keep other files there.
            self._segments.rmdir()
        return path

    def _open_part(self) -> None:
        self._segments.mkdir(exist_ok=True)
        identity = secrets.token_hex(8)
        self._part = self._segments / f"{identity}.arrow.part"
        self._file = pa.OSFile(os.fspath(self._part), "wb")
        schema = SCHEMA.with_metadata({_SEGMENT_KEY: identity})
        self._stream = ipc.new_stream(self._file, schema, options=ipc.IpcWriteOptions(compression="zstd"))

    def _abandon(self) -> None:
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._file.close()
        self._part = self._stream = self._file = None

    def _free_name(self, name: str) -> Path:
        """Path no segment has; a point that is run again after a crash has the id of the one that was lost."""
        if not name or "/" in name:
            raise ValueError(f"a segment cannot be named {name!r}")
        path, number = self._segments / f"{name}.arrow", 2
        while path.exists():
            path, number = self._segments / f"{name}-{number}.arrow", number + 1
        return path


def read_series(folder: Path) -> pa.Table:
    """All rows of a run's series, by time: of segments, of what can be salvaged from a crash, of the Parquet file.

    Parameters
    ----------
    folder
        The run folder; the run may be going on.

    Returns
    -------
    pyarrow.Table
        Rows of `SCHEMA` ordered by `t_ns`; empty if the run has no series.

    Raises
    ------
    RunFolderError
        A closed segment or the Parquet file is damaged.
    """
    folder = Path(folder)
    for _ in range(_READ_ATTEMPTS):
        # A file that vanishes between listing and reading was renamed or compacted by the run's own process.
        with contextlib.suppress(FileNotFoundError):
            return _merge(folder, list(_read_segments(folder)))
    raise RunFolderError(f"{folder}: the series changes faster than it can be read; try again when the run has ended")


def _batch(rows: Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    try:
        if isinstance(rows, Mapping):
            batch = pa.RecordBatch.from_pydict(rows, schema=SCHEMA)
        else:
            batch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"rows do not fit the series schema: {error}") from error
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise ValueError(f"rows do not fit the series schema: {column.null_count} without {name}")
    return batch


def _read_segments(folder: Path) -> Iterator[_Segment]:
    for name in _segment_names(folder / SEGMENTS_NAME):
        yield _read_segment(folder / SEGMENTS_NAME / name)


def _segment_names(directory: Path) -> list[str]:
    """Names of all segments, open or closed, at one moment."""
    previous: list[str] | None = None
    for _ in range(_READ_ATTEMPTS):
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith((".arrow", ".arrow.part")))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunFolderError(f"{directory} cannot be read: {error.strerror}") from error
        # A scan of a large directory may miss a file that is renamed meanwhile; the next scan has it.
        if names == previous:
            break
        previous = names
    return names


def _read_segment(path: Path) -> _Segment:
    """Rows of one segment; of one that was not closed, the batches before the first that is cut off or torn."""
    identity, batches = None, []
    with pa.OSFile(os.fspath(path)) as file:
        try:
            stream = ipc.open_stream(file)
            identity = (stream.schema.metadata or {}).get(_SEGMENT_KEY, b"").decode() or None
            for batch in stream:
                batch.validate(full=True)
                batches.append(batch.cast(SCHEMA))
        except (pa.ArrowException, OSError, ValueError) as error:
            if path.suffix != ".part":
                raise RunFolderError(f"{path} is damaged: {error}; remove it to go on without its rows") from error
    return _Segment(path, identity, batches)


def _read_parquet(folder: Path) -> tuple[pa.Table, set[str]]:
    """Rows of the Parquet file, and the identities of the segments that are in it."""
    path = folder / PARQUET_NAME
    if not path.exists():
        return SCHEMA.empty_table(), set()
    try:
        # ParquetFile rather than read_table, which would take "a=b" in the path's folders for partition columns.
        with pq.ParquetFile(path) as file:
            table = file.read()
        merged = json.loads((table.schema.metadata or {}).get(_MERGED_KEY, b"[]"))
        return table.replace_schema_metadata(None).cast(SCHEMA), set(merged)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RunFolderError(f"{path} is damaged: {error}") from error


def _merge(folder: Path, segments: Sequence[_Segment]) -> pa.Table:
    """All rows once. The segments must be read before the Parquet file, or a compaction in between would hide rows."""
    table, merged = _read_parquet(folder)
    new = [batch for segment in segments if segment.identity not in merged for batch in segment.batches]
    return pa.concat_tables([table, pa.Table.from_batches(new, SCHEMA)]).sort_by("t_ns")

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

import numpy as np
import numpy.typing as npt

from assay.base.errors import RunFolderError
from assay.base.paths import let_go, printable
from assay.record import durable
from assay.record.flight import has_recording, read_recording
from assay.record.folder import Folder
from assay.record.rows import TEXT_COLUMNS, Rows, TextColumn, joined_rows
from assay.record.series_arrow import END, stream_head, stream_messages, write_rows
from assay.record.series_bounds import COLUMNS, NUMBER_COLUMNS, check_pages, read_footer
from assay.record.series_reading import parquet_rows, stream_rows

SEGMENTS_NAME = "series"
PARQUET_NAME = "series.parquet"

ROWS_MAX = 25_000_000
"""Rows that are read, which take a gigabyte: those of 48 hours at 140 a second."""
TEXTS_MAX = 2**15 - 1
"""Different texts of a column."""
ROWS_AT_A_TIME = 2**16

_SEGMENT_KEY = "assay.segment"
_MERGED_KEY = "assay.merged_segments"
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
        self._file: Any = None
        self._close_file: Any = None

    def write(self, parts: Sequence[Rows]) -> None:
        """Append rows to the open segment; they reach the operating system before this returns.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed; rows of earlier calls are intact, these are lost.
        """
        if not any(map(len, parts)):
            return
        try:
            if self._part is None:
                self._open_part()
            for message in stream_messages(joined_rows(parts)):
                self._file.write(message)
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
            self._file.write(END)
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
            rows, merged = _merge(run, segments, names)
        except _TooLarge:
            # Readers take the segments one by one.
            return None
        if names:
            self._replace_parquet(run, segments, names, rows, merged)
        with contextlib.suppress(OSError):
            # Other files may be kept there.
            os.rmdir(SEGMENTS_NAME, dir_fd=run.descriptor)
        return self._folder / PARQUET_NAME if run.has(PARQUET_NAME) else None

    def _replace_parquet(
        self, run: Folder, segments: Folder, names: Sequence[str], rows: Rows, merged: Sequence[str]
    ) -> None:
        """Write the Parquet file, and remove the segments that are in it."""
        part = f".{secrets.token_hex(8)}.part"
        try:
            with os.fdopen(run.create(part), "wb") as file:
                write_rows(file, [rows], {_MERGED_KEY: json.dumps(merged)})
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
        self._file.write(stream_head({_SEGMENT_KEY: identity}))

    def _abandon(self) -> None:
        with contextlib.suppress(OSError):
            if self._close_file is not None:
                self._close_file()
        self._part = self._file = self._close_file = None


def read_series(folder: Path) -> Rows:
    """All rows of a run's series, by time: of segments, of what can be salvaged from a crash, of the Parquet file.

    Parameters
    ----------
    folder
        The run folder; the run may be going on.

    Returns
    -------
    Rows
        Ordered by `t_ns`; none if the run has no series.

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


def _merge(run: Folder, segments: Folder | None, names: Sequence[str]) -> tuple[Rows, list[str]]:
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
    return rows.rows([(of_segments, rows.count), *kept]), [identity for identity, _, _ in spans if identity]


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


def _batches(segments: Folder, name: str) -> Iterator[tuple[str | None, Rows]]:
    """Identity and batches of a segment; of one that was not closed, those before the first cut off or torn."""
    with _opened(segments, name) as file:
        try:
            for told, found in stream_rows(file):
                yield told.get(_SEGMENT_KEY) or None, found
        except (OSError, ValueError, MemoryError) as error:
            if not name.endswith(".part"):
                raise _damaged(segments.path / name, error, "; remove it to go on without its rows") from error


def _read_parquet(run: Folder, rows: _Rows) -> set[str]:
    """Take the rows of the Parquet file, and give the identities of the segments that are in it."""
    path, before = run.path / PARQUET_NAME, rows.count
    if not run.has(PARQUET_NAME):
        return set()
    with _opened(run, PARQUET_NAME) as opened:
        try:
            footer = read_footer(opened)
            if footer.rows > ROWS_MAX:
                raise _too_large(path, footer.rows)
            check_pages(opened, footer)
            for found in parquet_rows(opened, footer):
                rows.hold(found)
                if rows.count - before > ROWS_MAX:
                    raise _too_large(path, rows.count - before)
            rows.take_held()
            return {str(identity) for identity in json.loads(footer.metadata.get(_MERGED_KEY, "[]"))}
        except (OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError) as error:
            raise _damaged(path, error) from error


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
        self._held: list[Rows] = []
        self._held_rows = 0
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in TEXT_COLUMNS}
        self._columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}

    def hold(self, part: Rows) -> None:
        """Add rows; many small parts are numbered together.

        Raises
        ------
        ValueError
            A column holds more texts than any series does.
        """
        if self._held_rows and self._held_rows + len(part) > ROWS_AT_A_TIME:
            self.take_held()
        self._held.append(part)
        self._held_rows += len(part)
        self.count += len(part)

    def take_held(self) -> None:
        """Number the texts of the parts that are held.

        Raises
        ------
        ValueError
            A column holds more texts than any series does.
        """
        if not self._held_rows:
            return
        rows = joined_rows(self._held)
        self._held, self._held_rows = [], 0
        for name in NUMBER_COLUMNS:
            self._columns[name].append(getattr(rows, name))
        for name, column in rows.texts.items():
            self._columns[name].append(self._numbered(name, column))

    def rows(self, spans: Sequence[tuple[int, int]]) -> Rows:
        """The rows of these spans, by time; a column after the other is put in order and let go."""
        times = self._chosen("t_ns", spans)
        order = None if (times[:-1] <= times[1:]).all() else np.argsort(times, kind="stable")
        columns: dict[str, npt.NDArray[Any]] = {}
        for name in COLUMNS:
            column = self._chosen(name, spans)
            del self._columns[name]
            columns[name] = column if order is None else column[order]
        texts = {name: TextColumn(columns.pop(name), list(self._numbers[name])) for name in TEXT_COLUMNS}
        return Rows(columns["t_ns"], columns["interval_ns"], columns["value"], texts)

    def _chosen(self, name: str, spans: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        parts, at = self._columns[name], 0
        ends = [at := at + len(part) for part in parts]
        found = [
            part[max(begin - (until - len(part)), 0) : max(end - (until - len(part)), 0)]
            for begin, end in spans
            for part, until in zip(parts, ends, strict=True)
            if until > begin and until - len(part) < end
        ]
        kind = np.int16 if name in TEXT_COLUMNS else np.float64 if name == "value" else np.int64
        return np.concatenate(found) if found else np.zeros(0, kind)

    def _numbered(self, name: str, column: TextColumn) -> npt.NDArray[np.int16]:
        """Numbers of a column's texts, the same for all batches."""
        numbers = self._numbers[name]
        mapping = [numbers.setdefault(text, len(numbers)) for text in column.texts]
        if len(numbers) > TEXTS_MAX:
            raise ValueError(f"more than {TEXTS_MAX:,} different texts of {name}")
        return np.asarray(np.array(mapping, np.int16)[column.numbers])

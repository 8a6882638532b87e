"""A series that is written at once as `series.parquet`, as that of an import, whose half no reader needs."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from assay.base.feeding import Fed
from assay.base.paths import printable
from assay.record import durable
from assay.record.folder import Folder
from assay.record.rows import Rows, joined_rows
from assay.record.series import PARQUET_NAME, read_series
from assay.record.series_arrow import GROUP_ROWS, write_rows


class SeriesFile:
    """Writes the series of a run folder that nothing else writes to; its rows need not come by time.

    The file is there once it is whole, and only if there are rows. The library that writes Parquet asks for rows; a
    thread of its own gives it those that come.

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Folder.open(folder)
        self._part = f".{secrets.token_hex(8)}.part"
        self._waiting: list[Rows] = []
        self._waiting_rows = 0
        self._last_ns = 0
        self._is_in_order = True
        self._file: BinaryIO | None = None
        self._writing: Fed[Rows] | None = None

    def write(self, parts: Sequence[Rows]) -> None:
        """Append rows.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed.
        """
        self._waiting += parts
        self._waiting_rows += sum(map(len, parts))
        if self._waiting_rows >= GROUP_ROWS:
            self._write_group()

    def close(self) -> None:
        """Put the rows in order of time, and give the file its name.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed.
        RunFolderError
            The rows came in another order, and are more than are read.
        """
        self._end()
        if not self._is_in_order:
            rows = read_series(self._folder.path)
            for begin in range(0, len(rows), GROUP_ROWS):
                self.write([rows.where(slice(begin, begin + GROUP_ROWS))])
            self._end()
        self._folder.close()

    def _write_group(self) -> None:
        rows = joined_rows(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        times = rows.t_ns
        self._is_in_order &= bool(self._last_ns <= times[0] and (times[:-1] <= times[1:]).all())
        self._last_ns = int(times[-1])
        try:
            if self._writing is None:
                self._file = file = os.fdopen(self._folder.create(self._part), "wb")
                self._writing = Fed(lambda parts: write_rows(file, parts))
            self._writing.give(rows)
        except OSError as error:
            raise self._failure(error) from error

    def _end(self) -> None:
        if self._waiting_rows:
            self._write_group()
        if self._writing is None or self._file is None:
            return
        writing, self._writing = self._writing, None
        try:
            with self._file:
                writing.end()
                self._file.flush()
                os.fsync(self._file.fileno())
            self._folder.rename(self._part, PARQUET_NAME)
            self._folder.sync()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> Exception:
        return durable.failure(error, f"cannot write {printable(self._folder.path / PARQUET_NAME)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._writing is not None and self._file is not None:
            with contextlib.suppress(Exception), self._file:
                self._writing.end()
            self._folder.remove(self._part)

"""A series that is written at once as `series.parquet`, as that of an import, whose half no reader needs."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from assay.base.paths import printable
from assay.record import durable
from assay.record.folder import Folder
from assay.record.series import PARQUET_NAME, read_series
from assay.record.series_schema import READ_SCHEMA, TEXTS

GROUP_ROWS = 2**17
"""Rows that are compressed together, some 5 MB in memory."""


class SeriesFile:
    """Writes the series of a run folder that nothing else writes to; its rows need not come by time.

    The file is there once it is whole, and only if there are rows.

    Parameters
    ----------
    folder
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Folder.open(folder)
        self._part = f".{secrets.token_hex(8)}.part"
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._last_ns = 0
        self._is_in_order = True
        self._file: Any = None
        self._parquet: Any = None

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Append rows of `READ_SCHEMA`.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed.
        """
        self._waiting += batches
        self._waiting_rows += sum(batch.num_rows for batch in batches)
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
            for batch in read_series(self._folder.path).to_batches(max_chunksize=GROUP_ROWS):
                self.write([batch])
            self._end()
        self._folder.close()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._waiting, READ_SCHEMA).unify_dictionaries().combine_chunks()
        self._waiting, self._waiting_rows = [], 0
        times = table.column("t_ns").to_numpy()
        self._is_in_order &= bool(self._last_ns <= times[0] and (times[:-1] <= times[1:]).all())
        self._last_ns = int(times[-1])
        try:
            if self._parquet is None:
                self._file = os.fdopen(self._folder.create(self._part), "wb")
                # Texts are plain in the file, though they are numbered in memory; times and values are seldom alike.
                self._parquet = pq.ParquetWriter(
                    self._file, READ_SCHEMA, compression="zstd", store_schema=False, use_dictionary=list(TEXTS)
                )
            self._parquet.write_table(table)
        except OSError as error:
            raise self._failure(error) from error

    def _end(self) -> None:
        if self._waiting_rows:
            self._write_group()
        if self._parquet is None:
            return
        try:
            self._parquet.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._folder.rename(self._part, PARQUET_NAME)
            self._folder.sync()
        except OSError as error:
            raise self._failure(error) from error
        self._parquet = None

    def _failure(self, error: OSError) -> Exception:
        return durable.failure(error, f"cannot write {printable(self._folder.path / PARQUET_NAME)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._parquet is not None:
            with contextlib.suppress(OSError):
                self._parquet.close()
                self._file.close()
            self._folder.remove(self._part)

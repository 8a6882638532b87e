"""Following a measurement: rows of the recorder and of ticks are written now and then, and kept for figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assay.telemetry.columns import SeriesColumns

if TYPE_CHECKING:
    from assay.record.rows import Rows
    from assay.record.series import SeriesWriter
    from assay.telemetry.recorder import Recorder

SERIES_EVERY_S = 10.0
"""Rows are written this often, so that a long point does not keep them in memory."""

Batches = list["Rows"]


class Follower:
    """Rows of a point or part while it runs.

    Parameters
    ----------
    writer
        Where rows go.
    kept
        Makes fewer of the batches that are kept for figures, where these become many.

    Attributes
    ----------
    columns
        Rows that are not written yet; add to them.
    written
        Batches that are written, for figures.
    """

    def __init__(
        self,
        recorder: Recorder,
        writer: SeriesWriter,
        *,
        kept: Callable[[Batches], Batches] = lambda batches: batches,
    ) -> None:
        self.columns = SeriesColumns()
        self.written: Batches = []
        self._recorder, self._writer, self._kept = recorder, writer, kept
        self._written_at = time.monotonic()

    def begin(self) -> None:
        """Begin: what the recorder saw before is none of this."""
        self._recorder.sample()
        self._recorder.drain()

    def sample(self) -> None:
        """Have the recorder look now, such as at the end of a window."""
        self._recorder.sample()

    def write(self, *, at_once: bool = True) -> None:
        """Write all rows, at once or where the last time was `SERIES_EVERY_S` ago."""
        if not at_once and time.monotonic() - self._written_at < SERIES_EVERY_S:
            return
        self._written_at = time.monotonic()
        self._recorder.drain(self.columns)
        batches: Sequence[Rows] = self.columns.take()
        self._writer.write(batches)
        self.written += batches
        self.written = self._kept(self.written)

    def close(self, name: str) -> None:
        """Write the rest of the series, as a segment of this name."""
        self.write()
        self._writer.close_segment(name)

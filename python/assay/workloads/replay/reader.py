"""Reads a trace while it is replayed, a thread for each trace, no further ahead than memory allows."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from assay import _core
from assay.base.errors import AssayError

if TYPE_CHECKING:
    from assay.traces.file import Trace
    from assay.workloads.replay.rows import RowMaker

READ_FIRST = 1 << 18
"""I/Os that are read before the replay begins; later ones are read while it goes on."""
BEGIN_TIMEOUT_S = 60.0


class TraceReader(threading.Thread):
    """Reads a window of a trace and feeds the workers that replay it."""

    def __init__(self, trace: Trace, window_ns: tuple[int, int], maker: RowMaker, feeds: _core.TraceFeeds) -> None:
        super().__init__(name=f"trace {trace.path.name}", daemon=True)
        self.feeds = feeds
        self.error: AssayError | None = None
        self._trace, self._window_ns, self._maker = trace, window_ns, maker
        self._begun = threading.Event()

    def run(self) -> None:
        """Feed until the window's end, or until the workers want no more."""
        fed = 0
        try:
            for ios in self._trace.batches(*self._window_ns):
                if not len(ios):
                    continue
                rows = self._maker.rows(ios)
                until_ns = int(self._maker.at_ns(ios.t_ns[-1:])[0])
                fed += len(ios)
                if fed >= READ_FIRST:
                    self._begun.set()
                if not self.feeds.push([one.tobytes() for one in rows], until_ns):
                    return
        except AssayError as error:
            self.error = error
        finally:
            self.feeds.close()
            self._begun.set()

    def await_first(self) -> None:
        """Wait until the first I/Os are read."""
        self._begun.wait(BEGIN_TIMEOUT_S)

    def end(self) -> None:
        """End the reading, whatever was read."""
        self.feeds.close()
        self.join()

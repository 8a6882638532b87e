"""Levels of histories for Prometheus: the last that are known, while newer ones are worked out."""

from __future__ import annotations

import asyncio
import os

from assay.apps.ui.asking import Asking, NotAnswered
from assay.apps.ui.lines import PageQuestion
from assay.base.paths import plain

WAIT_S = 5.0
"""A scrape waits so long for newer levels; Prometheus gives up after ten seconds."""
BYTES_MAX = 2**22
WHY_MAX = 100


class HistoryLevels:
    """Levels as text. One process at a time works them out; who asks gets those of before where that takes long.

    Parameters
    ----------
    asking
        Asks that process.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._text, self._state = "# histories are being worked out\n", ""
        self._working: asyncio.Task[None] | None = None

    async def text(self, asked: PageQuestion, state: str) -> str:
        """The levels of these runs, or those of before where newer ones take longer.

        Parameters
        ----------
        asked, state
            As `Asking.answered` takes them.
        """
        if state != self._state and (self._working is None or self._working.done()):
            self._working = asyncio.ensure_future(self._work_out(asked, state))
        if state != self._state and self._working is not None:
            await asyncio.wait({self._working}, timeout=WAIT_S)
        return self._text

    async def _work_out(self, asked: PageQuestion, state: str) -> None:
        try:
            async with self._asking.answered("history_metrics", asked, state) as answer:
                self._text = os.pread(answer, BYTES_MAX, 0).decode(errors="replace")
        except NotAnswered as error:
            self._text = f"# histories are missing: {plain(str(error))[:WHY_MAX]}\n"
        # What failed is asked for again when the runs change.
        self._state = state

"""Server-sent events: what changed among the runs, and in the one that is looked at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from assay.serve.runs import NOTHING, Place, Runs, Stamp, is_live, live_of, reports_of, stamp_of

LOOK_S = 0.5
"""A run that goes on writes what it does twice a second."""
LIST_EVERY = 4
"""The list is looked at every so many looks."""
QUIET_LOOKS = 30
"""A comment is sent after so many looks without news, so that a connection that is gone is noticed."""
TEXT_MAX = 2000
NUMBERS_MAX = 2000


def event(name: str, data: object) -> bytes:
    r"""One event.

    Examples
    --------
    >>> event("gone", {})
    b'event: gone\ndata: {}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def events(runs: Runs, run_id: str | None, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Events until the reader goes or the server ends.

    `list` says that the list changed, `live` what the run does, `run` that its files changed, `gone` that it is there
    no more, `over` that it goes on no more.

    Parameters
    ----------
    run_id
        The run that is looked at, or none.
    """
    listed, looks, quiet = None, 0, 0
    follower = _Follower(runs, run_id)
    while not is_over():
        news = list(follower.news())
        if looks % LIST_EVERY == 0:
            # What goes on changes all the time: the list shows only whether it does.
            states = [(place.id, stamp_of(place.path)) for place in runs.places()]
            seen = tuple((run, state.manifest, is_live(state)) for run, state in states)
            if seen != listed:
                if listed is not None:
                    news.append(event("list", {}))
                listed = seen
        looks, quiet = looks + 1, 0 if news else quiet + 1
        for one in news:
            yield one
        if quiet >= QUIET_LOOKS or looks == 1:
            quiet = 0
            yield b": here\n\n"
        await asyncio.sleep(LOOK_S)


class _Follower:
    """Follows one run."""

    def __init__(self, runs: Runs, run_id: str | None) -> None:
        self._place: Place | None = runs.find(run_id) if run_id else None
        self._is_gone = run_id is not None and self._place is None
        self._stamp: Stamp | None = None
        self._reports: list[str] = []
        self._went_on = False

    def news(self) -> list[bytes]:
        """Events since the last look."""
        if self._is_gone:
            self._is_gone = False
            return [event("gone", {})]
        if self._place is None:
            return []
        before, stamp = self._stamp, stamp_of(self._place.path)
        if stamp.manifest == NOTHING:
            self._place = None
            return [event("gone", {})]
        self._stamp = stamp
        found = []
        if stamp.live != NOTHING and is_live(stamp) and (before is None or stamp.live != before.live):
            told = live_of(self._place.path)
            if told is not None:
                found.append(event("live", _bounded(told)))
        goes_on = is_live(stamp)
        if before is not None and stamp.recording != before.recording:
            found.append(event("recorded", {}))
        reports, self._reports = self._reports, reports_of(self._place.path)
        is_changed = before is not None and (stamp.manifest, stamp.points) != (before.manifest, before.points)
        if before is not None and (is_changed or reports != self._reports):
            found.append(event("run", {"points": stamp.points[2] != before.points[2]}))
        if self._went_on and not goes_on:
            found.append(event("over", {}))
        self._went_on = goes_on
        return found


def _bounded(told: Any, depth: int = 0) -> Any:
    """What a file says, without what would be too much for a page."""
    if isinstance(told, dict) and depth < 6:
        return {str(key)[:TEXT_MAX]: _bounded(value, depth + 1) for key, value in list(told.items())[:200]}
    if isinstance(told, list) and depth < 6:
        return [_bounded(value, depth + 1) for value in told[-NUMBERS_MAX:]]
    if isinstance(told, str):
        return told[:TEXT_MAX]
    return told if told is None or isinstance(told, bool | int) or (isinstance(told, float) and told == told) else None

"""Server-sent events: what changed among the runs, and in the ones that are looked at.

One look serves all streams: however many pages are open, files are looked at twice a second, and what changed is put
into bytes once.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import Receive, Scope, Send

from assay.apps.ui.client import WhileThere
from assay.apps.ui.runs import RunPlace, Runs, Stamp, is_live, live_of, reports_of, stamp_of
from assay.record.kept_file import NOTHING

LOOK_S = 0.5
"""A run that goes on writes what it does twice a second."""
LIST_EVERY = 2
"""The list is looked at every so many looks."""
QUIET_LOOKS = 30
"""A comment is sent after so many looks, so that a connection that is gone is noticed."""
WAITING_MAX = 64
"""Pieces that wait for one client; it is let go of where it takes none, and may come again."""
TEXT_MAX = 2000
NUMBERS_MAX = 2000

HERE = b": here\n\n"


def event(name: str, data: object) -> bytes:
    r"""One event.

    Examples
    --------
    >>> event("gone", {})
    b'event: gone\ndata: {}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


GONE, LIST = event("gone", {}), event("list", {})

Stream = asyncio.Queue[bytes | None]
"""Pieces on their way to one client; None ends it."""


class RunsWatch:
    """Looks at the runs for all streams, as long as there are some.

    Parameters
    ----------
    runs
        What is looked at.
    is_over
        Whether the server ends.
    """

    def __init__(self, runs: Runs, is_over: Callable[[], bool]) -> None:
        self._runs, self._is_over = runs, is_over
        self._streams: dict[Stream, str | None] = {}
        self._followers: dict[str, RunFollower] = {}
        self._looks = 0
        self._listed: object = None
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def stream(self, run_id: str | None) -> Iterator[Stream]:
        """Events from now on.

        `list` says that the list changed, `live` what the run does, `run` that its files changed, `gone` that it is
        there no more, `over` that it goes on no more.

        Parameters
        ----------
        run_id
            The run that is looked at, or none.
        """
        stream: Stream = asyncio.Queue(WAITING_MAX)
        stream.put_nowait(HERE + self._begun(run_id))
        self._streams[stream] = run_id
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_on())
        try:
            yield stream
        finally:
            self._streams.pop(stream, None)
            if run_id not in self._streams.values():
                self._followers.pop(run_id or "", None)

    def _begun(self, run_id: str | None) -> bytes:
        """What a client is told first: to read the list again, which may have changed before it listened."""
        if run_id is None:
            return LIST
        follower = self._followers.get(run_id)
        if follower is not None:
            return follower.latest
        place = self._runs.find(run_id)
        if place is None:
            return GONE
        follower = self._followers[run_id] = RunFollower(place)
        return b"".join(follower.news())

    async def _look_on(self) -> None:
        try:
            while self._streams and not self._is_over():
                await asyncio.sleep(LOOK_S)
                self.look()
        finally:
            # Whatever ended it: no client waits for looks that nobody takes.
            self._looking = None
            for stream in list(self._streams):
                self._let_go(stream)

    def look(self) -> None:
        """Look once, and tell all streams."""
        self._looks += 1
        listed = self._list_news() if self._looks % LIST_EVERY == 0 else b""
        if self._looks % QUIET_LOOKS == 0:
            listed += HERE
        news = {run_id: b"".join(follower.news()) for run_id, follower in self._followers.items()}
        for stream, run_id in list(self._streams.items()):
            piece = news.get(run_id or "", b"") + listed
            if not piece:
                continue
            try:
                stream.put_nowait(piece)
            except asyncio.QueueFull:
                self._let_go(stream)

    def _list_news(self) -> bytes:
        # What goes on changes all the time: the list shows only whether it does.
        states = [(place.id, stamp_of(place.path)) for place in self._runs.places()]
        before, self._listed = self._listed, tuple((run, state.manifest, is_live(state)) for run, state in states)
        return LIST if before != self._listed else b""

    def _let_go(self, stream: Stream) -> None:
        self._streams.pop(stream, None)
        while not stream.empty():
            stream.get_nowait()
        stream.put_nowait(None)


class Events(WhileThere):
    """A stream of events to one client."""

    def __init__(self, watch: RunsWatch, run_id: str | None) -> None:
        super().__init__()
        self._watch, self._run_id = watch, run_id

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what happens until the client goes or the server ends."""
        del receive
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        with self._watch.stream(self._run_id) as stream:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # Headers alone would never end.
            while scope["method"] != "HEAD" and (piece := await stream.get()) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class RunFollower:
    """Follows one run.

    Attributes
    ----------
    latest
        The last event that says what the run does; empty where it does nothing.
    """

    def __init__(self, place: RunPlace) -> None:
        self._place: RunPlace | None = place
        self.latest = b""
        self._stamp: Stamp | None = None
        self._reports: list[str] = []
        self._went_on = False

    def news(self) -> list[bytes]:
        """Events since the last look."""
        if self._place is None:
            return []
        before, stamp = self._stamp, stamp_of(self._place.path)
        if stamp.manifest == NOTHING:
            self._place, self.latest = None, GONE
            return [GONE]
        self._stamp = stamp
        found = []
        if stamp.live != NOTHING and is_live(stamp) and (before is None or stamp.live != before.live):
            told = live_of(self._place.path)
            if told is not None:
                self.latest = event("live", bounded(told))
                found.append(self.latest)
        goes_on = is_live(stamp)
        if before is not None and stamp.recording != before.recording:
            found.append(event("recorded", {}))
        reports, self._reports = self._reports, reports_of(self._place.path)
        is_changed = before is not None and (stamp.manifest, stamp.points) != (before.manifest, before.points)
        if before is not None and (is_changed or reports != self._reports):
            found.append(event("run", {"points": stamp.points[2] != before.points[2]}))
        if self._went_on and not goes_on:
            self.latest = b""
            found.append(event("over", {}))
        self._went_on = goes_on
        return found


def bounded(told: Any, depth: int = 0) -> Any:
    """What a file says, without what would be too much for a page."""
    if isinstance(told, dict) and depth < 6:
        return {_text(str(key)): bounded(value, depth + 1) for key, value in list(told.items())[:200]}
    if isinstance(told, list) and depth < 6:
        return [bounded(value, depth + 1) for value in told[-NUMBERS_MAX:]]
    if isinstance(told, str):
        return _text(told)
    if isinstance(told, float):
        return told if math.isfinite(told) else None
    return told if told is None or isinstance(told, bool) or (isinstance(told, int) and abs(told) < 2**63) else None


def _text(text: str) -> str:
    """A text that UTF-8 can hold: JSON may have halves of letters."""
    return text[:TEXT_MAX].encode("utf-8", errors="replace").decode()

r"""What Assay does, as lines of JSON: `log.jsonl` in each run folder, and the terminal with `--debug`.

A line has `t_ns` (UTC), `level`, `event` and the fields of the event. What happens before there is a run folder is kept
and written first. Events are of the run, not of I/Os: targets held, points begun and ended and why, retries, waits,
signals, child processes, errors with their causes. No line holds a password: whoever knows one says so with `hide`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

LEVELS: Final = ("debug", "info", "warning", "error", "off")
BYTES_MAX = 16 << 20
"""Size at which a log ends; its last line says so."""
TEXT_MAX: Final = 4000
"""Letters of one text of an event."""
EARLY_MAX: Final = 1000
"""Events that are kept until there is a run folder; the oldest go first."""


class Log:
    """Events of this process; `LOG` is the only one outside tests."""

    def __init__(self) -> None:
        # A handler of signals logs in the middle of an event of its own thread.
        self._lock = threading.RLock()
        self._early: deque[bytes] = deque(maxlen=EARLY_MAX)
        self._descriptor: int | None = None
        self._room_bytes = 0
        self._hidden: set[str] = set()
        self._level = LEVELS.index("info")
        self.shows = False
        """Whether events are printed on standard error, too."""

    def set_level(self, level: str) -> None:
        """Leave out events below a level, one of `LEVELS`."""
        self._level = LEVELS.index(level)

    def hide(self, text: str) -> None:
        """Write `***` wherever a text would stand."""
        if text:
            with self._lock:
                self._hidden.add(text)

    def write_to(self, descriptor: int, *, written_bytes: int = 0) -> None:
        """Write what was kept and what follows to a file that is open for appending, until `end`.

        Parameters
        ----------
        descriptor
            Belongs to the log from now on.
        written_bytes
            Bytes that the file has already; they count towards `BYTES_MAX`.
        """
        self.end()
        with self._lock:
            self._descriptor, self._room_bytes = descriptor, BYTES_MAX - written_bytes
            early, self._early = list(self._early), deque(maxlen=EARLY_MAX)
            for line in early:
                self._append(line)

    def end(self) -> None:
        """Close the file; what follows is kept for the next one."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def event(self, name: str, /, *, level: str = "info", **fields: Any) -> None:
        """Log an event; fields are plain values.

        Examples
        --------
        >>> log = Log()
        >>> log.hide("correct horse")
        >>> log.event("connection lost", server="db1", error="correct horse: refused", retry=2)
        >>> log.kept()[0]["error"], log.kept()[0]["retry"]
        ('***: refused', 2)
        """
        if LEVELS.index(level) < self._level:
            return
        with self._lock:
            whole = {"t_ns": time.time_ns(), "level": level, "event": name} | {
                key: self._plain(value) for key, value in fields.items()
            }
            line = json.dumps(whole, ensure_ascii=True, default=str).encode() + b"\n"
            if self._descriptor is None:
                self._early.append(line)
            else:
                self._append(line)
        if self.shows:
            shown = "  ".join(f"{key}={value}" for key, value in list(whole.items())[2:])
            print(f"{level:7} {shown}".encode("unicode_escape").decode(), file=sys.stderr, flush=True)

    def kept(self) -> list[dict[str, Any]]:
        """Events that are kept for the next file."""
        with self._lock:
            return [json.loads(line) for line in self._early]

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): self._plain(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(one) for one in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        text = str(value)
        for hidden in self._hidden:
            text = text.replace(hidden, "***")
        return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."

    def _append(self, line: bytes) -> None:
        assert self._descriptor is not None
        if self._room_bytes < 0:
            return
        self._room_bytes -= len(line)
        if self._room_bytes < 0:
            line = json.dumps({"t_ns": time.time_ns(), "level": "warning", "event": "log full"}).encode() + b"\n"
        try:
            os.write(self._descriptor, line)
        except OSError:
            # A full disk must not end what the log is about.
            self._room_bytes = -1


LOG: Final = Log()
event = LOG.event


def chain(error: BaseException) -> list[str]:
    """An error and its causes, from the last to the first, each with its type.

    Examples
    --------
    >>> try:
    ...     try:
    ...         int("x")
    ...     except ValueError as error:
    ...         raise RuntimeError("no number") from error
    ... except RuntimeError as error:
    ...     chain(error)
    ['RuntimeError: no number', "ValueError: invalid literal for int() with base 10: 'x'"]
    """
    found: list[str] = []
    following: BaseException | None = error
    while following is not None and len(found) < 20:
        found.append(f"{type(following).__name__}: {following}")
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return found

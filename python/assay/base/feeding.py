"""A function that asks for what it works on, in a thread of its own, and what it is fed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

WAITING_MAX = 2
"""Pieces that wait: more would only take memory."""


class Fed(Generic[T]):
    """Feeds a function that takes an iterator, such as one of a library that writes a file in one call.

    Parameters
    ----------
    work
        Ends when the iterator does.
    """

    def __init__(self, work: Callable[[Iterator[T]], object]) -> None:
        self._pieces: queue.Queue[tuple[T] | None] = queue.Queue(WAITING_MAX)
        self._error: BaseException | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, args=(work,), name="fed", daemon=True)
        self._thread.start()

    def give(self, piece: T) -> None:
        """Give the next piece; raises what the work raised."""
        self._pieces.put((piece,))
        if self._error is not None:
            self.end()

    def end(self) -> None:
        """Wait until all is done; raises what the work raised."""
        if not self._is_over:
            self._is_over = True
            self._pieces.put(None)
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, work: Callable[[Iterator[T]], object]) -> None:
        try:
            work(self._all())
        except BaseException as error:
            self._error = error
            # What comes now is dropped, so that its giver does not wait for ever.
            for _ in self._all():
                pass

    def _all(self) -> Iterator[T]:
        while (piece := self._pieces.get()) is not None:
            yield piece[0]

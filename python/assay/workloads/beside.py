"""A load that runs while the points of another part are measured, and what the two do to each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from assay.record.shapes.point import Beside


class LoadBeside(ABC):
    """A load on a target of its own that another part's points are measured beside."""

    def __init__(self) -> None:
        self._was_alone = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run until the block ends; the first time it is measured alone before.

        Raises
        ------
        Interrupted, AssayError
            The load failed or was interrupted; what ran in the block is over then.
        """
        if not self._was_alone:
            self.alone()
            self._was_alone = True
        self.start()
        try:
            yield
        finally:
            self.stop()
        self.check()

    @abstractmethod
    def alone(self) -> None:
        """Measure the load by itself."""

    @abstractmethod
    def start(self) -> None:
        """Begin, in threads of its own."""

    @abstractmethod
    def stop(self) -> None:
        """End, and wait until it has."""

    @abstractmethod
    def check(self) -> None:
        """Raise what ended the load before it was told to stop."""

    @abstractmethod
    def told(self, from_ns: int, to_ns: int) -> Beside:
        """What it did in a time (UTC), and what it does alone: `beside` of a point (docs/results.md)."""

    @abstractmethod
    def close(self) -> None:
        """Leave the target as it should be."""

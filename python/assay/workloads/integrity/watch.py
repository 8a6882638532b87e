"""Watching that the files of a run are still the ones that were opened."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

LOOK_EVERY_S = 1.0

Identity = tuple[int, ...]


class PathWatch:
    """Looks at paths once a second, in a thread of its own since `stat` may hang.

    Parameters
    ----------
    paths
        Files and devices that exist.
    least
        Size in bytes below which the run never cuts a file.
    """

    def __init__(self, paths: Iterable[Path], least: Mapping[Path, int] | None = None) -> None:
        self.gone: str | None = None
        """Paths that are gone, in one line; None while all are there."""
        self._paths = {path: _identity(path) for path in paths}
        self._least = dict(least or {})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="assay-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            for path, identity in self._paths.items():
                now = _identity(path)
                if now != identity or _is_cut(path, self._least.get(path, 0)):
                    what = "is no longer there" if now is None else "is another file by now"
                    what = what if now != identity else "was truncated by another program"
                    self.gone = f"{path}: {what}; the run cannot go on without it"
                    return


def _is_cut(path: Path, least_bytes: int) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size < least_bytes


def _identity(path: Path) -> Identity | None:
    """What stays the same while a file or device is the same; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if stat.S_ISBLK(status.st_mode):
        return (status.st_rdev,)
    return status.st_dev, status.st_ino

"""Repeats of one command: run folders below one folder, or below its sides A and B, made in turns."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from assay.record.run_folder import MANIFEST_NAME

SIDES = ("A", "B")
"""Folders of two targets that are measured in turns."""


def sides_below(folder: Path) -> list[list[Path]]:
    """Runs of repeats by side, in the order in which they were made; none where the folder is a run or holds none.

    Links lead elsewhere and are left out.
    """
    if is_run(folder):
        return []
    found = [_runs_in(place) for place in (folder, *(folder / side for side in SIDES))]
    return [runs for runs in found if runs]


def runs_in(folder: Path) -> list[Path]:
    """Every run directly in a folder, and every repeat below it."""
    return [
        run
        for place in _folders_in(folder)
        for runs in ([[place]] if is_run(place) else sides_below(place))
        for run in runs
    ]


def _runs_in(folder: Path) -> list[Path]:
    # Names of runs begin with their time.
    return sorted(path for path in _folders_in(folder) if is_run(path))


def _folders_in(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(folder).st_mode):
            with os.scandir(folder) as entries:
                yield from [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run: its manifest is a regular file."""
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISREG(os.lstat(folder / MANIFEST_NAME).st_mode)
    return False

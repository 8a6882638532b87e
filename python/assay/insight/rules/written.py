"""The file that `-o` names: written anew, or over what an earlier check wrote there, and over nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from assay.base.errors import OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.base.paths import open_regular, printable
from assay.targets.files.ownership import make, mark, read_mark, standing

WRITER = "assay check"
"""What the mark of such a file names as its run."""


def write_findings(text: str, output: Path) -> None:
    """Write findings to a file; pipes and terminals take them as they are.

    Raises
    ------
    RefusedTarget
        The file is another's, or was changed since.
    UsageError
        It cannot be written.
    """
    path = Path(os.path.realpath(output))
    try:
        descriptor = _opened(output, path)
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            mark(descriptor, path, "at rest", WRITER)
        os.close(descriptor)
    except OSError as error:
        raise UsageError(f"{printable(output)}: cannot be written: {error.strerror}") from None
    except (OpenFailed, OutOfSpace) as error:
        raise UsageError(str(error)) from None


def _opened(output: Path, path: Path) -> int:
    """The file, empty and open for writing."""
    try:
        mode = os.stat(output).st_mode
    except FileNotFoundError:
        return make(path, WRITER)
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return os.open(output, os.O_WRONLY | os.O_CLOEXEC)
    refusal = (
        f"{printable(output)}: exists, and is not what assay check wrote there; nothing is overwritten, name a new file"
    )
    if not stat.S_ISREG(mode):
        raise RefusedTarget(refusal)
    descriptor = open_regular(path, os.O_RDWR)
    told = read_mark(descriptor, path)
    if told is None or told.run != WRITER or standing(descriptor, path) != "ours":
        os.close(descriptor)
        raise RefusedTarget(refusal)
    os.ftruncate(descriptor, 0)
    return descriptor

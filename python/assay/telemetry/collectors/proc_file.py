"""Reading a file of /proc again and again at the least cost: opened once, read with `pread`."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from assay.base.errors import NotSupported

_CHUNK_BYTES = 64 * 1024

_COUNT_DIGITS_MAX = 20
"""Digits of the largest 64-bit number."""


def is_count(field: str) -> bool:
    """Whether a field is a counter the kernel can have printed.

    Examples
    --------
    >>> is_count("18446744073709551615"), is_count("-1"), is_count("")
    (True, False, False)
    """
    return field.isdecimal() and len(field) <= _COUNT_DIGITS_MAX


class ProcFile:
    """A file of /proc that is kept open; opened when it is first read.

    Parameters
    ----------
    path
        The file, such as `/proc/stat`.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = os.fspath(path)
        self._descriptors: list[int] = []
        self._close = weakref.finalize(self, _close_all, self._descriptors)

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._path

    def read(self) -> str:
        """Whole content of this moment.

        Raises
        ------
        NotSupported
            This kernel, or the container, does not offer the file.
        """
        try:
            if not self._descriptors:
                self._descriptors.append(os.open(self._path, os.O_RDONLY | os.O_CLOEXEC))
            chunks = []
            length = 0
            # The kernel hands out about one page a call, so only an empty read is the end.
            while chunk := os.pread(self._descriptors[0], _CHUNK_BYTES, length):
                chunks.append(chunk)
                length += len(chunk)
        except OSError as error:
            raise NotSupported(f"{self._path} cannot be read: {error.strerror}") from error
        return b"".join(chunks).decode("ascii", errors="replace")

    def close(self) -> None:
        """Close the file; reading opens it again."""
        _close_all(self._descriptors)


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())

"""Single files in an open folder: read within a bound, replaced without touching what stands there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from assay.base.paths import open_regular

_SMALL_BYTES = 4096
_NUMBERS_END = 1 << 31
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_small(name: str, folder: int) -> str:
    """Read a file of a line or two."""
    return beginning(name, folder).decode(errors="replace").strip()


def beginning(path: str | os.PathLike[str], folder: int | None = None) -> bytes:
    """First bytes of a regular file, which a server may have named: never a link, and no pipe is waited for."""
    descriptor = open_regular(path, dir_fd=folder)
    try:
        return os.read(descriptor, _SMALL_BYTES)
    finally:
        os.close(descriptor)


def is_process(number: int) -> bool:
    """Whether a number that stood in a file is that of a process."""
    return 0 < number < _NUMBERS_END and os.path.exists(f"/proc/{number}")


def replace_files(texts: Mapping[str, str | None], folder: int, *, readable_to: int) -> None:
    """Replace what stands there with files. They are on stable storage when this returns.

    Parameters
    ----------
    texts
        By name; None removes what stands there.
    readable_to
        Group that may read them; this process's user alone may write to them.
    """
    for name, text in texts.items():
        written = f"{name}.assay"
        for old in (written, *([name] if text is None else [])):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(old, dir_fd=folder)
        if text is None:
            continue
        descriptor = os.open(written, _NEW, 0o600, dir_fd=folder)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            if readable_to != os.getegid():
                os.fchown(descriptor, -1, readable_to)
                os.fchmod(descriptor, 0o640)
            os.fsync(descriptor)
        os.replace(written, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)

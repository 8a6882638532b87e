"""What was worked out of large files, kept in the user's cache: a file of one type, written whole, read with distrust.

What cannot be read from the cache, or written to it, is no reason to fail: it is worked out again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from assay.base.errors import AssayError
from assay.record.folder import replace_file

KEPT_BYTES_MAX = 256 * 2**20

FileStamp = tuple[int, int, int]
"""Which content a file has: its inode, time and size."""
NOTHING: FileStamp = (0, 0, 0)

Kept = TypeVar("Kept")


def file_stamp(path: Path) -> FileStamp:
    """Which content a regular file has; `NOTHING` where it is none."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return NOTHING
    return (found.st_ino, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else NOTHING


def kept_path(kind: str, names: Iterable[str]) -> Path:
    """Path of what is kept of a kind for some names, such as paths of folders."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(os.fsencode(chr(0).join(sorted({*names})))).hexdigest()[:16]
    return root / "assay" / f"{kind}-{digest}.json"


def form_of(number: int) -> str:
    """What wrote a file, by a number of its form: what another version wrote is not taken."""
    # The page's process takes stamps alone, and does without the core.
    from assay import _core

    return f"{number} {_core.build_info()['version']} {_core.build_info()['commit']}"


def load_kept(path: Path, kind: type[Kept]) -> Kept | None:
    """What is kept; None where it is missing, damaged, too large, or belongs to another user."""
    from pydantic import TypeAdapter

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > KEPT_BYTES_MAX:
                return None
            return TypeAdapter(kind).validate_json(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def save_kept(path: Path, kind: type[Kept], kept: Kept) -> None:
    """Keep something."""
    from pydantic import TypeAdapter

    with suppress(OSError, AssayError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, TypeAdapter(kind).dump_json(kept), 0o600)

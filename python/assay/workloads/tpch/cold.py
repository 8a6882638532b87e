"""Cold caches: the server's own, and what the system keeps of its files."""

from __future__ import annotations

import os
from pathlib import Path

from assay.base.errors import AssayError
from assay.targets.databases import Database

SERVER, SYSTEM = "the server's own cache", "the system's cache of its files"


def drop_caches(database: Database) -> list[str]:
    """Drop what is cached of a database; gives what could not be dropped."""
    database.checkpoint()
    left = []
    try:
        if not database.drop_cache():
            left.append(SERVER)
    except AssayError as error:
        left.append(f"{SERVER} ({error})")
    if not database.in_process and not _drop_files(database):
        left.append(SYSTEM)
    return left


def _drop_files(database: Database) -> bool:
    """Tell the system to forget the server's files (posix_fadvise, POSIX_FADV_DONTNEED); whether all opened."""
    folders = [path for role, path in database.storage_paths().items() if role.startswith(("data", "temp"))]
    if not folders:
        return False
    complete = True
    for folder in folders:
        place = Path(folder)
        for path in [place] if place.is_file() else place.rglob("*"):
            try:
                if path.is_symlink() or not path.is_file():
                    continue
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                complete = False
                continue
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
    return complete

"""Folders beside a server's data, each a saved state of one database.

A folder's name says of which database it is, and anyone may have given it to a folder. It is Assay's when it belongs to
who Assay runs as, others may not write to it, and its mark names the folder itself by its number in the file system:
that of a copied or renamed folder names another. Folders are held by descriptor from the check to the last use, links
are not followed, and only files of known names are deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, cast

from assay.base.paths import create_anew, open_regular, open_without_links
from assay.targets.databases.common.facts import SavedFacts

_MARK, _MANIFEST, _WRITTEN = "assay.json", "manifest.json", "manifest.json.new"
_MARK_BYTES_MAX, _MANIFEST_BYTES_MAX = 4096, 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class SavedManifest(TypedDict, total=False):
    """The manifest of a saved state, written once all of the state is there.

    Tables have their definitions by name, `schema` the rows of the table that says what was loaded; `others` is what
    was there beside them. A database in one file has the facts alone.
    """

    facts: SavedFacts
    tables: dict[str, str]
    schema: list[list[str]]
    others: list[str]


class _Mark(TypedDict, total=False):
    """Who made a folder, and the folder's number in its file system."""

    made_by: str
    folder: int


class SavedFolder:
    """A folder of a saved state that Assay made, held by descriptor.

    Attributes
    ----------
    number
        The highest is the newest.
    path
        Where it is, for messages.
    """

    def __init__(self, number: int, path: Path, descriptor: int) -> None:
        self.number = number
        self.path = path
        self._descriptor = descriptor

    def file(self, name: str) -> Path:
        """Path of a file in this very folder, whatever its name now leads to."""
        return Path(f"/proc/self/fd/{self._descriptor}/{name}")

    def manifest(self) -> SavedManifest | None:
        """What was written when all was there; None in a folder that is not whole."""
        return cast("SavedManifest | None", _read(self._descriptor, _MANIFEST, _MANIFEST_BYTES_MAX))

    def finish(self, manifest: SavedManifest) -> None:
        """Say that all is there; that is on storage when it returns."""
        _write(self._descriptor, _WRITTEN, manifest)
        os.rename(_WRITTEN, _MANIFEST, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        os.fsync(self._descriptor)

    def delete(self, names: Sequence[str]) -> bool:
        """Delete the folder with files of these names; whether it is gone, for what else is in it stays."""
        # The manifest first: what is cut short is not whole any more. The mark last: it is still known as Assay's.
        for name in (_MANIFEST, _WRITTEN, *names):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._descriptor)
        if os.listdir(self._descriptor) != [_MARK]:
            return False
        os.unlink(_MARK, dir_fd=self._descriptor)
        os.rmdir(self.path)
        return True


class SavedFolders:
    """The folders of one database in the folder that holds them, `shelf`."""

    def __init__(self, shelf: Path, prefix: str) -> None:
        self._shelf = shelf
        self._prefix = prefix

    @contextmanager
    def created(self) -> Iterator[SavedFolder]:
        """A new folder with its mark. Its number is higher than that of any other folder there."""
        number = max(self._numbers(), default=0) + 1
        path = self._shelf / f"{self._prefix}{number}"
        path.mkdir(mode=0o700)
        descriptor = open_without_links(path, _FOLDER)
        try:
            _write(descriptor, _MARK, {"made_by": "Assay", "folder": os.fstat(descriptor).st_ino})
            os.fsync(descriptor)
            yield SavedFolder(number, path, descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def held(self) -> Iterator[list[SavedFolder]]:
        """Folders of saved states that Assay made, the newest first."""
        with contextlib.ExitStack() as stack:
            found = []
            for number in sorted(self._numbers(), reverse=True):
                path = self._shelf / f"{self._prefix}{number}"
                with contextlib.suppress(OSError):
                    descriptor = open_without_links(path, _FOLDER)
                    stack.callback(os.close, descriptor)
                    if _is_own(descriptor):
                        found.append(SavedFolder(number, path, descriptor))
            yield found

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self._shelf)
        except OSError:
            return []
        pattern = re.compile(re.escape(self._prefix) + "(0|[1-9][0-9]*)")
        return [int(match[1]) for name in names if (match := pattern.fullmatch(name))]


def _is_own(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    mark = cast("_Mark | None", _read(descriptor, _MARK, _MARK_BYTES_MAX))
    return mark is not None and mark.get("made_by") == "Assay" and mark.get("folder") == status.st_ino


def _read(folder: int, name: str, bytes_max: int) -> object:
    """A JSON object of a file of this user's; None where it is none."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open(open_regular(name, dir_fd=folder), "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            found = json.loads(file.read(bytes_max))
        return found if isinstance(found, dict) else None
    return None


def _write(folder: int, name: str, content: SavedManifest | _Mark) -> None:
    with open(create_anew(f"/proc/self/fd/{folder}/{name}", 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())

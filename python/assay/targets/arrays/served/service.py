"""An array that is served by this process, from its start until everything is undone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay import _core
from assay.targets.arrays.served.folder import (
    Note,
    forget,
    mount_volumes,
    note_path,
    read_note,
    refuse_folder,
    unmount_volumes,
    write_note,
)
from assay.targets.arrays.served.request import Request


class Service:
    """A served array, its volumes and file systems.

    Attributes
    ----------
    mounted
        Where the file system on each volume is mounted, where there is one.
    """

    def __init__(self, array: _core.ServedArray, folder: Path, mounted: Mapping[str, Path]) -> None:
        self._array = array
        self.folder = folder
        self.mounted = mounted

    def ask(self, command: Mapping[str, Any]) -> Any:
        """Carry out a command and return its answer.

        Raises
        ------
        UsageError
            The array refuses it.
        """
        return json.loads(self._array.ask(json.dumps(dict(command))))

    def is_running(self) -> bool:
        """Whether the array answers still."""
        return self._array.is_running()


@contextmanager
def serve(request: Request, *, mkfs: bool = False, owner: str | None = None) -> Iterator[Service]:
    """Serve an array as long as the context lasts, and undo everything at its end.

    Raises
    ------
    UsageError, NotSupported, IoFailed
        The array, the folder or the store is refused, or something of this machine failed.
    """
    plan = request.plan()
    folder = request.folder.absolute()
    refuse_folder(folder)
    note = Note(store=str(request.store.absolute()), pid=os.getpid(), is_new=not folder.exists())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        array = _core.ServedArray(json.dumps({**plan, "folder": str(folder), "store": note.store}))
    except BaseException:
        if note.is_new:
            folder.rmdir()
        raise
    try:
        write_note(folder, note)
        names = [name for name, _ in request.configuration().volumes]
        mounted = mount_volumes(folder, names, note, owner=owner) if mkfs else {}
        yield Service(array, folder, mounted)
    finally:
        try:
            # After a power cut file systems may be on other loop devices.
            _undo(array, folder, read_note(folder) if note_path(folder).exists() else note)
        finally:
            try:
                array.stop()
            finally:
                if note.is_new:
                    forget(folder)
                note_path(folder).unlink(missing_ok=True)


def _undo(array: _core.ServedArray, folder: Path, note: Note) -> None:
    if note.mounts and array.is_running():
        status = json.loads(array.ask('{"command": "status"}'))
        if not status["power"]:
            # File systems are taken away in order, and that takes an array with power.
            array.ask('{"command": "restore"}')
    unmount_volumes(folder, note)

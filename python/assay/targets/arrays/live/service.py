"""An array that is served by this process, from its start until everything is undone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay import _core
from assay.base.errors import OpenFailed, UsageError
from assay.base.paths import printable
from assay.base.programs import find_program
from assay.targets.arrays.live import fuse_mounter, mounter
from assay.targets.arrays.live.events import ArrayCommand
from assay.targets.arrays.live.folder import refuse_fuse, refuse_served
from assay.targets.arrays.live.place import ArrayNote, ArrayPlace, refuse_odd
from assay.targets.arrays.live.request import ServeRequest
from assay.targets.arrays.live.volumes import mounted, owner_of, refuse_mkfs
from assay.targets.trust import make_own


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

    def ask(self, command: ArrayCommand) -> Any:
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
def serve(request: ServeRequest, *, mkfs: bool = False, owner: str | None = None) -> Iterator[Service]:
    """Serve an array as long as the context lasts, and undo everything at its end.

    Raises
    ------
    UsageError, RefusedTarget, NotSupported, OpenFailed, IoFailed
        The array, the folder or the store is refused, or something of this machine failed.
    """
    plan = request.plan()
    owner_uid = owner_of(owner) if owner is not None else None
    refuse_fuse()
    if mkfs:
        refuse_mkfs()
    with ArrayPlace.open(request.folder, make=True) as place, contextlib.ExitStack() as held:
        refuse_served(place)
        folder, is_new = place.make_folder()
        held.callback(os.close, folder)
        if is_new:
            held.callback(place.remove_folder)
        store, store_descriptor = _open_store(request.store, held)
        place.write_note(ArrayNote(store=str(store), pid=os.getpid(), is_new=is_new))
        held.callback(place.remove_note)
        paths = {"folder": str(place.folder), "store": str(store)}
        descriptors = {"folder_descriptor": folder, "store_descriptor": store_descriptor}
        needs_stand_in = os.geteuid() == 0 and find_program("fusermount3") is None
        with fuse_mounter.in_place_of_fusermount() if needs_stand_in else contextlib.nullcontext():
            array = _core.ServedArray(json.dumps({**plan, **paths, **descriptors}))
        held.callback(array.stop)
        held.callback(_undo, array, place)
        names = [name for name, _ in request.configuration().volumes]
        yield Service(array, place.folder, mounter.mount(place, names, owner=owner_uid) if mkfs else {})


def _open_store(path: Path, held: contextlib.ExitStack) -> tuple[Path, int]:
    path = path.absolute()
    refuse_odd(path, "--store")
    try:
        store, descriptor, is_new = make_own(path, f"store {printable(path)}")
    except OSError as error:
        if isinstance(error, NotADirectoryError):
            raise UsageError(f"store {printable(path)}: is no folder; name a folder, or a new one") from None
        raise OpenFailed(f"store {printable(path)}: {error.strerror}") from error
    held.callback(os.close, descriptor)
    if is_new:
        # It goes only where nothing was put into it.
        held.callback(_remove_empty, store)
    return store, descriptor


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _undo(array: _core.ServedArray, place: ArrayPlace) -> None:
    if not mounted(place):
        place.remove_mounts()
        return
    if array.is_running():
        status = json.loads(array.ask('{"command": "status"}'))
        if not status["power"]:
            # File systems are taken away in order, and that takes an array with power.
            array.ask('{"command": "restore"}')
    mounter.unmount(place)

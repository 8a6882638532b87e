"""Served arrays as other commands find them: asked over their socket, listed, cleaned up after a killed server."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from assay.base.errors import AssayError, NotAnswering, NotSupported, UsageError
from assay.base.paths import plain, printable
from assay.base.programs import find_program, require_program
from assay.targets.arrays.live import loops
from assay.targets.arrays.live.events import ArrayCommand
from assay.targets.arrays.live.place import ArrayNote, ArrayPlace, is_served, open_store
from assay.targets.arrays.live.volumes import unmount_volumes
from assay.targets.kernel import Kernel, Mount

ANSWER_S = 60.0
"""A server answers commands between I/Os; longer than this it does not live."""
AGAIN_S = 2.0
"""A server that did not answer is waited for no longer than this, until it answers again."""
ANSWER_BYTES_MAX = 64 << 20
"""A status of 4,096 disks and an hour of events stays below a tenth of this."""
FUSE = Path("/dev/fuse")
SOCKET = "control.sock"
_silent: set[Path] = set()
"""Folders whose server did not answer when it was last asked."""


class _Answer(BaseModel):
    """What a server answers to a command."""

    model_config = ConfigDict(extra="forbid")

    done: Any = None
    refused: str | None = None


def folder_of(at: Path | None) -> Path:
    """Return the folder that is named, or that of the only array that is served.

    Raises
    ------
    UsageError
        None is served, or several are.
    """
    if at is not None:
        return at
    running = running_folders()
    if not running:
        raise UsageError("--at: no array is served on this host; start one with `assay array serve`")
    if len(running) > 1:
        raise UsageError(f"--at: several arrays are served; name one of {', '.join(map(printable, running))}")
    return running[0]


def running_folders() -> list[Path]:
    """Folders of all arrays that this user serves on this host."""
    found = []
    for mount in Kernel().mounts():
        if _is_array(mount):
            with contextlib.suppress(AssayError), ArrayPlace.open(Path(mount.mount_point)) as place:
                if is_served(place.read_note()):
                    found.append(place.folder)
    return found


def _is_array(mount: Mount) -> bool:
    """Whether a mount is an array of this user's: the kernel, not the mounted server, says who mounted it."""
    options = mount.super_options.split(",")
    return mount.file_system == "fuse.assay" and f"user_id={os.geteuid()}" in options


def refuse_fuse() -> None:
    """Refuse to serve where nothing can be mounted.

    Raises
    ------
    NotSupported
        There is no FUSE here, or no right to mount.
    """
    if not FUSE.exists():
        raise NotSupported("FUSE: there is no /dev/fuse here; load the module fuse, or run where there is one")
    if not os.access(FUSE, os.R_OK | os.W_OK):
        raise NotSupported("FUSE: /dev/fuse cannot be opened; run as root, or install fuse3, which lets users mount")
    if os.geteuid() != 0:
        require_program("FUSE", "fusermount3", otherwise="or run as root")


def refuse_served(place: ArrayPlace) -> None:
    """Refuse a place that shows an array, or that a killed server left.

    Raises
    ------
    UsageError, RefusedTarget
        There is a note.
    """
    if place.has_note():
        shown = printable(place.folder)
        if is_served(place.read_note()):
            raise UsageError(f"{shown}: an array is served there already; stop it, or take another folder")
        raise UsageError(f"{shown}: a server was killed here; undo what it left with `assay array clean --at {shown}`")


def patience_s(folder: Path) -> float:
    """Return how long a question waits for the server of a folder: briefly, if the last one got no answer."""
    return AGAIN_S if folder in _silent else ANSWER_S


def ask(folder: Path, command: ArrayCommand) -> Any:
    """Have the array that is shown in a folder carry out a command; return its answer.

    Raises
    ------
    UsageError
        Nothing is served there, or the array refuses it.
    NotAnswering
        The server does not answer.
    """
    with ArrayPlace.open(folder) as place:
        note = place.read_note()
    shown = printable(folder)
    refused = f"{shown}: the server is gone; undo what it left with `assay array clean --at {shown}`"
    store = open_store(note)
    if store is None:
        raise UsageError(refused)
    try:
        line = _asked(store, json.dumps(dict(command)).encode() + b"\n", patience_s(folder))
    except (ConnectionError, FileNotFoundError):
        raise UsageError(refused) from None
    except TimeoutError:
        _silent.add(folder)
        raise NotAnswering(f"{shown}: the array does not answer") from None
    finally:
        os.close(store)
    _silent.discard(folder)
    if not line:
        raise UsageError(refused)
    try:
        answer = _Answer.model_validate_json(line)
    except ValidationError:
        raise NotAnswering(f"{shown}: what answers is no server of an array") from None
    if answer.refused is not None:
        raise UsageError(f"{shown}: {plain(answer.refused)}")
    return answer.done


def _asked(store: int, line: bytes, patience_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(patience_s)
        # The path of a socket has 107 bytes at most: the folder's descriptor keeps it short.
        stream.connect(f"/proc/self/fd/{store:d}/{SOCKET}")
        stream.sendall(line)
        with stream.makefile("rb") as lines:
            return lines.readline(ANSWER_BYTES_MAX)


def clean(folder: Path) -> list[str]:
    """Undo what a killed server left at a folder; returns what was undone.

    Raises
    ------
    UsageError
        Nothing is to be undone, or the server lives.
    """
    with ArrayPlace.open(folder) as place:
        note = place.read_note()
        if is_served(note):
            raise UsageError(
                f"{printable(folder)}: process {note.pid} serves an array there; stop it with Ctrl-C or SIGTERM"
            )
        undone = unmount_volumes(place)
        if any(_is_array(mount) and mount.mount_point == str(place.folder) for mount in Kernel().mounts()):
            _unmount_array(place)
            undone.append(str(place.folder))
        if note.is_new:
            place.remove_folder()
        _remove_socket(note)
        place.remove_note()
    return undone


def _unmount_array(place: ArrayPlace) -> None:
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            loops.unmount(str(place.folder), lazily=True)
        return
    # The path is absolute, so that no name of a folder is an option.
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(
            (find_program("fusermount3") or "fusermount3", "-u", "-z", "--", str(place.folder)),
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def _remove_socket(note: ArrayNote) -> None:
    store = open_store(note)
    if store is None:
        return
    try:
        if stat.S_ISSOCK(os.lstat(SOCKET, dir_fd=store).st_mode):
            os.unlink(SOCKET, dir_fd=store)
    except FileNotFoundError:
        pass
    finally:
        os.close(store)

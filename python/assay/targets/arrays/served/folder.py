"""Where a served array is shown: an empty folder, and beside it a note of what is to be undone.

The note of `DIR` is `.NAME.assay-array` beside it: who serves, the store, file systems and loop devices. It is what
commands find the server by, and what `assay array clean` undoes after a server that was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import IoFailed, NotAnswering, NotSupported, UsageError

ANSWER_S = 60.0
"""A server answers commands between I/Os; longer than this it does not live."""
AGAIN_S = 2.0
"""A server that did not answer is waited for no longer than this, until it answers again."""
RELEASE_S = 5.0
"""How long the end of the last use of a mount may take."""
FUSE = Path("/dev/fuse")
MOUNT_OPTIONS = "noatime,nodiscard"
_silent: set[Path] = set()
"""Folders whose server did not answer when it was last asked."""
_EXT4_IOC_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
"""Linux, fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH."""


@dataclass
class Note:
    """What is to be known of a folder that shows an array.

    Attributes
    ----------
    is_new
        Whether the server made the folder, which goes with it then.
    """

    store: str
    pid: int
    is_new: bool = False
    loops: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)


def note_path(folder: Path) -> Path:
    """Where the note of a folder lies."""
    folder = folder.absolute()
    return folder.with_name(f".{folder.name}.assay-array")


def write_note(folder: Path, note: Note) -> None:
    """Write the note, for its owner alone."""
    path = note_path(folder)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(note), file)


def read_note(folder: Path) -> Note:
    """The note of a folder.

    Raises
    ------
    UsageError
        There is none, or it is not Assay's.
    """
    path = note_path(folder)
    try:
        if path.stat().st_uid not in (os.geteuid(), 0):
            raise UsageError(f"{path}: belongs to another user")
        return Note(**json.loads(path.read_text()))
    except FileNotFoundError:
        raise UsageError(f"{folder}: no array is served there; start one with `assay array serve`") from None
    except (ValueError, TypeError):
        raise UsageError(f"{path}: is damaged; remove it once nothing is mounted at {folder}") from None


def folder_of(at: Path | None) -> Path:
    """The folder that is meant: the one that is named, or that of the only array that runs.

    Raises
    ------
    UsageError
        None runs, or several do.
    """
    if at is not None:
        return at
    running = running_folders()
    if not running:
        raise UsageError("--at: no array is served on this host; start one with `assay array serve`")
    if len(running) > 1:
        raise UsageError(f"--at: several arrays are served; name one of {', '.join(map(str, running))}")
    return running[0]


def running_folders() -> list[Path]:
    """Folders of all arrays that are served on this host and that this user may ask."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split()[4].replace("\\040", " ").replace("\\134", "\\")
        if " - fuse" in line and os.access(note_path(Path(place)), os.R_OK):
            with contextlib.suppress(UsageError):
                if is_served(read_note(Path(place))):
                    found.append(Path(place))
    return found


def refuse_folder(folder: Path) -> None:
    """Refuse a folder that cannot show an array, before anything is done.

    Raises
    ------
    UsageError
        It is not empty, no folder, or shows one already.
    NotSupported
        There is no FUSE here, or no right to mount.
    """
    if not FUSE.exists():
        raise NotSupported("FUSE: there is no /dev/fuse here; load the module fuse, or run where there is one")
    if not os.access(FUSE, os.R_OK | os.W_OK):
        raise NotSupported("FUSE: /dev/fuse cannot be opened; run as root, or install fuse3, which lets users mount")
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        raise NotSupported("FUSE: fusermount3 is missing; install fuse3, or run as root")
    if note_path(folder).exists():
        if is_served(read_note(folder)):
            raise UsageError(f"{folder}: an array is served there already; stop it, or take another folder")
        raise UsageError(
            f"{folder}: a server was killed here; undo what it left with `assay array clean --at {folder}`"
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder; name an empty one")
    if folder.is_symlink():
        raise UsageError(f"{folder}: is a link; name the folder itself")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty; name an empty or new folder")


def is_served(note: Note) -> bool:
    """Whether the server of a note lives: it holds the lock of its store."""
    try:
        with (Path(note.store) / "lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def patience_s(folder: Path) -> float:
    """Return how long a question waits for the server of a folder: briefly, if the last one got no answer."""
    return AGAIN_S if folder in _silent else ANSWER_S


def ask(folder: Path, command: Mapping[str, Any]) -> Any:
    """Have the array that is shown in a folder carry out a command; return its answer.

    Raises
    ------
    UsageError
        Nothing is served there, or the array refuses it.
    NotAnswering
        The server does not answer.
    """
    note = read_note(folder)
    refused = f"{folder}: the server is gone; undo what it left with `assay array clean --at {folder}`"
    try:
        # The path of a socket has 107 bytes at most: the folder's descriptor keeps it short.
        store = os.open(note.store, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        raise UsageError(refused) from None
    try:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(patience_s(folder))
            stream.connect(f"/proc/self/fd/{store}/control.sock")
            stream.sendall(json.dumps(dict(command)).encode() + b"\n")
            with stream.makefile("rb") as lines:
                line = lines.readline()
    except (ConnectionError, FileNotFoundError):
        raise UsageError(refused) from None
    except TimeoutError:
        _silent.add(folder)
        raise NotAnswering(f"{folder}: the array does not answer") from None
    finally:
        os.close(store)
    _silent.discard(folder)
    if not line:
        raise UsageError(refused)
    answer = json.loads(line)
    if "refused" in answer:
        raise UsageError(f"{folder}: {answer['refused']}")
    return answer["done"]


def _run(command: Sequence[str], what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise NotSupported(f"{what}: {command[0]} is not installed") from None
    if done.returncode:
        raise IoFailed(f"{what}: {command[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout.strip()


def mounts_folder(folder: Path) -> Path:
    """Where the file systems on the volumes of a folder are mounted: beside it, as nothing can lie within it."""
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}.mnt")


def mount_volumes(folder: Path, volumes: Sequence[str], note: Note, *, owner: str | None = None) -> dict[str, Path]:
    """Put ext4 on each volume through a loop device, unless it has it, and mount it; returns where.

    Raises
    ------
    NotSupported
        This takes root, or a program is missing.
    IoFailed
        A program failed.
    """
    if os.geteuid() != 0:
        raise NotSupported("--mkfs: loop devices and mounts take root; leave it out and use the files")
    where = {}
    for name in volumes:
        loop = _run(("losetup", "--direct-io=on", "--find", "--show", str(folder / name)), f"volume {name}")
        note.loops.append(loop)
        write_note(folder, note)
        probed = subprocess.run(("blkid", "-p", "-o", "value", "-s", "TYPE", loop), capture_output=True, check=False)
        if probed.stdout.strip() != b"ext4":
            # Neither discards nor a journal longer than need be: both would be written at the array's pace.
            options = "nodiscard,lazy_itable_init=1,lazy_journal_init=1"
            _run(("mkfs.ext4", "-q", "-m", "0", "-J", "size=16", "-E", options, loop), f"volume {name}")
        place = mounts_folder(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        _run(("mount", "-o", MOUNT_OPTIONS, loop, str(place)), f"volume {name}")
        note.mounts.append(str(place))
        write_note(folder, note)
        if owner is not None:
            shutil.chown(place, owner)
        where[name] = place
    return where


def shut_down(place: Path) -> None:
    """Take a file system's host away from it: what was not flushed never reaches the volume.

    Raises
    ------
    NotSupported
        The kernel cannot do it.
    """
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(opened, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    except OSError as error:
        raise NotSupported(f"{place}: a power cut of the host cannot be had here: {error.strerror}") from None
    finally:
        os.close(opened)


def mount_again(folder: Path) -> None:
    """Mount the file systems anew that were shut down; each goes through its journal.

    Raises
    ------
    IoFailed
        One is still in use, or cannot be mounted any more.
    """
    note = read_note(folder)
    for number, (loop, place) in enumerate(zip(note.loops, note.mounts, strict=True)):
        what = f"after the power cut, {place}"
        if not _released(place):
            raise IoFailed(f"{place}: is still in use after the power cut")
        _run(("mount", "-o", MOUNT_OPTIONS, loop, place), what)
        if not _is_alive(Path(place)):
            # Another mount namespace has a copy of the old mount, and with it the file system that was shut down.
            _run(("umount", place), what)
            volume = str(folder / Path(place).name)
            note.loops[number] = _run(("losetup", "--direct-io=on", "--find", "--show", volume), what)
            write_note(folder, note)
            subprocess.run(("losetup", "-d", loop), capture_output=True, check=False)
            _run(("mount", "-o", MOUNT_OPTIONS, note.loops[number], place), what)


def _is_alive(place: Path) -> bool:
    """Whether a file system takes what is written to it."""
    probe = place / ".assay-probe"
    try:
        opened = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
        probe.unlink()
    except OSError:
        return False
    return True


def unmount_volumes(folder: Path, note: Note) -> None:
    """Take file systems and loop devices away. What is still used is detached and goes when its last user does."""
    for place in reversed(note.mounts):
        if not _released(place):
            subprocess.run(("umount", "-l", place), capture_output=True, check=False)
    for loop in note.loops:
        subprocess.run(("losetup", "-d", loop), capture_output=True, check=False)
    for place in note.mounts:
        forget(Path(place))
    forget(mounts_folder(folder))
    note.loops, note.mounts = [], []


def _released(place: str) -> bool:
    deadline = time.monotonic() + RELEASE_S
    while True:
        done = subprocess.run(("umount", place), capture_output=True, check=False)
        if done.returncode == 0 or not os.path.ismount(place):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)


def forget(folder: Path) -> None:
    """Remove a folder that Assay made, unless something lies in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def clean(folder: Path) -> list[str]:
    """Undo what a killed server left at a folder; returns what was undone.

    Raises
    ------
    UsageError
        Nothing is to be undone, or the server lives.
    """
    note = read_note(folder)
    if is_served(note):
        raise UsageError(f"{folder}: process {note.pid} serves an array there; stop it with Ctrl-C or SIGTERM")
    undone = [*note.mounts, *note.loops]
    unmount_volumes(folder, note)
    if _is_mounted(folder):
        command = ("umount", "-l") if os.geteuid() == 0 else ("fusermount3", "-u", "-z")
        subprocess.run((*command, str(folder)), capture_output=True, check=False)
        undone.append(str(folder))
    if note.is_new:
        forget(folder)
    note_path(folder).unlink(missing_ok=True)
    (Path(note.store) / "control.sock").unlink(missing_ok=True)
    return undone


def _is_mounted(folder: Path) -> bool:
    # Not os.path.ismount: it asks the file system, whose server is gone.
    wanted = str(folder.absolute()).replace("\\", "\\134").replace(" ", "\\040")
    return any(line.split()[4] == wanted for line in Path("/proc/self/mountinfo").read_text().splitlines())

"""The place of a served array: folders and a note side by side in a folder that no other user can exchange.

`DIR` shows the volumes, file systems on them are mounted in `DIR.mnt`, and `.DIR.assay-array` is the note. The note
says which store is served and by which process, nothing else. What has to be undone is what the kernel says is there
now (`volumes.py`), so that no text of a file becomes a mount, a loop device or a path that is taken away.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.base.errors import OpenFailed, RefusedTarget, UsageError
from assay.base.paths import open_regular, open_without_links, printable
from assay.targets.trust import make_trusted, open_own, open_trusted

NOTE_BYTES_MAX = 16 << 10
"""A path has 4,096 bytes at most, each of them escaped in JSON."""
NAME_BYTES_MAX = 255 - len("..assay-array")
"""A name has 255 bytes at most (NAME_MAX), those of the note included."""
FOLDER_MODE = 0o711
"""Mode of the folder of file systems: a database's own user passes through it, and lists nothing."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ArrayNote(BaseModel):
    """What a server writes down of itself.

    Attributes
    ----------
    store
        Absolute path of the store.
    pid
        The server's process, for messages alone.
    is_new
        Whether the server made the folder that shows the volumes, which goes with the server then.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    store: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/[^\x00]*$")]
    pid: Annotated[int, Field(ge=1, lt=2**32)]
    is_new: bool = False


class ArrayPlace:
    """Where an array is shown, held by the descriptor of the folder that all of it lies in.

    Attributes
    ----------
    folder
        Path of the folder that shows the volumes; no component above its name is a link.
    mounts
        Path of the folder of file systems.
    """

    def __init__(self, parent: Path, descriptor: int, name: str) -> None:
        self._parent, self._name = descriptor, name
        self.folder = parent / name
        self.mounts = parent / f"{name}.mnt"

    @classmethod
    def open(cls, folder: Path, *, make: bool = False) -> Self:
        """Hold the folder in which `folder` lies or is to lie.

        Parameters
        ----------
        make
            Make missing folders on the way, for this user alone.

        Raises
        ------
        RefusedTarget
            Another user could exchange what lies there.
        UsageError
            The way leads nowhere, or the folder has no name.
        """
        shown = printable(folder)
        folder = folder.absolute()
        if folder.name in ("", ".", ".."):
            raise UsageError(f"--at: {shown}: has no name of its own; name a folder in it")
        if len(os.fsencode(folder.name)) > NAME_BYTES_MAX:
            raise UsageError(f"--at: {shown}: its name is longer than {NAME_BYTES_MAX} bytes; take a shorter one")
        refuse_odd(folder, "--at")
        what = f"array at {shown}"
        try:
            parent, descriptor = (make_trusted if make else open_trusted)(folder.parent, what)
        except FileNotFoundError:
            raise UsageError(f"{shown}: no array is served there; start one with `assay array serve`") from None
        except OSError as error:
            raise OpenFailed(f"{shown}: {printable(error.filename or folder)}: {error.strerror}; check --at") from error
        return cls(parent, descriptor, folder.name)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The folder that shows the volumes

    def make_folder(self) -> tuple[int, bool]:
        """Open the folder that shows the volumes, or make it; returns its descriptor, and whether it was made now.

        Raises
        ------
        UsageError
            It is a link or no folder, or holds something.
        RefusedTarget
            It belongs to another user, or others may write to it.
        """
        is_new = self._made(self._name, 0o700)
        shown = printable(self.folder)
        try:
            os.close(os.open(self._name, _FOLDER, dir_fd=self._parent))
            _, descriptor = open_own(self.folder, f"array at {shown}")
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise OpenFailed(f"{shown}: {error.strerror}") from error
            is_link = stat.S_ISLNK(os.lstat(self._name, dir_fd=self._parent).st_mode)
            words = "is a link; name the folder itself" if is_link else "is no folder; name an empty one"
            raise UsageError(f"{shown}: {words}") from None
        if os.listdir(descriptor):
            os.close(descriptor)
            raise UsageError(f"{shown}: is not empty; name an empty or new folder")
        return descriptor, is_new

    def open_shown(self) -> int:
        """Open the folder once an array is mounted on it; the caller closes the descriptor.

        Raises
        ------
        OSError
            The array does not answer.
        """
        return os.open(self.folder, _FOLDER)

    def remove_folder(self) -> None:
        """Remove the folder that shows the volumes, unless something lies in it."""
        self._removed(self._name)

    # The folder of file systems

    def make_mounts(self) -> int:
        """Make the folder of file systems, or take an empty one of this user's; the caller closes the descriptor.

        Raises
        ------
        RefusedTarget
            Something else has its name: a link, another user's folder, or a folder that others may write to.
        """
        # An empty folder that an earlier server left is made anew, so that nobody holds it open.
        self._removed(self.mounts.name)
        if not self._made(self.mounts.name, FOLDER_MODE):
            raise RefusedTarget(
                f"{printable(self.mounts)}: file systems are mounted in a new folder of this name; something lies"
                " there already: move it away"
            )
        descriptor = os.open(self.mounts.name, _FOLDER, dir_fd=self._parent)
        os.fchmod(descriptor, FOLDER_MODE)
        return descriptor

    def open_mounts(self) -> int:
        """Open the folder of file systems that this user made; the caller closes the descriptor.

        Raises
        ------
        RefusedTarget
            There is none, or it is not this user's.
        """
        try:
            descriptor = os.open(self.mounts.name, _FOLDER, dir_fd=self._parent)
        except OSError as error:
            raise RefusedTarget(f"{printable(self.mounts)}: {error.strerror}") from None
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.close(descriptor)
            raise RefusedTarget(f"{printable(self.mounts)}: belongs to another user, or others may write to it")
        return descriptor

    def remove_mounts(self) -> None:
        """Remove the folder of file systems and empty folders in it, as far as this user made them."""
        try:
            descriptor = self.open_mounts()
        except RefusedTarget:
            return
        try:
            for name in os.listdir(descriptor):
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        self._removed(self.mounts.name)

    # The note

    @property
    def note_path(self) -> Path:
        """Path of the note, for messages."""
        return self.folder.with_name(f".{self._name}.assay-array")

    def write_note(self, note: ArrayNote) -> None:
        """Write the note, for its owner alone.

        Raises
        ------
        UsageError
            Something has its name already.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.note_path.name, flags, 0o600, dir_fd=self._parent)
        except FileExistsError:
            raise UsageError(f"{printable(self.note_path)}: is there already; another server starts here") from None
        except OSError as error:
            raise OpenFailed(f"{printable(self.note_path)}: {error.strerror}") from error
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(note.model_dump_json())
        except OSError as error:
            self.remove_note()
            raise OpenFailed(f"{printable(self.note_path)}: {error.strerror}") from error

    def has_note(self) -> bool:
        """Whether something has the name of the note."""
        try:
            os.lstat(self.note_path.name, dir_fd=self._parent)
        except FileNotFoundError:
            return False
        return True

    def read_note(self) -> ArrayNote:
        """The note, if this user wrote it.

        Raises
        ------
        UsageError
            There is none, or it is damaged.
        RefusedTarget
            It is a link, not a plain file of one name, another user's, or others may write to it.
        """
        shown = printable(self.note_path)
        try:
            descriptor = open_regular(self.note_path.name, dir_fd=self._parent)
        except FileNotFoundError:
            raise UsageError(
                f"{printable(self.folder)}: no array is served there; start one with `assay array serve`"
            ) from None
        except OSError:
            raise RefusedTarget(f"{shown}: is not a plain file, and no note of Assay's; remove it") from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid():
                raise RefusedTarget(f"{shown}: belongs to another user (uid {status.st_uid})")
            if status.st_nlink != 1 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise RefusedTarget(f"{shown}: has a second name, or others may write to it; remove it")
            text = file.read(NOTE_BYTES_MAX + 1)
        try:
            if len(text) > NOTE_BYTES_MAX:
                raise ValueError("is too long")
            return ArrayNote.model_validate_json(text)
        except (ValidationError, ValueError):
            raise UsageError(
                f"{shown}: is damaged; remove it once nothing is mounted at {printable(self.folder)}"
            ) from None

    def remove_note(self) -> None:
        """Remove the note, if there is one."""
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(self.note_path.name, dir_fd=self._parent)

    def _made(self, name: str, mode: int) -> bool:
        try:
            os.mkdir(name, mode, dir_fd=self._parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise OpenFailed(f"{printable(self.folder.with_name(name))}: {error.strerror}") from error
        return True

    def _removed(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=self._parent)


def refuse_odd(path: Path, option: str) -> None:
    """Refuse a path that is no text: plans and notes are JSON, which holds text alone.

    Raises
    ------
    UsageError
        The path holds bytes that are no UTF-8.
    """
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{option}: {printable(path)}: holds bytes that are no UTF-8; take another name") from None


def open_store(note: ArrayNote) -> int | None:
    """Open the store that a note names, without following links; None where there is none of this user's.

    Returns
    -------
    int or None
        Descriptor of the folder; the caller closes it.
    """
    try:
        store = open_without_links(note.store, os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, ValueError):
        return None
    if os.fstat(store).st_uid != os.geteuid():
        os.close(store)
        return None
    return store


def is_served(note: ArrayNote) -> bool:
    """Whether the server of a note lives: it holds the lock of its store."""
    store = open_store(note)
    if store is None:
        return False
    try:
        lock = open_regular("lock", dir_fd=store)
    except OSError:
        return False
    finally:
        os.close(store)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False

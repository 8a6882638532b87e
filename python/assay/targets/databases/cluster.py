"""The folder of an embedded database: whose it is, what is in it, and that only one process uses it.

    DIR/.assay-database   the mark that Assay made the folder
    DIR/lock              held while a server or its owner lives; names the owner
    DIR/state.json        which folders count; everything else is left over from something cut short, and is deleted
    DIR/data-N            PostgreSQL's data directory
    DIR/saved-N           the saved state
    DIR/server.log        what the server says
    WAL/ID-wal-N          the log, where it is elsewhere; data-N/pg_wal links to it

What counts changes by replacing `state.json`, in one step: a copy that was cut short is never taken for a whole one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from assay.errors import NotAnswering, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.server import stop_stray
from assay.targets.databases.tree_copy import delete_tree, free_bytes_of, sync_folder
from assay.targets.ownership import create, is_ours
from assay.units import format_bytes

MARK = ".assay-database"
FREE_BYTES_LEAST = 256 * 1024**2
"""What a new, empty cluster needs to begin with: some 60 MB of tables and log, and room to work."""

STRAY_TIMEOUT_S = 600.0
"""How long a server whose owner has died may take to stop: it writes all dirty pages."""

_FORMAT = 1
_HARMLESS = frozenset({"lost+found"})


class Cluster:
    """The folder of one embedded database."""

    def __init__(self, directory: Path, wal_directory: Path | None, display: str) -> None:
        self.directory = directory
        self.wal_directory = wal_directory
        self.display = display
        self.state: dict[str, Any] = {}
        self._lock: int | None = None

    # Taking the folder

    def take(self) -> None:
        """Make the folder or recognise it, and keep other processes out.

        Raises
        ------
        RefusedTarget
            It holds something that Assay did not make, or cannot be a folder of ours.
        UsageError
            Another process uses it, or its log is elsewhere than asked.
        OutOfSpace
            There is no room for a new database.
        NotAnswering
            A server that was left behind does not stop.
        """
        self._make_ours(self.directory)
        self._acquire()
        try:
            self._read_state()
            if self.wal_directory is not None:
                self._make_ours(self.wal_directory)
            if not (self.directory / "state.json").exists():
                # The number in it names the folders of the log from the first on.
                self.change()
            self.tidy()
        except BaseException:
            self.release()
            raise

    def _make_ours(self, folder: Path) -> None:
        if not folder.exists():
            if not folder.parent.is_dir():
                raise RefusedTarget(
                    f"{self.display}: the folder {folder.parent} does not exist; create it (mkdir -p {folder.parent}), "
                    "or check the path"
                )
            self._attempt(folder, folder.mkdir)
        if not folder.is_dir():
            raise RefusedTarget(f"{self.display}: {folder} is not a folder; give a folder for the database")
        mark = folder / MARK
        if self._attempt(folder, lambda: mark.exists() and is_ours(mark)):
            return
        if any(name not in _HARMLESS for name in self._attempt(folder, lambda: os.listdir(folder))):
            raise RefusedTarget(
                f"{self.display}: {folder} is not empty and holds no database of Assay; give an empty or a new folder"
            )
        free_bytes = free_bytes_of(folder)
        if free_bytes < FREE_BYTES_LEAST:
            raise OutOfSpace(
                f"{self.display}: {format_bytes(free_bytes)} free in {folder}, a database needs "
                f"{format_bytes(FREE_BYTES_LEAST)} to begin with; free some space, or give another folder"
            )
        create(mark)

    def _attempt(self, folder: Path, work: Any) -> Any:
        try:
            return work()
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise RefusedTarget(
                    f"{self.display}: no permission to use {folder} ({error.strerror}); change its permissions, or "
                    "give another folder"
                ) from error
            raise OpenFailed(f"{self.display}: {folder}: {error.strerror}; check the path and its disk") from error

    def _acquire(self) -> None:
        path = self.directory / "lock"
        lock = self._attempt(path, lambda: os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        deadline = time.monotonic() + STRAY_TIMEOUT_S
        try:
            while not _locked(lock):
                self._refuse_living_owner(lock)
                # Its owner has died: the server stops by itself, and is told to in case nothing tells it any more.
                for data in self.directory.glob("data-*"):
                    stop_stray(data)
                if time.monotonic() > deadline:
                    raise NotAnswering(
                        f"{self.display}: a PostgreSQL left behind there does not stop; end it, then try again"
                    )
                time.sleep(0.1)
            owner = {"pid": os.getpid(), "started": psutil.Process().create_time()}
            os.pwrite(lock, json.dumps(owner).ljust(120).encode(), 0)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock

    def _refuse_living_owner(self, lock: int) -> None:
        try:
            owner = json.loads(os.pread(lock, 4096, 0))
            is_alive = psutil.Process(owner["pid"]).create_time() == owner["started"]
        except (ValueError, KeyError, TypeError, psutil.Error):
            return
        if is_alive:
            raise UsageError(
                f"{self.display}: is in use by another run of Assay (process {owner['pid']}); wait for it, or give "
                "another folder"
            )

    @property
    def lock(self) -> int:
        """Descriptor of the lock; whoever inherits it keeps the folder taken."""
        assert self._lock is not None
        return self._lock

    def release(self) -> None:
        """Let others use the folder, once no process of the server lives any more."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # What counts

    @property
    def data(self) -> Path | None:
        """PostgreSQL's data directory; None before the first start, and while a restore is under way."""
        return self.directory / self.state["data"] if self.state.get("data") else None

    @property
    def saved(self) -> Path | None:
        """Folder of the saved state, if there is one."""
        return self.directory / self.state["saved"]["folder"] if self.state.get("saved") else None

    @property
    def log(self) -> Path:
        """File the server writes its messages to."""
        return self.directory / "server.log"

    def fresh(self, kind: str) -> Path:
        """Return a folder's name that is not used yet, and counts only once the state names it."""
        numbers = [int(match[1]) for name in self._names() if (match := re.fullmatch(rf"{kind}-([0-9]+)", name))]
        return self.directory / f"{kind}-{max(numbers, default=0) + 1}"

    def wal_folder(self, data: Path) -> Path | None:
        """Folder of the log that belongs to a data directory; None if it is within."""
        if self.wal_directory is None:
            return None
        return self.wal_directory / f"{self.state['id']}-wal-{data.name.removeprefix('data-')}"

    def change(self, **values: Any) -> None:
        """Write what counts from now on, in one step; the folders it names are on the disk already."""
        state = {**self.state, **values}
        written = self.directory / "state.json.new"
        with written.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, self.directory / "state.json")
        sync_folder(self.directory)
        self.state = state

    def _read_state(self) -> None:
        path = self.directory / "state.json"
        wal = str(self.wal_directory) if self.wal_directory is not None else None
        new = {"format": _FORMAT, "id": secrets.token_hex(4), "data": None, "saved": None, "wal": wal}
        if not path.exists():
            self.state = new
            return
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            is_known = state["format"] == _FORMAT and {"id", "data", "saved", "wal"} <= state.keys()
        except (ValueError, KeyError, TypeError, AttributeError):
            is_known = False
        if not is_known:
            raise RefusedTarget(f"{self.display}: {path} is damaged or of another version; give another folder")
        if state["data"] is None and state["saved"] is None:
            state["wal"] = wal
        if wal not in (None, state["wal"]):
            where = f"in {state['wal']}" if state["wal"] else "beside the data"
            raise UsageError(f"{self.display}: its log is {where} already; leave wal= out, or give another folder")
        self.wal_directory = Path(state["wal"]) if state["wal"] else None
        self.state = state

    def tidy(self) -> None:
        """Delete what does not count: copies that were cut short, and what they were to replace."""
        counting = {self.state.get("data"), (self.state.get("saved") or {}).get("folder")}
        for name in self._names():
            if re.fullmatch(r"(data|saved)-[0-9]+", name) and name not in counting:
                self._delete(self.directory / name)
        if self.wal_directory is None:
            return
        here = self.wal_folder(self.data) if self.data is not None else None
        for path in self.wal_directory.glob(f"{self.state['id']}-wal-*"):
            if path != here:
                delete_tree(path)

    def _delete(self, data: Path) -> None:
        for space in tablespaces(data):
            # The server keeps its files in a folder of its version's name; what else is there is not ours.
            for folder in space.glob("PG_[0-9]*_[0-9]*"):
                delete_tree(folder)
        delete_tree(data)

    def _names(self) -> Iterable[str]:
        return os.listdir(self.directory)


def tablespaces(data: Path) -> list[Path]:
    """Folders of a cluster's tablespaces."""
    links = data / "pg_tblspc"
    return [Path(os.readlink(link)) for link in links.iterdir() if link.is_symlink()] if links.is_dir() else []


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

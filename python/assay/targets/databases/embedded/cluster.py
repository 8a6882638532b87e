"""The folder of an embedded database: whose it is, what is in it, and that only one process uses it.

    DIR/.assay-database   the mark that Assay made the folder
    DIR/lock              held while a server or its owner lives; names the owner
    DIR/state.json        which folders count, and which Assay made (`cluster_state.py`)
    DIR/data-N            PostgreSQL's data directory
    DIR/saved-N           the saved state
    DIR/server.log        what the server says; DIR/server.log.1 what it said before
    DIR/assay-tablespaces folders of tablespaces, unless these are elsewhere
    WAL/ID-wal-N          the log, where it is elsewhere; data-N/pg_wal links to it

What counts changes by replacing `state.json`, in one step: a copy that was cut short is never taken for a whole one.

Before anything in it is read, the folder must be one that no other user can change or exchange, and hold nothing but
the above. All work in it goes through the descriptor that was looked at. A folder is deleted only if `state.json` says
that Assay made it, and it is the same one still, by inode and time of birth: names alone prove nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from assay.base.errors import RefusedTarget, UsageError
from assay.base.paths import printable
from assay.targets.databases.common.folder_state import Made, State, made, open_or_create, read_state, write_state
from assay.targets.databases.common.layout import FOLDER as TABLESPACES
from assay.targets.databases.common.own_folder import MARK, SIDECAR, attempt, open_ours
from assay.targets.databases.common.tree_copy import delete_below, give_tree, opened_below
from assay.targets.databases.embedded.cluster_lock import take_lock
from assay.targets.databases.embedded.server import LOG_BYTES_MAX, stop_stray
from assay.targets.databases.embedded.tree_check import TreeCheck
from assay.targets.trust import open_trusted

_FILES = frozenset({MARK, SIDECAR, "lock", "state.json", "state.json.new", "server.log", "server.log.1"})
_LOST_AND_FOUND = "lost+found"
_NUMBERED = re.compile(r"(?:data|saved)-[0-9]{1,9}")

T = TypeVar("T")


class Cluster:
    """The folder of one embedded database.

    Attributes
    ----------
    directory, wal_directory
        As asked; once the folder is taken where they really are, without links.
    """

    def __init__(self, directory: Path, wal_directory: Path | None, display: str) -> None:
        self.directory = directory
        self.wal_directory = wal_directory
        self.display = display
        self.state = State()
        self._folder = self._wal = -1
        self._lock: int | None = None

    # Taking the folder

    def take(self) -> None:
        """Make the folder or recognise it, and keep other processes out.

        Raises
        ------
        RefusedTarget
            It holds something that Assay did not make, another user could change it, or it cannot be a folder of ours.
        UsageError
            Another process uses it, or its log is elsewhere than asked.
        OutOfSpace
            There is no room for a new database.
        NotAnswering
            A server that was left behind does not stop.
        """
        try:
            self.directory, self._folder = open_ours(self.directory, self.display)
            self._refuse_planted()
            self._lock = self._attempt(
                self.directory / "lock", lambda: take_lock(self._folder, self.display, self._stop_stray)
            )
            is_new, is_first = self._read_state()
            self._refuse_unknown()
            self._take_wal()
            if is_first:
                self._adopt()
            if is_new or is_first:
                # The number in it names the folders of the log from the first on.
                self.change()
            self._refuse_foreign_trees()
            self.tidy()
        except BaseException:
            self.release()
            raise

    def _attempt(self, path: Path, work: Callable[[], T]) -> T:
        return attempt(self.display, path, work)

    def _stop_stray(self) -> None:
        """Tell a server to stop whose owner has died, in case nothing tells it any more."""
        with contextlib.suppress(ValueError, OSError):
            found = read_state(self._folder)
            if found is not None and found[0].data is not None:
                stop_stray(self.directory / found[0].data, {os.geteuid(), *found[0].owners})

    @property
    def lock(self) -> int:
        """Descriptor of the lock; a process that inherits it keeps the folder taken."""
        assert self._lock is not None
        return self._lock

    def release(self) -> None:
        """Let others use the folder, once no process of the server lives any more."""
        for descriptor in (self._lock, self._folder, self._wal):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        self._lock, self._folder, self._wal = None, -1, -1

    # What is refused

    def _read_state(self) -> tuple[bool, bool]:
        """Whether there was none, and whether it is an earlier Assay's."""
        path = self.directory / "state.json"
        try:
            found = self._attempt(path, lambda: read_state(self._folder))
        except ValueError:
            raise RefusedTarget(
                f"{self.display}: {printable(path)} is damaged or of another version; give another folder"
            ) from None
        self.state, is_first = found if found is not None else (State(), False)
        return found is None, is_first

    def _refuse_planted(self) -> None:
        """Refuse links, and files that are not this user's alone, before one of them is opened."""
        for name, status in self._entries():
            if stat.S_ISLNK(status.st_mode):
                self._refuse_entry(name, "is a link")
            if name in _FILES and not stat.S_ISREG(status.st_mode):
                self._refuse_entry(name, "is no file")
            if name in _FILES and (status.st_uid != os.geteuid() or status.st_nlink != 1):
                self._refuse_entry(name, "is another user's, or has a second name")

    def _refuse_unknown(self) -> None:
        """Refuse a folder that holds anything which Assay does not know."""
        saved = self.state.saved.folder if self.state.saved is not None else None
        folders = {*self.state.folders, self.state.data, saved, TABLESPACES, _LOST_AND_FOUND}
        self._refuse_planted()
        for name, status in self._entries():
            is_folder = stat.S_ISDIR(status.st_mode)
            # An empty one was made by a process that was killed before it could say so, or is not in the way.
            if name in _FILES or (
                is_folder and (name in folders or (_NUMBERED.fullmatch(name) and self._is_empty(name)))
            ):
                continue
            self._refuse_entry(name, "is not Assay's")

    def _refuse_entry(self, name: str, what: str) -> None:
        raise RefusedTarget(
            f"{self.display}: {printable(self.directory / name)} {what}, and the folder is for a database of Assay "
            "alone; move it away, or give another folder"
        )

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        with os.scandir(self._folder) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]

    def _is_empty(self, name: str) -> bool:
        with opened_below(name, self._folder) as folder:
            return not os.listdir(folder)

    def _take_wal(self) -> None:
        """Open the folder of the log where it is elsewhere, as it was at first."""
        asked = self.wal_directory
        if self.state.data is None and self.state.saved is None:
            self.state = self.state.model_copy(update={"wal": str(asked) if asked is not None else None})
        if self.state.wal is None and asked is not None:
            raise UsageError(
                f"{self.display}: its log is beside the data already; leave wal= out, or give another folder"
            )
        if self.state.wal is None:
            return
        if asked is not None and os.path.realpath(asked) != os.path.realpath(self.state.wal):
            raise UsageError(
                f"{self.display}: its log is in {self.state.wal} already; leave wal= out, or give another folder"
            )
        self.wal_directory, self._wal = open_ours(Path(self.state.wal), self.display)
        self.state = self.state.model_copy(update={"wal": self._storable(self.wal_directory)})
        if self.wal_directory.is_relative_to(self.directory):
            raise UsageError(
                f"{self.display}: option 'wal': {self.wal_directory} lies within {self.directory}; give a folder "
                "outside it"
            )

    def _storable(self, path: Path) -> str:
        try:
            return str(path).encode().decode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{self.display}: {printable(path)} is no text in UTF-8, which PostgreSQL's links need; give another "
                "folder"
            ) from None

    def _adopt(self) -> None:
        """Take over the folders that an earlier Assay's state names: they belonged to this process's user then."""
        data, saved = self.state.data, self.state.saved
        named = [("folders", data), ("folders", saved.folder if saved is not None else None)]
        if data is not None and self.wal_directory is not None:
            named.append(("wal_folders", self._wal_name(data)))
        for key, name in named:
            if name is None:
                continue
            with self._opened(key, name) as folder:
                uid = os.fstat(folder).st_uid
                if uid != os.geteuid():
                    raise RefusedTarget(
                        f"{self.display}: was run by an earlier Assay as user {uid}, as whom others could run too; "
                        "give another folder, and load again"
                    )
                self._record(key, name, made(folder))
        self.state = self.state.model_copy(update={"owners": (os.geteuid(),)})

    def _refuse_foreign_trees(self) -> None:
        """Refuse folders that are not those that Assay made, or hold what PostgreSQL did not make."""
        if self.state.saved is not None:
            own = TreeCheck(display=self.display, owners={os.geteuid()})
            self._refuse_foreign_tree(own, "folders", self.state.saved.folder)
        if self.state.data is None:
            return
        wal = self.wal_folder(self.state.data)
        server = TreeCheck(
            display=self.display,
            owners={os.geteuid(), *self.state.owners},
            links={"pg_wal": [str(wal)] if wal is not None else [], "pg_tblspc": list(self.state.tablespaces)},
        )
        self._refuse_foreign_tree(server, "folders", self.state.data)
        if wal is not None:
            self._refuse_foreign_tree(server, "wal_folders", wal.name)
        for path in self._spaces_of(self.state.data):
            with self._attempted(path, _opened_trusted(path, self.display)) as folder:
                self._refuse_other(path, self.state.tablespaces[str(path)], folder)
                for name in _versions(folder):
                    with opened_below(name, folder) as below:
                        server.refuse_foreign(below, path / name)

    def _refuse_foreign_tree(self, check: TreeCheck, key: str, name: str) -> None:
        with self._opened(key, name) as folder:
            self._refuse_other(self._place(key) / name, getattr(self.state, key).get(name), folder)
            check.refuse_foreign(folder, self._place(key) / name)

    def _refuse_other(self, path: Path, known: Made | None, folder: int) -> None:
        if made(folder) != known:
            raise RefusedTarget(
                f"{self.display}: {printable(path)} is not the folder that Assay made (a copy, or put in its place); "
                "move the whole database instead of copying it, or give another folder, and load again"
            )

    def _opened(self, key: str, name: str) -> AbstractContextManager[int]:
        """Open a folder of `folders` or `wal_folders`."""
        return self._attempted(self._place(key) / name, opened_below(name, self._descriptor(key)))

    def _place(self, key: str) -> Path:
        return self.directory if key == "folders" else self.wal_directory or self.directory

    def _descriptor(self, key: str) -> int:
        return self._folder if key == "folders" else self._wal

    @contextlib.contextmanager
    def _attempted(self, path: Path, opening: AbstractContextManager[int]) -> Iterator[int]:
        """Open a folder; what fails with it is an error with its path."""
        with contextlib.ExitStack() as stack:
            yield self._attempt(path, lambda: stack.enter_context(opening))

    # What counts

    @property
    def data(self) -> Path | None:
        """PostgreSQL's data directory; None before the first start, and while a restore is under way."""
        return self.directory / self.state.data if self.state.data else None

    @property
    def saved(self) -> Path | None:
        """Folder of the saved state, if there is one."""
        return self.directory / self.state.saved.folder if self.state.saved else None

    @property
    def log(self) -> Path:
        """File the server writes its messages to."""
        return self.directory / "server.log"

    @property
    def tablespaces(self) -> dict[Path, Made]:
        """Folders that Assay made for tablespaces and that are still there."""
        return {path: known for text, known in self.state.tablespaces.items() if (path := Path(text)).is_dir()}

    def wal_folder(self, data: str | None) -> Path | None:
        """Folder of the log that belongs to a data directory; None if it is within."""
        if self.wal_directory is None or data is None:
            return None
        return self.wal_directory / self._wal_name(data)

    def _wal_name(self, data: str) -> str:
        return f"{self.state.id}-wal-{data.removeprefix('data-')}"

    def change(self, **values: Any) -> None:
        """Write what counts from now on, in one step; the folders it names are on the disk already."""
        state = self.state.model_copy(update=values)
        write_state(state, self._folder)
        self.state = state

    def open_log(self) -> int:
        """Open the file of the server's messages; one that has grown large is put aside."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat("server.log", dir_fd=self._folder, follow_symlinks=False).st_size > LOG_BYTES_MAX:
                os.replace("server.log", "server.log.1", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        return open_or_create("server.log", self._folder, os.O_RDWR | os.O_APPEND)

    @contextlib.contextmanager
    def data_opened(self) -> Iterator[int]:
        """Open the data directory."""
        assert self.state.data is not None
        with self._opened("folders", self.state.data) as folder:
            yield folder

    def let_pass(self) -> None:
        """Let the server's user pass the folder of the log, of which it still lists nothing."""
        if self._wal >= 0:
            os.fchmod(self._wal, stat.S_IMODE(os.fstat(self._wal).st_mode) | 0o011)

    # Folders that Assay makes

    def make(self, kind: str, owner: tuple[int, int]) -> Path:
        """Make a folder, `data` or `saved`, that counts only once the state names it; of data the log's with it.

        Parameters
        ----------
        owner
            User and group it is given.
        """
        is_data = kind == "data"
        taken = {*os.listdir(self._folder), *(os.listdir(self._wal) if is_data and self._wal >= 0 else ())}
        used = max((int(name.partition("-")[2]) for name in self.state.folders if name.startswith(kind)), default=0)
        name = next(
            name
            for number in itertools.count(used + 1)
            if (name := f"{kind}-{number}") not in taken and not (is_data and self._wal_name(name) in taken)
        )
        self._make("folders", name, owner)
        if is_data and self.wal_directory is not None:
            self._make("wal_folders", self._wal_name(name), owner)
        return self.directory / name

    def _make(self, key: str, name: str, owner: tuple[int, int]) -> None:
        os.mkdir(name, 0o700, dir_fd=self._descriptor(key))
        with self._opened(key, name) as folder:
            # Written down before anything is in it: from here on it may be deleted.
            self._record(key, name, made(folder))
            self.change()
            if owner != (os.geteuid(), os.getegid()):
                os.fchown(folder, *owner)

    def _record(self, key: str, name: str, known: Made) -> None:
        self.state = self.state.model_copy(update={key: {**getattr(self.state, key), name: known}})

    def make_tablespace(self, folder: Path, owner: tuple[int, int]) -> Path:
        """Make a folder for a tablespace, in one that is made with it; where it really is.

        Parameters
        ----------
        folder
            What is to hold both must be there; an empty folder left by an earlier layout is used again.

        Raises
        ------
        UsageError
            There is nothing to make it in.
        RefusedTarget
            Something stands there that Assay did not make for this database, or others could exchange it.
        OSError
            It cannot be made.
        """
        try:
            os.close(open_trusted(folder.parent.parent, self.display)[1])
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{self.display}: directory {printable(folder.parent.parent)} does not exist; make it first"
            ) from None
        parent = folder.parent.parent
        for name in (folder.parent.name, folder.name):
            where, way = open_trusted(parent, self.display)
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755 if name == folder.parent.name else 0o700, dir_fd=way)
                parent = where / name
                with opened_below(name, way) as descriptor:
                    if name == folder.name:
                        self._take_tablespace(parent, descriptor, owner)
            except NotADirectoryError:
                raise RefusedTarget(
                    f"{self.display}: {printable(where / name)} is no folder; move it away, or name another directory"
                ) from None
            finally:
                os.close(way)
        return parent

    def _take_tablespace(self, path: Path, folder: int, owner: tuple[int, int]) -> None:
        known = self.state.tablespaces.get(self._storable(path))
        if known != made(folder):
            if os.listdir(folder) or os.fstat(folder).st_uid != os.geteuid():
                raise RefusedTarget(
                    f"{self.display}: {printable(path)} is not this database's; move it away, or name another directory"
                )
            self._record("tablespaces", str(path), made(folder))
            self.change()
        os.fchown(folder, *owner)

    def give(self, owner: tuple[int, int]) -> None:
        """Let everything of the server's belong to who it runs as now."""
        assert self.data is not None
        if self.state.owners == (owner[0],):
            return
        self.change(owners=(*self.state.owners[-2:], owner[0]))
        give_tree(self.data, *owner)
        wal = self.wal_folder(self.state.data)
        for folder in [*([wal] if wal is not None else []), *self._spaces_of(self.data.name)]:
            give_tree(folder, *owner)
        self.change(owners=(owner[0],))

    # What does not count

    def tidy(self) -> None:
        """Delete what does not count: copies that were cut short, and what they were to replace."""
        counting = {self.state.data, self.state.saved.folder if self.state.saved else None}
        wal = self._wal_name(self.state.data) if self.state.data else None
        kept: dict[str, dict[str, Made]] = {}
        for key, counts in (("folders", counting), ("wal_folders", {wal})):
            known: dict[str, Made] = getattr(self.state, key)
            for name in known:
                if name not in counts:
                    self._delete(name, self._descriptor(key), known[name])
            kept[key] = {name: one for name, one in known.items() if name in counts}
        if kept != {key: getattr(self.state, key) for key in kept}:
            self.change(**kept)

    def _delete(self, name: str, parent: int, known: Made) -> None:
        """Delete a folder if it is the one that Assay made; a user's of the same name stays."""
        try:
            with opened_below(name, parent) as folder:
                if made(folder) != known:
                    return
        except (FileNotFoundError, NotADirectoryError):
            return
        if name.startswith("data-"):
            in_use = self._spaces_of(self.state.data) if self.state.data else []
            for path in self._spaces_of(name):
                if path not in in_use:
                    self._empty_tablespace(path)
        delete_below(name, parent)

    def _empty_tablespace(self, path: Path) -> None:
        """Delete the server's files of a tablespace; what else is there is not ours."""
        known = self.state.tablespaces.get(str(path))
        gone = contextlib.suppress(FileNotFoundError, NotADirectoryError)
        with gone, _opened_trusted(path, self.display) as folder:
            if made(folder) == known:
                for name in _versions(folder):
                    delete_below(name, folder)

    def _spaces_of(self, data: str) -> list[Path]:
        """Folders that Assay made for the tablespaces of a data directory."""
        try:
            with opened_below(data, self._folder) as folder, opened_below("pg_tblspc", folder) as links:
                targets = [
                    os.readlink(name, dir_fd=links)
                    for name in os.listdir(links)
                    if stat.S_ISLNK(os.stat(name, dir_fd=links, follow_symlinks=False).st_mode)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [Path(target) for target in targets if target in self.state.tablespaces]


@contextlib.contextmanager
def _opened_trusted(path: Path, display: str) -> Iterator[int]:
    """Open a folder that no other user but the server's could exchange."""
    _, way = open_trusted(path.parent, display)
    try:
        with opened_below(path.name, way) as folder:
            yield folder
    finally:
        os.close(way)


def _versions(space: int) -> list[str]:
    """Folders in which servers keep their files of a tablespace: each has one of its version's name."""
    return [name for name in os.listdir(space) if re.fullmatch(r"PG_[0-9]+_[0-9]+", name)]

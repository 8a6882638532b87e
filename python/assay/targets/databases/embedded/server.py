"""Processes of the embedded PostgreSQL: its programs run to their end, the server started and stopped.

The server is a child of the launcher, which holds the other end of a pipe: when this process ends, however it ends,
the pipe closes and the launcher stops the server cleanly.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import psutil

from assay.base.errors import NotAnswering, OpenFailed, OutOfSpace
from assay.base.log import event
from assay.base.paths import open_regular
from assay.targets.databases.embedded.programs import PATIENCE_S, Programs, environment

START_TIMEOUT_S = 1800.0
"""How long a start may take: crash recovery reads all the log since the last checkpoint."""

KILL_TIMEOUT_S = 10.0
"""How long processes that were killed may take to be gone."""
STOP_TIMEOUT_S = PATIENCE_S + 60.0
"""How long a stop may take: a clean one, and one at once after it."""

LOG_BYTES_MAX = 10 * 1024**2
"""A log larger than this is put aside at a start, in place of the one put aside before."""

SOCKET_PATH_BYTES_MAX = 107
"""unix(7): `sun_path` is 108 bytes, the last of which is zero."""

_PID_FILE = "postmaster.pid"
_PID_FILE_BYTES_MAX = 4096
_NO_PROCESS = 99_999_999
"""Larger than any process's number (`PID_MAX_LIMIT` of linux/threads.h)."""
_SAID_BYTES_MAX = 1024**2


def run_program(
    programs: Programs, program: str, arguments: Sequence[str], display: str, *, shown: Sequence[Path] = ()
) -> None:
    """Run a program of PostgreSQL to its end.

    Parameters
    ----------
    shown
        As of `Programs.command`.

    Raises
    ------
    OpenFailed, OutOfSpace
        It failed; the line is its own last one.
    """
    done = subprocess.run(
        programs.command(program, *arguments, shown=shown),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=environment(),
        cwd="/",
    )
    if done.returncode:
        raise _failure(display, f"{program} failed", done.stderr)


class PostgresServer:
    """One running server of a data directory."""

    def __init__(self, data: Path, log: Path, open_log: Callable[[], int], display: str) -> None:
        """Know a server that is not started yet.

        Parameters
        ----------
        log, open_log
            File of its messages, for messages of ours, and what opens it for reading and appending.
        """
        self.data = data
        self.log = log
        self.display = display
        self._open_log = open_log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server lives, as far as its launcher knows."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Process of the server's postmaster."""
        lines = _pid_file(self.data)
        if not self.is_running or self._process is None or not lines or not _is_child(lines[0], self._process.pid):
            return None
        return int(lines[0])

    def start(
        self,
        programs: Programs,
        arguments: Sequence[str],
        *,
        held: Sequence[int],
        shown: Sequence[Path],
        left_over: Sequence[Path],
    ) -> None:
        """Start the server and wait until it takes connections, after crash recovery if it needs one.

        Parameters
        ----------
        arguments
            Arguments of the server, beside its data directory.
        held
            Descriptors that the server's processes inherit: they stay locked while one of them lives.
        shown, left_over
            As of `Programs.command`.

        Raises
        ------
        OpenFailed, OutOfSpace
            It does not start; the line is the last of its log.
        NotAnswering
            It takes longer than `START_TIMEOUT_S`.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        command = programs.command(
            *("postgres", "-D", str(self.data), *arguments),
            lifeline=True,
            shown=shown,
            left_over=left_over,
            own_memory=True,
        )
        while True:
            log = self._open_log()
            try:
                # What the pipe's other end says counts from now on, not what a server that was killed has left.
                begin = os.lseek(log, 0, os.SEEK_END)
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=environment(),
                    pass_fds=tuple(held),
                    start_new_session=True,
                )
                if self._wait_until_ready(deadline):
                    return
                said = os.pread(log, _SAID_BYTES_MAX, begin).decode(errors="replace")
            finally:
                os.close(log)
            self.forget()
            # Processes of a server that was killed hold its memory for a moment longer, and one whose launcher was
            # killed is still stopping: the folder's lock is ours, so that it is no other's.
            if not re.search(r"still in use|\"postmaster\.pid\" already exists", said) or time.monotonic() > deadline:
                raise _failure(self.display, "PostgreSQL does not start", said, log=self.log)
            _disown(self.data)
            time.sleep(0.2)

    def _wait_until_ready(self, deadline: float) -> bool:
        """Whether it takes connections; False if it ended instead."""
        assert self._process is not None
        event("child begun", program="postgres", pid=self._process.pid, folder=self.data)
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
        event("child ended", program="postgres", pid=process.pid, code=process.returncode)
        self._process = None

    def kill(self) -> None:
        """End all its processes at once, as a power cut does."""
        pid = self.pid
        ended = [] if pid is None else [pid, *_children_of(pid)]
        for one in ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.forget()
        # They hold what they had open until they are gone.
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while any(_is_there(one) for one in ended) and time.monotonic() < deadline:
            time.sleep(0.02)

    def forget(self) -> None:
        """Let go of a server that has ended by itself."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
            event("child ended", program="postgres", pid=self._process.pid, code=self._process.returncode)
            self._process = None


def stop_stray(data: Path, owners: Collection[int]) -> None:
    """Tell a server to stop that was left behind by a process that died.

    Parameters
    ----------
    owners
        Users whom the data may belong to. Their file may name any process: another user's is none of its servers.
    """
    lines = _pid_file(data)
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        if lines and _stands_in(int(lines[0]), data) and psutil.Process(int(lines[0])).uids().real in owners:
            os.kill(int(lines[0]), signal.SIGINT)


def _stands_in(pid: int, data: Path) -> bool:
    """Whether a process stands in a data directory, as those of its server do."""
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/cwd"), os.stat(data))
    except OSError:
        return False


def _disown(data: Path) -> None:
    """Let the file of a server that is gone name no process, where another process has the server's number by now.

    The rest of the file stays: PostgreSQL finds by it whether memory of that server is still in use.
    """
    lines = _pid_file(data)
    if not lines or not lines[0].isdecimal() or _stands_in(int(lines[0]), data):
        return
    with contextlib.suppress(OSError):
        descriptor = open_regular(data / _PID_FILE, os.O_RDWR)
        try:
            if os.fstat(descriptor).st_nlink == 1:
                text = "\n".join([str(_NO_PROCESS), *lines[1:], ""])
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, text.encode(), 0)
        finally:
            os.close(descriptor)


def _pid_file(data: Path) -> list[str]:
    try:
        descriptor = open_regular(data / _PID_FILE)
    except OSError:
        return []
    try:
        return os.read(descriptor, _PID_FILE_BYTES_MAX).decode(errors="replace").splitlines()
    finally:
        os.close(descriptor)


def _is_child(pid: str, parent: int) -> bool:
    try:
        text = Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return False
    # The name in brackets may hold blanks; after it come state and parent.
    return int(text.rpartition(")")[2].split()[1]) == parent


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _children_of(parent: int) -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _is_child(name, parent)]


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

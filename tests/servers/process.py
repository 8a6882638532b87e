"""What the tests' servers have in common: a process that ends with the tests, and databases with names of their own."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from assay.targets.databases.embedded.programs import Programs
from assay_command import Bench

PASSWORD = "t0p-s3cret"
"""Of the superuser and of every user that tests make."""

USER = "tester"

START_TIMEOUT_S = 120.0

MEMORY = Path("/dev/shm")
REMOVALS_MAX = 50
"""Attempts to remove a folder, a tenth of a second apart."""

MEMORY_BYTES_MIN = 4 << 30
"""Free there at least, or the servers' files are on disk."""


class ServerProcess(ABC):
    """One server.

    Attributes
    ----------
    port
        On 127.0.0.1.
    url
        Of a database that is always there, as superuser, password included.
    """

    scheme: str
    url: str

    def __init__(self, folder: Path, programs: Programs) -> None:
        self.folder = folder
        self.programs = programs
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        folder.chmod(0o755)
        os.chown(folder, *programs.identity.owner)

    @property
    def pid(self) -> int:
        """The server itself, not its launcher."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0])

    def start(self) -> None:
        """Start it, with what it holds, and wait until it answers."""
        log = (self.folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            self._command(), stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", start_new_session=True
        )
        log.close()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "server.log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it cleanly; the databases stay."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(START_TIMEOUT_S)
            self._process = None

    def restart(self) -> None:
        """Stop it if it still runs, and start it."""
        self.stop()
        self.start()

    def kill9(self) -> None:
        """Kill it as a power failure would; `restart` lets it recover.

        Its other processes end by themselves, and hold its memory until they have.
        """
        pids = _processes(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(START_TIMEOUT_S)
        deadline = time.monotonic() + START_TIMEOUT_S
        while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.02)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let all its processes stand still: it takes connections, and answers nothing."""
        pids = _processes(self.pid)
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def fresh_database(self, options: str = "") -> str:
        """Make a database, empty without other options of `CREATE DATABASE`; gives its URL, password included."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.url_of(name)

    def loaded_database(self) -> str:
        """Make a database of one warehouse, as `load` leaves it; gives its URL."""
        url = self.fresh_database()
        load_warehouse(url)
        return url

    def url_of(self, database: str, *, user: str = USER, password: str = PASSWORD) -> str:
        """URL of a database over the loopback."""
        return f"{self.scheme}://{user}:{password}@127.0.0.1:{self.port}/{database}"

    @abstractmethod
    def execute(self, sql: str) -> None:
        """Run a statement as superuser."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _answers(self) -> bool: ...


@contextmanager
def folder_of_files(prefix: str) -> Iterator[Path]:
    """A folder for a server's files: in memory where there is room, because no test here is about the disk below it."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if has_room else None))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a server's files; a child of one that was killed may write a last one meanwhile."""
    for _ in range(REMOVALS_MAX):
        with suppress(OSError):
            shutil.rmtree(folder)
            return
        time.sleep(0.1)
    shutil.rmtree(folder)


def load_warehouse(url: str) -> None:
    """Load one warehouse with the command."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = Bench(Path(folder)).assay("oltp", "tpcc", url, "load", "--warehouses", "1", "--no-report", "--quiet")
    assert loaded.code == 0, loaded.stderr


def _processes(pid: int) -> list[int]:
    """A process and all that it started."""
    children = [
        int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [pid] + [process for child in children for process in _processes(child)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

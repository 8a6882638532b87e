"""What makes situations: commands of Assay, servers, loads, recordings."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.targets.databases.embedded.database import shipped_programs
from servers import postgresql as servers
from servers.process import PASSWORD, USER

ASSAY = [sys.executable, "-m", "assay"]


class CannotBeMade(Exception):
    """A machine lacks what a situation needs."""


@dataclass(frozen=True)
class Situation:
    """One situation: its name, where it is made, the cause that is known, and how it is made."""

    name: str
    where: str
    expected: str
    make: Callable[[Path], list[str]]


def assay(*arguments: str | Path, check: bool = True) -> str:
    """Standard output of a command of Assay."""
    done = subprocess.run([*ASSAY, *map(str, arguments)], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"assay {' '.join(map(str, arguments))}: {done.stderr[-600:]}")
    return done.stdout


def profile(folder: Path, target: str, *options: str) -> list[str]:
    """A run of `assay profile`."""
    assay("profile", target, *options, "--no-report", "--quiet", "-o", folder / "runs")
    return run_in(folder)


def run_in(folder: Path) -> list[str]:
    """The run that was made in a folder."""
    return [str(next((folder / "runs").iterdir()))]


def model(target: str, *options: str) -> Callable[[Path], list[str]]:
    """A run on a model."""
    return lambda folder: profile(folder, f"model:{target}", *options)


SHORT = ("--duration", "20s")
OLTP = ("--block", "8K", "--read", "70")


@contextlib.contextmanager
def recording(folder: Path, seconds: float, *options: str) -> Iterator[str]:
    """`assay record` beside what is done within; it ends by itself."""
    rec = folder / "recording"
    process = subprocess.Popen(
        [*ASSAY, "record", str(rec), "--for", f"{seconds}s", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield str(rec)
        _, told = process.communicate(timeout=seconds + 60)
        if process.returncode != 0:
            raise RuntimeError(told.decode()[-400:])
    finally:
        process.kill()


@contextlib.contextmanager
def postgresql(scale: int, **settings: str) -> Iterator[Any]:
    """A PostgreSQL server of its own with pgbench's tables."""
    if shutil.which("pgbench") is None:
        raise CannotBeMade("pgbench is not installed")
    kept = dict(servers.SETTINGS)
    # Tests keep servers in memory; here the disk is what it is about.
    with tempfile.TemporaryDirectory(prefix="assay-diagnosis-") as name:
        place = Path(name)
        servers.SETTINGS.update({"checkpoint_timeout": "10min", "max_wal_size": "8GB", **settings})
        try:
            server = servers.PostgresqlServer(place, shipped_programs())
            server.start()
        finally:
            servers.SETTINGS.clear()
            servers.SETTINGS.update(kept)
        try:
            server.execute("create database bench")
            pgbench(server, "-i", "-q", "-s", str(scale)).wait()
            server.execute("checkpoint")
            yield server
        finally:
            server.stop()


def pgbench(server: Any, *arguments: str) -> subprocess.Popen[bytes]:
    """Pgbench on a server's database, begun."""
    place = ["-h", "127.0.0.1", "-p", str(server.port), "-U", USER, "bench"]
    return quietly("pgbench", *arguments, *place, PGPASSWORD=PASSWORD)


def quietly(*command: str | Path, **environment: str) -> subprocess.Popen[bytes]:
    """A program that is begun and says nothing."""
    return subprocess.Popen(
        list(map(str, command)), env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@contextlib.contextmanager
def running(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    """Processes that are ended afterwards."""
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in processes:
            process.wait(30)


def beside(server: Any) -> tuple[str, ...]:
    """Options that record a server."""
    return ("--database", server.url_of("bench"))


def load(server: Any, folder: Path, seconds: int, *arguments: str) -> list[str]:
    """Pgbench under the recorder."""
    with recording(folder, seconds, *beside(server)) as rec, running(pgbench(server, "-T", str(seconds), *arguments)):
        time.sleep(seconds)
    return [rec]


def script(folder: Path, sql: str) -> str:
    """A file of pgbench's."""
    path = folder / "script.sql"
    path.write_text(sql)
    return str(path)

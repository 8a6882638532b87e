"""The real `assay` command as a subprocess, and the places it is tried on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SHORT = ("--warmup", "0s", "--duration", "0.3s")
"""Points as short as they can be and still hold some ticks."""

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""mkfs and losetup live in sbin, which is not in every user's PATH."""


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong; standard error holds nothing else."""
        (line,) = self.stderr.splitlines()
        assert line.startswith("assay: ")
        return line


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of `assay` in this environment."""
    return [sys.executable, "-m", "assay", *map(str, arguments)]


class Bench:
    """A folder to measure in, with the results in `results` beside the target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.target = folder / "target" / "f"
        self.target.parent.mkdir()

    def assay(self, *arguments: str | Path, prefix: Sequence[str] = (), timeout_s: float = 120) -> Outcome:
        """Run a command to its end."""
        done = subprocess.run(
            [*prefix, *command(*arguments)], cwd=self.folder, capture_output=True, text=True, timeout=timeout_s
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def profile(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Outcome:
        """Run `assay profile` without report, results kept in the bench."""
        return self.assay("profile", *arguments, "--no-report", "-o", self.results, prefix=prefix)

    def measure(self, *arguments: str | Path) -> Outcome:
        """Run `assay profile` with one short point a load, and the JSON document."""
        return self.profile(*arguments, *SHORT, "--json")

    @contextmanager
    def started(self, *arguments: str | Path) -> Iterator[Started]:
        """A command that goes on while the test looks; killed at the end if it still does."""
        with (self.folder / "stdout").open("w") as out, (self.folder / "stderr").open("w") as err:
            process = subprocess.Popen(command(*arguments), cwd=self.folder, stdout=out, stderr=err)
        running = Started(process, self.folder)
        try:
            yield running
        finally:
            process.kill()
            process.wait()

    @property
    def runs(self) -> list[Path]:
        """Run folders, oldest first."""
        return sorted(self.results.iterdir()) if self.results.exists() else []

    @property
    def run(self) -> Path:
        """The only run folder."""
        (run,) = self.runs
        return run

    def manifest(self) -> dict[str, Any]:
        """Manifest of the only run."""
        manifest: dict[str, Any] = json.loads((self.run / "run.json").read_text())
        return manifest

    def point_lines(self) -> list[bytes]:
        """Finished lines of the only run's points; none while there is no run."""
        files = list(self.results.glob("*/points.jsonl"))
        return (
            [line for line in files[0].read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] if files else []
        )

    def made(self) -> list[str]:
        """Everything in the target's folder and the results: nothing after a refusal."""
        return sorted(str(path.relative_to(self.folder)) for path in (*self.target.parent.iterdir(), *self.runs))


@dataclass(frozen=True)
class Started:
    """A command under way."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def wait_until(self, happened: Callable[[], object], *, seconds: float = 60, every_s: float = 0.01) -> None:
        """Wait for something the command does; fails if it ends or takes too long before."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, f"it did not happen in {seconds} s: {self.stderr}"
            assert self.process.poll() is None or happened(), f"ended with {self.process.returncode}: {self.stderr}"
            time.sleep(every_s)

    def wait_until_ended(self, push: Callable[[], None], *, seconds: float = 20, every_s: float = 0.3) -> None:
        """Do something again and again until the command has ended."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end: {self.stderr}"
            push()
            time.sleep(every_s)

    def end(self, seconds: float = 60) -> Outcome:
        """Wait for the end."""
        code = self.process.wait(seconds)
        return Outcome(code, self.stdout, self.stderr)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def run_tool() -> Callable[..., str]:
    """Run a system tool that must succeed, or skip the test where it is not installed."""

    def run(name: str, *arguments: str | Path) -> str:
        if shutil.which(name, path=PATH) is None:
            pytest.skip(f"{name} is not installed")
        environment = os.environ | {"PATH": PATH}
        done = subprocess.run(
            [name, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            pytest.skip(f"{name} is not allowed here: {done.stderr.strip()}")
        return done.stdout.strip()

    return run


@pytest.fixture
def mounted(tmp_path: Path, run_tool: Callable[..., str]) -> Iterator[Callable[..., Path]]:
    """Mount something on a new folder: `mounted("-t", "tmpfs", "-o", "size=4m", "none")`."""
    _need_root()
    points: list[Path] = []

    def mount(*arguments: str | Path) -> Path:
        point = tmp_path / f"mount{len(points)}"
        point.mkdir()
        run_tool("mount", *arguments, point)
        points.append(point)
        return point

    yield mount
    for point in reversed(points):
        run_tool("umount", point)


@pytest.fixture
def loop_device(tmp_path: Path, run_tool: Callable[..., str]) -> Iterator[Callable[[int], Path]]:
    """Attach a loop device of a size in bytes."""
    _need_root()
    devices: list[str] = []

    def attach(size_bytes: int) -> Path:
        image = tmp_path / f"image{len(devices)}"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        devices.append(run_tool("losetup", "--find", "--show", image))
        return Path(devices[-1])

    yield attach
    for device in devices:
        run_tool("losetup", "--detach", device)


@pytest.fixture
def public_bench() -> Iterator[Bench]:
    """A bench every user may write to, which pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="assay-test-"))
    folder.chmod(0o777)
    bench = Bench(folder)
    bench.target.parent.chmod(0o777)
    yield bench
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody() -> list[str]:
    """Command prefix that gives up root's rights; nothing for who has none."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    if subprocess.run([*prefix, *command("--version")], capture_output=True, cwd="/", check=False).returncode:
        pytest.skip("an unprivileged user may not run this environment's Python")
    return prefix


def _need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices and mounts")

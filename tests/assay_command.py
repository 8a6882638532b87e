"""The real `assay` command as a process, and the bench it is tried on."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_fork import ForkedCommand

SHORT = ("--warmup", "0s", "--duration", "0.3s")
"""Points as short as they can be and still hold some ticks."""

ANSWERED = (0, 1, 5)
"""Exit codes of a run that ended: whether a limit is met depends on the machine that runs the test."""


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
    """Return the command line of `assay` with an interpreter of its own, for tests of how the command starts."""
    return [sys.executable, "-m", "assay", *map(str, arguments)]


def start_interpreter(arguments: Sequence[str], folder: Path, stdout: Path, stderr: Path) -> subprocess.Popen[bytes]:
    """Start the command with an interpreter of its own, for tests of what others see of the process."""
    with stdout.open("wb") as out, stderr.open("wb") as err:
        return subprocess.Popen(command(*arguments), cwd=folder, stdout=out, stderr=err)


class Bench:
    """A folder to measure in, with the results in `results` beside the target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.target = folder / "target" / "f.dat"
        self.target.parent.mkdir()

    def assay(self, *arguments: str | Path, prefix: Sequence[str] = (), timeout_s: float = 120) -> Outcome:
        """Run a command to its end; with a prefix in an interpreter of its own, otherwise forked (`assay_fork`)."""
        if prefix:
            done = subprocess.run(
                [*prefix, *command(*arguments)], cwd=self.folder, capture_output=True, text=True, timeout=timeout_s
            )
            return Outcome(done.returncode, done.stdout, done.stderr)
        with tempfile.TemporaryDirectory(prefix="assay-streams-") as streams, self._started(streams, *arguments) as run:
            return run.end(timeout_s)

    def profile(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Outcome:
        """Run `assay profile` without report, results kept in the bench."""
        return self.assay("profile", *arguments, "--no-report", "-o", self.results, prefix=prefix)

    def verify(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Outcome:
        """Run `assay verify` without report, results kept in the bench."""
        return self.assay("verify", *arguments, "--no-report", "-o", self.results, prefix=prefix)

    def measure(self, *arguments: str | Path) -> Outcome:
        """Run `assay profile` with one short point a load, and the JSON document."""
        return self.profile(*arguments, *SHORT, "--json")

    def started(self, *arguments: str | Path, forked: bool = True) -> AbstractContextManager[Started]:
        """A command that goes on while the test looks; killed at the end if it still does."""
        return self._started(self.folder, *arguments, forked=forked)

    @contextmanager
    def _started(self, streams: str | Path, *arguments: str | Path, forked: bool = True) -> Iterator[Started]:
        start = ForkedCommand if forked else start_interpreter
        process = start([*map(str, arguments)], self.folder, Path(streams, "stdout"), Path(streams, "stderr"))
        try:
            yield Started(process, Path(streams))
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

    process: ForkedCommand | subprocess.Popen[bytes]
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

    def end(self, seconds: float = 200) -> Outcome:
        """Wait for the end."""
        code = self.process.wait(seconds)
        return Outcome(code, self.stdout, self.stderr)

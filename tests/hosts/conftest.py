from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.run.hosts import target as hosts_target
from assay.run.hosts.agent import Agent
from assay.run.hosts.links import named_hosts
from assay.run.hosts.wire import GREETING, Receiver, Sender


class ThreadLink:
    """An agent as a thread of this process, over the same pipes: as quick as tests must be."""

    def __init__(self) -> None:
        self._to_read, self._to_write = os.pipe()
        self._from_read, self._from_write = os.pipe()
        self.is_cut = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        def write(data: bytes) -> None:
            view = memoryview(data)
            while view:
                view = view[os.write(self._from_write, view) :]

        write(GREETING)
        try:
            Agent(Receiver(lambda size: os.read(self._to_read, size)), Sender(write)).run()
        finally:
            os.close(self._from_write)
            os.close(self._to_read)

    def write(self, data: bytes) -> None:
        os.write(self._to_write, data)

    def read(self, size: int) -> bytes:
        return b"" if self.is_cut else os.read(self._from_read, size)

    def why_ended(self) -> str:
        return "cut off"

    def end(self, *, kill: bool = False) -> None:
        del kill
        self.is_cut = True
        with suppress(OSError):
            os.close(self._to_write)
        self.thread.join(20)
        assert not self.thread.is_alive(), "an agent outlives its run"


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ThreadLink]]:
    """Agents are threads; gives those that were started."""
    started: list[ThreadLink] = []

    def links(request: Any) -> list[tuple[str, Any]]:
        named = [(name, ThreadLink()) for name, _ in named_hosts(request.hosts)]
        started.extend(link for _, link in named)
        return named

    monkeypatch.setattr(hosts_target, "_links", links)
    yield started
    for link in started:
        assert not link.thread.is_alive(), "an agent outlives its run"


def until(happened: Callable[[], object], *, seconds: float = 60) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"it did not happen in {seconds} s"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


Assay = Callable[..., dict[str, Any]]


@pytest.fixture
def assay(tmp_path: Path) -> Assay:
    """Runs a verb in this process; gives its document, with its exit code."""

    def run(*words: str | Path) -> dict[str, Any]:
        given = [str(word) for word in words]
        # A run folder is locked as long as anything knows of it.
        gc.collect()
        output = [] if "--resume" in given else ["-o", str(tmp_path / "results")]
        done = CliRunner().invoke(app, [*given, *output, "--json", "--quiet", "--no-report"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return {"exit_code": getattr(done.exception, "exit_code", 99), "complaint": str(done.exception)}
        document: dict[str, Any] = json.loads(done.stdout)
        return document | {"exit_code": done.exit_code}

    return run

"""Agents as threads of this process, and verbs that use them run in it."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.fleet.agent import Agent
from assay.fleet.wire import GREETING, Receiver, Sender

Assay = Callable[..., dict[str, Any]]


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


def runner(folder: Path) -> Assay:
    """Runs a verb in this process, with its results in a folder; gives its document, with its exit code."""

    def run(*words: str | Path) -> dict[str, Any]:
        given = [str(word) for word in words]
        # A run folder is locked as long as anything knows of it.
        gc.collect()
        output = [] if "--resume" in given else ["-o", str(folder / "results")]
        done = CliRunner().invoke(app, [*given, *output, "--json", "--quiet", "--no-report"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return {"exit_code": getattr(done.exception, "exit_code", 99), "complaint": str(done.exception)}
        document: dict[str, Any] = json.loads(done.stdout)
        return document | {"exit_code": done.exit_code}

    return run

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_threads import Assay, ThreadLink, runner
from assay.fleet import choosing
from assay.fleet.links import named_hosts


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ThreadLink]]:
    """Agents are threads; gives those that were started."""
    started: list[ThreadLink] = []

    def links(request: Any) -> list[tuple[str, Any]]:
        named = [(name, ThreadLink()) for name, _ in named_hosts(request.hosts)]
        started.extend(link for _, link in named)
        return named

    monkeypatch.setattr(choosing, "_links", links)
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


@pytest.fixture
def assay(tmp_path: Path) -> Assay:
    """Runs a verb in this process; gives its document, with its exit code."""

    return runner(tmp_path)

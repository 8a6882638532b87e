"""The recorder's process: a database that goes away and comes back, while all else goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import RunFolderError
from assay.results.flight import read_recording, told_of
from assay.telemetry.flight import process
from assay.telemetry.flight.process import Flight
from servers.process import ServerProcess

WAIT_S = 60.0


def until(condition: Callable[[], Any]) -> None:
    """Wait for something that must come about."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def rows_of(folder: Path, source: str) -> list[int]:
    """Times of the rows of a source; none while the file is being made."""
    try:
        rows = read_recording(folder).to_pylist()
    except RunFolderError:
        return []
    return [row["t_ns"] for row in rows if row["source"] == source]


def last(folder: Path, source: str) -> int:
    return max(rows_of(folder, source), default=0)


@pytest.mark.parametrize("mortal", ["postgresql18"], indirect=True)
def test_a_database_that_goes_away_is_a_gap_and_comes_back(
    mortal: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "COMMIT_S", 0.2)
    said: list[str] = []
    settings = {
        "folder": str(tmp_path), "keep_bytes": 64 << 20, "interval_s": 0.2, "for_s": None, "roles": {},
        "databases": [mortal.url], "metrics": None, "processes": False, "told": {},
    }  # fmt: skip
    flight = Flight(settings, said.append)
    thread = threading.Thread(target=flight.run)
    thread.start()
    try:
        until(lambda: (tmp_path / "recording.sqlite").exists() and rows_of(tmp_path, "postgresql"))
        mortal.stop()
        until(lambda: any("does not answer" in line for line in said))
        gone_ns = time.time_ns()
        until(lambda: last(tmp_path, "host") > gone_ns + 10**9)
        assert last(tmp_path, "postgresql") < gone_ns
        mortal.start()
        until(lambda: last(tmp_path, "postgresql") > gone_ns)
        until(lambda: any("did not answer for" in line for line in said))
    finally:
        flight.stop()
        thread.join()

    assert any("did not answer for" in notice for notice in told_of(tmp_path)["notices"])

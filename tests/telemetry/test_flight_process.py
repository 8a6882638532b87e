"""The recorder's process: a database that goes away and comes back, while all else goes on."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import RunFolderError
from assay.record.flight import read_recording, told_of
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
        rows = read_recording(folder).records()
    except RunFolderError:
        return []
    return [row["t_ns"] for row in rows if row["source"] == source]


def settings_of(folder: Path, *databases: str) -> dict[str, Any]:
    """Settings of a recorder that samples five times a second."""
    return {
        "folder": str(folder), "keep_bytes": 64 << 20, "interval_s": 0.2, "for_s": None, "roles": {},
        "databases": list(databases), "metrics": None, "processes": False, "told": {},
    }  # fmt: skip


def last(folder: Path, source: str) -> int:
    return max(rows_of(folder, source), default=0)


@pytest.mark.parametrize("mortal", ["postgresql18"], indirect=True)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_database_that_goes_away_is_a_gap_and_comes_back(
    mortal: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "COMMIT_S", 0.2)
    said: list[str] = []
    flight = Flight(settings_of(tmp_path, mortal.url), said.append)
    thread = threading.Thread(target=flight.run)
    thread.start()
    try:
        until(lambda: rows_of(tmp_path, "postgresql"))
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


ALONE = """
import json, signal, sys
from assay.telemetry.flight import process
process.COMMIT_S = 0.2
flight = process.Flight(json.loads(sys.argv[1]), lambda line: print(line, file=sys.stderr, flush=True))
signal.signal(signal.SIGTERM, flight.stop)
sys.exit(flight.run())
"""


def test_on_a_full_disk_samples_wait_until_there_is_room(tmp_path: Path) -> None:
    folder, told = tmp_path / "rec", tmp_path / "told"
    folder.mkdir()
    with told.open("w") as file:
        alone = subprocess.Popen([sys.executable, "-c", ALONE, json.dumps(settings_of(folder))], stderr=file)
    try:
        until(lambda: rows_of(folder, "host"))
        # As a disk that is full: a file may grow no further.
        soft, hard = resource.prlimit(alone.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(alone.pid, resource.RLIMIT_FSIZE, (4096, hard))
        until(lambda: "wait in memory" in told.read_text())
        full_ns = time.time_ns()
        until(lambda: time.time_ns() > full_ns + 2 * 10**9)
        assert last(folder, "host") < full_ns
        resource.prlimit(alone.pid, resource.RLIMIT_FSIZE, (soft, hard))
        until(lambda: "samples are written again" in told.read_text())
    finally:
        alone.terminate()
        code = alone.wait(WAIT_S)

    assert code == 0, told.read_text()
    assert any(full_ns < t_ns < full_ns + 2 * 10**9 for t_ns in rows_of(folder, "host"))
    assert not any("samples are lost" in notice for notice in told_of(folder)["notices"])

"""A trace of somebody else: it does not decide which file is written nor how far, and another does not take its place.

The attack: places and sizes as large as their columns hold, a link where the target should be, a trace that changed
before a replay goes on.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from assay.record.rows import TextColumn
from assay.traces.file import TraceWriter
from assay.traces.head import TraceHead
from assay.traces.ios import IoFlag, Ios

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

MIB = 1 << 20
PRECIOUS = b"precious" * (MIB // 8)


def writes(path: Path, places: list[int], sizes: list[int]) -> Path:
    """A trace of writes, one each 2 ms, of a device and a process with names of their own."""
    count = len(places)
    times, zeros = np.arange(count) * 2_000_000, np.zeros(count, np.int64)
    device, process = (TextColumn(np.zeros(count, np.int32), [name]) for name in ("../../etc/x", "; rm -rf /"))
    with TraceWriter(path, TraceHead(source="bench")) as writer:
        flags = np.full(count, int(IoFlag.WRITE), np.uint16)
        writer.write(Ios(times, zeros, zeros + 1000, np.array(places), np.array(sizes), flags, device, process))
    return path


def replayed(bench: Bench, *words: str | Path) -> Outcome:
    return bench.assay("replay", *words, "--no-report", "-o", bench.results)


@pytest.mark.parametrize("mapping", ["fold", "scale", "volume"])
def test_places_and_sizes_without_end_stay_within_the_file(bench: Bench, mapping: str) -> None:
    far = 2**63 - 4096
    trace = writes(bench.folder / "far.trace", [0, far, far // 2, 4096], [4096, 4095, 4096, 2**32 - 1])
    (bench.folder / "beside.dat").write_bytes(PRECIOUS)
    outcome = replayed(bench, trace, bench.target, "--size", "16M", "--map", mapping)
    assert outcome.code in (0, 1, 2), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not bench.target.exists() or bench.target.stat().st_size == 16 * MIB
    assert (bench.folder / "beside.dat").read_bytes() == PRECIOUS
    if outcome.code == 2:
        assert len(outcome.complaint.splitlines()) == 1


def test_a_link_does_not_lead_a_replay_to_the_file_of_another(bench: Bench) -> None:
    trace = writes(bench.folder / "a.trace", [0, 8192], [4096, 4096])
    precious = bench.folder / "precious.dat"
    precious.write_bytes(PRECIOUS)
    (bench.folder / "link.dat").symlink_to(precious)
    outcome = replayed(bench, trace, bench.folder / "link.dat")
    assert outcome.code == 2
    assert "--overwrite" in outcome.complaint
    assert precious.read_bytes() == PRECIOUS


def test_points_of_another_trace_are_in_no_answer(bench: Bench) -> None:
    trace = writes(bench.folder / "a.trace", [0, 8192] * 100, [4096] * 200)
    words = (bench.target, "--size", "16M", "--search", "speed", "--start", "0.25", "--end", "1")
    with bench.started("replay", trace, *words, "--no-report", "-o", bench.results) as running:
        running.wait_until(bench.point_lines)
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    (first, *_) = [json.loads(line)["id"] for line in bench.point_lines()]
    trace.unlink()
    writes(trace, [0, 16_384] * 100, [8192] * 200)
    document = bench.assay("replay", "--resume", bench.run, "--no-report", "--json").document
    assert any("another model, plan or trace are in no answer" in one and first in one for one in document["notices"])
    assert first not in json.dumps(document["answers"])

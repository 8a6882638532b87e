"""A replay asks every target for the same I/Os: files, devices, served arrays, models, and several hosts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.traces.file import read_trace
from assay.traces.ios import IoFlag, joined_ios
from assay_command import ANSWERED
from made_traces import poisson_trace
from mounting import needs_fuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay_command import Bench

SPAN_BYTES = 16 << 20


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return poisson_trace(tmp_path / "orders.trace", iops=60, seconds=2, span_bytes=SPAN_BYTES, flush_every=40)


def asked(trace: Path) -> tuple[int, int, int]:
    """Reads, writes and flushes of a trace."""
    ios = joined_ios(list(read_trace(trace).batches()))
    read, write, flush = (int(ios.has(flag).sum()) for flag in (IoFlag.READ, IoFlag.WRITE, IoFlag.FLUSH))
    return read, write, flush


def done_of(point: dict[str, Any]) -> tuple[int, int, int]:
    read, write, flush = (point[side]["count"] if point[side] else 0 for side in ("read", "write", "flush"))
    return read, write, flush


def replayed(bench: Bench, *words: str | Path) -> dict[str, Any]:
    given = ("--json", "--quiet", "--no-report", "-o", bench.results)
    done = bench.assay("replay", *words, *given, timeout_s=280)
    assert done.code in ANSWERED, done.stderr
    (point,) = done.document["points"]
    return dict(point)


def refused(bench: Bench, *words: str | Path) -> str:
    done = bench.assay("replay", *words, "--no-report", "-o", bench.results)
    assert done.code == 2
    return done.stderr


# Without times, since what was due at the end of a slow machine's replay is left out.


def test_a_file_gets_all_ios(bench: Bench, trace: Path) -> None:
    assert done_of(replayed(bench, trace, bench.folder / "f.dat", "--closed")) == asked(trace)


def test_a_model_gets_all_ios(bench: Bench, trace: Path) -> None:
    assert done_of(replayed(bench, trace, "model:ps6100xv?raid=10", "--closed")) == asked(trace)


@needs_fuse
def test_a_served_array_gets_all_ios_and_is_taken_away(bench: Bench, trace: Path) -> None:
    target = f"array:ps6100xv?raid=10&volumes=1&size=64M&at={bench.folder}/group"
    assert done_of(replayed(bench, trace, target, "--closed")) == asked(trace)
    assert str(bench.folder) not in Path("/proc/self/mountinfo").read_text()


def test_a_device_gets_all_ios_and_none_without_leave(
    bench: Bench, trace: Path, loop_device: Callable[[int], Path]
) -> None:
    device = loop_device(2 * SPAN_BYTES)
    held = device.read_bytes()

    assert f"--overwrite {device}" in refused(bench, trace, device)
    assert device.read_bytes() == held
    point = replayed(bench, trace, device, "--overwrite", device, "--closed")

    assert done_of(point) == asked(trace)
    assert device.read_bytes()[SPAN_BYTES:] == held[SPAN_BYTES:]


def test_a_device_with_a_file_system_takes_both_options(
    bench: Bench, trace: Path, loop_device: Callable[[int], Path], run_tool: Callable[..., str]
) -> None:
    device = loop_device(2 * SPAN_BYTES)
    run_tool("mkfs.ext4", "-q", device)
    held = device.read_bytes()

    complaint = refused(bench, trace, device, "--overwrite", device)

    assert "carries ext2/ext3/ext4" in complaint
    assert f"--yes-destroy {device}" in complaint
    assert device.read_bytes() == held


def test_a_mounted_device_is_refused_whatever_is_allowed(
    bench: Bench, trace: Path, loop_device: Callable[[int], Path], run_tool: Callable[..., str],
    mounted: Callable[..., Path],
) -> None:  # fmt: skip
    device = loop_device(2 * SPAN_BYTES)
    run_tool("mkfs.ext4", "-q", device)
    mounted(device)

    assert "mounted" in refused(bench, trace, device, "--overwrite", device, "--yes-destroy", device)


def test_a_trace_that_only_reads_needs_no_leave_and_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    trace = poisson_trace(tmp_path / "reads.trace", iops=60, seconds=2, span_bytes=SPAN_BYTES, read_share=1.0)
    mine = bench.folder / "mine.dat"
    mine.write_bytes(os.urandom(SPAN_BYTES))
    held = mine.read_bytes()

    point = replayed(bench, trace, mine, "--closed")

    assert (done_of(point), mine.read_bytes() == held) == (asked(trace), True)


@pytest.mark.slow(reason="two agents as processes; that they share the I/Os runs by default")
def test_hosts_share_the_ios(bench: Bench, trace: Path) -> None:
    files = bench.folder / "{host}.dat"
    point = replayed(bench, trace, files, "--closed", "--hosts", "local,local")
    # What a host did while the other did not run counts for neither.
    each = [done_of(host["point"]) for host in point["hosts"]]
    assert len(each) == 2
    for place, most in enumerate(asked(trace)[:2]):
        assert 0 < sum(one[place] for one in each) <= most

"""Capture of this host's own I/O by the kernel's trace."""

from __future__ import annotations

import errno
import os
import signal
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tracing import BLOCK_BYTES, direct_file, instances, read_blocks, traced_devices, write_blocks

from assay import _core
from assay.base.errors import AssayError, UsageError
from assay.traces.capture import ftrace
from assay.traces.capture.ftrace import TraceInstance, open_tracefs, remove_stale
from assay.traces.capture.record import CaptureReport, CaptureRequest, ios_of, record_trace
from assay.traces.file import Trace, read_trace
from assay.traces.ios import IoFlag, Ios, joined_ios
from assay_command import Bench

COUNT = 50


def own_process() -> str:
    return Path("/proc/self/comm").read_text().strip()


def own(ios: Ios, flag: IoFlag) -> Ios:
    """I/Os of this process of a kind."""
    mine = ios.process.matching(own_process().__eq__)
    return ios.where(mine & ios.has(flag) & (ios.size_bytes == BLOCK_BYTES))


def test_each_io_has_its_times_place_and_process(tmp_path: Path) -> None:
    devices = traced_devices(tmp_path)
    with TraceInstance(devices) as instance, direct_file(tmp_path) as file:
        write_blocks(file, COUNT)
        capture = _core.BlockCapture(instance.rings, instance.layout, origin_ns=0, keeps_ios=True)
        instance.start()
        write_blocks(file, COUNT)
        read_blocks(file, COUNT)
        instance.stop()
        capture.finish()
        capture.close()
        ios = ios_of(capture, [device.name for device in devices])
        assert instance.lost_events() == 0
    assert instances() == []
    reads, writes = own(ios, IoFlag.READ), own(ios, IoFlag.WRITE)
    assert (len(reads), len(writes)) == (COUNT, COUNT)
    assert (reads.place_bytes == writes.place_bytes).all()
    assert (reads.queue_ns >= 0).all()
    assert (reads.device_ns > 0).all()
    assert (np.diff(ios.t_ns) >= 0).all()
    assert set(ios.device.column()) <= {device.name for device in devices}


def test_latencies_are_counted_without_keeping_ios(tmp_path: Path) -> None:
    devices = traced_devices(tmp_path)
    with TraceInstance(devices) as instance, direct_file(tmp_path) as file:
        write_blocks(file, COUNT)
        capture = _core.BlockCapture(instance.rings, instance.layout, origin_ns=0, keeps_ios=False)
        instance.start()
        read_blocks(file, COUNT)
        instance.stop()
        capture.finish()
        capture.close()
        found = {direction: (counts, sums, most) for _, direction, counts, sums, most in capture.latencies()}
    (queue, device), (_, device_sum_ns), (_, device_most_ns) = found["read"]
    assert sum(queue) >= COUNT
    assert sum(device) >= COUNT
    assert device_sum_ns >= device_most_ns > 0
    assert capture.latencies() == []
    assert len(ios_of(capture, ["vda"])) == 0


def test_a_recording_ends_with_its_time_and_says_what_it_holds(tmp_path: Path) -> None:
    devices = traced_devices(tmp_path)
    stopping, path = threading.Event(), tmp_path / "own.trace"
    with direct_file(tmp_path) as file:
        write_blocks(file, COUNT)
        told: list[str] = []
        request = CaptureRequest(devices=tuple(devices), path=path, duration_s=0.5, anonymise=True)
        done: list[object] = []
        recording = threading.Thread(target=lambda: done.append(record_trace(request, stopping, told.append)))
        recording.start()
        while recording.is_alive():
            read_blocks(file, COUNT)
    trace = read_trace(path)
    assert trace.end is not None
    assert trace.end.lost_events == 0
    ((begin_ns, end_ns),) = trace.end.windows
    assert 0 <= begin_ns < end_ns
    ios = joined_ios(list(trace.batches()))
    assert len(ios) == trace.end.ios
    assert (ios.has(IoFlag.READ) & (ios.size_bytes == BLOCK_BYTES)).sum() >= COUNT
    assert {name for name in ios.process.texts if name and not name.startswith("process ")} == set()
    assert instances() == []
    with pytest.raises(UsageError, match="exists"):
        record_trace(request, stopping, told.append)


def test_nothing_stays_switched_on_when_a_capture_is_killed(bench: Bench) -> None:
    traced_devices(bench.folder)
    path = bench.folder / "killed.trace"
    with (
        direct_file(bench.folder) as file,
        bench.started("trace", "record", bench.folder, "-o", path, forked=False) as run,
    ):

        def has_ios() -> bool:
            write_blocks(file, COUNT)
            return path.exists() and path.stat().st_size > 0 and len(read_trace(path).spans) > 0

        run.wait_until(has_ios)
        run.process.send_signal(signal.SIGKILL)
        run.process.wait()
        deadline = threading.Event()
        while instances():
            assert not deadline.wait(0.05)
    assert read_trace(path).end is None
    assert sum(map(len, read_trace(path).batches())) > 0


def test_an_interrupted_capture_is_whole(bench: Bench) -> None:
    traced_devices(bench.folder)
    path = bench.folder / "one.trace"
    with bench.started("trace", "record", bench.folder, "-o", path) as run:
        run.wait_until(lambda: path.exists() and instances())
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait() == 130
        assert "trace: " in run.stdout
    assert read_trace(path).end is not None
    assert instances() == []


def test_instances_of_killed_captures_go_at_the_next_start_and_others_stay(tmp_path: Path) -> None:
    devices = traced_devices(tmp_path)
    tracefs = open_tracefs()
    try:
        os.mkdir("instances/assay-999999999-1", dir_fd=tracefs)
        with TraceInstance(devices) as instance:
            assert instances() == [instance.name]
            remove_stale(tracefs)
            assert instances() == [instance.name]
    finally:
        os.close(tracefs)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EPERM, "run as root"),
        (errno.EACCES, "CAP_SYS_ADMIN"),
        (errno.ENOSYS, "mount -t tracefs"),
        (errno.ENODEV, "CONFIG_BLK_DEV_IO_TRACE"),
        (errno.ENOMEM, "no memory"),
        (errno.EIO, "tracing failed"),
    ],
)
def test_a_kernel_that_refuses_is_explained(number: int, words: str) -> None:
    error = ftrace._refusal(OSError(number, os.strerror(number)))
    assert isinstance(error, AssayError)
    assert words in str(error)


def recorded(folder: Path, **asked: Any) -> tuple[CaptureReport, Trace]:
    """A recording of I/Os that are made all the time."""
    devices, path = traced_devices(folder), folder / "one.trace"
    request = CaptureRequest(devices=tuple(devices), path=path, **asked)
    found: list[CaptureReport] = []
    with direct_file(folder) as file:
        write_blocks(file, COUNT)
        recording = threading.Thread(
            target=lambda: found.append(record_trace(request, threading.Event(), lambda _: None))
        )
        recording.start()
        while recording.is_alive():
            read_blocks(file, COUNT)
    (report,) = found
    return report, read_trace(path)


def test_samples_are_windows_of_which_the_trace_says_when_they_were(tmp_path: Path) -> None:
    report, trace = recorded(tmp_path, duration_s=0.9, window_s=0.2, every_s=0.4)
    assert trace.end is not None
    windows = trace.end.windows
    assert 1 <= len(windows) <= 3
    assert all(before[1] < after[0] for before, after in pairwise(windows))
    for ios in trace.batches():
        places = np.searchsorted([begin for begin, _ in windows], ios.t_ns, side="right") - 1
        assert (places >= 0).all()
        assert (ios.t_ns <= np.array([end for _, end in windows])[places]).all()
    assert report.seconds == pytest.approx(sum(end - begin for begin, end in windows) / 1e9)


def test_a_trace_ends_once_it_is_as_large_as_it_may_be(tmp_path: Path) -> None:
    report, trace = recorded(tmp_path, duration_s=60, bytes_max=100)
    assert report.ended_by == "size"
    assert trace.end is not None
    assert report.bytes == trace.path.stat().st_size
    assert report.seconds < 60

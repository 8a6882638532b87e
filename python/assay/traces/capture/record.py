"""Recording of a trace: the kernel's events as I/Os into a file, within a time and a size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import numpy as np
import numpy.typing as npt

from assay import _core
from assay.base.units import count_of, format_bytes, format_duration
from assay.record.rows import TextColumn
from assay.traces.capture.anonymise import Anonymised
from assay.traces.capture.devices import CapturedDevice, bytes_counted
from assay.traces.capture.ftrace import TraceInstance
from assay.traces.file import TraceWriter
from assay.traces.head import TracedDevice, TraceHead
from assay.traces.ios import Ios

LOOK_S = 0.2
"""Between two looks at what was captured, and at whether to end."""

FLUSH_S = 10.0
"""Longest time that an I/O waits for its place in the file once it is joined: what `kill -9` loses."""

MISSED_SHARE = 0.01
"""Share of the bytes that devices counted and the trace lacks, from which on this is said."""
MISSED_BYTES = 2**24
"""The least of these: I/Os that are under way at an edge are counted on the other side."""


@dataclass(frozen=True, kw_only=True)
class CaptureRequest:
    """A trace that is to be recorded.

    Attributes
    ----------
    devices
        The devices whose I/O it holds.
    path
        The file, which does not exist.
    duration_s
        For how long; None until it is stopped.
    window_s, every_s
        For how long I/O is captured, and how often; both None all the time.
    bytes_max
        The largest size of the file; None without a bound.
    anonymise
        Whether places are moved.
    notes
        What the head says beside.
    """

    devices: tuple[CapturedDevice, ...]
    path: Path
    duration_s: float | None = None
    window_s: float | None = None
    every_s: float | None = None
    bytes_max: int | None = None
    anonymise: bool = False
    notes: tuple[str, ...] = ()


@dataclass(kw_only=True)
class CaptureReport:
    """What came of a recording.

    Attributes
    ----------
    seconds
        How long I/O was captured.
    ios, bytes
        I/Os in the file, and its size.
    lost_events
        Events that the kernel dropped.
    unfinished
        I/Os whose end was not seen.
    ended_by
        `time`, `size` or `stop`.
    notices
        What a reader must know.
    """

    seconds: float = 0.0
    ios: int = 0
    bytes: int = 0
    lost_events: int = 0
    unfinished: int = 0
    ended_by: str = "time"
    notices: list[str] = field(default_factory=list)


def record_trace(request: CaptureRequest, stopping: Event, tell: Callable[[str], None]) -> CaptureReport:
    """Record a trace until its time is over, its file is as large as it may be, or it is stopped.

    Parameters
    ----------
    stopping
        Ends the recording once it is set.
    tell
        Called with a line of progress now and then.

    Raises
    ------
    NotSupported
        The kernel's tracing cannot be used.
    UsageError, OutOfSpace, IoFailed
        The file exists, or cannot be written.
    """
    with TraceInstance(request.devices) as instance:
        origin_ns = time.monotonic_ns()
        head = TraceHead(
            source="ftrace",
            origin_utc_ns=time.time_ns(),
            devices=tuple(TracedDevice(name=one.name, size_bytes=one.size_bytes) for one in request.devices),
            times="split",
            notes=request.notes,
        )
        capture = _core.BlockCapture(instance.rings, instance.layout, origin_ns=origin_ns, keeps_ios=True)
        try:
            with TraceWriter(request.path, head) as writer:
                return _Recording(request, instance, capture, writer, origin_ns, tell).run(stopping)
        finally:
            capture.close()


class _Recording:
    """A recording at work."""

    def __init__(
        self, request: CaptureRequest, instance: TraceInstance, capture: _core.BlockCapture, writer: TraceWriter,
        origin_ns: int, tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._request, self._instance, self._capture, self._writer = request, instance, capture, writer
        self._origin_ns, self._tell = origin_ns, tell
        self._moved = Anonymised(request.devices) if request.anonymise else None
        self._windows: list[tuple[int, int]] = []
        self._flushed_s = 0.0
        self._told_s = time.monotonic()
        self._is_full = False
        self._bytes = 0
        self._device_names = [device.name for device in request.devices]

    def run(self, stopping: Event) -> CaptureReport:
        """Record until the end; the file is closed."""
        began_s = self._origin_ns / 1e9
        ends_s = began_s + self._request.duration_s if self._request.duration_s is not None else float("inf")
        missed: list[str] = []
        for begin_s, end_s in self._window_times(began_s, ends_s):
            if stopping.wait(max(begin_s - time.monotonic(), 0)):
                break
            missed = self._window(min(end_s, ends_s), stopping)
            if self._is_full or stopping.is_set():
                break
        counts = self._capture.counts()
        lost = max(self._instance.lost_events(), counts["lost"])
        report = CaptureReport(
            seconds=sum(end - begin for begin, end in self._windows) / 1e9, ios=self._writer.ios,
            lost_events=lost, unfinished=counts["unfinished"],
            ended_by="size" if self._is_full else "stop" if stopping.is_set() else "time", notices=missed,
        )  # fmt: skip
        if lost:
            report.notices.append(f"the kernel dropped {count_of(lost, 'event')}: I/Os are missing, or lack times")
        if counts["damaged_pages"]:
            report.notices.append(
                f"{count_of(counts['damaged_pages'], 'page')} of the kernel's trace could not be read"
            )
        notes = [f"{notice[0].upper()}{notice[1:]}." for notice in report.notices]
        self._writer.close(lost_events=lost, windows=self._windows, notes=notes)
        report.bytes = self._writer.bytes_written
        return report

    def _window_times(self, began_s: float, ends_s: float) -> Iterator[tuple[float, float]]:
        window_s, every_s = self._request.window_s, self._request.every_s
        if window_s is None or every_s is None:
            yield began_s, ends_s
            return
        number = 0
        while began_s + number * every_s < ends_s:
            begin_s = began_s + number * every_s
            yield begin_s, begin_s + window_s
            # A host that slept, or a disk that hung, leaves windows out.
            number = max(number + 1, int((time.monotonic() - began_s) // every_s) + 1)

    def _window(self, end_s: float, stopping: Event) -> list[str]:
        """Capture until a time; what the trace lacks."""
        bytes_before, counted = self._bytes, [bytes_counted(name) for name in self._device_names]
        begin_ns = time.monotonic_ns() - self._origin_ns
        self._instance.start()
        while not (stopping.is_set() or self._is_full) and (now_s := time.monotonic()) < end_s:
            self._capture.run(round(min(LOOK_S, end_s - now_s) * 1e9))
            self._keep()
            self._say(end_s)
        self._instance.stop()
        self._windows.append((begin_ns, time.monotonic_ns() - self._origin_ns))
        self._capture.finish()
        self._keep()
        self._writer.flush()
        after = [bytes_counted(name) for name in self._device_names]
        counts = [
            now - before for now, before in zip(after, counted, strict=True) if now is not None and before is not None
        ]
        return list(_missed(sum(counts), self._bytes - bytes_before))

    def _keep(self) -> None:
        """Bring what was captured into the file."""
        ios = ios_of(self._capture, self._device_names)
        if len(ios):
            self._bytes += int(ios.size_bytes.sum())
            self._writer.write(self._moved.of(ios) if self._moved is not None else ios)
        now_s = time.monotonic()
        if now_s - self._flushed_s >= FLUSH_S:
            self._flushed_s = now_s
            self._writer.flush()
        most = self._request.bytes_max
        self._is_full = most is not None and self._writer.bytes_written >= most

    def _say(self, end_s: float) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < 5:
            return
        self._told_s = now_s
        left = f", {format_duration(end_s - now_s)} left" if end_s < float("inf") else ""
        lost = self._capture.counts()["lost"]
        words = f", {count_of(lost, 'event')} lost" if lost else ""
        self._tell(f"{count_of(self._writer.ios, 'I/O')}, {format_bytes(self._writer.bytes_written)}{words}{left}")


def _missed(counted: int, traced: int) -> Iterator[str]:
    """Whether devices did more than the trace has, such as by a path that the kernel's events do not cover."""
    if counted - traced > max(MISSED_BYTES, MISSED_SHARE * counted):
        yield (
            f"the devices counted {format_bytes(counted)}, of which the trace has {format_bytes(traced)}: the kernel"
            " did not trace the rest, or it was lost"
        )


def ios_of(capture: _core.BlockCapture, device_names: Sequence[str]) -> Ios:
    """The I/Os that a capture has joined since it was asked last."""
    long, short = capture.columns()

    def column(buffer: _core.ColumnBuffer, kind: type[np.int64 | np.int32]) -> npt.NDArray[np.int64]:
        return np.frombuffer(memoryview(buffer), kind)  # type: ignore[arg-type]

    t_ns, queue_ns, device_ns, places, sizes = (column(one, np.int64) for one in long)
    flags, device, process = (column(one, np.int32) for one in short)
    names = TextColumn(device, list(device_names))
    processes = TextColumn(process, capture.processes())
    return Ios(t_ns, queue_ns, device_ns, places, sizes, flags.astype(np.uint16), names, processes)

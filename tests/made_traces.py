"""Traces that tests make: I/Os at Poisson times, at random places."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assay.record.rows import TextColumn
from assay.traces.file import TraceWriter
from assay.traces.head import TracedDevice, TraceHead
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios


def poisson_trace(
    path: Path,
    *,
    iops: float = 500.0,
    seconds: float = 4.0,
    span_bytes: int = 64 << 20,
    read_share: float = 0.7,
    response_ns: int = 2_000_000,
    devices: tuple[str, ...] = ("sda",),
    flush_every: int = 0,
    seed: int = 1,
    tells_times: bool = True,
) -> Path:
    """Write a trace of 8 KiB I/Os."""
    rng = np.random.default_rng(seed)
    count = round(iops * seconds)
    times = np.sort(rng.uniform(0, seconds * 1e9, count)).astype(np.int64)
    reads = rng.random(count) < read_share
    flags = np.where(reads, int(IoFlag.READ), int(IoFlag.WRITE)).astype(np.uint16)
    size = np.full(count, 8192)
    if flush_every:
        flags[::flush_every], size[::flush_every] = int(IoFlag.FLUSH), 0
    responses = rng.exponential(response_ns, count).astype(np.int64) + 1000
    head = TraceHead(
        source="test", times="split" if tells_times else "none", origin_utc_ns=1_700_000_000 * 10**9,
        devices=tuple(TracedDevice(name=name, size_bytes=span_bytes) for name in devices),
    )  # fmt: skip
    with TraceWriter(path, head) as trace:
        trace.write(Ios(
            times, np.zeros(count, np.int64), responses if tells_times else np.full(count, UNKNOWN_NS),
            rng.integers(0, span_bytes // 8192, count) * 8192, size, flags,
            TextColumn(rng.integers(0, len(devices), count).astype(np.int32), list(devices)),
            TextColumn(rng.integers(0, 2, count).astype(np.int32), ["postgres", "backup"]),
        ))  # fmt: skip
    return path

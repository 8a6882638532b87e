"""The figures of a phase: its verified reads and its writes. A phase asks for right bytes and gives no answers."""

from __future__ import annotations

from assay.record.common_figures import COMMON_FIGURES
from assay.record.figures import Figure

_NAMES = (
    "iops", "bytes_per_s", "read_latency_mean_ns", "read_latency_p99_ns", "write_latency_mean_ns",
    "write_latency_p99_ns",
)  # fmt: skip

FIGURES: tuple[Figure, ...] = tuple(COMMON_FIGURES[name] for name in _NAMES)

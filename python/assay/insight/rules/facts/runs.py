"""What runs measured, for rules that compare a setting with the storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.record.shapes.access import accesses_of
from assay.record.types import Point
from assay.workloads.registry import DEFAULT_KIND

PAGE_BYTES = 8192
SMALL_BYTES = 16384
"""Random I/Os of this size and less are those that databases ask for."""


@dataclass(frozen=True, kw_only=True)
class MeasuredStorage:
    """What a run measured of storage.

    Attributes
    ----------
    iops
        Most I/Os a second of small random reads and writes, of points that were not the generator's limit.
    write_bytes_per_s
        Most bytes written a second, of points that only write: what reads beside writes says nothing of that.
    random_cost
        Time of a random page at one outstanding I/O over that of a sequential one: what `random_page_cost` is.
    origin
        The run.
    """

    iops: float | None = None
    write_bytes_per_s: float | None = None
    random_cost: float | None = None
    origin: str = ""

    @property
    def is_any(self) -> bool:
        """Whether anything was measured."""
        return any(value is not None for value in (self.iops, self.write_bytes_per_s, self.random_cost))


def measured(path: Path) -> MeasuredStorage:
    """Read what a run measured.

    Raises
    ------
    RunFolderError
        It is no run.
    """
    folder = RunFolder.open(path)
    points = [point for point in current_points(folder.points()) if _counts(point)]
    random_ns = _time_of_a_page(points, is_random=True)
    sequential_ns = _time_of_a_page(points, is_random=False)
    iops = [_rate(point, "total", "iops") for point in points if _is_small_random(point)]
    writes = [_rate(point, "write", "bytes_per_s") for point in points if accesses_of(point).get("read_share") == 0.0]
    return MeasuredStorage(
        iops=max((one for one in iops if one > 0), default=None),
        write_bytes_per_s=max((one for one in writes if one > 0), default=None),
        random_cost=max(random_ns / sequential_ns, 1.0) if random_ns and sequential_ns else None,
        origin=str(path),
    )


def _counts(point: Point) -> bool:
    workload, generator = point.get("workload") or {}, point.get("generator") or {}
    return (workload.get("kind") or DEFAULT_KIND) == DEFAULT_KIND and not generator.get("saturated")


def _is_small_random(point: Point) -> bool:
    access = accesses_of(point)
    block_bytes = access.get("block_bytes")
    return access.get("random_share") == 1.0 and isinstance(block_bytes, int) and 0 < block_bytes <= SMALL_BYTES


def _rate(point: Point, side: Literal["read", "write", "total"], key: Literal["iops", "bytes_per_s"]) -> float:
    direction = point.get(side)
    return float(direction[key]) if direction else 0.0


def _time_of_a_page(points: Sequence[Point], *, is_random: bool) -> float | None:
    """Least time of a page of 8 KiB: of random ones the latency of a read alone, of sequential ones bytes over rate."""
    times = []
    for point in points:
        workload = accesses_of(point)
        if workload.get("read_share") != 1.0 or workload.get("random_share") != (1.0 if is_random else 0.0):
            continue
        if is_random:
            read = point.get("read")
            mean = read["latency_ns"].get("mean") if read else None
            if (point.get("load") or {}).get("outstanding") == 1 and workload.get("block_bytes") == PAGE_BYTES and mean:
                times.append(float(mean))
        elif _rate(point, "read", "bytes_per_s"):
            times.append(PAGE_BYTES / _rate(point, "read", "bytes_per_s") * 1e9)
    return min(times, default=None)

"""What preconditioning writes: a workload that ends after its bytes instead of after a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.targets.files.volume import OpenVolume
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec
from assay.workloads.io.plan import IoTiming
from assay.workloads.io.precondition import FAST_BYTES_PER_S

FILL_BLOCK_BYTES = 128 << 10
"""Block of sequential fills (SNIA PTS 2.0.2, workload-independent preconditioning: 128 KiB)."""
DEPTH = 32
"""Outstanding I/Os on each volume."""
TICKS_LEAST, TICK_MIN_S = 20, 0.005
"""Ticks of a filling at the rate of the fastest flash, so that the last one, which is not whole, is a small part."""

FILLING_TIMING = IoTiming(warmup_s=0.0, duration_s=366 * 86400.0)
"""Nothing but its bytes ends a filling."""


@dataclass(frozen=True, kw_only=True)
class Filling:
    """A workload with an activity for each volume, and the bytes after which each ends.

    Attributes
    ----------
    purge
        How the volumes are emptied before it begins; empty where they are not.
    """

    workload: IoWorkloadSpec
    limits: tuple[int, ...]
    purge: str = ""

    @property
    def bytes_in_all(self) -> int:
        """What it writes."""
        return sum(self.limits)

    @property
    def interval_s(self) -> float:
        """Length of its ticks."""
        return max(round(self.bytes_in_all / FAST_BYTES_PER_S / TICKS_LEAST, 3), TICK_MIN_S)


def sequential_fill(volumes: Sequence[OpenVolume], name: str, *, purge: str = "") -> Filling:
    """Write every volume once, from its begin to its end."""
    return _filling(volumes, name, block_bytes=FILL_BLOCK_BYTES, random_share=0.0, purge=purge)


def random_writes(
    volumes: Sequence[OpenVolume],
    name: str,
    *,
    block_bytes: int,
    written_share: float,
    region_share: float = 1.0,
    purge: str = "",
) -> Filling:
    """Write a share of the bytes of every volume at random places of its beginning."""
    return _filling(
        volumes,
        name,
        block_bytes=block_bytes,
        random_share=1.0,
        written_share=written_share,
        region_share=region_share,
        purge=purge,
    )


def _filling(
    volumes: Sequence[OpenVolume],
    name: str,
    *,
    block_bytes: int,
    random_share: float,
    purge: str,
    written_share: float = 1.0,
    region_share: float = 1.0,
) -> Filling:
    activities = tuple(
        IoActivity(
            name=volume.name,
            volume=volume.name,
            block_bytes=block_bytes,
            read_share=0.0,
            random_share=random_share,
            region=(0.0, region_share),
            queue_depth=DEPTH,
        )
        for volume in volumes
    )
    limits = (max(round(volume.size_bytes * written_share) // block_bytes, 1) * block_bytes for volume in volumes)
    return Filling(workload=IoWorkloadSpec(activities=activities, name=name), limits=tuple(limits), purge=purge)

"""Where on the target each device of a trace lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.base.errors import UsageError
from assay.base.units import format_bytes

if TYPE_CHECKING:
    from assay.record.rows import Integers
    from assay.workloads.replay.plan import Fit
    from assay.workloads.replay.survey import Survey

ALIGN_BYTES = 1 << 20
"""Devices begin at multiples of this where several lie on one volume."""


@dataclass(frozen=True)
class Room:
    """A volume of the target: its size, and its sector."""

    name: str
    size_bytes: int
    sector_bytes: int


@dataclass(frozen=True)
class DeviceSeat:
    """Where a device of a trace lies: a part of a volume, and what was the device's size or reach."""

    volume: int
    start_bytes: int
    size_bytes: int
    reach_bytes: int
    fit: Fit
    sector_bytes: int

    @property
    def folds(self) -> float:
        """How many places of the device share a place of the target."""
        return self.reach_bytes / self.size_bytes if self.fit == "fold" else 1.0

    def placed(self, place_bytes: Integers, size_bytes: Integers) -> tuple[Integers, Integers]:
        """Places and lengths on the volume, both whole sectors; longer I/Os than the seat are cut."""
        sector = self.sector_bytes
        length = np.minimum(-(-size_bytes // sector) * sector, self.size_bytes)
        place = place_bytes
        if self.fit == "scale":
            # In doubles: a product of two places has more than 64 bits.
            place = (place_bytes.astype(np.float64) * (self.size_bytes / self.reach_bytes)).astype(np.int64)
        elif self.fit == "fold":
            place = place_bytes % self.size_bytes
        place = np.minimum(place // sector * sector, self.size_bytes - length)
        return self.start_bytes + place, length


Seats = list[dict[str, DeviceSeat]]
"""For each trace, the seats of its devices by name."""


def needed_bytes(found: Sequence[Survey], volumes: int) -> list[int]:
    """Bytes that each volume of a target must have for all places to be kept."""
    sizes = [0] * volumes
    for number, (_, _, reach_bytes) in enumerate(_devices(found)):
        sizes[number % volumes] += _whole(reach_bytes)
    return sizes


def seats(found: Sequence[Survey], rooms: Sequence[Room], fit: Fit) -> Seats:
    """Give each device of each trace its part of a volume: devices are dealt to the volumes in turn.

    Raises
    ------
    UsageError
        Places do not fit and `fit` does not say what becomes of them, or each device is to have a volume of its own
        and their numbers differ.
    """
    devices = _devices(found)
    if fit == "volume" and len(devices) != len(rooms):
        raise UsageError(
            f"--map volume: the trace has {len(devices)} devices ({_names(devices)}) and the target {len(rooms)}"
            " volumes; give as many volumes as devices"
        )
    needed = needed_bytes(found, len(rooms))
    placed: Seats = [{} for _ in found]
    taken = [0] * len(rooms)
    for number, (trace, device, reach_bytes) in enumerate(devices):
        volume = number % len(rooms)
        room = rooms[volume]
        fits = needed[volume] <= _room_bytes(room, alone=len(devices) <= len(rooms))
        if not fits and fit in ("keep", "volume"):
            raise UsageError(
                f"{room.name}: the trace reaches to {format_bytes(needed[volume])} there, and the volume has"
                f" {format_bytes(room.size_bytes)}; give --map fold or --map scale, or a larger --size"
            )
        size_bytes = _whole(reach_bytes) if len(devices) > len(rooms) else min(_whole(reach_bytes), room.size_bytes)
        if fit == "scale" or not fits:
            share = room.size_bytes * (_whole(reach_bytes) / needed[volume])
            size_bytes = int(share) // room.sector_bytes * room.sector_bytes
            if len(devices) > len(rooms):
                size_bytes = size_bytes // ALIGN_BYTES * ALIGN_BYTES
        if size_bytes < room.sector_bytes:
            raise UsageError(f"{room.name}: is too small for {len(devices)} devices; give a larger --size")
        own: Fit = "scale" if fit == "scale" else "fold" if not fits else "keep"
        placed[trace][device] = DeviceSeat(volume, taken[volume], size_bytes, reach_bytes, own, room.sector_bytes)
        taken[volume] += size_bytes
    return placed


def fit_words(placed: Seats) -> str:
    """What a fit changes for caches, in a sentence; empty where places are kept."""
    folds = [seat.folds for one in placed for seat in one.values() if seat.fit == "fold"]
    scales = [seat.size_bytes / seat.reach_bytes for one in placed for seat in one.values() if seat.fit == "scale"]
    if folds:
        return (
            f"places are folded, up to {max(folds):.3g} of the trace on one of the target: data are read again and"
            " overwritten sooner than they were, and caches answer more"
        )
    if scales:
        return (
            f"places are scaled by {min(scales):.3g}: accesses lie nearer to each other or further apart than they did,"
            " and sequential streams are no longer whole"
        )
    return ""


def _devices(found: Sequence[Survey]) -> list[tuple[int, str, int]]:
    return [(trace, device, reach) for trace, one in enumerate(found) for device, reach in one.reach_bytes.items()]


def _names(devices: Sequence[tuple[int, str, int]]) -> str:
    names = [name or "unnamed" for _, name, _ in devices]
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _whole(size_bytes: int) -> int:
    return -(-size_bytes // ALIGN_BYTES) * ALIGN_BYTES


def _room_bytes(room: Room, *, alone: bool) -> int:
    """Bytes of a volume; one that holds a single device needs no whole parts."""
    return _whole(room.size_bytes) if alone else room.size_bytes

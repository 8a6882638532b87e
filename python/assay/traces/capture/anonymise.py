"""Places of a trace moved and names of processes numbered.

The trace then tells how storage is used, and neither where data lie nor which program they belong to.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from assay.record.rows import Integers, TextColumn
from assay.traces.capture.devices import CapturedDevice
from assay.traces.ios import Ios

EXTENT_BYTES = 64 * 2**20
"""Extents are moved whole: what is sequential or near within one stays so."""

EXTENTS_MAX = 2**24
"""Extents of a device that change places, 1 PiB; those behind stay."""


class Anonymised:
    """Extents of each device change places, in an order that is drawn for one file and kept nowhere.

    The extent at a device's end stays where it is, and so does the one before it, into which its neighbour may reach.

    Parameters
    ----------
    devices
        The devices of the trace.
    seed
        Of tests; drawn otherwise.
    """

    def __init__(self, devices: Sequence[CapturedDevice], seed: int | None = None) -> None:
        rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
        counts = (min(max((device.size_bytes or 0) // EXTENT_BYTES - 1, 0), EXTENTS_MAX) for device in devices)
        self._orders: dict[str, Integers] = {
            device.name: rng.permutation(count) for device, count in zip(devices, counts, strict=True)
        }
        self._processes: dict[str, str] = {"": ""}

    def of(self, ios: Ios) -> Ios:
        """The same I/Os at other places, by processes that have numbers instead of names."""
        moved = ios.place_bytes.copy()
        extents = moved // EXTENT_BYTES
        for number, name in enumerate(ios.device.texts):
            order = self._orders[name]
            chosen = (ios.device.numbers == number) & (extents < len(order)) & (ios.size_bytes > 0)
            moved[chosen] += (order[extents[chosen]] - extents[chosen]) * EXTENT_BYTES
        names = [self._processes.setdefault(name, f"process {len(self._processes)}") for name in ios.process.texts]
        process = TextColumn(ios.process.numbers, names)
        return Ios(ios.t_ns, ios.queue_ns, ios.device_ns, moved, ios.size_bytes, ios.flags, ios.device, process)

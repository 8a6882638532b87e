"""Bytes that the system reads ahead on a disk, changed for as long as a database is open."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.base.errors import NotSupported
from assay.base.units import format_bytes

KIB = 1024


class ReadAhead:
    """What disks read ahead, while it differs from what they did.

    Files take it over as they are opened: it is set before a server starts.

    Parameters
    ----------
    sysfs
        Where the kernel shows block devices.
    """

    def __init__(self, sysfs: Path = Path("/sys/class/block")) -> None:
        self._sysfs = sysfs
        self._before: dict[Path, str] = {}

    def set(self, devices: Iterable[str], count: int, what: str) -> list[str]:
        """Let devices read so many bytes ahead; gives what users should know.

        Raises
        ------
        NotSupported
            A device has no read-ahead, or this user may not change it.
        """
        places = {device: self._place(device) for device in devices}
        if not places:
            raise NotSupported(f"{what}: no disk is known under the data; leave read_ahead out")
        told = []
        for device, place in places.items():
            if place is None:
                raise NotSupported(f"{what}: {device} has no read-ahead that can be set; leave read_ahead out")
            if place in self._before:
                continue
            before = place.read_text().strip()
            try:
                place.write_text(str(count // KIB))
            except OSError as error:
                raise NotSupported(
                    f"{what}: the read-ahead of {device} cannot be set ({error.strerror}); run as root on the host, or"
                    " leave read_ahead out"
                ) from error
            self._before[place] = before
            told.append(
                f"{device} reads {format_bytes(count)} ahead while the run is on its database, not"
                f" {format_bytes(int(before) * KIB)}"
            )
        return told

    def restore(self) -> None:
        """Let devices read ahead what they did before; one that is gone needs none."""
        for place, before in self._before.items():
            if place.exists():
                place.write_text(before)
        self._before.clear()

    def _place(self, device: str) -> Path | None:
        """The kernel's file; partitions read ahead as their disk does."""
        folder = (self._sysfs / device).resolve()
        places = (folder / "queue/read_ahead_kb", folder.parent / "queue/read_ahead_kb")
        return next((place for place in places if place.exists()), None)

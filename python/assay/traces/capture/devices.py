"""The devices whose I/O is captured, and the numbers that the kernel's trace has for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import NotSupported, UsageError
from assay.base.paths import printable
from assay.targets.drives.beneath import disks_of
from assay.targets.host import device_of
from assay.targets.kernel import Kernel, number_of, partitions_of, read_number, read_text

SECTOR_BYTES = 512
"""The unit of /sys/block/NAME/size, whatever the device's own sector is."""

MINOR_BITS = 20
"""Of a device's number within the kernel (MKDEV, include/linux/kdev_t.h); that of programs is another one."""


@dataclass(frozen=True, kw_only=True)
class CapturedDevice:
    """A disk whose requests are captured.

    Attributes
    ----------
    name
        Its name in the kernel, such as `vda`.
    number
        Its number within the kernel.
    partitions
        Those of its partitions, which bios carry.
    size_bytes
        Its size, or None where the kernel does not tell.
    """

    name: str
    number: int
    partitions: tuple[int, ...]
    size_bytes: int | None


def captured_devices(places: Sequence[str | os.PathLike[str]], kernel: Kernel | None = None) -> list[CapturedDevice]:
    """The disks beneath files, folders and devices; without any, all disks of this host.

    Raises
    ------
    UsageError
        A place is missing, or lies on no block device of this host.
    NotSupported
        A device takes no requests of the kernel's block layer.
    """
    tables = kernel or Kernel()
    names: dict[str, None] = {}
    for place in places:
        if not os.path.exists(place):
            raise UsageError(f"{printable(place)} is not there; name a device, a file or a folder")
        device = device_of(place, tables)
        if device is None:
            raise UsageError(f"{printable(place)} lies on no block device of this host, so there is no I/O to capture")
        names.update(dict.fromkeys(disks_of([device], tables)))
    found = [_device(name, tables) for name in names or _all_disks(tables)]
    if not found:
        raise NotSupported("this host has no disks whose I/O the kernel traces")
    return found


def _all_disks(tables: Kernel) -> Iterable[str]:
    folder = tables.sys / "block"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    used = [name for name in names if (read_number(folder / name / "size") or 0) > 0]
    return [name for name in disks_of(used, tables) if (folder / name / "mq").exists()]


def _device(name: str, tables: Kernel) -> CapturedDevice:
    folder = tables.sys / "block" / name
    if not (folder / "mq").exists():
        raise NotSupported(f"{name} takes no requests of the block layer, so the kernel does not trace their times")
    number = _number_of(folder)
    if number is None:
        raise NotSupported(f"the kernel does not tell the number of {name}")
    partitions = (_number_of(one) for one in partitions_of(folder.resolve()))
    sectors = read_number(folder / "size")
    return CapturedDevice(
        name=name, number=number, partitions=tuple(one for one in partitions if one is not None),
        size_bytes=None if sectors is None else sectors * SECTOR_BYTES,
    )  # fmt: skip


def _number_of(folder: Path) -> int | None:
    found = number_of(folder)
    return None if found is None else found[0] << MINOR_BITS | found[1]


def bytes_counted(name: str, kernel: Kernel | None = None) -> int | None:
    """Bytes that a device has moved since the host started, by the kernel's own count.

    Sectors read, written and discarded are fields 3, 7 and 14 of `stat` (Documentation/block/stat).
    """
    fields = (read_text((kernel or Kernel()).sys / "block" / name / "stat") or "").split()
    if len(fields) < 8 or not all(field.isdecimal() for field in fields):
        return None
    return SECTOR_BYTES * sum(int(fields[place]) for place in (2, 6, 13) if place < len(fields))

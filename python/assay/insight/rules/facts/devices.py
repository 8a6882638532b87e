"""Facts of block devices and of Linux's own RAID (kernel documentation, ABI/stable/sysfs-block, admin-guide/md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.insight.rules.rule import Subject
from assay.targets.drives.beneath import disks_of, driver_of, transport_of, with_beneath
from assay.targets.host import queue_facts
from assay.targets.kernel import Kernel, disk_of, partitions_of, read_number, read_text
from assay.telemetry.collectors.block import whole_devices

_ALIGNED_BYTES = 2**20
_LEAST_ALIGNED_BYTES = 65536
"""A chunk of RAID that a partition may begin at without splitting pages of databases."""

_SILENT = "/sys does not show it for this device"


def device_subjects(
    names: Iterable[str] | None = None, kernel: Kernel | None = None, *, is_guest: bool | None
) -> list[Subject]:
    """Block devices: those named and what they are built on, or all that hold data."""
    tables = kernel or Kernel()
    folder = tables.sys / "block"
    chosen = with_beneath(names, tables) if names is not None else whole_devices(folder)
    return [
        _device(folder / name, is_guest=is_guest, is_data=True if names is not None else None)
        for name in chosen
        if (folder / name / "queue").exists()
    ]


def _device(place: Path, *, is_guest: bool | None, is_data: bool | None) -> Subject:
    device = Subject("device", place.name, otherwise=_SILENT)
    told = queue_facts(place)
    origin = str(place / "queue")
    for name in ("scheduler", "nr_requests", "rotational", "write_cache", "max_io_bytes", "read_ahead_bytes"):
        device.know(name, told.get(name), origin)
    hardware = read_number(place / "queue/max_hw_sectors_kb")
    device.know("max_hw_io_bytes", hardware * 1024 if hardware is not None else None, origin)
    device.know("add_random", read_number(place / "queue/add_random"), origin)
    device.know("wbt_lat_us", read_number(place / "queue/wbt_lat_usec"), origin)
    device.know("timeout_s", read_number(place / "device/timeout"), str(place / "device"))
    device.know("queue_depth", read_number(place / "device/queue_depth"), str(place / "device"))
    driver = driver_of(place)
    device.know("driver", driver, str(place / "device"))
    if any((place / "slaves").glob("*")) or (place / "loop").exists():
        # What it is built on has the driver.
        device.lack("driver", "it is built on other devices")
    know_transport(device, driver, str(place))
    device.know("is_guest", is_guest, "/sys/class/dmi/id")
    device.know("is_data", is_data, "the target")
    device.lack("is_data", "no folder or device was named as one of data")
    device.know("misaligned_partitions", _misaligned(place), str(place))
    return device


def know_transport(device: Subject, driver: str | None, origin: str) -> None:
    """How a device is reached, and whether it is flash: what virtual disks say of themselves is not believed."""
    transport = transport_of(device.name, driver)
    device.know("transport", transport, origin)
    device.know("takes_scsi", device.name.startswith("sd"), origin)
    rotational = device.get("rotational")
    if transport != "virtual" and rotational is not None:
        device.know("is_flash", not rotational, origin)
    device.lack("is_flash", "a virtual device does not say whether it is flash" if transport == "virtual" else _SILENT)


def _misaligned(place: Path) -> list[str]:
    found = []
    for part in partitions_of(place):
        start, offset = read_number(part / "start"), read_number(part / "alignment_offset") or 0
        if start is None:
            continue
        at = start * 512
        if offset or (at % _ALIGNED_BYTES and at % _LEAST_ALIGNED_BYTES):
            found.append(f"{part.name} begins at {at:,} bytes")
    return found


def is_flash(names: Iterable[str], kernel: Kernel | None = None) -> bool | None:
    """Whether all disks beneath devices are flash; None where one is virtual, or does not say."""
    tables = kernel or Kernel()
    told = [_device(tables.sys / "block" / name, is_guest=None, is_data=None) for name in disks_of(names, tables)]
    values = [one.get("is_flash") for one in told]
    return None if not values or None in values else all(values)


def raid_of(names: Iterable[str], kernel: Kernel | None = None) -> str | None:
    """RAID policy of devices where it is Linux's own and the same for all; else it is not known."""
    tables = kernel or Kernel()
    policies = set()
    for name in names:
        arrays = [one for one in with_beneath([name], tables) if (tables.sys / "block" / one / "md/level").exists()]
        policies |= {_level(tables.sys / "block" / one / "md") for one in arrays} or {None}
    return policies.pop() if len(policies) == 1 else None


def md_subjects(kernel: Kernel | None = None) -> list[Subject]:
    """Linux's own RAID arrays."""
    tables = kernel or Kernel()
    return [_md(folder) for folder in sorted((tables.sys / "block").glob("md*/md")) if _level(folder) is not None]


def _level(folder: Path) -> str | None:
    """Policy of an array: `10` for `raid10`; None of what is no RAID (`linear`, `container`)."""
    kind, _, level = (read_text(folder / "level") or "").partition("raid")
    return level if not kind and level.isdecimal() else None


def _md(folder: Path) -> Subject:
    array = Subject("array", folder.parent.name, otherwise=f"{folder} does not show it")
    origin = str(folder)
    array.know("is_md", True, origin)
    array.know("raid", _level(folder), origin)
    degraded, action = read_number(folder / "degraded"), read_text(folder / "sync_action")
    if degraded is not None:
        state = "healthy" if degraded == 0 else "rebuilding" if action == "recover" else "degraded"
        array.know("state", state, origin)
    members = sorted(folder.glob("dev-*"))
    states = [(read_text(member / "state") or "").split(",") for member in members]
    array.know("spares", sum("spare" in state for state in states), origin)
    size = read_number(folder / "component_size")
    array.know("disk_bytes", size * 1024 if size else None, origin)
    rotational = [read_number(_disk_of_member(member) / "queue/rotational") for member in members]
    if rotational and not any(one != 0 for one in rotational):
        array.know("disk_rpm", 0, origin)
    array.lack("disk_rpm", "the kernel does not show how fast a disk turns; name the array in site.toml")
    array.know("mismatch_count", read_number(folder / "mismatch_cnt"), origin)
    array.know("bitmap", read_text(folder / "bitmap/location"), origin)
    return array


def _disk_of_member(member: Path) -> Path:
    return disk_of((member / "block").resolve())

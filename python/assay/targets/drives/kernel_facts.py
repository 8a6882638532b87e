"""What the kernel shows of a drive in /sys, to every account: model, firmware, link, atomic writes, temperature.

Sources: kernel documentation, ABI/stable/sysfs-block (atomic_write_*), ABI/testing/sysfs-bus-pci (link speed and
width), hwmon/sysfs-interface (thousandths of a degree).
"""

from __future__ import annotations

import re
from pathlib import Path

from assay.base.paths import plain
from assay.record.drives import Drive, DriveAtomicWrites, DriveLink
from assay.targets.drives.beneath import driver_of, transport_of
from assay.targets.drives.numbers import TEXT_MAX, celsius_of
from assay.targets.kernel import Kernel, read_number, read_text

_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s", re.ASCII)
_SENSORS = ("hwmon*", "hwmon/hwmon*", "device/hwmon/hwmon*")
"""Where kernels of 5.5 and later register the sensor of an NVMe controller or of a SATA drive (drivetemp)."""


def drive_shown(name: str, kernel: Kernel | None = None) -> Drive:
    """A drive as the kernel shows it."""
    tables = kernel or Kernel()
    place = tables.sys / "block" / name
    device = _controller(place)
    firmware = read_text(device / "firmware_rev") or read_text(device / "rev")
    model = read_text(device / "model")
    return Drive(
        name=name,
        transport=transport_of(name, driver_of(place)),
        model=plain(model)[:TEXT_MAX] if model else None,
        firmware=plain(firmware)[:TEXT_MAX] if firmware else None,
        told_by="the kernel",
        warning_celsius=_sensor(device, "temp1_max"),
        critical_celsius=_sensor(device, "temp1_crit"),
        link=_link(device / "device") if name.startswith("nvme") else None,
        atomic_writes=_atomic_writes(place / "queue"),
    )


def temperature_of(name: str, kernel: Kernel | None = None) -> float | None:
    """Temperature of a drive by its sensor."""
    return _sensor(_controller((kernel or Kernel()).sys / "block" / name), "temp1_input")


def _controller(place: Path) -> Path:
    """Folder of the device of a disk; of a namespace that several controllers reach, the first one that is live."""
    device = (place / "device").resolve()
    if not device.name.startswith("nvme-subsys"):
        return device
    paths = sorted(path for path in device.glob("nvme[0-9]*") if (path / "state").exists())
    live = [path for path in paths if read_text(path / "state") == "live"]
    return next(iter([*live, *paths]), device).resolve()


def _sensor(device: Path, name: str) -> float | None:
    for pattern in _SENSORS:
        for folder in sorted(device.glob(pattern)):
            value = read_number(folder / name)
            # NVMe shows its limits as 65262 K where it has none.
            if value is not None and (found := celsius_of(round(value / 1000))) is not None:
                return found
    return None


def _link(pci: Path) -> DriveLink | None:
    found = DriveLink(
        transfers_per_s=_speed(pci / "current_link_speed"),
        transfers_per_s_max=_speed(pci / "max_link_speed"),
        lanes=_lanes(pci / "current_link_width"),
        lanes_max=_lanes(pci / "max_link_width"),
    )
    return found if any(found.values()) else None


def _speed(path: Path) -> float | None:
    match = _SPEED.match(read_text(path) or "")
    return float(match[1]) * 1e9 if match else None


def _lanes(path: Path) -> int | None:
    # An emulated device has no link: width 0, or 255 where nothing is known.
    value = read_number(path)
    return value if value is not None and 0 < value <= 32 else None


def _atomic_writes(queue: Path) -> DriveAtomicWrites | None:
    found = DriveAtomicWrites(
        unit_min_bytes=read_number(queue / "atomic_write_unit_min_bytes"),
        unit_max_bytes=read_number(queue / "atomic_write_unit_max_bytes"),
        max_bytes=read_number(queue / "atomic_write_max_bytes"),
        boundary_bytes=read_number(queue / "atomic_write_boundary_bytes"),
    )
    return found if any(value is not None for value in found.values()) else None

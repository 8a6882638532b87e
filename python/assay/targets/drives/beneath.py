"""Which drives lie beneath a block device, and how each is reached."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.base.errors import NotAnswering
from assay.targets.host import device_of
from assay.targets.kernel import Kernel, disk_of, read_text, stack_of


def with_beneath(names: Iterable[str], kernel: Kernel | None = None) -> list[str]:
    """Devices and the disks they are built on, each once."""
    tables = kernel or Kernel()
    found: dict[str, None] = {}
    for name in names:
        for member in stack_of((tables.sys / "block" / name).resolve()):
            found[disk_of(member).name] = None
    return list(found)


def disks_of(names: Iterable[str], kernel: Kernel | None = None) -> list[str]:
    """The disks at the bottom of devices: what two logical volumes of one disk have in common."""
    tables = kernel or Kernel()
    found: dict[str, None] = {}
    for name in names:
        for one in with_beneath([name], tables):
            place = tables.sys / "block" / one
            if any((place / "slaves").glob("*")):
                continue
            backing = read_text(place / "loop/backing_file")
            below = _device_beneath(backing) if backing else None
            found.update(dict.fromkeys(disks_of([below], tables) if below and below != one else [one]))
    return sorted(found)


def _device_beneath(path: str) -> str | None:
    try:
        return device_of(path)
    except (OSError, NotAnswering):
        return None


def driver_of(place: Path) -> str | None:
    """Driver of the device, or of the adapter it hangs on."""
    if not (place / "device").exists():
        return None
    folder = (place / "device").resolve()
    for one in (folder, *list(folder.parents)[:8]):
        link = one / "driver"
        if link.exists():
            name = link.resolve().name
            if name not in ("sd", "sr"):
                return name
    return None


def transport_of(name: str, driver: str | None) -> str:
    """How a device is reached, from its name and its driver."""
    if name.startswith(("vd", "xvd")) or (driver or "").startswith(("virtio", "xen", "vmw", "hv_")):
        return "virtual"
    if name.startswith("nvme"):
        return "nvme"
    if driver in ("ahci", "ata_piix"):
        return "sata"
    if "iscsi" in (driver or ""):
        return "iscsi"
    if driver in ("qla2xxx", "lpfc", "bfa", "fnic", "zfcp"):
        return "fc"
    return "scsi" if name.startswith("sd") else "other"

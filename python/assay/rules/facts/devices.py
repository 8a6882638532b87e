"""Facts of block devices, file systems and multipath devices (kernel documentation, ABI/stable/sysfs-block)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from assay.rules.rule import Subject
from assay.targets.answering import answer_within
from assay.targets.host import folder_facts, queue_facts
from assay.targets.kernel import Kernel, read_number, read_text
from assay.telemetry.collectors.block import parse_diskstats, whole_devices
from assay.telemetry.collectors.multipath import multipath_maps

_ANSWER_S = 5.0
_ALIGNED_BYTES = 2**20


def device_subjects(
    names: Iterable[str] | None = None, kernel: Kernel | None = None, *, is_guest: bool
) -> list[Subject]:
    """Block devices: those named, or all that hold data."""
    tables = kernel or Kernel()
    folder = tables.sys / "block"
    chosen = list(names) if names is not None else [one for one in whole_devices(folder) if not one.startswith("dm-")]
    return [
        _device(folder / name, is_guest=is_guest, is_data=names is not None)
        for name in chosen
        if (folder / name).exists()
    ]


def _device(place: Path, *, is_guest: bool, is_data: bool) -> Subject:
    device = Subject("device", place.name)
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
    driver = _driver(place)
    device.know("driver", driver, str(place / "device"))
    device.know("transport", _transport(place.name, driver), str(place))
    device.know("is_guest", is_guest, "/sys/class/dmi/id")
    device.know("is_data", is_data, "the target")
    device.know("misaligned_partitions", _misaligned(place), str(place))
    return device


def _driver(place: Path) -> str | None:
    """Driver of the device, or of the adapter it hangs on."""
    folder = (place / "device").resolve()
    for one in (folder, *list(folder.parents)[:8]):
        link = one / "driver"
        if link.exists():
            name = link.resolve().name
            if name not in ("sd", "sr"):
                return name
    return None


def _transport(name: str, driver: str | None) -> str:
    if name.startswith(("vd", "xvd")) or (driver or "").startswith(("virtio", "xen", "vmw", "hv_")):
        return "virtual"
    if name.startswith("nvme"):
        return "nvme"
    if driver in ("ahci", "ata_piix"):
        return "sata"
    if "iscsi" in (driver or ""):
        return "iscsi"
    if name.startswith("sd"):
        return "scsi"
    return "other"


def _misaligned(place: Path) -> list[str]:
    found = []
    for part in sorted(place.glob(f"{place.name}*")):
        start = read_number(part / "start")
        offset = read_number(part / "alignment_offset") or 0
        if start is not None and ((start * 512 % _ALIGNED_BYTES not in (0,) and start * 512 % 65536) or offset):
            found.append(f"{part.name} begins at {start * 512:,} bytes")
    return found


def mount_subjects(paths: Iterable[tuple[str, str]]) -> list[Subject]:
    """File systems of folders, each once.

    Parameters
    ----------
    paths
        Folders and their roles.
    """
    found: dict[str, Subject] = {}
    for path, role in paths:
        told = folder_facts(path)
        point = _mount_point(path)
        mount = found.setdefault(point, Subject("mount", point))
        options = [one for one in (told["mount_options"] or "").split(",") if one]
        mount.know("options", options, "/proc/self/mountinfo")
        mount.know("file_system", told["file_system"], "/proc/self/mountinfo")
        for name in ("rsize", "wsize"):
            value = next((one.partition("=")[2] for one in options if one.startswith(f"{name}=")), "")
            mount.know(f"nfs_{name}", int(value) if value.isdecimal() else None, "/proc/self/mountinfo")
        space = answer_within(_ANSWER_S, lambda path=path: os.statvfs(path), what=path)  # type: ignore[misc]
        if space.f_blocks:
            mount.know("free_share", space.f_bavail / space.f_blocks, "statvfs(3)")
        mount.know("is_data", bool(role) or None, "the target")
    return list(found.values())


def _mount_point(path: str) -> str:
    place = os.path.realpath(path)
    while not os.path.ismount(place):
        place = os.path.dirname(place)
    return place


def multipath_subjects(kernel: Kernel | None = None) -> list[Subject]:
    """Multipath devices and what each of their paths did."""
    tables = kernel or Kernel()
    found = []
    text = read_text(tables.proc / "diskstats") or ""
    for name, paths in multipath_maps(tables.sys / "block").items():
        one = Subject("multipath", name)
        states = [read_text(tables.sys / "block" / path / "device/state") or "running" for path in paths]
        running = sum(state in ("running", "live") for state in states)
        one.know("paths_running", running, "/sys/block")
        one.know("paths_failed", len(paths) - running, "/sys/block")
        counted = parse_diskstats(text, paths)
        one.know(
            "ios_by_path",
            {path: counters.read_ios + counters.write_ios for path, counters in counted.items()} or None,
            "/proc/diskstats",
        )
        one.lack(
            "policy",
            "the table of a multipath device is root's to read, and is not read; say it in site.toml: [[multipath]]"
            " policy",
        )
        found.append(one)
    return found


def iscsi_subjects(kernel: Kernel | None = None, *, has_multipath: bool) -> list[Subject]:
    """The iSCSI initiator, where it has a session."""
    tables = kernel or Kernel()
    sessions = sorted((tables.sys / "class/iscsi_session").glob("session*"))
    if not sessions:
        return []
    one = Subject("iscsi", "open-iscsi")
    origin = "/sys/class/iscsi_session"
    targets: dict[str, int] = {}
    for session in sessions:
        target = read_text(session / "targetname") or session.name
        targets[target] = targets.get(target, 0) + 1
    one.know("sessions_per_target", targets, origin)
    one.know("recovery_timeout_s", read_number(sessions[0] / "recovery_tmo"), origin)
    one.know("has_multipath", has_multipath, "/sys/block")
    hosts = sorted((tables.sys / "class/iscsi_host").glob("host*"))
    queue = read_number(tables.sys / "class/scsi_host" / hosts[0].name / "can_queue") if hosts else None
    one.know("can_queue", queue, "/sys/class/scsi_host")
    burst = read_number(sessions[0] / "max_burst_len")
    one.know("max_transfer_bytes", burst, origin)
    return [one]


def is_flash(names: Iterable[str], kernel: Kernel | None = None) -> bool | None:
    """Whether devices are flash; None where one is virtual, or does not say."""
    tables = kernel or Kernel()
    told = []
    for name in names:
        place = tables.sys / "block" / name
        if _transport(name, _driver(place)) == "virtual" or re.match(r"dm-|md", name):
            return None
        rotational = read_number(place / "queue/rotational")
        told.append(None if rotational is None else rotational == 0)
    return None if not told or None in told else all(told)

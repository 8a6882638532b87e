"""Facts of drives: what each says of its own health, and what the kernel shows of its link."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from assay.insight.rules.rule import Subject
from assay.record.drive_health import latest, notes_of
from assay.record.shapes.drive import Drive
from assay.targets.drives.health import drives_beneath, examine, program_for
from assay.targets.kernel import Kernel

_HEALTH = (
    "critical_warnings", "media_errors", "wear_share", "spare_share", "spare_threshold_share", "temperature_celsius",
    "error_log_entries", "unsafe_shutdowns",
)  # fmt: skip
_OWN = ("firmware", "volatile_write_cache", "power_loss_protection", "warning_celsius")


def add_drives(devices: Iterable[Subject], kernel: Kernel | None = None) -> list[str]:
    """Ask the drives among devices for their health; what is not known of them, in a line for each reason."""
    drives = []
    for device in devices:
        if drives_beneath([device.name], kernel) == [device.name]:
            drives.append(examine(device.name, kernel, program=program_for(device.name)))
            know_drive(device, drives[-1], "")
    return [note.text for note in notes_of(drives) if note.tone == "plain"]


def know_drive(device: Subject, drive: Drive, anchor: str) -> None:
    """Facts of a drive, at the end of a run where there is one; `anchor` is the file that says so."""
    origin = anchor or str(drive.get("told_by") or "the kernel")
    device.know("is_drive", True, origin)
    unread = drive.get("unread")
    for name in _HEALTH:
        device.know(name, latest(drive).get(name), origin)
        device.lack(name, f"its health is not known, since {unread}" if unread else "the drive does not say it")
    for name in _OWN:
        device.know(name, drive.get(name), origin)
        device.lack(name, unread or "the drive does not say it")
    for name, value in (drive.get("link") or {}).items():
        device.know(name, value, anchor or "/sys")
    atomic = drive.get("atomic_writes") or {}
    device.know("atomic_write_bytes", atomic.get("unit_max_bytes"), anchor or "/sys")
    device.lack("atomic_write_bytes", "the kernel does not say it: Linux 6.11 and later do")
    device.know("power_fail_bytes", atomic.get("power_fail_bytes"), origin)


def mark_logs(devices: Iterable[Subject], names: Collection[str], origin: str) -> None:
    """Which drives hold a log of a database."""
    for device in devices:
        if device.name in names:
            device.know("is_log", True, origin)

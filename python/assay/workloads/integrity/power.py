"""What is known of drives before a crash: kept in the journal, held against the drives that are there afterwards."""

from __future__ import annotations

import json

from pydantic import TypeAdapter, ValidationError

from assay.record.power_cut import DriveCut, DriveIdentity
from assay.record.shapes.manifest import Target
from assay.workloads.integrity.shapes import Integrity, Journal, JournalDrive

DRIVES_MAX = 64
"""Drives that a journal names; a target on more names none."""


def drives_of(target: Target) -> list[JournalDrive]:
    """Drives that are volumes as a whole, of a manifest's `target`, as they were before the run."""
    known = {drive["name"]: drive for drive in target.get("drives") or ()}
    found = []
    for volume in target.get("volumes") or ():
        name, stack = volume.get("device"), volume.get("device_stack")
        identity = volume.get("identity") or {}
        # A partition or a file has a stack that begins above the drive, or a file system.
        if name not in known or stack != [name] or volume.get("file_system") is not None:
            continue
        drive = known[name]
        found.append(
            JournalDrive(
                name=name,
                model=drive.get("model"),
                firmware=drive.get("firmware"),
                serial=identity.get("serial"),
                wwn=identity.get("wwn"),
                unsafe_shutdowns=(drive.get("before") or {}).get("unsafe_shutdowns"),
            )
        )
    return found if len(found) <= DRIVES_MAX else []


def note_of(target: Target) -> str:
    """The drives of a manifest's `target`, as a journal keeps them."""
    return json.dumps({"drives": drives_of(target)})


def noted_drives(note: str | None) -> list[JournalDrive] | None:
    """The drives that a journal names; None where it names none that can be read.

    Examples
    --------
    >>> noted_drives('{"drives": [{"name": "sda", "serial": "S1", "unsafe_shutdowns": 4}]}')
    [{'name': 'sda', 'serial': 'S1', 'unsafe_shutdowns': 4}]
    >>> noted_drives('{"drives": [{"name": 5}]}') is None
    True
    """
    if note is None:
        return None
    try:
        drives = _DRIVES.validate_python(json.loads(note)["drives"])
    except (ValidationError, ValueError, LookupError, TypeError):
        return None
    return drives if len(drives) <= DRIVES_MAX else None


def power_cuts(integrity: Integrity, target: Target) -> list[DriveCut]:
    """The crash that a check looked at, of each drive that was a volume as a whole then and is now.

    Parameters
    ----------
    integrity, target
        Of the manifest of the check.
    """
    journal = integrity.get("journal")
    if not journal or not journal.get("run"):
        return []
    before = {drive["name"]: drive for drive in journal.get("drives") or ()}
    after = drives_of(target)
    # Names are given anew at each boot: a drive is known by its serial number.
    pairs = [(then, now) for now in after for then in before.values() if _identity(then).is_same(_identity(now))]
    findings = {name: count for name, count in integrity["findings"].items() if count}
    # Findings of several volumes are not told apart by drive.
    return [_cut(journal, findings, then, now) for then, now in pairs] if len(after) == 1 else []


def _cut(journal: Journal, findings: dict[str, int], before: JournalDrive, after: JournalDrive) -> DriveCut:
    counts = before.get("unsafe_shutdowns"), after.get("unsafe_shutdowns")
    torn = findings.get("torn", 0)
    return DriveCut(
        run=journal.get("run") or "",
        before=_identity(before),
        after=_identity(after),
        power_losses=None if counts[0] is None or counts[1] is None else counts[1] - counts[0],
        is_cut=bool(journal.get("complete") and not journal.get("ended") and journal.get("direct")),
        page_bytes=journal.get("page_bytes") or 0,
        write_bytes_max=journal.get("write_bytes_max") or 0,
        outstanding_pages=journal.get("outstanding_pages") or 0,
        torn_pages=torn,
        other_findings=sum(findings.values()) - torn,
    )


def _identity(drive: JournalDrive) -> DriveIdentity:
    return DriveIdentity(
        model=drive.get("model"), firmware=drive.get("firmware"), serial=drive.get("serial"), wwn=drive.get("wwn")
    )


_DRIVES = TypeAdapter(list[JournalDrive])

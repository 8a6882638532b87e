"""Facts that a run keeps of what it ran on: its host, the volumes and databases of its target, its models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from assay.insight.rules.facts.arrays import array_subjects
from assay.insight.rules.facts.databases import settings_subject
from assay.insight.rules.facts.devices import know_transport
from assay.insight.rules.facts.drives import know_drive, mark_logs
from assay.insight.rules.facts.mounts import know_mount
from assay.insight.rules.facts.runs import MeasuredStorage
from assay.insight.rules.rule import Subject
from assay.record.run_folder import RunFolder
from assay.record.shapes.drive import Drive
from assay.record.shapes.manifest import Manifest, Volume


def run_subjects(path: Path, found: MeasuredStorage | None) -> list[Subject]:
    """What a run says of its host, its target's volumes and databases.

    Raises
    ------
    RunFolderError
        It is no run.
    """
    manifest = cast(Manifest, RunFolder.open(path).manifest)
    anchor = str(path / "run.json")
    told, target = manifest.get("host") or {}, manifest.get("target") or {}
    subjects = []
    for text in _models(manifest):
        subjects += array_subjects(text)
    is_guest = told.get("virtualization") is not None if told else None
    if told.get("hostname"):
        host = Subject("host", str(told["hostname"]), anchor=anchor)
        host.otherwise = "the run did not keep it; assay check host reads it"
        host.know("memory_bytes", told.get("memory_bytes"), anchor)
        host.know("cpu_count", told.get("cpu_count"), anchor)
        host.know("is_guest", is_guest, anchor)
        host.know("virtualization", told.get("virtualization"), anchor)
        subjects.append(host)
    volumes = [one for one in target.get("volumes") or [] if one.get("device") and one.get("kind") != "model"]
    devices = _devices(volumes, anchor, is_guest)
    subjects += [*devices, *_drives(target.get("drives") or [], devices, volumes, anchor)]
    for database in target.get("databases") or []:
        server = settings_subject(database, told.get("memory_bytes"), found, anchor)
        flash = _is_flash([one for one in volumes if one.get("role") == "data"], is_guest, anchor)
        server.know("data_is_flash", flash, anchor)
        server.lack("data_is_flash", "the run does not say whether its data lay on flash")
        subjects.append(server)
    return subjects


def _models(manifest: Manifest) -> list[str]:
    """Targets on models, of the run or of its parts, each once."""
    array = (manifest.get("target") or {}).get("array") or {}
    parts = [part.get("target") for part in manifest.get("parts") or []]
    return list(dict.fromkeys(str(text) for text in (array.get("target"), *parts) if str(text).startswith("model:")))


def _devices(volumes: Sequence[Volume], anchor: str, is_guest: bool | None) -> list[Subject]:
    """Devices and file systems that volumes lay on, and which role lay where."""
    subjects: dict[str, Subject] = {}
    layout = Subject("layout", "volumes of the run", anchor=anchor)
    layout.otherwise = "the run did not keep it"
    devices: dict[str, set[str]] = {}
    for volume in volumes:
        name, stack = str(volume["device"]), [str(one) for one in volume.get("device_stack") or []]
        one = subjects.setdefault(f"device {name}", _device(name, volume, anchor, is_guest))
        one.know("is_data", True, anchor)
        # The stack has the top first: what it ends with is the disk.
        devices.setdefault(str(volume.get("role") or ""), set()).add(stack[-1] if stack else name)
        path = str(volume.get("path"))
        mount = Subject("mount", path, anchor=anchor, otherwise="the run did not keep it; name the folder")
        mount.know("is_data", True, anchor)
        know_mount(mount, dict(volume), anchor)
        subjects.setdefault(f"mount {name} {volume.get('mount_options')}", mount)
    for role, own in devices.items():
        if role:
            layout.know(f"{role}_devices", sorted(own), anchor)
    return [*subjects.values(), *([layout] if len(devices) > 1 else [])]


def _drives(
    drives: Sequence[Drive], devices: Sequence[Subject], volumes: Sequence[Volume], anchor: str
) -> list[Subject]:
    """Health of the drives that volumes lay on or that lie below their devices; which are subjects apart."""
    known = {one.name: one for one in devices if one.kind == "device"}
    found = []
    for drive in drives:
        device = known.get(drive["name"])
        if device is None:
            device = Subject("device", drive["name"], anchor=anchor, otherwise="the run kept its health alone")
            device.know("transport", drive.get("transport"), anchor)
            device.know("is_data", True, anchor)
            found.append(device)
        know_drive(device, drive, anchor)
    logs = [name for one in volumes if "log" in str(one.get("role")) for name in one.get("device_stack") or []]
    mark_logs([*known.values(), *found], logs, anchor)
    return found


def _device(name: str, volume: Volume, anchor: str, is_guest: bool | None) -> Subject:
    device = Subject("device", name, anchor=anchor, otherwise="the run did not keep it; assay check host reads it")
    for key, value in (volume.get("queue") or {}).items():
        device.know(str(key), value, anchor)
    device.know("is_guest", is_guest, anchor)
    know_transport(device, None, anchor)
    return device


def _is_flash(volumes: Sequence[Volume], is_guest: bool | None, anchor: str) -> bool | None:
    told = [_device(str(one["device"]), one, anchor, is_guest).get("is_flash") for one in volumes]
    return None if not told or None in told else all(told)

"""Gathering what rules read of everything that a check is asked of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from assay.errors import UsageError
from assay.paths import printable
from assay.rules.facts.arrays import array_subjects
from assay.rules.facts.databases import database_subjects
from assay.rules.facts.devices import device_subjects, iscsi_subjects, mount_subjects, multipath_subjects
from assay.rules.facts.host import host_subject
from assay.rules.facts.interfaces import interface_subjects
from assay.rules.facts.runs import Measured, measured
from assay.rules.facts.site import add_site, read_site
from assay.rules.rule import Subject
from assay.targets.databases import is_database
from assay.targets.host import device_of
from assay.telemetry.collectors.storage_net import STORAGE_PORTS


def subjects_of(
    targets: Sequence[str],
    *,
    volumes: Sequence[str] = (),
    profile: Path | None = None,
    site: Path | None = None,
) -> tuple[list[Subject], list[str]]:
    """All that rules can read, and what must be said of it.

    Parameters
    ----------
    targets
        `host`, folders and devices, databases' URLs, `model:` targets, run folders.
    volumes
        Folders by role: `data=/mnt/x`.
    profile
        A run that measured the storage.
    site
        The site's file.

    Raises
    ------
    UsageError
        A target is none of these.
    """
    found = measured(profile) if profile is not None else None
    subjects: list[Subject] = []
    notices: list[str] = []
    paths = [_volume(text) for text in volumes]
    is_local = bool(paths)
    for text in targets or ["host"]:
        if text.startswith("model:"):
            subjects += array_subjects(text)
        elif is_database(text):
            told = database_subjects(text, found)
            subjects += told
            is_local = is_local or any(one.kind == "layout" for one in told)
        elif text == "host":
            is_local = True
        elif os.path.isdir(text) and os.path.isfile(os.path.join(text, "run.json")):
            found, more, said = _of_run(Path(text), found)
            subjects += more
            notices += said
        elif os.path.exists(text):
            paths.append((text, ""))
            is_local = True
        else:
            raise UsageError(
                f"{printable(text)}: is neither a folder, a device, a run, a database's URL, model:NAME nor the"
                " word host"
            )
    if is_local:
        subjects = [*_of_host(paths), *subjects]
    if site is not None:
        add_site(subjects, read_site(site), site)
    return subjects, notices


def _volume(text: str) -> tuple[str, str]:
    role, mark, path = text.partition("=")
    if not mark or not os.path.exists(path):
        raise UsageError(f"--volume {text!r}: accepted: ROLE=PATH of a folder or device that is there")
    return path, role


def _of_host(paths: Sequence[tuple[str, str]]) -> list[Subject]:
    """The host, its devices, interfaces and multipath devices, and the file systems of folders."""
    host = host_subject()
    is_guest = bool(host.get("is_guest"))
    devices = {role: set[str]() for _, role in paths}
    for path, role in paths:
        device = device_of(path)
        if device is not None:
            devices[role].add(device)
    named = sorted({device for own in devices.values() for device in own})
    maps = multipath_subjects()
    cards = interface_subjects(is_guest=is_guest)
    _mark_storage(cards)
    found = [host, *device_subjects(named or None, is_guest=is_guest), *cards, *maps]
    found += iscsi_subjects(has_multipath=bool(maps))
    found += mount_subjects([(path, role) for path, role in paths if os.path.isdir(path)] or [("/", "")])
    if any(role for _, role in paths):
        layout = Subject("layout", "the volumes that were given")
        for role, own in devices.items():
            if role and own:
                layout.know(f"{role}_devices", sorted(own), "--volume")
        found.append(layout)
    return found


def _mark_storage(cards: Sequence[Subject]) -> None:
    """Which interfaces lead to storage: those whose addresses have connections to ports of storage."""
    from assay.errors import NotSupported
    from assay.telemetry.collectors.storage_net import StorageNetCollector

    try:
        names = StorageNetCollector(STORAGE_PORTS).interfaces()
    except (NotSupported, OSError, AttributeError):
        names = None
    for card in cards:
        card.know(
            "is_storage", card.name in names if names is not None else None, "TCP connections to ports of storage"
        )
        card.lack("is_storage", "whether it leads to storage is not known")


def _of_run(path: Path, found: Measured | None) -> tuple[Measured | None, list[Subject], list[str]]:
    """What a run says of its host and its target."""
    from assay.results.run_folder import RunFolder

    manifest = RunFolder.open(path).manifest
    anchor = str(path / "run.json")
    subjects = []
    array = (manifest.get("target") or {}).get("array") or {}
    if array.get("target"):
        subjects += array_subjects(str(array["target"]))
    told = manifest.get("host") or {}
    if told.get("hostname"):
        host = Subject("host", str(told["hostname"]), anchor=anchor)
        host.know("memory_bytes", told.get("memory_bytes"), anchor)
        host.know("cpu_count", told.get("cpu_count"), anchor)
        host.know("is_guest", told.get("virtualization") is not None, anchor)
        host.know("virtualization", told.get("virtualization"), anchor)
        subjects.append(host)
    subjects += _volumes_of_run(manifest.get("target") or {}, anchor, is_guest=told.get("virtualization") is not None)
    notices = [f"{printable(path)}: says what its host was when it ran; assay check host says what it is"]
    return found or measured(path), subjects, notices


def _volumes_of_run(target: object, anchor: str, *, is_guest: bool) -> list[Subject]:
    from collections.abc import Mapping

    assert isinstance(target, Mapping)
    subjects: dict[str, Subject] = {}
    layout = Subject("layout", "volumes of the run", anchor=anchor)
    devices: dict[str, set[str]] = {}
    for volume in target.get("volumes") or []:
        name = volume.get("device")
        if not name or volume.get("kind") == "model":
            continue
        one = subjects.setdefault(f"device {name}", Subject("device", str(name), anchor=anchor))
        for key, value in (volume.get("queue") or {}).items():
            one.know(str(key), value, anchor)
        one.know("is_guest", is_guest, anchor)
        one.know(
            "transport",
            "virtual" if str(name).startswith(("vd", "xvd")) else "nvme" if str(name).startswith("nvme") else None,
            anchor,
        )
        devices.setdefault(str(volume.get("role") or ""), set()).add(str(name))
        if volume.get("mount_options"):
            mount = subjects.setdefault(f"mount {name}", Subject("mount", str(volume.get("path")), anchor=anchor))
            mount.know("options", str(volume["mount_options"]).split(","), anchor)
            mount.know("file_system", str(volume.get("file_system") or "").split(" ")[0] or None, anchor)
            mount.know("is_data", True, anchor)
    for role, own in devices.items():
        if role:
            layout.know(f"{role}_devices", sorted(own), anchor)
    return [*subjects.values(), *([layout] if len(devices) > 1 else [])]

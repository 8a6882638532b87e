"""Facts and rules of drives, of this host and of what runs kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.insight.rules.facts import drives as source
from assay.insight.rules.facts.devices import device_subjects
from assay.insight.rules.facts.drives import add_drives, know_drive, mark_logs
from assay.insight.rules.facts.manifests import run_subjects
from assay.insight.rules.registry import FAMILIES
from assay.insight.rules.rule import Findings, Subject, check
from assay.record.run_folder import RunFolder
from assay.record.shapes.drive import Drive
from insight.rules.machine import Machine

WORN: Drive = {
    "name": "nvme0n1", "told_by": "nvme-cli", "warning_celsius": 77.0, "volatile_write_cache": True,
    "link": {"transfers_per_s": 8e9, "transfers_per_s_max": 16e9, "lanes": 4, "lanes_max": 4},
    "atomic_writes": {"unit_max_bytes": 16384},
    "before": {"temperature_celsius": 40.0, "wear_share": 0.5, "media_errors": 0, "critical_warnings": []},
    "after": {
        "temperature_celsius": 81.0, "wear_share": 1.01, "spare_share": 0.05, "spare_threshold_share": 0.1,
        "media_errors": 2, "critical_warnings": ["spare below its threshold"],
    },
}  # fmt: skip


def judged(*subjects: Subject) -> Findings:
    return check(subjects, FAMILIES["drives"])


def found(*subjects: Subject) -> set[str]:
    return {one.rule.id for one in judged(*subjects).findings}


def test_a_worn_hot_and_failing_drive_breaks_its_rules() -> None:
    device = Subject("device", "nvme0n1")
    device.know("transport", "nvme", "")
    know_drive(device, WORN, "")
    assert found(device) == {
        "drive-critical-warning", "drive-media-errors", "drive-wear", "drive-worn", "drive-spare", "drive-temperature",
        "drive-link-speed",
    }  # fmt: skip
    device.know("is_data", True, "")
    mark_logs([device], ["nvme0n1"], "--volume")
    assert {"drive-log-cache", "drive-atomic-pages"} <= found(device)
    know_drive(device, {"name": "nvme0n1", "power_loss_protection": True}, "")
    assert "drive-log-cache" not in found(device), "its capacitors keep the cache"


def test_drives_of_this_host_are_asked_and_other_devices_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path).disk("nvme0n1").disk("sda", driver="ahci").disk("vda").disk("dm-0", slaves=("nvme0n1",))
    asked: list[str] = []

    def examine(name: str, *_: object, **__: object) -> Drive:
        asked.append(name)
        return {**WORN, "name": name} if name == "nvme0n1" else {"name": name, "unread": "smartctl is missing"}

    monkeypatch.setattr(source, "examine", examine)
    devices = device_subjects(kernel=machine.kernel, is_guest=False)
    assert add_drives(devices, machine.kernel) == ["health of sda: not known, since smartctl is missing"]
    assert asked == ["nvme0n1", "sda"]
    told = judged(*devices)
    assert {one.subject.name for one in told.findings} == {"nvme0n1"}
    gaps = {one.reason for one in told.not_checked if one.subject is not None and one.subject.name == "sda"}
    assert "its health is not known, since smartctl is missing" in gaps
    assert not any(one.subject.name in ("vda", "dm-0") for one in told.not_checked if one.subject is not None)


@pytest.mark.parametrize("role", ["data", "log"])
def test_drives_of_a_run_are_judged_by_what_it_kept(tmp_path: Path, role: str) -> None:
    volume = {"name": "f", "kind": "file", "path": "/d/f", "role": role, "device": "dm-0", "queue": {"nr_requests": 64}}
    target = {"volumes": [{**volume, "device_stack": ["dm-0", "nvme0n1"]}], "drives": [WORN]}
    folder = RunFolder.create(tmp_path, "profile", {"target": target, "host": {}})
    subjects = run_subjects(folder.path, None)
    assert [one.name for one in subjects if one.get("is_drive")] == ["nvme0n1"]
    broken = found(*subjects)
    assert {"drive-worn", "drive-temperature", "drive-atomic-pages"} <= broken
    assert ("drive-log-cache" in broken) == (role == "log")

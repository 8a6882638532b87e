"""Drives: what the kernel, nvme-cli and smartctl say of them, of every version and form; none of it is believed."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from assay.base import programs
from assay.base.errors import NotAnswering, NotSupported
from assay.record.drive_health import write_amplification
from assay.record.shapes.drive import Drive, DriveHealth
from assay.targets.drives import asking, nvme_cli, smartctl
from assay.targets.drives.asking import Asked, ask
from assay.targets.drives.health import drives_beneath, error_log, examine, look, program_for
from assay.targets.drives.kernel_facts import drive_shown, temperature_of
from changed_json import mutated
from insight.rules.machine import Machine

SAMPLES = Path(__file__).parent / "drives"
READERS = (
    nvme_cli.health, nvme_cli.identity, nvme_cli.formats, nvme_cli.ocp_health, nvme_cli.errors, nvme_cli.has_ocp_log,
    nvme_cli.lists_log_pages, smartctl.health, smartctl.identity, smartctl.errors, smartctl.reason,
)  # fmt: skip


def sample(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.json").read_text())


def known(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is known, of which the time says nothing."""
    return {key: value for key, value in (found or {}).items() if value is not None and key != "utc_ns"}


ANSWERS = {
    "id-ctrl": "nvme-id-ctrl",
    "id-ns": "nvme-id-ns",
    "supported-log-pages": "nvme-supported-log-pages",
    "ocp": "nvme-2-ocp-smart-add-log",
    "smart-log": "nvme-2.0-smart-log",
    "error-log": "nvme-error-log",
}


class Tools:
    """Programs that answer with samples, and what they were asked."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers, self.asked = answers, list[str]()

    def __call__(self, program: str, words: Sequence[str]) -> Asked:
        self.asked.append(" ".join([program, *words]))
        name = self.answers.get(words[0] if program == "nvme" else program)
        return Asked(sample(name) if name else None, 0 if name else 1)


# What programs print


def test_each_version_of_nvme_cli_writes_its_counters_in_another_way() -> None:
    old, floats, texts = (
        known(nvme_cli.health(sample(f"nvme-{version}")))
        for version in ("1.9-smart-log", "2.0-smart-log", "2.3-smart-log-verbose")
    )
    assert old == {
        "temperature_celsius": 42.0, "critical_warnings": [], "wear_share": 0.04, "spare_share": 1.0,
        "spare_threshold_share": 0.1, "media_errors": 0, "error_log_entries": 118, "unsafe_shutdowns": 7,
        "power_on_s": 9001 * 3600.0, "host_read_bytes": 81234567 * 512000, "host_written_bytes": 120456789 * 512000,
        "throttled_s": 0.0, "throttles": 0, "hot_s": 0.0,
    }  # fmt: skip
    assert floats["host_written_bytes"] == 2_000_000_000 * 512000
    assert (floats["throttled_s"], floats["throttles"], floats["hot_s"]) == (630.0, 42, 13 * 60.0)
    assert floats["critical_warnings"] == ["temperature out of bounds"]
    assert texts["critical_warnings"] == ["spare below its threshold", "read-only"]
    assert texts["host_written_bytes"] == 1234 * 512000
    assert texts["wear_share"] == 2.55
    assert "temperature_celsius" not in texts, "0 kelvin is no temperature"
    assert "host_read_bytes" not in texts, "2^128 - 1 units are more than was ever written"
    assert "throttled_s" not in texts, "a drive that does not count it has not said that it never throttled"


def test_a_drive_of_nvme_tells_cache_formats_and_what_it_keeps_at_a_power_cut() -> None:
    controller, space = sample("nvme-id-ctrl"), sample("nvme-id-ns")
    assert known(nvme_cli.identity(controller)) == {
        "name": "", "model": "MAKER DC9000 3.84TB", "firmware": "E2MU200", "warning_celsius": 77.0,
        "critical_celsius": 85.0, "volatile_write_cache": False, "power_loss_protection": True,
    }  # fmt: skip
    assert nvme_cli.formats(space) == [
        {"block_bytes": 512, "metadata_bytes": 0, "in_use": False},
        {"block_bytes": 4096, "metadata_bytes": 0, "in_use": True},
        {"block_bytes": 4096, "metadata_bytes": 8, "in_use": False},
    ]
    assert nvme_cli.power_fail_bytes(controller, space) == 8 * 4096
    assert nvme_cli.power_fail_bytes(controller, {**space, "nsfeat": 0}) == 32 * 4096
    assert nvme_cli.power_fail_bytes(controller, {}) is None


def test_a_volatile_cache_is_not_known_to_be_protected() -> None:
    found = known(nvme_cli.identity({**sample("nvme-id-ctrl"), "vwc": 7}))
    assert found["volatile_write_cache"] is True
    assert "power_loss_protection" not in found


def test_the_log_of_ocp_has_other_keys_in_each_version_and_no_capacitor_is_no_health() -> None:
    two, three = (known(nvme_cli.ocp_health(sample(f"nvme-{version}-ocp-smart-add-log"))) for version in (2, 3))
    assert two == {"nand_written_bytes": 1536 * 10**12, "capacitor_share": 1.17}
    assert three == {"nand_written_bytes": 2048 * 10**9}


def test_errors_are_named_by_their_status() -> None:
    assert nvme_cli.errors(sample("nvme-error-log")) == [
        {"number": 21, "status": "unrecovered read error", "lba": 123456},
        {"number": 20, "status": "invalid log page", "lba": 0},
    ]
    assert smartctl.errors(sample("smartctl-7.4-nvme")) == [
        {"number": 2, "status": "Invalid Field in Command", "lba": 0}
    ]


def test_smartctl_tells_of_nvme_sata_and_sas() -> None:
    nvme, flash, disk, sas = (
        known(smartctl.health(sample(f"smartctl-{name}")))
        for name in ("7.4-nvme", "7.2-sata-flash", "7.3-sata-disk-failing", "7.4-sas")
    )
    assert (nvme["temperature_celsius"], nvme["wear_share"], nvme["spare_threshold_share"]) == (81.0, 1.01, 0.1)
    assert nvme["hot_s"] == 300.0
    assert "throttles" not in nvme
    assert flash == {
        "temperature_celsius": 34.0, "critical_warnings": [], "wear_share": 0.12, "media_errors": 1,
        "reallocated_sectors": 4, "error_log_entries": 12, "link_errors": 12, "unsafe_shutdowns": 15,
        "host_written_bytes": 218759569150 * 512, "nand_written_bytes": flash["nand_written_bytes"],
        "power_on_s": 20000 * 3600.0,
    }  # fmt: skip
    # 1 + attribute 248 / attribute 247, of the drive's life and of a run: the host's pages are 16 KiB.
    assert write_amplification(Drive(name="sda", after=flash)) == (pytest.approx(2.5), False)
    told = sample("smartctl-7.2-sata-flash")
    for attribute, pages in ((246, 32 * 2_000_000), (247, 2_000_000), (248, 3_600_000)):
        table = told["ata_smart_attributes"]["table"]
        next(one for one in table if one["id"] == attribute)["raw"]["value"] += pages
    later = known(smartctl.health(told))
    assert write_amplification(Drive(name="sda", before=flash, after=later)) == (pytest.approx(2.8, rel=1e-3), True)
    assert disk["critical_warnings"] == ["it says that it fails", "Reallocated_Sector_Ct is at its threshold"]
    assert disk["media_errors"] == 16
    assert (sas["wear_share"], sas["media_errors"], sas["reallocated_sectors"]) == (0.03, 1, 2)


def test_smartctl_tells_links_caches_and_limits_of_temperature() -> None:
    flash = known(smartctl.identity(sample("smartctl-7.2-sata-flash")))
    assert flash["link"] == {"transfers_per_s": 3e9, "transfers_per_s_max": 6e9}
    assert flash["volatile_write_cache"] is True
    nvme = known(smartctl.identity(sample("smartctl-7.4-nvme")))
    assert (nvme["warning_celsius"], nvme["critical_celsius"]) == (82.0, 85.0)
    assert [one["block_bytes"] for one in nvme["formats"] if one["in_use"]] == [512]
    assert known(smartctl.identity(sample("smartctl-7.4-sas")))["critical_celsius"] == 70.0


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_whatever_a_program_prints_is_read_or_left_out(path: Path) -> None:
    dice = random.Random(path.stem)
    health, drive = TypeAdapter(DriveHealth), TypeAdapter(Drive)
    told = json.loads(path.read_text())
    for _ in range(400):
        changed = mutated(told, dice)
        if not isinstance(changed, dict):
            continue
        for reader in READERS:
            reader(changed)
        nvme_cli.power_fail_bytes(changed, changed)
        for found in (nvme_cli.health(changed), nvme_cli.ocp_health(changed), smartctl.health(changed)):
            health.validate_python(found or {}, strict=True)
        for identity in (nvme_cli.identity(changed), smartctl.identity(changed)):
            drive.validate_python(identity or {"name": ""}, strict=True)
            assert all(str(value).isprintable() for value in (identity or {}).values())


# What is asked


def test_a_drive_is_read_once_in_full_and_then_by_its_health_alone(tmp_path: Path) -> None:
    kernel = Machine(tmp_path).disk("nvme0n1", device={"model": "by the kernel"}).kernel
    tools = Tools(ANSWERS)
    drive = examine("nvme0n1", kernel, program="nvme", asked=tools)
    TypeAdapter(Drive).validate_python(drive, strict=True)
    assert drive["model"] == "MAKER DC9000 3.84TB"
    assert drive["told_by"] == "nvme-cli"
    assert (drive.get("before") or {}).get("nand_written_bytes") == 1536 * 10**12
    assert drive["power_loss_protection"] is True
    assert drive["atomic_writes"] == {"power_fail_bytes": 8 * 4096}
    assert all(" /dev/nvme0n1 " in line for line in tools.asked)
    # What a drive refuses counts as an error: it is asked before the errors are counted.
    assert [line.split()[1] for line in tools.asked].index("ocp") < 4
    tools.asked.clear()
    assert look(drive, kernel, asked=tools).get("temperature_celsius") == 81.0
    assert len(tools.asked) == 1
    assert look(drive, kernel, asked=tools, fully=True).get("nand_written_bytes") == 1536 * 10**12
    assert [one["number"] for one in error_log(drive, asked=tools)] == [21, 20]


@pytest.mark.parametrize("changed", [{"lpa": 0x1E}, {"lpa": 62}])
def test_a_drive_that_does_not_list_the_log_of_ocp_is_not_asked_for_it(changed: dict[str, int], tmp_path: Path) -> None:
    tools = Tools({name: answer for name, answer in ANSWERS.items() if name != "supported-log-pages"})

    def asked(program: str, words: Sequence[str]) -> Asked:
        found = tools(program, words)
        return found if words[0] != "id-ctrl" else Asked({**sample("nvme-id-ctrl"), **changed}, 0)

    drive = examine("nvme0n1", Machine(tmp_path).disk("nvme0n1").kernel, program="nvme", asked=asked)
    assert (drive.get("before") or {}).get("wear_share") == 0.83
    assert not any("ocp" in line for line in tools.asked)


def test_a_drive_that_cannot_be_read_says_why_and_the_kernel_still_knows_its_temperature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path).disk(
        "nvme0n1", device={"model": "M", "firmware_rev": "F1", "hwmon3/temp1_input": "81850"}
    )
    machine.sys(
        {"block/nvme0n1/device/hwmon3/temp1_max": "84850", "block/nvme0n1/device/hwmon3/temp1_crit": "65261850"}
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def why(program: Any, answers: Mapping[str, str]) -> str:
        drive = examine("nvme0n1", machine.kernel, program=program, asked=Tools(answers))
        assert known(drive.get("before")) == {"temperature_celsius": 82.0}
        assert (drive["model"], drive["firmware"], drive["warning_celsius"]) == ("M", "F1", 85.0)
        assert "critical_celsius" not in known(drive), "65262 K is no limit"
        assert look(drive, machine.kernel).get("temperature_celsius") == 82.0
        return str(drive["unread"])

    assert why("nvme", {}) == "nvme reads it as root alone"
    denied = why("smartctl", {"smartctl": "smartctl-7.3-denied"})
    assert denied == "smartctl says: Smartctl open device: /dev/nvme0n1 failed: Permission denied"
    monkeypatch.setattr(programs.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    assert why(None, {}) == "nvme or smartctl is missing (sudo apt-get install nvme-cli)"


def test_a_program_that_hangs_or_prints_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(tmp_path),))
    for name, line in (
        ("hangs", "sleep 1000"),
        ("floods", "exec cat /dev/zero"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(NotAnswering, match=r"hangs has not answered within 0\.2 s"):
        ask("hangs", [], within_s=0.2)
    monkeypatch.setattr(asking, "OUTPUT_BYTES_MAX", 4096)
    with pytest.raises(NotSupported, match="floods prints more than 4,096 bytes"):
        ask("floods", [])
    with pytest.raises(NotSupported, match="lacks-of-it is missing"):
        ask("lacks-of-it", [])


def test_a_program_is_chosen_by_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program_for("nvme0n1") is None
    for name, of_nvme, of_sata in (("smartctl", "smartctl", "smartctl"), ("nvme", "nvme", "smartctl")):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert (program_for("nvme0n1"), program_for("sda")) == (of_nvme, of_sata)


# What the kernel shows


def test_drives_lie_beneath_stacks_and_virtual_disks_are_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path).disk("nvme0n1").disk("sda", driver="ahci").disk("sdb", driver="iscsi_tcp").disk("vda")
    machine.disk("dm-0", slaves=("nvme0n1", "sda", "sdb", "vda"))
    assert drives_beneath(["dm-0"], machine.kernel) == ["nvme0n1", "sda"]


def test_a_link_below_what_the_drive_can_and_atomic_writes_are_read_from_the_kernel(tmp_path: Path) -> None:
    machine = Machine(tmp_path).disk(
        "nvme0n1",
        device={
            "device/current_link_speed": "8.0 GT/s PCIe", "device/max_link_speed": "16.0 GT/s PCIe",
            "device/current_link_width": "2", "device/max_link_width": "4",
        },
        queue={"atomic_write_unit_max_bytes": "16384", "atomic_write_max_bytes": "65536"},
    )  # fmt: skip
    shown = drive_shown("nvme0n1", machine.kernel)
    assert shown["link"] == {"transfers_per_s": 8e9, "transfers_per_s_max": 16e9, "lanes": 2, "lanes_max": 4}
    assert known(shown["atomic_writes"]) == {"unit_max_bytes": 16384, "max_bytes": 65536}
    assert temperature_of("nvme0n1", machine.kernel) is None


def test_a_namespace_of_several_controllers_is_that_of_the_first_one_that_is_live(tmp_path: Path) -> None:
    machine = Machine(tmp_path).disk("nvme0n1")
    for name, state in (("nvme0", "dead"), ("nvme1", "live")):
        machine.sys({f"devices/{name}/state": state, f"devices/{name}/firmware_rev": name})
        machine.link(f"devices/nvme-subsys0/{name}", f"devices/{name}")
    machine.link("block/nvme0n1/device", "devices/nvme-subsys0")
    assert drive_shown("nvme0n1", machine.kernel)["firmware"] == "nvme1"

"""What is known of a drive: read once in full, and its health again and again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, cast

from assay.base.errors import NotAnswering, NotSupported
from assay.base.programs import PROGRAMS, find_program, install_command
from assay.record.drives import Drive, DriveAtomicWrites, DriveError, DriveHealth
from assay.targets.drives import nvme_cli, smartctl
from assay.targets.drives.asking import Asked, ask
from assay.targets.drives.beneath import disks_of
from assay.targets.drives.kernel_facts import drive_shown, temperature_of
from assay.targets.drives.numbers import Document
from assay.targets.kernel import Kernel

DRIVES_MAX = 64
"""Drives beneath a target that are looked at."""

_NVME = re.compile(r"nvme\d{1,4}n\d{1,4}", re.ASCII)
_SCSI = re.compile(r"sd[a-z]{1,4}", re.ASCII)
_READ_SMARTCTL = ("--json", "--info", "--health", "--attributes", "--capabilities", "--log=error", "--nocheck=standby")
_AGAIN_SMARTCTL = ("--json", "--health", "--attributes", "--nocheck=standby")

Program = Literal["nvme", "smartctl"]
Ask = Callable[[str, Sequence[str]], Asked]


def drives_beneath(devices: Iterable[str], kernel: Kernel | None = None) -> list[str]:
    """Names of the drives beneath devices that tell of their health: NVMe, SATA and SAS.

    A virtual disk, and a volume of an array behind iSCSI or Fibre Channel, is no drive.
    """
    tables = kernel or Kernel()
    return [
        name
        for name in disks_of(devices, tables)
        if _NVME.fullmatch(name)
        or (_SCSI.fullmatch(name) and drive_shown(name, tables).get("transport") in ("sata", "scsi"))
    ][:DRIVES_MAX]


def program_for(name: str) -> Program | None:
    """The program that reads the health of a drive: nvme-cli says more of NVMe, smartctl knows all."""
    if _NVME.fullmatch(name) and find_program("nvme") is not None:
        return "nvme"
    return "smartctl" if find_program("smartctl") is not None else None


def examine(name: str, kernel: Kernel | None = None, *, program: Program | None, asked: Ask = ask) -> Drive:
    """All that is known of a drive, its health at this moment in `before`.

    Parameters
    ----------
    program
        What reads it; None: the kernel alone.
    """
    shown = drive_shown(name, kernel)
    try:
        found = _read(name, program, asked)
    except (NotSupported, NotAnswering) as error:
        found = Drive(name=name, unread=str(error), before=_by_kernel(name, kernel))
    known = {key: value for key, value in found.items() if value is not None and key != "name"}
    return cast(Drive, {**shown, **known, "atomic_writes": _both(shown, found)})


def _read(name: str, program: Program | None, asked: Ask) -> Drive:
    """What a program says of a drive.

    Raises
    ------
    NotSupported, NotAnswering
        It cannot say anything, or does not in time.
    """
    if program is None:
        raise NotSupported(_missing(name))
    path = f"/dev/{name}"
    if program == "smartctl":
        extra = () if _NVME.fullmatch(name) else ("--get=wcache", "--log=devstat")
        told = _told(asked(program, [*_READ_SMARTCTL, *extra, path]), program)
        health = smartctl.health(told)
        if health is None:
            raise NotSupported(_refused(program, smartctl.reason(told)))
        errors = smartctl.errors(told)
        return {**smartctl.identity(told), "told_by": program, "before": _now(health), "errors": errors}
    controller = _told(asked(program, ["id-ctrl", path, "--output-format=json"]), program)
    found = nvme_cli.identity(controller)
    if found is None:
        raise NotSupported(_refused(program, None))
    space = asked(program, ["id-ns", path, "--output-format=json"]).told or {}
    # Asked before the health: a drive that refuses a log page counts it as an error of its own.
    ocp = _ocp(controller, path, asked)
    logged = asked(program, ["error-log", path, f"--log-entries={nvme_cli.ERRORS_MAX}", "--output-format=json"]).told
    health = nvme_cli.health(_told(asked(program, ["smart-log", path, "--output-format=json"]), program))
    if health is None:
        raise NotSupported(_refused(program, None))
    atomic = nvme_cli.power_fail_bytes(controller, space)
    found |= Drive(
        name=name,
        told_by="nvme-cli",
        formats=nvme_cli.formats(space) or None,
        before=_now(health | (ocp or DriveHealth())),
        errors=nvme_cli.errors(logged or {}),
    )
    if ocp is not None and ocp.get("capacitor_share"):
        found["power_loss_protection"] = True
    if atomic is not None:
        found["atomic_writes"] = {"power_fail_bytes": atomic}
    return found


def _both(shown: Drive, found: Drive) -> DriveAtomicWrites | None:
    """Atomic writes as the kernel offers them, with what the drive keeps at a power cut."""
    merged = (shown.get("atomic_writes") or DriveAtomicWrites()) | (found.get("atomic_writes") or DriveAtomicWrites())
    return merged or None


def _ocp(controller: Document, path: str, asked: Ask) -> DriveHealth | None:
    """The extended log of OCP, of a drive that lists it among its log pages."""
    if not nvme_cli.lists_log_pages(controller):
        return None
    listed = asked("nvme", ["supported-log-pages", path, "--output-format=json"]).told
    if listed is None or not nvme_cli.has_ocp_log(listed):
        return None
    return nvme_cli.ocp_health(asked("nvme", ["ocp", "smart-add-log", path, "--output-format=json"]).told or {})


def look(drive: Drive, kernel: Kernel | None = None, *, asked: Ask = ask, fully: bool = False) -> DriveHealth:
    """The health of a drive that was examined, again.

    Parameters
    ----------
    fully
        Whether bytes written to flash are asked for, too, which takes a command more.

    Raises
    ------
    NotSupported, NotAnswering
        It says nothing any more.
    """
    name, told_by = drive["name"], drive.get("told_by")
    path = f"/dev/{name}"
    if told_by == "smartctl":
        found = smartctl.health(_told(asked("smartctl", [*_AGAIN_SMARTCTL, path]), "smartctl"))
    elif told_by == "nvme-cli":
        found = nvme_cli.health(_told(asked("nvme", ["smart-log", path, "--output-format=json"]), "nvme"))
        if found is not None and fully and (drive.get("before") or {}).get("nand_written_bytes") is not None:
            told = asked("nvme", ["ocp", "smart-add-log", path, "--output-format=json"]).told
            found |= nvme_cli.ocp_health(told or {}) or DriveHealth()
    else:
        found = _by_kernel(name, kernel)
    if found is None:
        raise NotSupported(f"{name}: says nothing of its health any more")
    return _now(found)


def error_log(drive: Drive, *, asked: Ask = ask) -> list[DriveError]:
    """Entries of the error log of an NVMe drive, newest first."""
    path = f"/dev/{drive['name']}"
    if drive.get("told_by") == "nvme-cli":
        words = ["error-log", path, f"--log-entries={nvme_cli.ERRORS_MAX}", "--output-format=json"]
        return nvme_cli.errors(asked("nvme", words).told or {})
    if drive.get("told_by") == "smartctl":
        return smartctl.errors(asked("smartctl", ["--json", "--log=error", path]).told or {})
    return []


def _by_kernel(name: str, kernel: Kernel | None) -> DriveHealth | None:
    temperature = temperature_of(name, kernel)
    return None if temperature is None else _now(DriveHealth(temperature_celsius=temperature))


def _now(health: DriveHealth) -> DriveHealth:
    known = {key: value for key, value in health.items() if value is not None}
    return cast(DriveHealth, {**known, "utc_ns": time.time_ns()})


def _told(asked: Asked, program: str) -> Document:
    if asked.told is None:
        raise NotSupported(_refused(program, None))
    return asked.told


def _missing(name: str) -> str:
    wanted = ("nvme", "smartctl") if _NVME.fullmatch(name) else ("smartctl",)
    return f"{' or '.join(wanted)} is missing ({install_command([PROGRAMS[wanted[0]]])})"


def _refused(program: str, reason: str | None) -> str:
    if reason is not None:
        return f"{program} says: {reason}"
    if os.geteuid() != 0:
        return f"{program} reads it as root alone"
    return f"{program} gives no document of its health"

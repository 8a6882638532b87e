"""Gathering what rules read of everything that a check is asked of."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from assay.base.errors import NotSupported, UsageError
from assay.base.paths import printable
from assay.insight.rules.facts.arrays import array_subjects, topology_subjects
from assay.insight.rules.facts.databases import database_subjects, layout_subject
from assay.insight.rules.facts.devices import device_subjects, md_subjects
from assay.insight.rules.facts.drives import add_drives, mark_logs
from assay.insight.rules.facts.files import file_subjects
from assay.insight.rules.facts.host import host_subject
from assay.insight.rules.facts.initiators import fc_subjects, iscsi_subjects, multipath_subjects
from assay.insight.rules.facts.interfaces import interface_subjects, know_storage_links
from assay.insight.rules.facts.manifests import run_subjects
from assay.insight.rules.facts.mounts import mount_subjects, mounts_of_data
from assay.insight.rules.facts.runs import MeasuredStorage, measured
from assay.insight.rules.facts.site import add_site, read_site
from assay.insight.rules.rule import Subject
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.databases import is_database
from assay.targets.drives.beneath import disks_of
from assay.targets.host import device_of
from assay.telemetry.collectors.storage_net import STORAGE_PORTS, StorageNetCollector

ROLES = ("data", "log", "tempdb", "backup")
"""What `--volume` says a path is for."""

_HOST = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")


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
        `host`, paths, files of settings, databases' URLs, `model:` targets, run folders.
    volumes
        Paths by role: `data=/mnt/x`.
    profile
        A run that measured the storage; without it, runs among the targets.
    site
        The site's file.

    Raises
    ------
    UsageError
        A target is none of these, or the site's file is wrong.
    """
    known = read_site(site) if site is not None else {}
    paths = [_volume(text) for text in volumes]
    runs = [text for text in targets if _is_run(text)]
    found = _measured([profile] if profile is not None else [Path(text) for text in runs])
    subjects: list[Subject] = []
    notices: list[str] = []
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
        elif text in runs:
            subjects += run_subjects(Path(text), found)
            notices.append(f"{printable(text)}: says what its host was when it ran; assay check host says what it is")
        elif (settings := _settings(text)) is not None:
            subjects += settings
            notices.append(f"{printable(text)}: its settings are checked, and nothing of this host")
        else:
            paths.append((_path(text), ""))
            is_local = True
    if targets and all(text.startswith("model:") for text in targets) and not paths:
        subjects += [one for text in targets for one in topology_subjects(text)]
    if is_local:
        subjects = [*_of_host(paths, notices), *subjects]
    if site is not None:
        notices += add_site(subjects, known, site)
    know_storage_links(subjects)
    return subjects, notices


def _settings(text: str) -> list[Subject] | None:
    """What a file of settings tells of; None where the path is a place of storage.

    Raises
    ------
    UsageError
        It is a text of another kind.
    """
    mode = _mode(text)
    return file_subjects(text) if mode is not None and stat.S_ISREG(mode) else None


def _is_run(text: str) -> bool:
    is_other = text.startswith("model:") or is_database(text)
    return not is_other and _mode(os.path.join(text, "run.json")) is not None


def _mode(text: str) -> int | None:
    """What a path is; None where nothing is there.

    Raises
    ------
    UsageError
        It may not be looked at.
    NotAnswering
        Its file system does not answer.
    """
    try:
        return answer_within(ANSWER_TIMEOUT_S, lambda: os.stat(text), what=text).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{printable(text)}: cannot be looked at: {reason}") from None


def _measured(runs: Sequence[Path]) -> MeasuredStorage | None:
    """What the first run that measured anything of storage says."""
    found = [measured(run) for run in runs]
    return next((one for one in found if one.is_any), found[0] if found else None)


def _path(text: str) -> str:
    """A path of storage: a folder, a file or a block device.

    Raises
    ------
    UsageError
        It is something else.
    """
    mode = _mode(text)
    if mode is None:
        there = f"; another host is checked there: ssh {text} assay check" if _HOST.fullmatch(text) else ""
        raise UsageError(
            f"{printable(text)}: does not exist; name the word host for this machine, a folder, a device, a file of"
            f" settings, a run, a database's URL or model:NAME{there}"
        )
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
        raise UsageError(f"{printable(text)}: is no storage; name a folder, a file or a block device")
    return text


def _volume(text: str) -> tuple[str, str]:
    role, mark, path = text.partition("=")
    if not mark or role not in ROLES or _mode(path) is None:
        raise UsageError(
            f"--volume {printable(text)}: accepted: ROLE=PATH, of {', '.join(ROLES)}, and of a path that is there"
        )
    return _path(path), role


def _of_host(paths: Sequence[tuple[str, str]], notices: list[str]) -> list[Subject]:
    """The host, its devices, interfaces and paths to storage, and the file systems of folders; adds to `notices`."""
    host = host_subject()
    is_guest = host.get("is_guest")
    named = [device for path, _ in paths if (device := device_of(path)) is not None]
    maps = multipath_subjects()
    cards = interface_subjects(is_guest=is_guest)
    _mark_storage(cards)
    files = [path for path, _ in paths if not stat.S_ISBLK(os.stat(path).st_mode)]
    devices = device_subjects(dict.fromkeys(named) if named else None, is_guest=is_guest)
    notices += add_drives(devices)
    logs = [device for path, role in paths if role == "log" and (device := device_of(path)) is not None]
    mark_logs(devices, disks_of(logs), "--volume")
    found = [host, *devices, *cards]
    found += [*md_subjects(), *maps, *iscsi_subjects(has_multipath=bool(maps)), *fc_subjects()]
    found += mount_subjects(files, is_data=True) if paths else mount_subjects(mounts_of_data(), is_data=None)
    if any(role for _, role in paths):
        found.append(layout_subject("the volumes that were given", [(role, path) for path, role in paths], "--volume"))
    return found


def _mark_storage(cards: Sequence[Subject]) -> None:
    """Which interfaces lead to storage: those whose addresses have connections to ports of storage."""
    try:
        names = StorageNetCollector(STORAGE_PORTS).interfaces()
    except (NotSupported, OSError):
        names = None
    for card in cards:
        is_storage = card.name in names if names is not None else None
        card.know("is_storage", is_storage, "TCP connections to ports of storage")
        card.lack("is_storage", "the kernel does not tell of its connections; say it in site.toml: [network]"
                  " storage_interfaces")  # fmt: skip

"""What a volume or database is, told so that two hosts can see that they were given the same one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.files.safety import ExaminedVolume
from assay.targets.files.target import StorageTarget
from assay.targets.kernel import Kernel, read_text
from assay.targets.target import Target

BOOT = Path("/proc/sys/kernel/random/boot_id")
LOOPBACK = (None, "", "localhost", "127.0.0.1", "::1")
NETWORK = frozenset({"afs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "gfs2", "ocfs2", "9p"})
"""File systems that several hosts mount."""


def machine() -> str | None:
    """What tells agents on one machine from those on others, without telling which machine; None where unknown.

    Containers share the machine's kernel, and so the devices that it counts.
    """
    boot = read_text(BOOT)
    return _hidden(f"assay machine {boot.strip()}") if boot else None


def identities(target: Target) -> dict[str, list[str]]:
    """Identities of each volume or database by its name; two names that share one lead to the same thing."""
    if isinstance(target, DatabaseTarget):
        return {database.name: _of_database(database) for database in target.databases}
    if not isinstance(target, StorageTarget):
        return {}
    found = {volume.spec.name: _of_volume(volume) for volume in target.examined}
    return {name: words for name, words in found.items() if words}


def _of_database(database: Any) -> list[str]:
    spec = database.spec
    boot = read_text(BOOT) or ""
    for path in (spec.directory, spec.file):
        if path is not None:
            return ["database", boot, os.path.realpath(path)]
    if spec.socket or spec.host in LOOPBACK:
        return ["database", boot, spec.socket or str(spec.port), spec.database]
    return ["database", str(spec.host), str(spec.port), spec.database]


def servers(identities: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What tells databases on one server from those on others, without telling which server, by the database's name.

    Files and embedded databases have a server to themselves.

    Examples
    --------
    >>> of = servers({"a": ["database", "db1", "5432", "x"], "b": ["database", "db1", "5432", "y"]})
    >>> of["a"] == of["b"]
    True
    """
    return {
        name: _hidden(f"assay server {' '.join(words[1:3])}")
        for name, words in identities.items()
        if words[0] == "database" and len(words) == 4
    }


def _hidden(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _of_volume(volume: ExaminedVolume) -> list[str]:
    path = volume.path
    if path is None:
        return []
    boot = read_text(BOOT) or ""
    if volume.hold is None:
        return ["new file", *_file_system(path.parent, boot), str(path)]
    own = volume.hold.identity()
    if own.inode is not None:
        return ["file", *_file_system(path, boot), str(own.inode)]
    major, minor = map(int, own.device.split(":"))
    directory = Kernel().directory((major, minor))
    start = (read_text(directory / "start") if directory is not None else None) or "0"
    if own.wwn or own.serial:
        # The same disk seen from two hosts, or by two paths: where on it a partition begins tells partitions apart.
        return ["device", own.wwn or "", own.serial or "", start.strip()]
    return ["device", boot, own.device]


def _file_system(path: Path, boot: str) -> list[str]:
    """A mounted share is the same on all hosts; any other file system belongs to one."""
    number = os.stat(path).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    for line in (read_text(Path("/proc/self/mountinfo")) or "").splitlines():
        words = line.split(" - ")
        if len(words) == 2 and words[0].split()[2] == device:
            kind, source = words[1].split()[:2]
            if kind in NETWORK:
                return [kind, source]
    return [boot, device]

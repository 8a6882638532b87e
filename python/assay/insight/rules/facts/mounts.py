"""Facts of file systems: where they are mounted, how, and what is free (proc_pid_mountinfo(5), statvfs(3))."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from assay.base.errors import NotAnswering
from assay.insight.rules.rule import Subject
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.host import folder_facts
from assay.targets.kernel import Kernel, Mount

_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph")
_IMAGES = ("squashfs", "iso9660", "erofs", "udf")
"""File systems that are full by nature."""

Space = Callable[[str], os.statvfs_result]


def mount_point(path: str) -> str:
    """Where the file system of a path is mounted.

    Raises
    ------
    NotAnswering
        The file system does not answer.
    """

    def look() -> str:
        place = os.path.realpath(path)
        while not os.path.ismount(place):
            place = os.path.dirname(place)
        return place

    return answer_within(ANSWER_TIMEOUT_S, look, what=path)


def mounts_of_data(kernel: Kernel | None = None) -> list[str]:
    """Mount points of all file systems that can be written to, on block devices and on the network, each once."""
    tables = kernel or Kernel()
    found: dict[object, Mount] = {}
    for mount in tables.mounts():
        is_storage = mount.file_system in _NETWORK or tables.directory(mount.device) is not None
        if not is_storage or mount.file_system in _IMAGES or "ro" in mount.options.split(","):
            continue
        # A bind mount shows a file system again; the shortest place is its own.
        known = found.get(mount.device)
        if known is None or len(mount.mount_point) < len(known.mount_point):
            found[mount.device] = mount
    return sorted(mount.mount_point for mount in found.values())


def mount_subjects(
    paths: Iterable[str], kernel: Kernel | None = None, *, is_data: bool | None, space: Space = os.statvfs
) -> list[Subject]:
    """File systems of paths, each once.

    Parameters
    ----------
    is_data
        Whether the user named the paths as those of data.
    space
        Asks for what is free, for tests.
    """
    found: dict[str, Subject] = {}
    for path in paths:
        try:
            point = mount_point(path)
            if point not in found:
                found[point] = _mount(point, path, kernel, space)
        except (NotAnswering, OSError) as error:
            reason = str(error) if isinstance(error, NotAnswering) else f"{path}: {error.strerror}"
            found[path] = Subject("mount", path, otherwise=reason)
        found[point if point in found else path].know("is_data", is_data, "the target")
    for one in found.values():
        one.lack("is_data", "no folder was named as one of data")
    return list(found.values())


def _mount(point: str, path: str, kernel: Kernel | None, space: Space) -> Subject:
    mount = Subject("mount", point, otherwise="the mount is not visible in /proc/self/mountinfo")
    know_mount(mount, folder_facts(path, kernel), "/proc/self/mountinfo")
    told = answer_within(ANSWER_TIMEOUT_S, lambda: space(path), what=path)
    if told.f_blocks:
        # What is kept for root is not free to a database.
        mount.know("free_share", told.f_bavail / max(told.f_blocks - told.f_bfree + told.f_bavail, 1), "statvfs(3)")
    mount.lack("free_share", "the file system does not tell what is free")
    return mount


def know_mount(mount: Subject, told: dict[str, object], origin: str) -> None:
    """Type and options of a file system, as results carry them."""
    kind, text = told.get("file_system"), told.get("mount_options")
    options = [one for one in str(text).split(",") if one] if text else None
    mount.know("options", options, origin)
    mount.know("file_system", str(kind).split(" ")[0] if kind else None, origin)
    for name in ("rsize", "wsize"):
        value = next((one.partition("=")[2] for one in options or () if one.startswith(f"{name}=")), "")
        mount.know(f"nfs_{name}", int(value) if value.isdecimal() else None, origin)

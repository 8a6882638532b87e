"""How full file systems are, by mount point."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from assay.base.errors import NotAnswering, NotSupported
from assay.base.paths import printable
from assay.targets.answering import answer_within
from assay.targets.kernel import read_text
from assay.telemetry.columns import Reading

EVERY_S = 60.0
"""Between two looks: file systems fill slowly, and on a network each look is a request."""

_ANSWER_S = 2.0
_LOOK_MAX_S = 4.0

_NO_STORAGE = frozenset(
    ("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
     "fusectl", "hugetlbfs", "mqueue", "nsfs", "overlay", "proc", "pstore", "ramfs", "rpc_pipefs", "securityfs",
     "squashfs", "sysfs", "tmpfs", "tracefs")
)  # fmt: skip
"""File systems that hold no data of their own."""


def mount_points() -> dict[str, str]:
    """Mount points by the device or share that is mounted there first."""
    found: dict[str, str] = {}
    for line in (read_text(Path("/proc/self/mounts")) or "").splitlines():
        device, point, kind, *_ = [*line.split(), "", "", ""]
        if kind and kind not in _NO_STORAGE and device not in found:
            found[device] = point.encode("ascii", "replace").decode("unicode_escape")
    return found


class VolumesCollector:
    """Size, use and free share of each file system; read once a minute."""

    name = "file systems"
    tier = "storage"
    source = "volume"

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._looked_s: float | None = None
        self._silent: set[str] = set()
        self._found: Mapping[str, tuple[int, int]] = {}

    def sample(self) -> tuple[float, Mapping[str, tuple[int, int]]]:
        """Look at all file systems, where a minute has gone by; those that do not answer are not asked again.

        Raises
        ------
        NotSupported
            None can be looked at.
        """
        now_s = time.monotonic()
        if self._looked_s is None or now_s - self._looked_s >= self._every_s:
            self._looked_s = now_s
            self._found = self._look()
            if not self._found:
                raise NotSupported("no file system can be looked at")
        return self._looked_s, self._found

    @property
    def missing(self) -> list[str]:
        """File systems that do not answer."""
        return [f"{printable(point)} does not answer; it is not looked at again" for point in sorted(self._silent)]

    def _look(self) -> dict[str, tuple[int, int]]:
        found = {}
        ends_s = time.monotonic() + _LOOK_MAX_S
        for point in mount_points().values():
            if point in self._silent:
                continue
            if time.monotonic() > ends_s:
                # Everything else waits for this look; the rest of it comes with the next one.
                break
            try:
                told = answer_within(_ANSWER_S, lambda point=point: os.statvfs(point), what=point)  # type: ignore[misc]
            except NotAnswering:
                self._silent.add(point)
                continue
            except OSError:
                continue
            if told.f_blocks:
                size = told.f_blocks * told.f_frsize
                found[point] = (size, size - told.f_bfree * told.f_frsize)
        return found

    def readings(
        self,
        before: tuple[float, Mapping[str, tuple[int, int]]],
        after: tuple[float, Mapping[str, tuple[int, int]]],
        interval_ns: int,
    ) -> Iterator[Reading]:
        """Values of the newest look, once."""
        del interval_ns
        if before[0] == after[0]:
            return
        for point, (size, used) in after[1].items():
            yield Reading(point, "size_bytes", "gauge", float(size))
            yield Reading(point, "used_bytes", "gauge", float(used))
            yield Reading(point, "free_share", "gauge", 1.0 - used / size)

    def close(self) -> None:
        """Nothing is held."""

"""Resets, time-outs and failed I/Os of drives in the kernel's log, from /dev/kmsg (ABI/testing/dev-kmsg).

Lines are those of Linux 4.18 to 6.18: drivers/nvme/host (core.c, pci.c), drivers/ata/libata-eh.c, block/blk-core.c.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from assay.base.errors import NotSupported
from assay.base.paths import plain
from assay.targets.kernel import Kernel

RECORD_BYTES_MAX = 8192
RECORDS_MAX = 4096
"""Records that one look takes: a flood of them is counted over several."""
LINE_MAX = 200

_FAILED = re.compile(r"(?:I/O|timeout|critical \w+|recoverable transport) error, dev (\w{2,16}), sector", re.ASCII)
_NVME = re.compile(
    r"nvme (nvme\d{1,4}): (?:I/O .{0,80}timeout, |resetting controller|controller is down|Disabling device|frozen state"
    r"|Device not ready)",
    re.ASCII,
)
_ATA = re.compile(r"(ata\d{1,4})(?:\.\d\d)?: (?:(?:hard|soft) resetting link|failed command)", re.ASCII)


class KernelEvent(NamedTuple):
    """A line of the kernel's log on a drive."""

    drive: str
    kind: Literal["reset", "error"]
    line: str


def event_of(line: str, places: Mapping[str, str]) -> KernelEvent | None:
    """What a line says of a drive, if anything; `places` are drives by what the kernel calls them.

    Examples
    --------
    >>> event_of("nvme nvme0: I/O 12 QID 3 timeout, aborting", {"nvme0": "nvme0n1"})
    KernelEvent(drive='nvme0n1', kind='reset', line='nvme nvme0: I/O 12 QID 3 timeout, aborting')
    >>> event_of("blk_update_request: I/O error, dev sda, sector 8 op 0x0:(READ)", {"sda": "sda"}).kind
    'error'
    """
    if (match := _FAILED.search(line)) and (drive := places.get(match[1])):
        return KernelEvent(drive, "error", plain(line)[:LINE_MAX])
    match = _NVME.match(line) or _ATA.match(line)
    drive = places.get(match[1]) if match else None
    return KernelEvent(drive, "reset", plain(line)[:LINE_MAX]) if drive is not None else None


def places_of(drives: Iterable[str], kernel: Kernel | None = None) -> dict[str, str]:
    """What the kernel's log calls drives: the device, its NVMe controllers, its port of SATA."""
    tables = kernel or Kernel()
    found: dict[str, str] = {}
    for name in drives:
        found[name] = name
        place = (tables.sys / "block" / name / "device").resolve()
        controllers = [place.name, *(path.name for path in place.glob("nvme[0-9]*") if (path / "state").exists())]
        found |= {one: name for one in controllers if re.fullmatch(r"nvme\d+", one)}
        found |= {part: name for part in place.parts if re.fullmatch(r"ata\d+", part)}
    return found


class KernelLog:
    """The kernel's log from now on.

    Parameters
    ----------
    places
        Drives by what the log calls them.

    Raises
    ------
    NotSupported
        This account may not read it, or a container hides it.
    """

    def __init__(
        self, places: Mapping[str, str], path: str | Path = "/dev/kmsg", read: Callable[[int, int], bytes] = os.read
    ) -> None:
        self._places, self._read = places, read
        try:
            self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            raise NotSupported(f"{path} cannot be read ({error.strerror})") from None

    def events(self) -> list[KernelEvent]:
        """What came since the last call."""
        found = []
        for _ in range(RECORDS_MAX if self._descriptor is not None else 0):
            assert self._descriptor is not None
            try:
                record = self._read(self._descriptor, RECORD_BYTES_MAX)
            except OSError as error:
                # The oldest records were overwritten before they were read: the next ones follow.
                if error.errno == errno.EPIPE:
                    continue
                break
            if not record:
                break
            # The prefix ends at a semicolon; lines that begin with a blank are a dictionary of the device.
            line = record.decode("utf-8", "replace").partition(";")[2].partition("\n")[0]
            if (event := event_of(line, self._places)) is not None:
                found.append(event)
        return found

    def close(self) -> None:
        """Close it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

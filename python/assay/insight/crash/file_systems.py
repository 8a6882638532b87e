"""The file systems that a volume may have: how each is made, mounted and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """A file system of the kernel.

    Attributes
    ----------
    make
        The command that makes it; options of the user's and the device follow.
    mount
        Options of every mount.
    check
        The command that checks it without a change; the device follows.
    ignored_status
        Bits of the check's exit status that are no complaint.
    ignored_lines
        Expression of lines of the check that are no complaint.
    size_bytes
        Size of the volume unless another is asked for.
    size_min_bytes
        The smallest volume that its program accepts.
    """

    make: tuple[str, ...]
    mount: str
    check: tuple[str, ...]
    ignored_status: int
    ignored_lines: str
    size_bytes: int
    size_min_bytes: int

    def complaint(self, status: int, said: str) -> str | None:
        """The first complaint of its check; None: there is none."""
        if not status & ~self.ignored_status:
            return None
        lines = [line for line in said.splitlines() if line.strip() and not re.match(self.ignored_lines, line)]
        return lines[0].strip() if lines else "its check fails"


FileSystemName = Literal["ext4", "xfs", "none"]

FILE_SYSTEMS: dict[str, FileSystem] = {
    "ext4": FileSystem(
        make=("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
        mount="errors=remount-ro",
        check=("e2fsck", "-f", "-n"),
        # Errors that were corrected: counts of free blocks.
        ignored_status=1,
        ignored_lines="Pass |e2fsck",
        size_bytes=256 << 20,
        size_min_bytes=1 << 20,
    ),
    "xfs": FileSystem(
        make=("mkfs.xfs", "-q", "-f", "-K"),
        # Several processes mount states of one volume at once.
        mount="nouuid",
        check=("xfs_repair", "-n"),
        ignored_status=0,
        ignored_lines="Phase |\\s+- ",
        size_bytes=320 << 20,
        size_min_bytes=300 << 20,
    ),
}
"""By name; `none` is no file system: the volume is one file."""
NAMES = (*FILE_SYSTEMS, "none")

"""What a drive claims of atomic writes. No power cut proves it here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.drives.kernel_facts import drive_shown
from assay.targets.kernel import Kernel


@dataclass(frozen=True, kw_only=True)
class DriveClaim:
    """A drive and its atomic writes.

    Attributes
    ----------
    name
        As the kernel has it.
    claimed_bytes
        The largest write that the drive says it makes whole or not at all; None: it says nothing.
    """

    name: str
    claimed_bytes: int | None

    def words(self, size_bytes: int) -> str:
        """What is known of atomic writes of a size.

        Examples
        --------
        >>> DriveClaim(name="nvme0n1", claimed_bytes=16384).words(16384)
        'nvme0n1 claims atomic writes of 16 KiB, which is not proven'
        >>> DriveClaim(name="sda", claimed_bytes=None).words(16384)
        'sda claims no atomic writes of 16 KiB'
        """
        size = format_bytes(size_bytes)
        if self.claimed_bytes is None or self.claimed_bytes < size_bytes:
            return f"{self.name} claims no atomic writes of {size}"
        return f"{self.name} claims atomic writes of {size}, which is not proven"


def drive_claim(path: str, kernel: Kernel | None = None) -> DriveClaim:
    """The claim of a drive, by its device or its name.

    Raises
    ------
    UsageError
        The kernel knows no such drive.
    """
    tables = kernel or Kernel()
    name = os.path.basename(os.path.realpath(path) if "/" in path else path)
    if not name or not (tables.sys / "block" / name).is_dir():
        raise UsageError(f"--drive: {printable(Path(path))} is no drive of this host; name one of /sys/block")
    shown = drive_shown(name, tables)["atomic_writes"]
    return DriveClaim(name=name, claimed_bytes=None if shown is None else shown["unit_max_bytes"])

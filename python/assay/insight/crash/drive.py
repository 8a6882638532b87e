"""What a drive claims of atomic writes, and what power cuts under `assay verify` say of the claim."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.record.power_cut import DriveIdentity
from assay.targets.drives.kernel_facts import drive_shown
from assay.targets.files.hold import serial_of, wwn_of
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
    identity
        By which runs on it are known.
    """

    name: str
    claimed_bytes: int | None
    identity: DriveIdentity = field(default_factory=DriveIdentity)

    def claims(self, size_bytes: int) -> bool:
        """Whether it says that it writes a size whole or not at all."""
        return self.claimed_bytes is not None and self.claimed_bytes >= size_bytes

    def words(self, size_bytes: int) -> str:
        """What it claims of atomic writes of a size.

        Examples
        --------
        >>> DriveClaim(name="nvme0n1", claimed_bytes=16384).words(16384)
        'nvme0n1 claims atomic writes of 16 KiB'
        >>> DriveClaim(name="sda", claimed_bytes=None).words(16384)
        'sda claims no atomic writes of 16 KiB'
        """
        return (
            f"{self.name} claims {'' if self.claims(size_bytes) else 'no '}atomic writes of {format_bytes(size_bytes)}"
        )


def drive_claim(path: str, kernel: Kernel | None = None) -> DriveClaim:
    """The claim of a drive, by its device or its name.

    Raises
    ------
    UsageError
        The kernel knows no such drive.
    """
    tables = kernel or Kernel()
    name = os.path.basename(os.path.realpath(path) if "/" in path else path)
    folder = tables.sys / "block" / name
    if not name or not folder.is_dir():
        raise UsageError(f"--drive: {printable(Path(path))} is no drive of this host; name one of /sys/block")
    drive = drive_shown(name, tables)
    shown = drive["atomic_writes"]
    identity = DriveIdentity(
        model=drive["model"], firmware=drive["firmware"], serial=serial_of(folder), wwn=wwn_of(folder)
    )
    return DriveClaim(name=name, claimed_bytes=None if shown is None else shown["unit_max_bytes"], identity=identity)

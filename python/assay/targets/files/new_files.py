"""Where a file may be made: not for a name that was mistyped, and not among those of the system."""

from __future__ import annotations

import re
from pathlib import Path

from assay.base.errors import RefusedTarget
from assay.base.paths import printable
from assay.targets.files.safety import ExaminedVolume

SYSTEM_FOLDERS = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
"""Folders of the operating system, where no file is made (Filesystem Hierarchy Standard 3.0, section 3)."""
_NO_SYSTEM_FOLDERS = ("/dev/shm", "/usr/local", "/usr/src", "/usr/tmp")


def refuse_new_file(volume: ExaminedVolume, *, create: bool) -> None:
    """Refuse to make a file that a mistyped name stands for, or one among those of the system.

    Parameters
    ----------
    create
        Whether a name without a suffix is meant as that of a new file.

    Raises
    ------
    RefusedTarget
        The file does not exist, and is not to be made.
    """
    path = volume.path
    if volume.exists or path is None:
        return
    shown, name = printable(volume.spec.path or path), printable(path.name)
    if is_system_folder(path.parent):
        raise RefusedTarget(
            f"{shown}: {path.parent} is a folder of the system; give a folder on the storage to examine"
        )
    if create or path.suffix:
        return
    if Path("/sys/class/block", path.name).exists():
        raise RefusedTarget(
            f"{shown}: does not exist; for the device give /dev/{name}, for a file of that name --create"
        )
    if re.fullmatch(r"[0-9.]+[KMGT]i?B?", name, re.IGNORECASE):
        raise RefusedTarget(f"{shown}: does not exist; a size is given as --size {name}, before or after the target")
    raise RefusedTarget(
        f"{shown}: does not exist; make the folder (mkdir -p {shown}), or name a new file with a suffix ({name}.dat)"
        " or with --create"
    )


def is_system_folder(folder: Path) -> bool:
    """Whether a folder is the root, or belongs to the operating system; links are resolved before.

    Examples
    --------
    >>> is_system_folder(Path("/etc/ssl")), is_system_folder(Path("/srv/data")), is_system_folder(Path("/usr/local/db"))
    (True, False, False)
    """
    if any(folder.is_relative_to(other) for other in _NO_SYSTEM_FOLDERS):
        return False
    return folder == Path("/") or any(folder.is_relative_to(system) for system in SYSTEM_FOLDERS)

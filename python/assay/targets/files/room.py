"""Room on file systems: how much sizes of volumes need, and how much stays free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.base.errors import OutOfSpace
from assay.base.units import format_bytes
from assay.targets.files.safety import ExaminedVolume
from assay.targets.kernel import DeviceNumber

FREE_SHARE_KEPT = 0.05
FREE_BYTES_KEPT_MAX = 1024**3
"""What stays free on a file system: 5 %, the reserve mke2fs(8) keeps too, but never more than 1 GiB."""


def check_space(examined: Sequence[ExaminedVolume], sizes: Mapping[str, int]) -> None:
    """Refuse sizes that do not fit, all volumes of a file system taken together.

    Parameters
    ----------
    examined
        The volumes.
    sizes
        Size each volume shall have in bytes, by its name; what a file occupies already is not needed again.

    Raises
    ------
    OutOfSpace
        A file system would have less than 5 % or 1 GiB (whichever is less) left, or a device is smaller than asked.
    """
    needs: dict[DeviceNumber, dict[Path, int]] = {}
    for volume in examined:
        size_bytes = sizes.get(volume.spec.name)
        if size_bytes is None or volume.path is None:
            continue
        if volume.free_bytes is None:
            _check_device_size(volume, size_bytes)
        elif volume.device_id is not None:
            files = needs.setdefault(volume.device_id, {})
            # Two roles may share one file: it needs its room once.
            files[volume.path] = max(files.get(volume.path, 0), size_bytes - volume.allocated_bytes)
    for device, files in needs.items():
        here = next(volume for volume in examined if volume.device_id == device and volume.free_bytes is not None)
        _check_file_system(here, files)


def _check_device_size(volume: ExaminedVolume, size_bytes: int) -> None:
    if volume.size_bytes is not None and size_bytes > volume.size_bytes:
        raise OutOfSpace(
            f"{volume.spec.path}: {format_bytes(size_bytes)} asked, the device has {format_bytes(volume.size_bytes)}; "
            "give a smaller --size"
        )


def usable_bytes(examined: Sequence[ExaminedVolume], sizes: Mapping[str, int], device: DeviceNumber) -> int:
    """Room on a file system beside the volumes of these sizes and what stays free; 0 where it is not known."""
    here = [volume for volume in examined if volume.device_id == device and volume.free_bytes is not None]
    if not here or not here[0].file_system_bytes:
        return 0
    needed_bytes = sum(max(0, sizes.get(volume.spec.name, 0) - volume.allocated_bytes) for volume in here)
    return max((here[0].free_bytes or 0) - _kept_bytes(here[0].file_system_bytes) - needed_bytes, 0)


def _kept_bytes(file_system_bytes: int) -> int:
    return min(int(file_system_bytes * FREE_SHARE_KEPT), FREE_BYTES_KEPT_MAX)


def _check_file_system(here: ExaminedVolume, files: Mapping[Path, int]) -> None:
    total_bytes, free_bytes = here.file_system_bytes or 0, here.free_bytes or 0
    if total_bytes == 0:
        # An unlimited tmpfs and some network file systems do not say how large they are.
        return
    needed_bytes = sum(max(0, need) for need in files.values())
    kept_bytes = _kept_bytes(total_bytes)
    if needed_bytes > 0 and needed_bytes > free_bytes - kept_bytes:
        names = ", ".join(str(path) for path in files)
        usable = format_bytes(max(0, free_bytes - kept_bytes))
        raise OutOfSpace(
            f"{names}: {format_bytes(needed_bytes)} more needed, but of the file system's {format_bytes(free_bytes)} "
            f"free only {usable} may be used ({format_bytes(kept_bytes)} stay free); give a smaller --size, or free "
            "some space"
        )

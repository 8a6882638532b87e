"""Whether Assay may read or write a volume: the rules that keep it from destroying what it did not make.

It writes only to files it made, to empty files, and to what `--overwrite` names. A device in use is refused whatever
the options; one that carries a signature needs `--overwrite` and `--yes-destroy`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import OpenFailed, RefusedTarget
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.answering import answer_within
from assay.targets.files.device_use import use_of_device, use_of_file
from assay.targets.files.hold import Hold
from assay.targets.files.ownership import standing
from assay.targets.files.signatures import find_signatures
from assay.targets.files.spec import VolumeSpec
from assay.targets.kernel import (
    DeviceNumber,
    Kernel,
    block_device_at,
    device_number,
    disk_of,
    partitions_of,
    read_number,
)

EXAMINE_TIMEOUT_S = 30.0
"""How long the examination of one volume may take; a disk that sleeps needs some 10 s to spin up."""

_KERNEL_FILE_SYSTEMS = frozenset(
    {"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
     "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",
     "tracefs"}
)  # fmt: skip
"""Their files look empty but are switches of the kernel, and their names are no storage."""

_COMPRESSING_FILE_SYSTEMS = frozenset({"bcachefs", "btrfs", "zfs"})
"""Here a file may hold all its data in fewer blocks than its size."""


@dataclass(frozen=True, kw_only=True)
class ExaminedVolume:
    """One volume as it was found, permitted for what was asked.

    Attributes
    ----------
    path
        Symbolic links resolved; None for `null:` and `model:`.
    exists
        False for a file that is yet to be made.
    size_bytes
        None if new or without meaning.
    fully_allocated
        Every byte of the file has been written, so that reads reach the device; always True for devices.
    logical_block_bytes, physical_block_bytes
        Blocks of the device beneath, where it is known; otherwise 512 and the file system's block.
    free_bytes
        Room for unprivileged writers on the file system (`f_bavail`); None for what is no file.
    file_system_bytes
        Size of that file system; None likewise.
    allocated_bytes
        What the file occupies now.
    device_id
        Number of the file system (`st_dev`) or of the device itself.
    file_system
        Kind of the file system a file is on, as the kernel names it.
    hold
        What was examined, open and locked: all that follows uses it and not the path. None for what does not exist yet.
    """

    spec: VolumeSpec
    path: Path | None
    exists: bool
    size_bytes: int | None
    created_by_assay: bool
    fully_allocated: bool
    logical_block_bytes: int
    physical_block_bytes: int
    free_bytes: int | None
    is_empty: bool
    file_system_bytes: int | None = None
    allocated_bytes: int = 0
    device_id: DeviceNumber | None = None
    file_system: str = ""
    hold: Hold | None = None


@dataclass(frozen=True, kw_only=True)
class _Request:
    """One volume's path as given and resolved, with what the user permits for it."""

    spec: VolumeSpec
    path: Path
    overwrite: bool
    yes_destroy: bool
    writes: bool
    kernel: Kernel

    @property
    def shown(self) -> str:
        """The path as given and, where links lead elsewhere, what it is."""
        given, found = printable(self.spec.path or ""), printable(self.path)
        return given if given == found else f"{given} (which is {found})"

    def refusal(self, why: str, what_to_do: str) -> RefusedTarget:
        """Return the error that names the volume, why it is refused, and what to do."""
        return RefusedTarget(f"{self.shown}: {why}; {what_to_do}")


def examine(
    spec: VolumeSpec,
    *,
    overwrite: Collection[str] = (),
    yes_destroy: Collection[str] = (),
    writes: bool,
    kernel: Kernel | None = None,
) -> ExaminedVolume:
    """Look at a volume and refuse it if the work asked could harm what Assay did not make.

    Nothing is written. What exists is opened and locked, a device exclusively, as long as the result lives.

    Parameters
    ----------
    spec
        The volume.
    overwrite, yes_destroy
        Values of `--overwrite` and `--yes-destroy`; compared as resolved paths.
    writes
        Whether existing content would be written to. A file that does not exist may be made either way.
    kernel
        Where `/proc` and `/sys` are.

    Raises
    ------
    RefusedTarget
        The rules forbid it, or the path cannot serve as a volume.
    OpenFailed
        The kernel gave an I/O error.
    NotAnswering
        The file system or device did not answer in time.
    """
    if spec.path is None:
        return _examined_imagined(spec)
    path = spec.path
    tables = kernel or Kernel()

    def look() -> ExaminedVolume:
        resolved = os.path.realpath(path)
        request = _Request(
            spec=spec,
            path=Path(resolved),
            overwrite=resolved in map(os.path.realpath, overwrite),
            yes_destroy=resolved in map(os.path.realpath, yes_destroy),
            writes=writes,
            kernel=tables,
        )
        return _examine_path(request)

    return answer_within(EXAMINE_TIMEOUT_S, look, what=str(path))


def _examined_imagined(spec: VolumeSpec) -> ExaminedVolume:
    """A volume without storage behind it, of `null:` or of a model: there is nothing to look at or to destroy."""
    return ExaminedVolume(
        spec=spec,
        path=None,
        exists=True,
        size_bytes=spec.size_bytes,
        created_by_assay=False,
        fully_allocated=True,
        logical_block_bytes=512,
        physical_block_bytes=512,
        free_bytes=None,
        is_empty=False,
    )


def _examine_path(request: _Request) -> ExaminedVolume:
    try:
        status = os.stat(request.path)
    except FileNotFoundError:
        return _examine_new_file(request)
    except NotADirectoryError as error:
        raise request.refusal("a part of the path is a file, not a folder", "check the path") from error
    except PermissionError as error:
        raise request.refusal("no permission to look at it", "run as a user who may, or give another path") from error
    except OSError as error:
        raise OpenFailed(f"{request.shown}: {error.strerror}; check the path and its file system") from error
    if stat.S_ISBLK(status.st_mode):
        return _examine_device(request, status)
    if stat.S_ISREG(status.st_mode):
        return _examine_file(request, status)
    if stat.S_ISDIR(status.st_mode):
        raise request.refusal("is a folder", "give a file in it")
    if stat.S_ISCHR(status.st_mode):
        hint = f"its namespace, such as {request.path}n1" if request.path.name.startswith("nvme") else "a block device"
        raise request.refusal("is a character device, not storage", f"give {hint}, or null: to do no I/O at all")
    raise request.refusal("is a pipe or socket, not storage", "give a file, a folder or a block device")


# Files


def _examine_new_file(request: _Request) -> ExaminedVolume:
    if request.spec.kind == "device":
        raise request.refusal("there is no such device", "lsblk lists the devices of this machine")
    folder = request.path.parent
    if not folder.exists():
        existing = next(parent for parent in folder.parents if parent.exists())
        missing = existing / folder.relative_to(existing).parts[0]
        raise request.refusal(
            f"the folder {missing} does not exist", f"create it (mkdir -p {folder}), or check the path"
        )
    if not folder.is_dir():
        raise request.refusal(f"{folder} is not a folder", "check the path")
    _refuse_kernel_file_system(request, folder)
    room = os.statvfs(folder)
    if room.f_flag & os.ST_RDONLY:
        raise request.refusal(
            "its file system is mounted read-only", "remount it (mount -o remount,rw), or give another path"
        )
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise request.refusal(
            f"no permission to create files in {folder}", "change its permissions, or give another path"
        )
    device = device_number(os.stat(folder).st_dev)
    return _examined_file(request, device, room, exists=False, size_bytes=None, is_empty=True)


def _examine_file(request: _Request, status: os.stat_result) -> ExaminedVolume:
    _refuse_kernel_file_system(request, request.path)
    use = use_of_file(request.kernel, request.path, status)
    if use is not None:
        raise request.refusal(use, "detach it first (losetup -d, swapoff), or give another path")
    room = os.statvfs(request.path)
    if request.writes and room.f_flag & os.ST_RDONLY:
        raise request.refusal(
            "its file system is mounted read-only", "remount it (mount -o remount,rw), or give another path"
        )
    needed = os.R_OK | os.W_OK if request.writes else os.R_OK
    if not os.access(request.path, needed, effective_ids=True):
        act = "read and write" if request.writes else "read"
        raise request.refusal(f"no permission to {act} it", "change its permissions, or run as a user who may")
    mount = request.kernel.mount_of(device_number(status.st_dev), str(request.path))
    hold = Hold.take(request.path, writes=request.writes, file_system=mount.file_system if mount is not None else "")
    status = os.fstat(hold.descriptor)
    found = standing(hold.descriptor, request.path, exact_times=hold.exact_times)
    hold.is_ours = hold.is_ours or found == "ours"
    if request.writes and status.st_size > 0 and not hold.is_ours and not request.overwrite:
        held = format_bytes(status.st_size)
        what = f"holds {held} that Assay did not write"
        if found == "changed":
            what = f"was made by Assay, but its {held} are not as Assay left them"
        raise request.refusal(
            what, f"give another path, or --overwrite {printable(request.spec.path or '')} to destroy its content"
        )
    if request.writes and status.st_nlink > 1 and not request.overwrite:
        raise request.refusal(
            f"has {status.st_nlink} names (hard links), so it is used under another one, too",
            f"give another path, or --overwrite {printable(request.spec.path or '')} to destroy its content",
        )
    return _examined_file(
        request,
        device_number(status.st_dev),
        room,
        exists=True,
        size_bytes=status.st_size,
        is_empty=status.st_size == 0,
        created_by_assay=hold.is_ours,
        allocated_bytes=status.st_blocks * 512,
        hold=hold,
    )


def _examined_file(
    request: _Request,
    device: DeviceNumber,
    room: os.statvfs_result,
    *,
    exists: bool,
    size_bytes: int | None,
    is_empty: bool,
    created_by_assay: bool = False,
    allocated_bytes: int = 0,
    hold: Hold | None = None,
) -> ExaminedVolume:
    mount = request.kernel.mount_of(device, str(request.path))
    # A file system without a number of its own (btrfs) still names one of its devices as the source.
    beneath = mount.device if mount is not None else device
    if beneath[0] == 0 and mount is not None:
        beneath = block_device_at(mount.source) or beneath
    logical, physical = block_sizes(request.kernel, beneath, otherwise=(512, room.f_bsize))
    file_system = mount.file_system if mount is not None else ""
    return ExaminedVolume(
        spec=request.spec,
        path=request.path,
        exists=exists,
        size_bytes=size_bytes,
        created_by_assay=created_by_assay,
        fully_allocated=hold is not None
        and bool(size_bytes)
        and _is_written(hold.descriptor, size_bytes or 0, allocated_bytes, file_system),
        logical_block_bytes=logical,
        physical_block_bytes=physical,
        free_bytes=room.f_bavail * room.f_frsize,
        is_empty=is_empty,
        file_system_bytes=room.f_blocks * room.f_frsize,
        allocated_bytes=allocated_bytes,
        device_id=device,
        file_system=file_system,
        hold=hold,
    )


def _refuse_kernel_file_system(request: _Request, path: Path) -> None:
    mount = request.kernel.mount_of(device_number(os.stat(path).st_dev), str(request.path))
    if mount is not None and mount.file_system in _KERNEL_FILE_SYSTEMS:
        raise request.refusal(
            f"is on {mount.file_system}, which is the kernel's and no storage", "give a path on a disk"
        )


def _is_written(descriptor: int, size_bytes: int, allocated_bytes: int, file_system: str) -> bool:
    """Whether no byte is a hole or merely reserved.

    `SEEK_HOLE` counts reserved but unwritten extents as holes. File systems that cannot tell report no hole at all
    (lseek(2)), so the blocks must add up as well, except where compression makes them fewer.
    """
    try:
        first_hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
    except OSError:
        return False
    return first_hole >= size_bytes and (allocated_bytes >= size_bytes or file_system in _COMPRESSING_FILE_SYSTEMS)


# Devices


def _examine_device(request: _Request, status: os.stat_result) -> ExaminedVolume:
    number = device_number(status.st_rdev)
    use = use_of_device(request.kernel, number)
    if use is not None:
        raise request.refusal(
            use, "give a file on it, or take it out of use first (umount, swapoff, vgchange -an, mdadm -S)"
        )
    _refuse_without_access(request, number)
    hold = _hold_exclusively(request)
    for name, backing in request.kernel.loop_files():
        if (directory := request.kernel.directory(number)) is not None and directory.name == name:
            hold.lock_beneath(Path(backing))
    descriptor = hold.descriptor
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END)
        if size_bytes == 0:
            raise request.refusal("has no medium", "attach one, or give another device")
        if request.writes:
            _refuse_unpermitted_content(request, descriptor, size_bytes, number)
    except OSError as error:
        raise OpenFailed(f"{request.shown}: cannot be read: {error.strerror}; check the device (dmesg)") from error
    logical, physical = block_sizes(request.kernel, number, otherwise=(512, 512))
    return ExaminedVolume(
        spec=request.spec,
        path=request.path,
        exists=True,
        size_bytes=size_bytes,
        created_by_assay=False,
        fully_allocated=True,
        logical_block_bytes=logical,
        physical_block_bytes=physical,
        free_bytes=None,
        is_empty=False,
        allocated_bytes=size_bytes,
        device_id=number,
        hold=hold,
    )


def _refuse_without_access(request: _Request, number: DeviceNumber) -> None:
    directory = request.kernel.directory(number)
    if request.writes and directory is not None and read_number(directory / "ro") == 1:
        raise request.refusal("is read-only", "make it writable (blockdev --setrw), or give another device")
    needed = os.R_OK | os.W_OK if request.writes else os.R_OK
    if not os.access(request.path, needed, effective_ids=True):
        act = "read and write" if request.writes else "read"
        raise request.refusal(f"no permission to {act} the device", "run as root, or join its group (usually disk)")


def _hold_exclusively(request: _Request) -> Hold:
    """Open a device as nothing else may have it: the kernel refuses `O_EXCL` while it is mounted or claimed."""
    try:
        return Hold.take(request.path, writes=request.writes)
    except OSError as error:
        raise request.refusal(
            "is in use: another program, run, mount or container has claimed it",
            "find who (lsblk, fuser) and stop it, or give another device",
        ) from error


def _refuse_unpermitted_content(request: _Request, descriptor: int, size_bytes: int, number: DeviceNumber) -> None:
    found = find_signatures(lambda offset, length: os.pread(descriptor, length, offset), size_bytes)
    directory = request.kernel.directory(number)
    partitions = [partition.name for partition in partitions_of(directory)] if directory is not None else []
    if partitions:
        found.append(f"partitions {', '.join(partitions)}")
    name = request.spec.path
    if found and not (request.overwrite and request.yes_destroy):
        raise request.refusal(
            f"carries {', '.join(found)}",
            f"to destroy everything on it give both --overwrite {name} --yes-destroy {name}",
        )
    if not request.overwrite:
        raise request.refusal(
            f"is a device of {format_bytes(size_bytes)}, whose content Assay cannot know",
            f"to destroy everything on it give --overwrite {name}",
        )


def block_sizes(kernel: Kernel, device: DeviceNumber, *, otherwise: tuple[int, int]) -> tuple[int, int]:
    """Logical and physical block of a device in bytes, or `otherwise` where the kernel does not tell."""
    directory = kernel.directory(device)
    if directory is None:
        return otherwise
    queue = disk_of(directory) / "queue"
    logical = read_number(queue / "logical_block_size") or otherwise[0]
    return logical, read_number(queue / "physical_block_size") or max(logical, otherwise[1])

"""A volume held for a whole run: opened once, locked, and used by what was opened and not by its name.

A path may lead to something else at any moment. A run therefore opens each file or device once, without following
links, locks it, and hands every point this one descriptor; docs/safety.md says what that promises.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay import _core
from assay.base.errors import IoFailed, OpenFailed, RefusedTarget
from assay.base.paths import let_go, open_regular, open_without_links, printable
from assay.targets.files.ownership import Mark, mark, read_mark, unmade
from assay.targets.kernel import Kernel, device_number, disk_of, read_number, read_text

_SETTLES_LATER = frozenset({"9p", "afs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3"})
"""Network file systems, which may correct the time of a write after it has ended."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF})
"""Answers of `flock` where a file system has no locks, or none for files that are only read (NFS)."""


@dataclass(frozen=True, kw_only=True)
class FileIdentity:
    """What tells one file or device from another of the same name; None for what is not known or has no meaning.

    Attributes
    ----------
    device
        Number of the device, or of the file system that the file is on, such as `8:1`. Numbers are given anew at boot;
        a file system without a block device (FUSE, NFS, tmpfs), `0:N`, has another after each mount.
    boot
        The boot that `device` and `disk_sequence` are of (`/proc/sys/kernel/random/boot_id`).
    inode, birth_ns, generation
        Number of a file, when it was made, and what changes when the number is given again.
    mark
        Random id that Assay gave the file.
    size_bytes, serial, wwn
        Those of a device.
    disk_sequence
        Number of a device's medium: the kernel gives each medium that it attaches another one.
    """

    device: str
    boot: str | None
    inode: int | None = None
    birth_ns: int | None = None
    generation: int | None = None
    mark: str | None = None
    size_bytes: int | None = None
    serial: str | None = None
    wwn: str | None = None
    disk_sequence: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The identity as the manifest keeps it."""
        return asdict(self)

    def difference(self, recorded: Mapping[str, Any], *, permitted: bool = False) -> str | None:
        """What tells that this is not what was recorded, in words; None if nothing does.

        Parameters
        ----------
        recorded
            An identity, as the manifest keeps it.
        permitted
            Whether nothing is written to it, or the command names it: then a file system that was mounted again is
            the same. Otherwise the file has to be known by its mark or its time of birth as well.
        """
        own = self.to_dict()
        same_boot = recorded.get("boot") == self.boot
        known = permitted or any(own[key] is not None and own[key] == recorded.get(key) for key in ("mark", "birth_ns"))
        for key, words in _WORDS.items():
            if key in _OF_A_BOOT and not same_boot:
                continue
            if key == "device" and known and _is_anonymous(self.device) and _is_anonymous(recorded.get(key)):
                continue
            before, now = recorded.get(key), own[key]
            if None not in (before, now) and before != now:
                return f"{words} {before} then, {now} now"
        return None


_WORDS = {
    "inode": "inode",
    "birth_ns": "made at (ns)",
    "generation": "generation",
    "mark": "mark",
    "size_bytes": "bytes",
    "serial": "serial number",
    "wwn": "WWN",
    "device": "device number",
    "disk_sequence": "attached as number",
}
_OF_A_BOOT = frozenset({"device", "disk_sequence"})


def _is_anonymous(number: str | None) -> bool:
    """Whether it is the number of a file system without a block device, which each mount gives anew."""
    return number is not None and number.startswith("0:")


class Hold:
    """One file or device, open and locked until it is closed or forgotten.

    Make one by `take` or `adopt`. Several volumes and parts of one run that lead to the same file share one.

    Attributes
    ----------
    path
        Without links.
    is_ours
        Whether it is a file that Assay made, or took while it was empty, so that its mark is kept true.
    run
        Id of the run, for the mark.
    """

    def __init__(self, descriptor: int, path: Path, *, writes: bool, file_system: str = "") -> None:
        self.path = path
        self._descriptor = descriptor
        self._writes = writes
        status = os.fstat(descriptor)
        self.is_device = stat.S_ISBLK(status.st_mode)
        self._exact_times = file_system not in _SETTLES_LATER and not file_system.startswith("fuse")
        self.is_ours = False
        self.run: str | None = None
        # Until the first write as well: other volumes may be laid out for hours before.
        self._left = (status.st_size, status.st_mtime_ns) if self._exact_times and not self.is_device else None
        self._marked_in_use = False
        self._beneath: int | None = None
        self._identity: FileIdentity | None = None
        self._close = weakref.finalize(self, let_go, descriptor)
        _held[_key(status)] = self

    @classmethod
    def take(cls, path: Path, *, writes: bool, file_system: str = "") -> Hold:
        """Open and lock what a path leads to now.

        Parameters
        ----------
        path
            Absolute, links resolved.
        writes
            Whether it may be written to: then no other run of Assay uses it, otherwise others may read it too.
        file_system
            Kind of the file system, as the kernel names it.

        Raises
        ------
        RefusedTarget
            Another run of Assay uses it.
        OpenFailed
            It cannot be opened, or a link has taken its place.
        OSError
            `EBUSY` for a device that is mounted or claimed.
        """
        try:
            status = os.lstat(path)
            own = _held.get(_key(status))
            if own is not None and own.path == path:
                if writes:
                    own.widen()
                return own
            is_device = stat.S_ISBLK(status.st_mode)
            access = os.O_RDWR if writes and not is_device else os.O_RDONLY
            # Exclusive: the kernel refuses a device that is mounted or claimed, and refuses others while this is open.
            flags = access | os.O_NONBLOCK | (os.O_EXCL if is_device else 0)
            descriptor = open_without_links(path, flags)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise
            raise OpenFailed(f"{printable(path)}: cannot be opened: {error.strerror}; check it (dmesg)") from error
        try:
            if _key(os.fstat(descriptor)) != _key(status):
                raise OpenFailed(f"{printable(path)}: something else took its place while it was opened; try again")
            _lock(descriptor, path, exclusive=writes, is_device=is_device)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, path, writes=writes, file_system=file_system)

    @classmethod
    def adopt(cls, descriptor: int, path: Path, *, file_system: str = "") -> Hold:
        """Hold a file that was just made, by its descriptor for reading and writing, which belongs to the hold then."""
        _lock(descriptor, path, exclusive=True, is_device=False)
        return cls(descriptor, path, writes=True, file_system=file_system)

    @property
    def descriptor(self) -> int:
        """The descriptor; of files that may be written to, for writing as well."""
        return self._descriptor

    @property
    def exact_times(self) -> bool:
        """Whether the file system tells the time of a write at once."""
        return self._exact_times

    def close(self) -> None:
        """Let others use it."""
        self._close()

    def widen(self) -> None:
        """Take the right to write, where so far only reading was asked.

        Raises
        ------
        RefusedTarget
            Another run of Assay reads it.
        OpenFailed
            It may not be written to.
        """
        if self._writes:
            return
        _lock(self._descriptor, self.path, exclusive=True, is_device=self.is_device)
        if not self.is_device:
            try:
                writable = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise OpenFailed(f"{printable(self.path)}: cannot be written to: {error.strerror}") from error
            # The lock goes with what was opened before.
            os.dup2(writable, self._descriptor, inheritable=False)
            os.close(writable)
            _lock(self._descriptor, self.path, exclusive=True, is_device=False)
        self._writes = True

    def lock_beneath(self, path: Path) -> None:
        """Lock the file behind a loop device, too, which other runs may write to by its name or another device.

        Raises
        ------
        RefusedTarget
            Another run of Assay uses it.
        """
        if self._beneath is not None:
            return
        try:
            descriptor = open_regular(path)
        except OSError:
            # It is deleted, or in another mount namespace.
            return
        try:
            _lock(descriptor, path, exclusive=self._writes, is_device=False)
        except BaseException:
            os.close(descriptor)
            raise
        self._beneath = descriptor
        weakref.finalize(self, let_go, descriptor)

    # During the run

    def check(self) -> None:
        """Make sure, before a point, that the path still leads here and that nothing else has written meanwhile.

        Raises
        ------
        IoFailed
            Something else has its place, or another program wrote to it since it was examined or since the last point.
        """
        where = printable(self.path)
        try:
            status = os.fstat(self._descriptor)
            found = os.lstat(self.path)
        except OSError as error:
            raise IoFailed(
                f"{where}: is gone since the run began ({error.strerror}); nothing else was written"
            ) from error
        if _key(found) != _key(status):
            raise IoFailed(
                f"{where}: something else has taken its place since the run began, and was not touched; the run ends"
            )
        if self._writes and self._left is not None and self._left != (status.st_size, status.st_mtime_ns):
            raise IoFailed(
                f"{where}: another program has written to it since it was examined, or between two points; the run ends"
            )

    def begin_writing(self) -> None:
        """Say, in the mark of a file that is Assay's, that a run writes to it from now on."""
        self._left = None
        if self.is_ours and not self._marked_in_use:
            mark(self._descriptor, self.path, "in use", self.run)
            self._marked_in_use = True

    def end_writing(self) -> None:
        """Remember how a point has left a file that only this run should write to."""
        if self._writes and self._exact_times and not self.is_device:
            # Where the storage is gone, the point's own I/O says so, and `check` before the next one.
            with suppress(OSError):
                status = os.fstat(self._descriptor)
                self._left = status.st_size, status.st_mtime_ns

    # Marks

    @property
    def mark(self) -> Mark | None:
        """What the mark of a file says."""
        return None if self.is_device else read_mark(self._descriptor, self.path)

    def settle(self) -> None:
        """Say in the mark that nothing is writing any more, if a run was.

        Raises
        ------
        OSError, OpenFailed, OutOfSpace
            The data or the mark cannot be written; the file then stays one whose run never ended.
        """
        if self._marked_in_use and os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
            os.fsync(self._descriptor)
            mark(self._descriptor, self.path, "at rest")
            self._marked_in_use = False

    def remove(self) -> bool:
        """Delete the file, if the path still leads to it; whether it did."""
        self._marked_in_use = False
        return unmade(self.path, self._descriptor)

    def identity(self, kernel: Kernel | None = None) -> FileIdentity:
        """What tells it from another of its name; of storage that has disappeared, what was true before.

        Raises
        ------
        OSError
            The storage has not answered this question yet, and does not now.
        """
        try:
            self._identity = self._ask_identity(kernel or Kernel())
        except OSError:
            # The server of a FUSE file is gone, for example. Why the run ends is more than what it ran on.
            if self._identity is None:
                raise
        return self._identity

    def _ask_identity(self, tables: Kernel) -> FileIdentity:
        status = os.fstat(self._descriptor)
        birth_ns, generation, disk_sequence = _core.file_identity(self._descriptor)
        boot = read_text(tables.proc / "sys/kernel/random/boot_id")
        if not self.is_device:
            major, minor = device_number(status.st_dev)
            found = self.mark
            return FileIdentity(
                device=f"{major}:{minor}",
                boot=boot,
                inode=status.st_ino,
                birth_ns=birth_ns,
                generation=generation,
                mark=found.id if found is not None else None,
            )
        number = device_number(status.st_rdev)
        directory = tables.directory(number)
        disk = disk_of(directory) if directory is not None else None
        sectors = read_number(directory / "size") if directory is not None else None
        return FileIdentity(
            device=f"{number[0]}:{number[1]}",
            boot=boot,
            size_bytes=sectors * 512 if sectors is not None else None,
            serial=serial_of(disk) if disk is not None else None,
            wwn=wwn_of(disk) if disk is not None else None,
            disk_sequence=disk_sequence,
        )


_held: weakref.WeakValueDictionary[tuple[int, int, int], Hold] = weakref.WeakValueDictionary()
"""What this process holds: its own locks would keep it out, too."""


def _key(status: os.stat_result) -> tuple[int, int, int]:
    """Which file it is; several nodes may lead to one device."""
    return (0, 0, status.st_rdev) if stat.S_ISBLK(status.st_mode) else (status.st_dev, status.st_ino, 0)


def _lock(descriptor: int, path: Path, *, exclusive: bool, is_device: bool) -> None:
    """Lock against other runs of Assay: readers share, a writer is alone."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        if is_device:
            # The exclusive open is what counts; udev, too, locks a device while it looks at it.
            return
        raise RefusedTarget(
            f"{printable(path)}: is in use by {holder(descriptor)}; wait for it to end, or give another path"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise OpenFailed(f"{printable(path)}: cannot be locked: {error.strerror}; check its file system") from error


def holder(descriptor: int, kernel: Kernel | None = None) -> str:
    """Who has locked an open file, in words, as far as this host knows (`/proc/locks`)."""
    tables = kernel or Kernel()
    inode = os.fstat(descriptor).st_ino
    for line in (read_text(tables.proc / "locks") or "").splitlines():
        # 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF; waiting ones have `->` in front.
        fields = line.split()
        if len(fields) >= 8 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
            words = (read_text(tables.proc / fields[4] / "cmdline") or "").split("\0")
            pairs = itertools.pairwise(words)
            verb = next((word for program, word in pairs if os.path.basename(program) == "assay"), "")
            return f"process {fields[4]}" + (f" (assay {verb})" if verb.isalpha() else "")
    return "another run of Assay"


def serial_of(disk: Path) -> str | None:
    """Serial number of a disk, from its folder in /sys; None where the kernel shows none."""
    return _first_text(disk, "serial", "device/serial") or _serial_in_page(disk / "device/vpd_pg80")


def wwn_of(disk: Path) -> str | None:
    """WWN of a disk or what stands for it, from its folder in /sys; None where the kernel shows none."""
    return _first_text(disk, "wwid", "device/wwid", "dm/uuid", "md/uuid")


def _serial_in_page(path: Path) -> str | None:
    """Serial number in a SCSI disk's page 80h: four bytes of head, of which the last two are its length (SPC)."""
    try:
        page = path.read_bytes()
    except OSError:
        return None
    text = page[4 : 4 + int.from_bytes(page[2:4])].decode("ascii", errors="replace")
    return "".join(filter(str.isprintable, text)).strip() or None


def _first_text(disk: Path, *names: str) -> str | None:
    texts = (read_text(disk / name) for name in names)
    return next(("".join(filter(str.isprintable, text)) for text in texts if text), None)

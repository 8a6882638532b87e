"""A volume on which states are shown: a file served by FUSE, a loop device over it, a file system on that.

All of it lies in a mount namespace of the process that makes it. The loop device clears itself when the last process
that holds it is gone, so that nothing stays mounted or attached however the process ends. This process serves the
volume as well, so that what may wait for it runs in a thread of its own (`OwnFilesThread`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.base.errors import IoFailed, NotSupported
from assay.base.own_files import OwnFilesThread
from assay.insight.crash.file_systems import FILE_SYSTEMS

if TYPE_CHECKING:
    from assay._core import CrashVolume

_LOOP_GET_FREE, _LOOP_CONFIGURE, _FLUSH_BUFFERS = 0x4C82, 0x4C0A, 0x1261
"""Linux: `LOOP_CTL_GET_FREE`, `LOOP_CONFIGURE` (linux/loop.h), `BLKFLSBUF` (linux/fs.h)."""
_AUTOCLEAR, _DIRECT = 4, 16
_LOOP_CONFIG = struct.Struct("=II QQQQQ IIII 64s 64s 32s QQ 8Q")
"""`struct loop_config` of linux/loop.h."""
_NOSUID, _NODEV, _NOATIME = 2, 4, 1024
_PATIENCE_S = 20.0

_libc = ctypes.CDLL(None, use_errno=True)


class NotMounted(Exception):
    """The file system of a state cannot be mounted."""


def _apart(method: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """Run a method in the thread that does not hold what this process serves."""

    @functools.wraps(method)
    def run(stage: Stage) -> None:
        stage.apart.run(lambda: method(stage))

    return run


class Stage:
    """A served volume and its file system."""

    def __init__(self, volume: CrashVolume, folder: Path, *, file_system: str, options: str) -> None:
        """Attach a loop device to a volume, if it is to have a file system.

        Parameters
        ----------
        folder
            An empty folder, in which the file system is mounted.
        file_system
            One of `assay.insight.crash.file_systems.NAMES`.
        options
            Options of the mount, with commas.

        Raises
        ------
        NotSupported
            There is no loop device, or no right to use one.
        """
        self._volume = volume
        self._options = options
        self.file_system = file_system
        self._kind = FILE_SYSTEMS.get(file_system)
        self.folder = folder
        self._file = self._device = -1
        self.device = ""
        self.apart = OwnFilesThread()
        if self._kind is not None:
            self._attach()

    @property
    def place(self) -> Path:
        """Where programs work: the mounted folder, or the volume's file."""
        return self.folder if self.file_system != "none" else Path(self._volume.path)

    @_apart
    def _attach(self) -> None:
        self._file = os.open(self._volume.path, os.O_RDWR | os.O_CLOEXEC)
        deadline = time.monotonic() + _PATIENCE_S
        try:
            control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise NotSupported(
                f"/dev/loop-control: {error.strerror}: a file system needs a loop device; run Assay as root on a host"
                " with loop devices, or give --fs none"
            ) from None
        with os.fdopen(control, "rb", buffering=0):
            while True:
                number = fcntl.ioctl(control, _LOOP_GET_FREE)
                try:
                    self._configure(number)
                    return
                except OSError as error:
                    # Another process took it in between, or its device is not made yet.
                    if error.errno not in (errno.EBUSY, errno.ENOENT) or time.monotonic() > deadline:
                        raise NotSupported(f"/dev/loop{number}: {error.strerror}: no loop device can be used") from None
                time.sleep(0.01)

    def _configure(self, number: int) -> None:
        device = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
        info = (0, 0, 0, 0, 0, number, 0, 0, _AUTOCLEAR | _DIRECT, b"assay-crash", b"", b"", 0, 0, *([0] * 8))
        try:
            fcntl.ioctl(device, _LOOP_CONFIGURE, _LOOP_CONFIG.pack(self._file, 512, *info))
        except OSError:
            os.close(device)
            raise
        self._device, self.device = device, f"/dev/loop{number}"

    def make_file_system(self, more: Sequence[str] = ()) -> None:
        """Make the file system on the volume.

        Parameters
        ----------
        more
            Options of the program that makes it.

        Raises
        ------
        IoFailed
            The program failed.
        """
        if self._kind is None:
            return
        command = [*self._kind.make, *more, self.device]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise IoFailed(f"{command[0]}: {last_line(done.stderr or done.stdout)}")

    @_apart
    def mount(self) -> None:
        """Mount the file system.

        Raises
        ------
        NotMounted
            The kernel refuses.
        """
        if self._kind is None:
            return
        flags = ctypes.c_ulong(_NOSUID | _NODEV | _NOATIME)
        options = ",".join(part for part in (self._kind.mount, self._options) if part)
        done = _libc.mount(
            self.device.encode(), os.fsencode(self.folder), self.file_system.encode(), flags, options.encode()
        )
        if done:
            raise NotMounted(f"{self.file_system} cannot be mounted: {os.strerror(ctypes.get_errno())}")

    @_apart
    def unmount(self) -> None:
        """Unmount the file system; programs that still use it are waited for.

        Raises
        ------
        IoFailed
            It stays in use.
        """
        if self._kind is None:
            return
        deadline = time.monotonic() + _PATIENCE_S
        while _libc.umount2(os.fsencode(self.folder), 0):
            number = ctypes.get_errno()
            if number == errno.EINVAL:
                break
            if time.monotonic() > deadline:
                raise IoFailed(f"{self.folder}: cannot be unmounted: {os.strerror(number)}")
            time.sleep(0.005)

    @_apart
    def settle(self) -> None:
        """Let the file system write all that it holds back, so that what follows is the program's alone."""
        if self._kind is None:
            return
        folder = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.syncfs(folder):
                raise IoFailed(f"{self.folder}: cannot be synced: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(folder)

    @_apart
    def forget_cached(self) -> None:
        """Let the kernel forget what it has of the volume, before another state is shown."""
        if self._device >= 0:
            fcntl.ioctl(self._device, _FLUSH_BUFFERS, 0)

    def complaint(self) -> str | None:
        """The first complaint of the file system's check; it is not mounted."""
        if self._kind is None:
            return None
        command = [*self._kind.check, self.device]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        return self._kind.complaint(done.returncode, f"{done.stdout}\n{done.stderr}")

    def close(self) -> None:
        """Give back the loop device."""
        self._detach()
        self.apart.close()

    @_apart
    def _detach(self) -> None:
        with contextlib.suppress(OSError):
            self.unmount()
        for descriptor in (self._device, self._file):
            if descriptor >= 0:
                os.close(descriptor)
        self._device = self._file = -1


def last_line(text: str) -> str:
    r"""Return the last line of a program's output that is not empty.

    Examples
    --------
    >>> last_line("a\nwhy it failed\n\n")
    'why it failed'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:500] if lines else "no message"

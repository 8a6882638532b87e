"""An instance of ftrace: events of the block layer in rings of their own, apart from any other tracing of the host.

The file system of tracing is used where it is mounted; elsewhere it is opened without being mounted (fsopen(2)). An
instance is named after its process. It goes when it is closed. Where its process was killed, a small shell that waits
for the end of the process removes it, and where that was killed too, the next capture does: the kernel refuses to
remove an instance whose rings are open.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from assay.base.errors import AssayError, IoFailed, NotSupported
from assay.traces.capture.devices import CapturedDevice

MOUNTED = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
EVENTS = {
    "block_bio_queue": "queue",
    "block_rq_issue": "issue",
    "block_rq_requeue": "requeue",
    "block_rq_complete": "complete",
}
"""Events that are captured, by what they are to an I/O (crates/trace/src/event.rs)."""

RINGS_BYTES = 64 * 2**20
"""Memory of the rings of all processors; a ring has between 1 and 8 MiB. An event takes 66 bytes, and rings are read 50
times a second, so that 1 MiB holds for 790,000 events a second and processor."""
RING_MIN_KIB, RING_MAX_KIB = 1024, 8192

FILTER_MAX = 3000
"""Letters of a filter; the kernel takes no more than a page. The reader leaves out other devices as well."""

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
"""Numbers of system calls, alike on all machines (since Linux 5.2)."""
_CONFIG_CREATE = 6
_CLOEXEC = 1

_NAME = re.compile(r"assay-[0-9]+-[0-9]+")
_FIELD = re.compile(r"field:(?P<text>[^;]+?) (?P<name>\w+)(?:\[\w*\])?;\s*offset:(?P<at>\d+);\s*size:(?P<size>\d+);")

_GUARDIAN = """
trap '' HUP INT QUIT TERM
read -r _
n=0
while [ -d "$1" ] && [ $n -lt 100 ]; do rmdir "$1" 2>/dev/null && exit; n=$((n+1)); sleep 0.1; done
"""
"""Waits for the process at the other end of its pipe, then removes the instance, which ends its tracing."""


class TraceInstance:
    """An ftrace instance that traces the block I/O of devices while `start` to `stop`; a context manager.

    Raises
    ------
    NotSupported
        This process may not trace, or this kernel cannot.
    """

    def __init__(self, devices: Sequence[CapturedDevice]) -> None:
        self.devices = tuple(devices)
        self.rings: list[int] = []
        self._tracefs = open_tracefs()
        self._guardian: subprocess.Popen[bytes] | None = None
        self.name = f"assay-{os.getpid()}-{os.stat('/proc/self/ns/pid').st_ino}"
        try:
            remove_stale(self._tracefs)
            self._make()
            self.layout = self._layout()
            self._set_up()
        except OSError as error:
            self.close()
            raise _refusal(error) from error
        except AssayError:
            self.close()
            raise

    def start(self) -> None:
        """Begin to trace."""
        self._write("tracing_on", "1")
        for event in EVENTS:
            self._write(f"events/block/{event}/enable", "1")

    def stop(self) -> None:
        """Trace no more; what the rings hold can still be read."""
        self._write("events/enable", "0")

    def lost_events(self) -> int:
        """Events that did not find room in the rings since the instance was made."""
        found = 0
        for processor in self._processors():
            for line in self._read(f"per_cpu/{processor}/stats").splitlines():
                name, _, value = line.partition(":")
                if name in ("overrun", "commit overrun", "dropped events") and value.strip().isdecimal():
                    found += int(value)
        return found

    def close(self) -> None:
        """Remove the instance, if it is there."""
        with suppress(OSError, AssayError):
            self._write("events/enable", "0")
        for ring in self.rings:
            os.close(ring)
        self.rings = []
        if self._tracefs >= 0:
            with suppress(OSError):
                os.rmdir(f"instances/{self.name}", dir_fd=self._tracefs)
            os.close(self._tracefs)
            self._tracefs = -1
        if self._guardian is not None:
            assert self._guardian.stdin is not None
            self._guardian.stdin.close()
            self._guardian.wait()
            self._guardian = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.close()

    def _make(self) -> None:
        """Make the instance, and the shell that removes it."""
        os.mkdir(f"instances/{self.name}", dir_fd=self._tracefs)
        self._guardian = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDIAN, "assay-trace-guardian", self.name], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            cwd=f"/proc/self/fd/{self._tracefs}/instances",
        )  # fmt: skip
        for processor in self._processors():
            path = f"instances/{self.name}/per_cpu/{processor}/trace_pipe_raw"
            self.rings.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._tracefs))

    def _set_up(self) -> None:
        # The clock of programs, so that times fit those of databases and of other recordings.
        self._write("trace_clock", "mono")
        kib = min(max(RINGS_BYTES // 1024 // max(len(self.rings), 1), RING_MIN_KIB), RING_MAX_KIB)
        self._write("buffer_size_kb", str(kib))
        whole = [device.number for device in self.devices]
        parts = [number for device in self.devices for number in device.partitions]
        for event, kind in EVENTS.items():
            # Bios carry the partition that they were asked of, requests the disk.
            numbers = whole + parts if kind == "queue" else whole
            wanted = " || ".join(f"dev == {number}" for number in numbers)
            if len(wanted) <= FILTER_MAX:
                self._write(f"events/block/{event}/filter", wanted)

    def _layout(self) -> str:
        """Where things lie in pages and events, for the reader."""
        page = _fields(self._read_global("events/header_page"))
        events = []
        for event, kind in EVENTS.items():
            text = self._read_global(f"events/block/{event}/format")
            fields, number = _fields(text), re.search(r"^ID: (\d+)$", text, re.MULTILINE)
            try:
                assert number is not None
                events.append({
                    "id": int(number[1]), "kind": kind, "dev": fields["dev"][0], "sector": fields["sector"][0],
                    "sectors": fields["nr_sector"][0], "rwbs": fields["rwbs"], "comm": fields.get("comm"),
                    "error": fields["error"][0] if "error" in fields else None,
                })  # fmt: skip
            except (KeyError, AssertionError):
                raise NotSupported(f"the kernel's event {event} has another form than Assay knows") from None
        try:
            (commit, commit_bytes), (data, data_bytes) = page["commit"], page["data"]
        except KeyError:
            raise NotSupported("the kernel's trace has pages of another form than Assay knows") from None
        numbers = [(number, place) for place, device in enumerate(self.devices)
                   for number in (device.number, *device.partitions)]  # fmt: skip
        head = {"bytes": data + data_bytes, "commit_at": commit, "commit_bytes": commit_bytes, "data_at": data}
        return json.dumps({"page": head, "events": events, "devices": numbers})

    def _processors(self) -> list[str]:
        folder = os.open(f"instances/{self.name}/per_cpu", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._tracefs)
        try:
            return sorted(name for name in os.listdir(folder) if name.startswith("cpu"))
        finally:
            os.close(folder)

    def _write(self, name: str, text: str) -> None:
        descriptor = os.open(f"instances/{self.name}/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._tracefs)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> str:
        return self._read_global(f"instances/{self.name}/{name}")

    def _read_global(self, name: str) -> str:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._tracefs)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            return file.read()


def _fields(text: str) -> dict[str, tuple[int, int]]:
    """Offset and size of each field of a `format` file."""
    return {found["name"]: (int(found["at"]), int(found["size"])) for found in _FIELD.finditer(text)}


def open_tracefs() -> int:
    """Open the file system of tracing; the descriptor of its root.

    Raises
    ------
    NotSupported
        This process may not, or this kernel has none.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    for place in MOUNTED:
        # Without rights its folders cannot be searched.
        with suppress(OSError):
            if os.path.isdir(f"{place}/instances"):
                return os.open(place, flags)
    library = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        result = int(library.syscall(number, *arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    try:
        context = call(_FSOPEN, b"tracefs", _CLOEXEC)
        try:
            call(_FSCONFIG, context, _CONFIG_CREATE, None, None, 0)
            return call(_FSMOUNT, context, _CLOEXEC, 0)
        finally:
            os.close(context)
    except OSError as error:
        raise _refusal(error) from error


def remove_stale(tracefs: int) -> None:
    """Remove instances whose processes were killed; the kernel keeps those that are in use."""
    with suppress(OSError):
        for name in _instances(tracefs):
            with suppress(OSError):
                os.rmdir(f"instances/{name}", dir_fd=tracefs)


def _instances(tracefs: int) -> Iterator[str]:
    folder = os.open("instances", os.O_RDONLY | os.O_CLOEXEC, dir_fd=tracefs)
    try:
        yield from filter(_NAME.fullmatch, os.listdir(folder))
    finally:
        os.close(folder)


def _refusal(error: OSError) -> AssayError:
    """An error of the kernel's tracing in words."""
    if error.errno in (errno.EPERM, errno.EACCES):
        return NotSupported(
            "this process may not use the kernel's tracing: run as root (CAP_SYS_ADMIN); a kernel that is locked down"
            " refuses it to root too"
        )
    if error.errno == errno.ENOSYS:
        return NotSupported("tracefs is not mounted; run: mount -t tracefs tracefs /sys/kernel/tracing")
    if error.errno in (errno.ENODEV, errno.ENOENT):
        return NotSupported("this kernel does not trace block I/O (it needs CONFIG_BLK_DEV_IO_TRACE)")
    if error.errno == errno.ENOMEM:
        return NotSupported("the kernel has no memory for the rings of a trace")
    return IoFailed(f"the kernel's tracing failed: {error.strerror}")

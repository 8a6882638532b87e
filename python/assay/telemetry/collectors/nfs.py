"""What NFS mounts asked for and how long it took, from /proc/self/mountstats.

Each operation has, after its name: requests, transmissions, time-outs, bytes sent, bytes received, and the milliseconds
that requests waited in the queue, until the answer came (rtt), and in all (Linux, net/sunrpc/stats.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile
from assay.telemetry.columns import Reading

_MOUNT = re.compile(r"^device \S.* mounted on (\S+) with fstype nfs\d? ", re.MULTILINE)
_OPERATION = re.compile(r"^\s*(READ|WRITE): (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", re.MULTILINE)
_NS_PER_MS = 10**6


class Operation(NamedTuple):
    """Counters of one kind of request since the mount."""

    ops: int
    transmissions: int
    timeouts: int
    sent_bytes: int
    received_bytes: int
    queue_ms: int
    rtt_ms: int
    execute_ms: int


def parse_mountstats(text: str) -> dict[str, dict[str, Operation]]:
    """Reads and writes of each NFS mount.

    Raises
    ------
    NotSupported
        There is none.
    """
    found = {}
    mounts = list(_MOUNT.finditer(text))
    for mount in mounts:
        end = text.find("\ndevice ", mount.end())
        own = text[mount.end() : end if end >= 0 else len(text)]
        operations = {one[1].lower(): Operation(*map(int, one.groups()[1:])) for one in _OPERATION.finditer(own)}
        if operations:
            found[mount[1]] = operations
    if not found:
        raise NotSupported("no NFS is mounted")
    return found


def has_nfs() -> bool:
    """Whether a file system of NFS is mounted."""
    try:
        return _MOUNT.search(Path("/proc/self/mountstats").read_text("utf-8", "replace")) is not None
    except OSError:
        return False


class NfsCollector:
    """I/Os, bytes and latencies of NFS mounts, the network's share of them, and requests sent again.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "nfs"
    tier = "storage"
    source = "nfs"

    def __init__(self, path: str | Path = "/proc/self/mountstats") -> None:
        self._file = ProcFile(path)

    def sample(self) -> dict[str, dict[str, Operation]]:
        """Read the counters.

        Raises
        ------
        NotSupported
            The file is missing, or no NFS is mounted.
        """
        return parse_mountstats(self._file.read())

    def readings(
        self, before: dict[str, dict[str, Operation]], after: dict[str, dict[str, Operation]], interval_ns: int
    ) -> Iterator[Reading]:
        """Values between two samples of mounts that are in both; nothing where one was mounted anew."""
        del interval_ns
        for point, operations in after.items():
            again = 0
            for side, new in operations.items():
                old = before.get(point, {}).get(side)
                if old is None or new.ops < old.ops:
                    continue
                ops = new.ops - old.ops
                moved = new.received_bytes - old.received_bytes if side == "read" else new.sent_bytes - old.sent_bytes
                again += max(new.transmissions - old.transmissions - ops, 0)
                yield Reading(point, f"{side}_ios_count", "delta", float(ops))
                yield Reading(point, f"{side}_bytes", "delta", float(max(moved, 0)))
                if ops:
                    for metric, spent_ms in (
                        ("latency_mean_ns", new.execute_ms - old.execute_ms),
                        ("rtt_mean_ns", new.rtt_ms - old.rtt_ms),
                        ("queue_mean_ns", new.queue_ms - old.queue_ms),
                    ):
                        yield Reading(point, f"{side}_{metric}", "gauge", max(spent_ms, 0) * _NS_PER_MS / ops)
            yield Reading(point, "retransmissions_count", "delta", float(again))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

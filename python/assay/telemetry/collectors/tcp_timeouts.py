"""Connections that stood still until their time-out, from /proc/net/netstat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading


class TcpTimeoutsCollector:
    """Retransmission time-outs of TCP (`TCPTimeouts`): a segment was lost, and nothing that came after told so.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "tcp time-outs"
    tier = "client"
    source = "net"

    def __init__(self, path: str | Path = "/proc/net/netstat") -> None:
        self._file = ProcFile(path)

    def sample(self) -> int:
        """Time-outs since boot.

        Raises
        ------
        NotSupported
            The file is missing or does not count them.
        """
        pairs = [line.split()[1:] for line in self._file.read().splitlines() if line.startswith("TcpExt:")]
        if len(pairs) >= 2:
            count = dict(zip(pairs[0], pairs[1], strict=False)).get("TCPTimeouts", "")
            if is_count(count):
                return int(count)
        raise NotSupported("/proc/net/netstat does not count TCPTimeouts")

    def readings(self, before: int, after: int, interval_ns: int) -> Iterator[Reading]:
        """Time-outs between two samples."""
        del interval_ns
        if after >= before:
            yield Reading("tcp", "timeouts_count", "delta", float(after - before))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

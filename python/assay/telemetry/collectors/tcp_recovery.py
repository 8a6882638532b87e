"""What TCP does about lost segments beyond sending them again, from /proc/net/netstat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading


class TcpRecovery(NamedTuple):
    """Counts since boot."""

    timeouts: int
    duplicates: int


class TcpRecoveryCollector:
    """Connections that stood still until their time-out, and segments that came a second time.

    A time-out (`TCPTimeouts`) says that a segment was lost and nothing that came after told so. A segment that had come
    already (`TCPDSACKOldSent`: this host told its sender so, RFC 2883) says that a peer sent again, because the segment
    or its acknowledgement was late or lost: what this host's own count of segments sent again cannot show.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "tcp recovery"
    tier = "client"
    source = "net"

    def __init__(self, path: str | Path = "/proc/net/netstat") -> None:
        self._file = ProcFile(path)

    def sample(self) -> TcpRecovery:
        """Counts since boot.

        Raises
        ------
        NotSupported
            The file is missing or does not count them.
        """
        pairs = [line.split()[1:] for line in self._file.read().splitlines() if line.startswith("TcpExt:")]
        if len(pairs) >= 2:
            values = dict(zip(pairs[0], pairs[1], strict=False))
            timeouts, duplicates = values.get("TCPTimeouts", ""), values.get("TCPDSACKOldSent", "")
            if is_count(timeouts) and is_count(duplicates):
                return TcpRecovery(int(timeouts), int(duplicates))
        raise NotSupported("/proc/net/netstat does not count TCPTimeouts and TCPDSACKOldSent")

    def readings(self, before: TcpRecovery, after: TcpRecovery, interval_ns: int) -> Iterator[Reading]:
        """Events between two samples; nothing if the counters were reset."""
        del interval_ns
        if after.timeouts >= before.timeouts and after.duplicates >= before.duplicates:
            yield Reading("tcp", "timeouts_count", "delta", float(after.timeouts - before.timeouts))
            yield Reading("tcp", "duplicates_in_count", "delta", float(after.duplicates - before.duplicates))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

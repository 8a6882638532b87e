"""TCP segments received, sent and sent again by this host, from /proc/net/snmp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading


class TcpSegments(NamedTuple):
    """Segments since boot; those sent out do not include those sent again (RFC 1213, tcpOutSegs)."""

    out_count: int
    retransmitted_count: int
    in_count: int


def parse_snmp(text: str) -> TcpSegments:
    """TCP counters from the text of /proc/net/snmp: pairs of lines, names and then values, each begun by `Tcp:`.

    Values are found by name, since kernels add columns.

    Raises
    ------
    NotSupported
        The pair is missing, or a name in it.
    """
    pairs = [line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:")]
    if len(pairs) >= 2:
        values = dict(zip(pairs[0], pairs[1], strict=False))
        counts = [values.get(name, "") for name in ("OutSegs", "RetransSegs", "InSegs")]
        if all(map(is_count, counts)):
            return TcpSegments(*map(int, counts))
    raise NotSupported("/proc/net/snmp has no line 'Tcp:' with InSegs, OutSegs and RetransSegs")


class NetCollector:
    """TCP segments of the whole host, and the share of those sent again.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "tcp"
    tier = "client"
    source = "net"

    def __init__(self, path: str | Path = "/proc/net/snmp") -> None:
        self._file = ProcFile(path)

    def sample(self) -> TcpSegments:
        """Read the counters.

        Raises
        ------
        NotSupported
            The file is missing or has another form.
        """
        return parse_snmp(self._file.read())

    def readings(self, before: TcpSegments, after: TcpSegments, interval_ns: int) -> Iterator[Reading]:
        """Segments between two samples; no share if none was sent, nothing if the counters were reset."""
        del interval_ns  # Counts and their ratio need no time.
        out = after.out_count - before.out_count
        again = after.retransmitted_count - before.retransmitted_count
        come = after.in_count - before.in_count
        if out < 0 or again < 0 or come < 0:
            return
        yield Reading("tcp", "segments_in_count", "delta", float(come))
        yield Reading("tcp", "segments_out_count", "delta", float(out))
        yield Reading("tcp", "segments_retransmitted_count", "delta", float(again))
        if out > 0:
            yield Reading("tcp", "retransmit_share", "gauge", min(1.0, again / out))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

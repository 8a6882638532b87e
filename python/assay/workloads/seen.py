"""I/O that the storage under a part saw, as figures of a point tell it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BLOCK_MIN_BYTES, BLOCK_MAX_BYTES = 4 << 10, 1 << 20
"""Blocks of raw profiles: below are no I/Os of databases, and above they are split on their way anyway."""


def block_of(mean_bytes: float) -> int:
    """The power of two nearest to a mean size.

    Examples
    --------
    >>> block_of(9000), block_of(50_000), block_of(100)
    (8192, 65536, 4096)
    """
    power = 1 << max(round(math.log2(max(mean_bytes, 1.0))), 0)
    return min(max(power, BLOCK_MIN_BYTES), BLOCK_MAX_BYTES)


@dataclass(frozen=True, kw_only=True)
class SeenIo:
    """I/O that the storage under a part saw over the window of a point.

    Attributes
    ----------
    iops
        Reads and writes per second.
    size_mean_bytes
        Mean size of both.
    read_share
        Share of reads, 0 to 1.
    by_devices
        Whether the devices counted; else the servers did, whose reads the kernel's page cache may have answered.
    devices
        Block devices that were seen.
    facts
        What else is known of it, under the names of docs/studies.md.
    reasons
        What explains that it is not more or less, in words.
    log_writes_per_s, log_bytes_per_s
        Of the databases' logs, among the I/Os above; None where it is not known.
    transactions_per_s, cpu_share
        Of databases, and how busy the processors of their server were; None where it is not known.
    """

    iops: float
    size_mean_bytes: float
    read_share: float
    by_devices: bool
    devices: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    log_writes_per_s: float | None = None
    log_bytes_per_s: float | None = None
    transactions_per_s: float | None = None
    cpu_share: float | None = None

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, read and written."""
        return self.iops * self.size_mean_bytes

    @property
    def block_bytes(self) -> int:
        """The power of two nearest to the mean size."""
        return block_of(self.size_mean_bytes)

"""How I/O workloads read in tables, captions and legends."""

from __future__ import annotations

from collections.abc import Mapping

from assay.base.units import format_bytes
from assay.document.text import DASH
from assay.record.shapes.access import Access


def block_bytes_of(workload: Access) -> float:
    """Block size for sorting, bytes: the mean of a weighted mix.

    Examples
    --------
    >>> block_bytes_of({"block_bytes": {"512": 1, "1024": 1}})
    768.0
    """
    block = workload.get("block_bytes")
    if isinstance(block, Mapping):
        weights = [(float(size), float(share)) for size, share in block.items()]
        total = sum(share for _, share in weights)
        return sum(size * share for size, share in weights) / total if total else 0.0
    return float(block or 0)


def block_label(workload: Access) -> str:
    """Block size as people say it; a mix by its ends.

    Examples
    --------
    >>> block_label({"block_bytes": 8192}), block_label({"block_bytes": {"512": 0.5, "4096": 0.5}})
    ('8 KiB', '512 B to 4 KiB mix')
    """
    block = workload.get("block_bytes")
    if isinstance(block, Mapping):
        sizes = sorted(int(size) for size in block)
        return f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])} mix" if sizes else DASH
    return format_bytes(float(block)) if block else DASH


def mix_label(workload: Access) -> str:
    """Shares of reads and writes.

    Examples
    --------
    >>> mix_label({"read_share": 0.7}), mix_label({"read_share": 1.0})
    ('70/30', '100 % read')
    """
    share = workload.get("read_share")
    if share is None:
        return "mix"
    if share in (0, 1):
        return "100 % read" if share == 1 else "100 % write"
    return f"{share * 100:.3g}/{(1 - share) * 100:.3g}"


def order_label(workload: Access) -> str:
    """Random, sequential, or the share of random accesses."""
    share = workload.get("random_share")
    if share is None:
        return ""
    if share in (0, 1):
        return "random" if share == 1 else "sequential"
    return f"{share * 100:.3g} % random"


def workload_label(workload: Access) -> str:
    """Name of a workload, as the plan gives it or from its parameters.

    Examples
    --------
    >>> workload_label({"block_bytes": 8192, "random_share": 1, "read_share": 0.7})
    '8 KiB random 70/30'
    """
    if workload.get("name"):
        return str(workload["name"])
    words = (block_label(workload), order_label(workload), mix_label(workload))
    return " ".join(word for word in words if word)

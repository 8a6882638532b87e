"""Partitions beside their disks: programs list both, and a partition's I/Os are those of its disk."""

from __future__ import annotations

import re
from collections.abc import Collection

_LETTERED = re.compile(r"(?P<disk>(?:sd|vd|xvd|hd)[a-z]+)\d+", re.ASCII)
_NUMBERED = re.compile(r"(?P<disk>(?:nvme\d+n|mmcblk|md|loop|nbd)\d+)p\d+", re.ASCII)


def disk_of_part(name: str, names: Collection[str]) -> str | None:
    """The disk among the names that a partition is a part of; None for what is none.

    Examples
    --------
    >>> disk_of_part("sda1", {"sda", "sda1"}), disk_of_part("nvme0n1p2", {"nvme0n1"}), disk_of_part("xvda1", {"xvda1"})
    ('sda', 'nvme0n1', None)
    """
    match = _LETTERED.fullmatch(name) or _NUMBERED.fullmatch(name)
    return match["disk"] if match is not None and match["disk"] in names else None

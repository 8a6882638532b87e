"""Which file a write belongs to, by the file system's own tools."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace

from assay.insight.crash.requests import LostWrite
from assay.insight.crash.stage import Stage

BLOCK_BYTES = 4096
JOURNAL = 8
"""Inode of the journal (ext4's documentation, "Special inodes")."""
ASKED_MAX = 200
"""Blocks that are looked up: a state that lacks more is told by its first ones."""


def places_of(writes: Sequence[LostWrite], stage: Stage) -> list[LostWrite]:
    """The same writes with the files that their first blocks belong to; the file system is not mounted."""
    if stage.file_system != "ext4":
        return list(writes)
    blocks = sorted({one.offset_bytes // BLOCK_BYTES for one in writes})[:ASKED_MAX]
    inodes = dict(_pairs(stage.device, "icheck", blocks))
    names = dict(_pairs(stage.device, "ncheck", {int(inode) for inode in inodes.values()}))
    found = []
    for one in writes:
        inode = inodes.get(one.offset_bytes // BLOCK_BYTES)
        place = "metadata of the file system" if inode is None else names.get(int(inode), f"inode {inode}")
        found.append(replace(one, place="journal of the file system" if inode == str(JOURNAL) else place))
    return found


def _pairs(device: str, request: str, numbers: Iterable[int]) -> list[tuple[int, str]]:
    """What debugfs says of each number; those that it knows nothing of are left out."""
    asked = " ".join(map(str, numbers))
    if not asked:
        return []
    command = ["debugfs", "-R", f"{request} {asked}", device]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = (re.fullmatch(r"(\d+)\s+(\d+|/.*)", line) for line in done.stdout.splitlines())
    return [(int(line[1]), line[2]) for line in lines if line is not None]

"""Which file a write belongs to: files by their extents, the journal by what the file system says of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from assay.base.programs import find_program
from assay.insight.crash.extents import FileMap, file_map
from assay.insight.crash.requests import LostWrite
from assay.insight.crash.stage import NotMounted, Stage

JOURNAL = "journal of the file system"
METADATA = "metadata of the file system"

Ranges = Sequence[range]
"""Bytes of a device."""


def places_of(writes: Sequence[LostWrite], stage: Stage) -> list[LostWrite]:
    """The same writes with the files that their first bytes belong to; the file system is not mounted.

    The stage shows the state that lacks nothing, so that files which came into being last are there.
    """
    if stage.file_system == "none":
        return list(writes)
    files: FileMap | None = None
    with suppress(NotMounted):
        # The file system's journal is replayed by its mount.
        stage.mount()
        files = file_map(stage.folder)
        stage.unmount()
    if files is None:
        return list(writes)
    journal = _JOURNALS[stage.file_system](stage.device)

    def place(offset_bytes: int) -> str:
        if any(offset_bytes in one for one in journal):
            return JOURNAL
        return files.at(offset_bytes) or METADATA

    return [replace(one, place=place(one.offset_bytes)) for one in writes]


def _journal_of_ext4(device: str) -> Ranges:
    """The blocks of inode 8, as debugfs has them (ext4's documentation, "Special inodes" and "The Super Block")."""
    program = find_program("debugfs")
    if program is None:
        # It comes with mkfs.ext4, so that this is rare: the journal is metadata then.
        return []
    command = [program, "-R", "stat <8>", device]
    said = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
    with open(device, "rb", buffering=0) as file:
        block = 1024 << int.from_bytes(os.pread(file.fileno(), 4, 1024 + 24), "little")
    _, _, extents = said.partition("EXTENTS:")
    found = re.finditer(r"\):(\d+)(?:-(\d+))?", extents)
    return [range(int(one[1]) * block, (int(one[2] or one[1]) + 1) * block) for one in found]


def _journal_of_xfs(device: str) -> Ranges:
    """The log, by the superblock (xfs_dsb of libxfs/xfs_format.h); a log on a device of its own is none here."""
    with open(device, "rb", buffering=0) as file:
        head = os.pread(file.fileno(), 512, 0)
    if head[:4] != b"XFSB":
        return []

    def number(at: int, length: int) -> int:
        return int.from_bytes(head[at : at + length])

    block, start, blocks = number(4, 4), number(48, 8), number(96, 4)
    group_blocks, group_bits = number(84, 4), number(124, 1)
    first = (start >> group_bits) * group_blocks + (start & ((1 << group_bits) - 1))
    return [range(first * block, (first + blocks) * block)] if start else []


_JOURNALS: Mapping[str, Callable[[str], Ranges]] = {"ext4": _journal_of_ext4, "xfs": _journal_of_xfs}
"""By the names of `assay.insight.crash.file_systems`."""

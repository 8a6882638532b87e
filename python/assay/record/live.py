"""What a run that goes on says of itself: one small file, replaced about twice a second and removed at the end.

Whoever watches the run reads it, and nothing rests on it: it is not synced, and a crash leaves the last one behind. So
it says when it was written.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

from assay.record import durable
from assay.record.folder import Folder

NAME = "live.json"

VERSION = 1

BYTES_MAX = 2**20
"""One is some 20 KB; what is larger is refused unread."""

STALE_S = 30.0
"""A file that was written longer ago belongs to a run that ended without removing it, or that hangs."""


def write(folder: Folder, told: Mapping[str, Any]) -> None:
    """Replace the file, so that a reader finds it whole.

    Raises
    ------
    OSError
        It cannot be written; nothing is left behind.
    """
    part = f".{secrets.token_hex(8)}.part"
    descriptor = folder.create(part)
    try:
        try:
            durable.write_whole(descriptor, json.dumps({"schema_version": VERSION, **told}, allow_nan=False).encode())
        finally:
            os.close(descriptor)
        folder.rename(part, NAME)
    except BaseException:
        folder.remove(part)
        raise


def remove(folder: Folder) -> None:
    """Remove the file if it is there."""
    folder.remove(NAME)

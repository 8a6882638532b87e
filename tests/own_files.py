"""Files as a run of Assay leaves them."""

from __future__ import annotations

import os
from pathlib import Path

from assay.targets.files.ownership import make, mark


def leave_file(path: Path, content: bytes = b"", *, in_use: bool = False) -> Path:
    """Make a file of Assay's with a content; `in_use` leaves it as a run does that was killed."""
    descriptor = make(path, "20261122-101500-profile-a1b2c3")
    try:
        os.write(descriptor, content)
        if not in_use:
            mark(descriptor, path, "at rest")
    finally:
        os.close(descriptor)
    return path

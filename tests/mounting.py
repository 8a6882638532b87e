"""What tests that mount need of this machine, each with the reason for which they skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MAY_MOUNT_FUSE = os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)
"""Whether served arrays can be mounted."""

needs_fuse = pytest.mark.skipif(not MAY_MOUNT_FUSE, reason="mounts take root and /dev/fuse here")
needs_loops = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices"
)

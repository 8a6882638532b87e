"""What tests that mount need of this machine, each with the reason for which they skip."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

_HAS_FUSE, _IS_ROOT = os.access("/dev/fuse", os.R_OK | os.W_OK), os.geteuid() == 0

needs_fuse = pytest.mark.skipif(not (_IS_ROOT and _HAS_FUSE), reason="mounts take root and /dev/fuse here")
needs_own_fuse = pytest.mark.skipif(
    not _HAS_FUSE or not (_IS_ROOT or shutil.which("fusermount3")), reason="needs /dev/fuse, and root or fusermount3"
)
needs_loops = pytest.mark.skipif(
    not (_IS_ROOT and Path("/dev/loop-control").exists()), reason="needs root and loop devices"
)

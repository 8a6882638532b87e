"""The lab needs what `make set-up-lab` installs: other tests never meet it, and without QEMU it is skipped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist")


def test_the_lab_is_no_part_of_the_default_tests(root: Path, execute) -> None:
    done = execute([*PYTEST, "lab/test_faults.py"], folder=root)
    assert (done.returncode, "deselected" in done.stdout, " skipped" in done.stdout) == (5, True, False), done.stdout


def test_the_lab_is_skipped_with_a_reason_where_qemu_is_missing(root: Path, execute, tmp_path: Path) -> None:
    without = os.environ | {"PATH": str(tmp_path)}
    done = execute([*PYTEST, "lab/test_faults.py", "-m", "lab"], folder=root, environment=without)
    assert done.returncode == 0, done.stdout
    assert "qemu-system-x86_64 is not installed: make set-up-lab" in done.stdout
    assert "passed" not in done.stdout

"""A mount namespace for attacks that mount: the machine's own mounts are out of their reach."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay_command import Outcome, command


class MountNamespace:
    """What runs here sees mounts of its own, which end with the namespace."""

    def __init__(self, pid: int) -> None:
        self._enter = ("nsenter", f"--target={pid}", "--mount", "--")

    def tool(self, *arguments: str | Path) -> str:
        """Run a system tool that must succeed; gives its output."""
        done = subprocess.run([*self._enter, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def assay(self, folder: Path, *arguments: str | Path, timeout_s: float = 120) -> Outcome:
        """Run the command to its end."""
        done = subprocess.run(
            self.words(*arguments), cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def words(self, *arguments: str | Path) -> Sequence[str]:
        """The words that start the command."""
        return [*self._enter, *command(*arguments)]


@contextmanager
def mount_namespace() -> Iterator[MountNamespace]:
    """Make a namespace that ends with the block, whatever is mounted in it."""
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("mounts take root, and nsenter")
    keeper = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    with keeper:
        keeper.stdin.write(b"made\n")
        keeper.stdin.flush()
        if keeper.stdout.readline() != b"made\n":
            pytest.skip("mount namespaces are not allowed here")
        yield MountNamespace(keeper.pid)

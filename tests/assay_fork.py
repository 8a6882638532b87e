"""The `assay` command in a process that need not import anything: a fork of a server that has imported it once.

The process is the command's own in everything but its start and its name: it has its own signals, locks, descriptors
and end. What happens before the imports (passwords that leave the command line, Ctrl-C while it loads, the locale),
what a command prefix does and what others see in the process list needs an interpreter of its own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from pathlib import Path

FORKING = multiprocessing.get_context("forkserver")
IMPORTED = "imported_command"
FORKING.set_forkserver_preload([IMPORTED])


class ForkedCommand:
    """A command under way, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, stdout: Path, stderr: Path, *, imported: str = IMPORTED
    ) -> None:
        for stream in (stdout, stderr):
            stream.write_bytes(b"")
        umask = os.umask(0)
        os.umask(umask)
        _start_server()
        surroundings = (arguments, folder, dict(os.environ), umask, stdout, stderr, imported)
        self._process = FORKING.Process(target=_be_the_command, args=surroundings)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """As `subprocess.Popen` has it; None while the command runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, None while the command runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; fails if it takes too long."""
        self._process.join(timeout)
        assert self.returncode is not None, f"the command has not ended in {timeout} s"
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


@cache
def _start_server() -> None:
    """Start the server where it finds its imports: it ignores an import that fails, and looks in PYTHONPATH alone."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _be_the_command(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    umask: int,
    stdout: Path,
    stderr: Path,
    imported: str,
) -> None:
    # What the server imported is not looked through again: that takes longer than most commands, and copies its memory.
    gc.freeze()
    os.umask(umask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    for number, path in enumerate((Path(os.devnull), stdout, stderr)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="backslashreplace")
    # Said where the command's own words go: the server's own error output is nowhere in a machine of the lab.
    assert imported in sys.modules, f"the server that forks commands has not imported {imported}"
    # What a password leaves the command line with is a new start of `python -m assay`.
    sys.orig_argv = [sys.executable, "-m", "assay", *arguments]
    sys.argv = ["assay", *arguments]
    from assay.apps.cli import main

    main()

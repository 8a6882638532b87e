"""A temporary folder that goes whatever ends this process, also when it is killed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

KEEPER = 'read -r _; until rm -rf -- "$1"; do sleep 0.1; done'


class Folder:
    """A folder with a process beside it that removes it when this process is done with it, or has ended."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._keeper = subprocess.Popen(
            ["sh", "-c", KEEPER, "assay-lab-keeper", self.path], stdin=subprocess.PIPE, start_new_session=True
        )

    def remove(self) -> None:
        """Remove it, and wait until it has gone."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()

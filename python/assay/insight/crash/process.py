"""A process that shows states, as the process that asks it sees it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from assay.base.errors import IoFailed, NotSupported, error_named
from assay.base.programs import SYSTEM_FOLDERS, require_program
from assay.insight.crash.promises import Promises
from assay.insight.crash.requests import (
    CheckedState,
    LostWrite,
    Recorded,
    StageRequest,
    SubjectRequest,
    VolumeRequest,
    base_path,
    checked_of,
    log_path,
    to_line,
)

_ALONE = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Mounts and processes of its own: all end with it."""


class CrashProcess:
    """A process with a stage of its own."""

    def __init__(self, folder: Path, subject: SubjectRequest, volume: VolumeRequest, *, checks: bool) -> None:
        """Start the process.

        Parameters
        ----------
        folder
            Where base and log lie.
        checks
            Whether the file system is checked.

        Raises
        ------
        NotSupported
            A program or a right is missing.
        """
        file_system = volume.file_system
        if file_system != "none" and os.geteuid() != 0:
            raise NotSupported(
                f"crash: {file_system} on a served volume needs a loop device and mounts, which root alone may make;"
                " run Assay as root, or give --fs none for a program that writes to one file"
            )
        if file_system == "ext4":
            require_program("crash", "mkfs.ext4")
        if file_system == "xfs":
            require_program("crash", "mkfs.xfs")
        self._work = Path(tempfile.mkdtemp(prefix="assay-crash-"))
        self._work.chmod(0o711)
        stage = StageRequest(
            base=str(base_path(folder)),
            log=str(log_path(folder)),
            work=str(self._work),
            volume=volume,
            checks_file_system=checks,
        )
        alone = [*_ALONE] if os.geteuid() == 0 else []
        if alone and shutil.which(alone[0]) is None:
            raise NotSupported("crash: unshare is not installed; install util-linux")
        self._errors = (self._work / "errors").open("w+b")
        self._process = subprocess.Popen(
            [*alone, sys.executable, "-m", "assay.insight.crash.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))},
            start_new_session=True,
        )
        try:
            self._ask({"stage": to_line(stage), "subject": to_line(subject)})
        except BaseException:
            self.close()
            raise

    def _ask(self, asked: object) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            raise IoFailed(f"crash: the process that shows states has ended: {said[-1][:500] if said else 'killed'}")
        found = json.loads(line)
        if "error" in found:
            raise error_named(found["error"])(found["message"])
        return found["answer"]

    def record(self) -> Recorded:
        """Prepare the volume, run the load, and record what it writes."""
        return Recorded(**self._ask(["record"]))

    def check(self, name: str, promises: Promises) -> CheckedState:
        """Show a state and look for what is wrong with it."""
        return checked_of(self._ask(["check", name, promises.to_json()]))

    def record_recovery(self, name: str, promises: Promises, folder: Path) -> Recorded:
        """Record the recovery from a state into another folder, of which the state is the beginning."""
        return Recorded(**self._ask(["record again", name, promises.to_json(), str(folder)]))

    def rate(self, name: str, promises: Promises) -> Recorded:
        """Run the load once more, on a state, unrecorded."""
        return Recorded(**self._ask(["rate", name, promises.to_json()]))

    def lost(self, name: str, promises: Promises) -> list[LostWrite]:
        """The writes that a state lacks."""
        return [LostWrite(**one) for one in self._ask(["lost", name, promises.to_json()])]

    def show(self, name: str, promises: Promises) -> tuple[str, int]:
        """Show a state and mount it: where it is, and the process whose mounts have it."""
        place = self._ask(["show", name, promises.to_json()])
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return str(place), int(children[0]) if children and os.geteuid() == 0 else self._process.pid

    def close(self) -> None:
        """End the process, and with it all that it started and mounted."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._errors.close()
        # A process that was killed may have left a mount of FUSE outside a mount namespace of its own.
        shutil.rmtree(self._work, ignore_errors=True)

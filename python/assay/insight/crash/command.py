"""A user's own program: a command that loads and says what it keeps, and one that checks.

Each line that the load prints acknowledges something: the program must not print it before it is durable. The check
finds all lines that were printed before the crash in the file that `ASSAY_ACKNOWLEDGED` names, and exits with 0 if the
volume keeps its promises.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from assay.base.errors import IoFailed, UsageError
from assay.insight.crash.own_user import OwnUser
from assay.insight.crash.stage import last_line
from assay.insight.crash.subject import CrashFinding

TITLE_MAX = 60
PLACE = "{}"
"""Stands for the folder or the file of the volume in a command."""


class OwnCommand:
    """Commands of the user's own; they run with the rights of the user who runs Assay."""

    def __init__(
        self, load: str, check: str, *, prepare: str | None, patience_s: float, work: Path, cwd: Path, user: OwnUser
    ) -> None:
        """Know the commands.

        Parameters
        ----------
        patience_s
            How long one check may take.
        work
            Folder for the lists of acknowledgements.
        cwd
            Where the commands run.
        user
            As whom the commands run.
        """
        self._load = _argv(load, "the load")
        self._check = _argv(check, "--check")
        self._prepare = _argv(prepare, "--prepare") if prepare else None
        self._patience_s = patience_s
        self._acknowledged = work / f"acknowledged-{os.getpid()}"
        self._cwd = cwd
        self._user = user
        self.title = load if len(load) <= TITLE_MAX else f"{load[: TITLE_MAX - 1]}\u2026"

    def prepare(self, place: Path) -> None:
        """Run the command that prepares, if there is one.

        Raises
        ------
        IoFailed
            It failed.
        """
        if self._user.uid is not None:
            os.chown(place, self._user.uid, self._user.gid or 0)
        if self._prepare is None:
            return
        done = subprocess.run(
            _with_place(self._prepare, place),
            env=_environment(place),
            cwd=self._cwd,
            **self._user.as_options(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise IoFailed(f"--prepare: exit {done.returncode}: {last_line(done.stderr or done.stdout)}")

    def load(self, place: Path, told: Callable[[str], None]) -> None:
        """Run the load to its end; each line that it prints is an acknowledgement.

        Raises
        ------
        IoFailed
            It failed, or printed nothing.
        """
        lines = 0
        with subprocess.Popen(
            _with_place(self._load, place),
            env=_environment(place),
            cwd=self._cwd,
            **self._user.as_options(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                told(line.rstrip("\n"))
                lines += 1
        if process.returncode:
            raise IoFailed(f"the load: exit {process.returncode}; run it by hand on a folder to see why")
        if not lines:
            raise IoFailed("the load: printed no line, so that nothing is acknowledged; print a line for each commit")

    def commits(self, told: Sequence[str]) -> int:
        """Each line is one."""
        return len(told)

    def check(self, place: Path, told: Sequence[str]) -> CrashFinding | None:
        """Run the check."""
        self._acknowledged.write_text("".join(f"{line}\n" for line in told))
        process = subprocess.Popen(
            _with_place(self._check, place),
            env={**_environment(place), "ASSAY_ACKNOWLEDGED": str(self._acknowledged)},
            cwd=self._cwd,
            **self._user.as_options(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=self._patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return CrashFinding(kind="hangs", message=f"the check does not end within {self._patience_s:g} s")
        return CrashFinding(kind="check", message=last_line(said)) if process.returncode else None

    def recover(self, place: Path, told: Sequence[str]) -> None:
        """Run the check: the program recovers as it opens what is there."""
        self.check(place, told)

    def close(self) -> None:
        """Remove the list of acknowledgements."""
        self._acknowledged.unlink(missing_ok=True)


def _argv(command: str, what: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{what}: {command!r}: {error}; quote it as for a shell") from None
    if not argv:
        raise UsageError(f"{what}: is empty; give a command")
    return argv


def _with_place(argv: Sequence[str], place: Path) -> list[str]:
    return [argument.replace(PLACE, str(place)) for argument in argv]


def _environment(place: Path) -> Mapping[str, str]:
    return {**os.environ, "ASSAY_VOLUME": str(place)}

"""A server that Assay initialises on a volume, starts and kills; each kind of server fills in what is its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from assay.base.errors import IoFailed
from assay.insight.crash.controls import Control
from assay.insight.crash.own_user import server_user
from assay.insight.crash.stage import last_line
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.spec import parse_database
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.embedded.programs import environment
from assay.targets.databases.kinds import open_database

START_S = 60.0
"""A start or an end that takes longer counts as hanging, whatever the patience."""
LOOK_S = 0.004

Phase = Literal["prepare", "load", "recover", "check"]
"""Why a server runs: each phase has settings of its own."""


class ServerNotStarted(Exception):
    """A server does not start, does not finish its recovery, or does not end."""


class OwnServer(ABC):
    """A server of its own on the volume, which never runs as root.

    Attributes
    ----------
    title
        Program, version and settings, for people.
    """

    kept: ClassVar[tuple[str, ...]]
    """Settings that recovery runs with, too; all others are those of the load alone."""
    controls: ClassVar[Mapping[str, Control]]
    """Settings under which the server must fail."""

    def __init__(
        self, settings: Sequence[str], program: Path, user: str, *, usual: str, patience_s: float, work: Path
    ) -> None:
        """Find the user and prepare the folder of the socket.

        Parameters
        ----------
        settings
            Settings of the server while the load runs, `name=value`.
        program
            The server's program.
        user
            As whom the server runs; empty: the usual user of its package, or another that may.
        patience_s
            How long a start after a crash may take.
        work
            Folder for the socket and the server's messages.
        """
        self.settings = tuple(settings)
        self.user = server_user("crash", program, asked=user, usual=usual)
        self.title = ""
        self._patience_s = max(patience_s, START_S)
        self.sockets = work / "socket"
        self.sockets.mkdir()
        self.give(self.sockets)
        self._log = work / "server.log"

    def give(self, folder: Path) -> None:
        """Let the server's user own a folder."""
        if self.user.uid is not None:
            os.chown(folder, self.user.uid, self.user.gid or 0)

    def run(self, command: Sequence[str]) -> None:
        """Run a program of the server as its user.

        Raises
        ------
        IoFailed
            It failed.
        """
        done = subprocess.run(
            list(command),
            **self.user.as_options(),
            env=environment(),
            cwd="/",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise IoFailed(f"{Path(command[0]).name}: {last_line(done.stderr or done.stdout)}")

    @abstractmethod
    def initialise(self, place: Path) -> None:
        """Make an empty server below a folder.

        Raises
        ------
        IoFailed
            The server's programs failed.
        """

    @abstractmethod
    def command(self, data: Path, phase: Phase, settings: Sequence[str]) -> list[str]:
        """The command that runs the server."""

    @abstractmethod
    def is_ready(self, data: Path) -> bool:
        """Whether the server takes connections."""

    @abstractmethod
    def url(self) -> str:
        """The database as a target of Assay."""

    @abstractmethod
    def make_ready(self, session: Session) -> None:
        """Prepare a new server for tables."""

    @abstractmethod
    def checkpoint(self, session: Session) -> None:
        """Let the server write its changed pages."""

    @abstractmethod
    def damage(self, session: Session, tables: Sequence[str]) -> str | None:
        """What the server itself finds damaged in pages and indexes."""

    def damaged_file(self, place: Path) -> str | None:
        """The first damaged file of a server that has ended; None: none, or the server has no program for it."""
        del place
        return None

    def checks_files(self) -> bool:
        """Whether `damaged_file` looks at files, for which the server must have ended cleanly."""
        return False

    def database(self, tables: TableSet) -> Database:
        """The server's database, for tables of these names."""
        return open_database(parse_database(self.url(), {}), tables)

    @staticmethod
    def data(place: Path) -> Path:
        """The server's data in the folder of the file system."""
        return place / "data"

    @contextlib.contextmanager
    def running(self, place: Path, phase: Phase, *, ends_cleanly: bool = False) -> Iterator[None]:
        """Run the server. At the end it is killed, or stops cleanly.

        Raises
        ------
        ServerNotStarted
            It does not start.
        """
        data = self.data(place)
        settings = self.settings
        if phase in ("recover", "check"):
            settings = tuple(one for one in settings if one.partition("=")[0] in self.kept)
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                self.command(data, phase, settings if phase != "prepare" else ()),
                **self.user.as_options(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                cwd="/",
            )
        is_whole = False
        try:
            self._wait_until_ready(process, data)
            yield
            is_whole = ends_cleanly
        finally:
            self._end(process, signal.SIGTERM if is_whole else self.kill_signal)

    kill_signal: ClassVar[int] = signal.SIGKILL

    def _end(self, process: subprocess.Popen[bytes], number: int) -> None:
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerNotStarted("the server does not end after its recovery") from None

    def _wait_until_ready(self, process: subprocess.Popen[bytes], data: Path) -> None:
        deadline = time.monotonic() + self._patience_s
        while process.poll() is None:
            if self.is_ready(data):
                return
            if time.monotonic() > deadline:
                raise ServerNotStarted("the server does not finish its recovery")
            time.sleep(LOOK_S)
        raise ServerNotStarted(self.why_ended() or "the server does not start")

    severe: ClassVar[str]
    """Expression of words before messages that end the server."""

    def messages(self) -> str:
        """What the server said since its last start."""
        return self._log.read_text(errors="replace")

    def severe_messages(self) -> list[str]:
        """The last messages that may have ended the server, each from its level on."""
        lines = self.messages().splitlines()[-200:]
        found = (re.search(rf"(?:{self.severe}).*", line) for line in lines)
        return [match[0][:500] for match in found if match is not None]

    @abstractmethod
    def why_ended(self) -> str:
        """The message that says why the server ended; empty where there is none."""

    def close(self) -> None:  # noqa: B027 - most servers keep nothing outside the volume
        """Remove what lies outside the volume."""

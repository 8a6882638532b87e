"""Starts runs for the page: each is rehearsed first, confirmed once, and outlives the page.

A run is the command `assay` in a process of its own, as a terminal would start it: the page has no second way to run
anything. One run at a time is started, because two would measure each other.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from assay.apps.ui.other_processes import WORDS_BYTES_MAX, exit_code, last_line, memory_file
from assay.apps.ui.start_form import FieldChoice, StartForm, StartForms, StartSettings
from assay.base.audience import VARIABLES
from assay.base.paths import plain

REHEARSE_S = 120.0
CONFIRM_S = 600.0
"""A plan is confirmed within this time; after that it is looked at again."""
WAITING_MAX = 16
LINES_MAX = 400
LINE_MAX = 300

Clock = Callable[[], float]


class Rehearsal(TypedDict):
    """What a command would do: its dry run in lines, and the number that confirms it; or why it is refused."""

    command: str
    lines: list[str]
    refusal: str
    confirm: str


class StartedRun(TypedDict):
    """A run that the page started: its process, whether it goes on, its exit code and last words.

    `run` is the number of its folder, once there is one.
    """

    command: str
    process: int
    goes_on: bool
    code: int | None
    words: str
    started_s: float
    run: str | None


class StartsShown(TypedDict):
    """What the page shows of starting: nothing but `allowed` where it is not."""

    allowed: bool
    token: str
    forms: list[StartForm]
    outputs: list[FieldChoice]
    started: StartedRun | None


class StartRefused(Exception):
    """A run is not started; the text says why."""


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    """A command that was rehearsed and waits to be confirmed."""

    words: Sequence[str]
    until_s: float


class Starts:
    """What the page may start.

    Parameters
    ----------
    settings, outputs
        As `StartForms` takes them.
    goes_on
        Whether a run goes on in the folders that the page shows.
    clock
        Tells how long a plan has waited.

    Attributes
    ----------
    token
        What a request that starts something has to show in a header. Only a page of this server can read it.
    """

    def __init__(
        self,
        settings: StartSettings,
        outputs: Sequence[Path],
        goes_on: Callable[[], bool],
        clock: Clock = time.monotonic,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._forms, self._goes_on, self._clock = StartForms(settings, outputs), goes_on, clock
        self._waiting: dict[str, _Waiting] = {}
        self._rehearsing = asyncio.Lock()
        self._child: _Child | None = None

    def shown(self) -> StartsShown:
        """Forms, and the run that was started last."""
        return {
            "allowed": True,
            "token": self.token,
            "forms": self._forms.shown(),
            "outputs": self._forms.outputs(),
            "started": self._child.shown() if self._child is not None else None,
        }

    async def rehearse(self, filled: object) -> Rehearsal:
        """Run the command with `--dry-run`: nothing is written.

        Raises
        ------
        WrongForm
            The form is not one of these.
        """
        words = self._forms.command(filled)
        async with self._rehearsing:
            code, lines, errors = await _dry_run(words)
        command = shlex.join(["assay", *words])
        if code != 0:
            return {"command": command, "lines": [], "refusal": errors or "it ended without a word", "confirm": ""}
        return {"command": command, "lines": lines, "refusal": "", "confirm": self._wait_for(words)}

    def _wait_for(self, words: Sequence[str]) -> str:
        """A number for the command, which is good once; the oldest of many is forgotten."""
        now_s = self._clock()
        self._waiting = {number: one for number, one in self._waiting.items() if one.until_s > now_s}
        while len(self._waiting) >= WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]
        number = secrets.token_urlsafe(24)
        self._waiting[number] = _Waiting(words=words, until_s=now_s + CONFIRM_S)
        return number

    def confirm(self, number: object) -> StartedRun:
        """Start what was rehearsed under this number.

        Raises
        ------
        StartRefused
            The number was used, is too old or was never given; or a run goes on.
        """
        found = self._waiting.pop(number, None) if isinstance(number, str) else None
        if found is None or found.until_s <= self._clock():
            raise StartRefused("this plan was started already, or waited too long; look at it again")
        if self._child is not None and self._child.shown()["goes_on"]:
            raise StartRefused("a run that this page started goes on; two at once would measure each other")
        if self._goes_on():
            raise StartRefused("a run goes on in these folders; two at once would measure each other")
        self._child = _Child(found.words)
        return self._child.shown()


class _Child:
    """A run in a process of its own session: neither the end of the page nor its Ctrl-C ends it."""

    def __init__(self, words: Sequence[str]) -> None:
        self._command, self._started_s = shlex.join(["assay", *words]), time.time()
        self._errors = os.memfd_create("assay-start")
        self._process = subprocess.Popen(
            _argv(words, "--quiet"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors,
            start_new_session=True, env=_environment(),
        )  # fmt: skip

    def shown(self) -> StartedRun:
        """How it stands."""
        code = self._process.poll()
        return {
            "command": self._command,
            "process": self._process.pid,
            "goes_on": code is None,
            "code": code,
            "words": _last_line(self._errors) if code else "",
            "started_s": self._started_s,
            "run": None,
        }

    def __del__(self) -> None:
        os.close(self._errors)


async def _dry_run(words: Sequence[str]) -> tuple[int, list[str], str]:
    """Exit code, lines and last words of the command with `--dry-run`."""
    with memory_file("lines") as told, memory_file("errors") as errors:
        process = await asyncio.create_subprocess_exec(
            *_argv(words, "--dry-run"),
            stdin=asyncio.subprocess.DEVNULL, stdout=told, stderr=errors, env=_environment(), start_new_session=True,
        )  # fmt: skip
        try:
            code = await exit_code(process, REHEARSE_S)
        except TimeoutError:
            return 1, [], f"the dry run took more than {REHEARSE_S:g} s"
        lines = os.pread(told, WORDS_BYTES_MAX, 0).decode(errors="replace").splitlines()
        return code, [plain(line)[:LINE_MAX] for line in lines[:LINES_MAX]], _last_line(errors)


def _argv(words: Sequence[str], flag: str) -> list[str]:
    """The program's words, with one more option of the command."""
    end = words.index("--") if "--" in words else len(words)
    return [sys.executable, "-P", "-m", "assay", *words[:end], flag, *words[end:]]


def _environment() -> Mapping[str, str]:
    """The page's own, without what would make a program the reader."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES}


def _last_line(descriptor: int) -> str:
    return plain(last_line(descriptor).removeprefix("assay: "))[:LINE_MAX]

"""One input tried: the command line in a child process of its own, and what may come of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

IDLE_TIMES = 4
"""How many times its limit an input may take that waits."""
DOCUMENTED = {0, 1, 2, 3, 4, 130}
LINE_MAX = 1100
RECURSION = sys.getrecursionlimit()
OURS = (
    "a fault of Assay itself", "Traceback", "panicked at", "this is a defect of Assay", "Exception ignored",
    "Warning: ",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Input:
    """What is tried: a command line, and the files that it finds in its folder."""

    kind: str
    argv: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    call: Callable[[], object] | None = None
    """What is called in place of the command."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How it ended; no code where it had to be killed."""

    code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float


def tried(tried: Input, folder: Path, limit_s: float) -> Ended:
    """Try an input in a child process, in a folder of its own."""
    for name, content in tried.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_the_command(tried, folder)
    code = _wait(child, limit_s)
    seconds = time.monotonic() - began
    return Ended(
        code=code,
        stdout=(folder / ".stdout").read_bytes(),
        stderr=(folder / ".stderr").read_bytes(),
        seconds=seconds,
    )


def _be_the_command(tried: Input, folder: Path) -> None:
    try:
        os.setsid()
        sys.setrecursionlimit(RECURSION)
        os.chdir(folder)
        for number, name in ((1, ".stdout"), (2, ".stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        sys.argv = ["assay", *tried.argv]
        from assay.apps.cli.app import app
        from assay.apps.cli.console import run_guarded

        def called(**_: object) -> object:
            assert tried.call is not None
            return tried.call() and None

        run_guarded(app if tried.call is None else called, sys.argv)
    except SystemExit as error:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 99)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(98)
    os._exit(97)


def _wait(child: int, limit_s: float) -> int | None:
    """Wait for its end. It hangs once it has had the processors for so long, or does nothing for many times as long.

    Its own time on processors counts, so that a busy machine makes nothing hang.
    """
    until, busy_s = time.monotonic() + IDLE_TIMES * limit_s, limit_s * len(os.sched_getaffinity(0))
    looked = time.monotonic()
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - looked > 1:
            looked = time.monotonic()
            used = psutil.Process(child).cpu_times()
            if used.user + used.system + used.children_user + used.children_system > busy_s:
                break
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def faults(tried: Input, ended: Ended) -> list[str]:
    """What is wrong with how an input ended; nothing where all is well."""
    found = []
    if ended.code is None:
        return [f"hangs: killed after {ended.seconds:.0f} s"]
    if ended.code not in DOCUMENTED:
        found.append(f"exit code {ended.code} is not documented")
    try:
        said, shown = ended.stderr.decode(), ended.stdout.decode()
    except UnicodeDecodeError:
        return [*found, "what it says is not UTF-8"]
    found += [f"says {word!r}" for word in OURS if word in said]
    lines = said.splitlines()
    complaints = [line for line in lines if line.startswith("assay: ")]
    if ended.code == 2 and len(complaints) != 1 and not said.lstrip().startswith("Usage:"):
        found.append(f"{len(complaints)} lines of complaint instead of one")
    if any(len(line) > LINE_MAX for line in lines):
        found.append("a line is too long")
    if any(not letter.isprintable() for line in complaints for letter in line):
        found.append("a line holds what is not printable")
    if "--json" in tried.argv and ended.code in (0, 1, 4) and tried.call is None:
        found += _not_json(shown)
    return found


def _not_json(shown: str) -> list[str]:
    try:
        json.loads(shown, parse_constant=_refuse)
    except ValueError as error:
        return [f"--json is no JSON document: {error}"]
    return []


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def of_command(kind: str, argv: Sequence[str], files: dict[str, bytes] | None = None) -> Input:
    """An input of the command line."""
    return Input(kind=kind, argv=tuple(argv), files=files or {})

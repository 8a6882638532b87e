"""The first process of a lab machine on the host's files: runs commands that come over the second serial line.

A line is a JSON object. The host sends `{"id", "argv"}`, the agent answers `{"id", "code"}` when the command has ended;
output lies in files on the share. `{"kill", "signal"}` sends the command of that number a signal. `assay` runs as a
fork of a server that has imported it once, because imports take most of a command's time in emulation.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import termios
import threading
import tty
from pathlib import Path

SHARE = Path("/run/lab")
ROOT = Path(__file__).resolve().parent.parent
SOURCES = [str(ROOT), str(ROOT / "python"), str(ROOT / "tests")]
"""Where the Assay of this clone is, and its tests; the interpreter may be that of another."""

MODULES = ("virtio_blk", "virtio_scsi", "sd_mod", "nvme", "crc32c_generic", "crc32c_intel", "configfs")
"""Without udev a device's module is loaded by name."""

AT_WORK: dict[int, int] = {}
"""Processes of commands that have not ended."""


def main() -> None:
    """Make the machine ready, say so, and run commands until the power goes."""
    os.environ.update(
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8",
        DM_DISABLE_UDEV="1", PYTHONPATH=os.pathsep.join(SOURCES),
    )  # fmt: skip
    sys.path[:0] = SOURCES
    for command in (
        ["modprobe", "--all", *MODULES],
        ["mount", "-t", "configfs", "configfs", "/sys/kernel/config"],
        ["ip", "link", "set", "lo", "up"],
    ):
        subprocess.run(command, check=False)
    line = os.open("/dev/ttyS1", os.O_RDWR | os.O_NOCTTY)
    tty.setraw(line, termios.TCSANOW)
    answers = Answers(line)
    answers.send({"id": 0, "code": 0})
    with os.fdopen(line, "rb", buffering=0, closefd=False) as requests:
        received = b""
        while True:
            received += requests.read(4096)
            *lines, received = received.split(b"\n")
            for request in map(json.loads, lines):
                if "kill" in request:
                    with contextlib.suppress(KeyError, ProcessLookupError):
                        os.kill(AT_WORK[request["kill"]], request["signal"])
                    continue
                threading.Thread(target=perform, args=(request["id"], request["argv"], answers), daemon=True).start()


class Answers:
    """The way back to the host, one whole line at a time."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._lock = threading.Lock()

    def send(self, answer: dict[str, int]) -> None:
        """Send one answer."""
        text = json.dumps(answer).encode() + b"\n"
        with self._lock:
            while text:
                text = text[os.write(self._line, text) :]


def perform(number: int, argv: list[str], answers: Answers) -> None:
    """Run a command to its end; 127 if it cannot be started."""
    stdout, stderr = SHARE / f"{number}.out", SHARE / f"{number}.err"
    try:
        if argv[0] == "assay":
            from assay_fork import FORKING, ForkedCommand

            FORKING.set_forkserver_preload(["lab.warm"])
            command = ForkedCommand(argv[1:], SHARE, stdout, stderr, imported="lab.warm")
            AT_WORK[number] = command.pid
            code = command.wait()
        else:
            with stdout.open("wb") as out, stderr.open("wb") as err:
                process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/tmp")
            AT_WORK[number] = process.pid
            code = process.wait()
    except OSError as error:
        stderr.write_text(f"{error}\n")
        code = 127
    AT_WORK.pop(number, None)
    answers.send({"id": number, "code": code})


if __name__ == "__main__":
    main()

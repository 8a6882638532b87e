"""A run on a real terminal: frames in place, few bytes, nothing left at the end."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from assay_command import command

pytestmark = pytest.mark.slow(reason="frames are drawn without a process in test_live_frame.py")

RUN = ("profile", "null:?latency=1ms&servers=4", "--queue-depth", "2,4", "--warmup", "0s", "--duration", "2s",
       "--no-report")  # fmt: skip


def shown(folder: Path, *options: str) -> str:
    """What the command sends to a terminal that its standard error is."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        command(*RUN, *options), cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
    os.close(theirs)
    taken = bytearray()
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        taken += piece
    assert process.wait(30) == 0
    os.close(ours)
    return taken.decode()


def test_a_run_is_drawn_in_place_with_few_bytes(tmp_path: Path) -> None:
    text = shown(tmp_path)
    assert "measuring" in text
    assert "read latency" in text
    assert re.search("[▁▂▃▄▅▆▇█]", text)
    assert "\x1b[1m" in text
    # Points stay above the frame, and the frame itself is gone at the end.
    assert len(re.findall(r"p000[12] \[custom\]", text)) == 2
    assert text.rstrip().endswith("\x1b[J")
    assert len(text.encode()) < 20_000


def test_colours_are_left_out_when_asked(tmp_path: Path) -> None:
    text = shown(tmp_path, "--no-color")
    assert "measuring" in text
    assert not re.search(r"\x1b\[[0-9;]*m", text)


def test_quiet_shows_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path, "--quiet") == ""

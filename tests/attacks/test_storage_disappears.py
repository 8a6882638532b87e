"""Storage that disappears under a run: why the run ended is what is said, in documented lines, and nothing after them.

The attack kills the server of an array while a verb is at work on its volumes. Closing a file without a server fails,
as asking for its inode does: the first printed a traceback after the last line, the second took the place of the
reason.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mount_namespace import MountNamespace, mount_namespace

from mounting import needs_fuse

pytestmark = needs_fuse

VERBS = {
    "verify": ("--duration", "60s"),
    "profile": ("--block", "8K", "--duration", "8s", "--warmup", "0s"),
    "mailbox": (
        *("--mailboxes", "10", "--mailbox-size", "3M", "--databases", "1", "--checkpoint-depth", "256K"),
        *("--iops-per-mailbox", "20", "--warmup", "0s", "--duration", "30s"),
    ),
}


def wait_for(happened: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def under_load(namespace: MountNamespace, folder: Path, verb: str) -> tuple[int, list[str]]:
    """Kill the server of an array while a verb is at work on it; gives the exit code and what was said."""
    log = folder / "stderr"
    array = ("ps6100xv?raid=10&volumes=data:1,log:1&cache=16MiB", "--at", folder / "group", "--size", "256M")
    with subprocess.Popen(namespace.words("array", "serve", *array), stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            while b"served until" not in (line := server.stderr.readline()):
                assert line, "the server ended"
            volumes = [folder / "group/data01", folder / "group/log01"]
            target = ("--volume", f"data={volumes[0]}", "--volume", f"log={volumes[1]}")
            allowed = [word for volume in volumes for word in ("--overwrite", volume)]
            words = namespace.words(verb, *target, *allowed, *VERBS[verb], "--no-report", "-o", folder / "results")
            with log.open("wb") as stderr, subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=stderr) as run:
                try:
                    wait_for(lambda: AT_WORK[verb] in log.read_text(), run)
                    server.send_signal(signal.SIGKILL)
                    return run.wait(60), log.read_text().splitlines()
                finally:
                    run.kill()
        finally:
            server.kill()


AT_WORK = {"verify": "stress for", "profile": "measuring", "mailbox": "measuring"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_server_that_is_killed_is_the_reason_and_the_last_word(tmp_path: Path, verb: str) -> None:
    with mount_namespace() as namespace:
        code, lines = under_load(namespace, tmp_path, verb)

    # I/O errors are findings of `verify` (docs/exit-codes.md).
    assert code == (4 if any("io_error" in line for line in lines) else 3), lines
    assert not any("Traceback" in line or "fault of Assay" in line for line in lines), lines
    assert lines[-1].startswith("assay: "), lines
    assert "data01" in lines[-1] or "log01" in lines[-1], lines
    (run,) = (tmp_path / "results").iterdir()
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["status"] == "failed"
    assert [volume["identity"] is not None for volume in manifest["target"]["volumes"]] == [True, True]

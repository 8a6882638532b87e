"""Inputs of served arrays: notes beside their folders, and the small files of their stores."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fuzz import mutation
from fuzz.trial import Input, of_command

Make = Callable[[random.Random], Input]

ARRAY = "ps6100xv?raid=5&volumes=1"
SMALL_BYTES = 128 << 10
"""Files of a store that are no longer than this are changed; the disks' images are longer."""
NOTE = {"store": "/nowhere/group.store", "pid": 1, "is_new": True, "mounts": ["/"], "loops": ["/dev/loop0"]}


def note(dice: random.Random) -> Input:
    """A note of a server, read by every command that asks for one."""
    text = json.dumps(mutation.tree(dice, NOTE)).encode() if dice.random() < 0.7 else json.dumps(NOTE).encode()
    content = mutation.data(dice, text) if dice.random() < 0.4 else text
    serve = ["array", "serve", ARRAY, "--at", "group", "--duration", "1ms", "--size", "16M"]
    at = ["--at", "group"]
    verb = dice.choice(
        (["array", "clean", *at], ["array", "status", *at], ["array", "pull", "member0/disk1", *at], serve)
    )
    return of_command("note", verb, {".group.assay-array": content, "group/.keep": b""})


def a_store(scratch: Path) -> dict[str, bytes]:
    """Files of a store, as a server leaves them; none where nothing can be served."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        asked = ["array", "serve", ARRAY, "--at", f"{folder}/group", "--duration", "1ms", "--size", "16M"]
        subprocess.run([sys.executable, "-m", "assay", *asked], check=True, capture_output=True)
        left = [path for path in (Path(folder) / "group.store").iterdir() if path.is_file()]
        return {path.name: path.read_bytes() for path in left if path.stat().st_size <= SMALL_BYTES}


def damaged(files: dict[str, bytes]) -> Make:
    """A store with one of its small files changed and its disks' images gone: served for a moment."""

    def make(dice: random.Random) -> Input:
        changed = {f"group.store/{name}": content for name, content in files.items()}
        name = dice.choice(sorted(changed))
        changed[name] = mutation.data(dice, changed[name])
        return of_command(
            "store", ["array", "serve", ARRAY, "--at", "group", "--duration", "1ms", "--size", "16M"], changed
        )

    return make

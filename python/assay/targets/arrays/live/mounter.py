"""File systems on an array are mounted and taken away by a process of their own.

The server must not use what it serves: killed in the middle of a system call, it would wait for its own answer for
ever, and with it whoever waits for the server.

    python -m assay.targets.arrays.live.mounter     with an order on standard input
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from assay.base.errors import AssayError, error_named
from assay.targets.arrays.live.place import ArrayPlace
from assay.targets.arrays.live.volumes import mount_volumes, unmount_volumes


def mount(place: ArrayPlace, volumes: Sequence[str], *, owner: int | None = None) -> dict[str, Path]:
    """Mount ext4 on each volume; returns where (`volumes.mount_volumes`).

    Raises
    ------
    AssayError
        As of `volumes.mount_volumes`.
    """
    _done({"folder": str(place.folder), "volumes": list(volumes), "owner": owner})
    return {name: place.mounts / name for name in volumes}


def unmount(place: ArrayPlace) -> None:
    """Take the file systems of an array away (`volumes.unmount_volumes`).

    Raises
    ------
    AssayError
        The process failed.
    """
    _done({"folder": str(place.folder), "volumes": None, "owner": None})


class MountOrder(TypedDict):
    """What the process that mounts does: mount these volumes for this owner, or take all away where none are named."""

    folder: str
    volumes: list[str] | None
    owner: int | None


class MountAnswer(TypedDict, total=False):
    """What failed, and the name of its error; nothing where all went well."""

    error: str
    kind: str


def _done(order: MountOrder) -> None:
    """Have an order carried out by a process of its own, which Ctrl-C does not reach."""
    done = subprocess.run(
        (sys.executable, "-m", __name__),
        input=json.dumps(order).encode(),
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    lines = done.stdout.splitlines()
    answer: MountAnswer = json.loads(lines[-1]) if lines else {"error": "the process that mounts ended early"}
    if "error" in answer:
        raise error_named(answer.get("kind", ""))(answer["error"])


def main() -> int:
    """Carry out the order of standard input; say on standard output how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order: MountOrder = json.load(sys.stdin)
    try:
        with ArrayPlace.open(Path(order["folder"])) as place:
            if order["volumes"] is None:
                unmount_volumes(place)
            else:
                mount_volumes(place, order["volumes"], owner=order["owner"])
        answer: MountAnswer = {}
    except AssayError as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    except OSError as error:
        answer = {"error": f"{order['folder']}: {error.strerror}"}
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Loads in the guest that do not end: `cut_load.py SEED raw DEVICE ext4 DEVICE ...`, a process for each."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

THREADS = 4
SECTORS = (1, 1, 2, 7, 8, 8, 8, 16, 32, 33, 64)
"""Lengths of writes: sectors, pages of databases, and what lies across them."""

FLUSH_SHARE = 0.03


def raw(device: str, seed: int) -> None:
    """Write random sectors of a device past the page cache, some of them again and again; flush now and then."""
    # File systems need more of the guest's only core for as many requests.
    os.nice(5)
    threads = [threading.Thread(target=_write, args=(device, f"{seed} {number}")) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write(device: str, seed: str) -> None:
    draw = random.Random(seed)
    file = os.open(device, os.O_RDWR | os.O_DIRECT)
    sectors = os.lseek(file, 0, os.SEEK_END) // 512
    with mmap.mmap(-1, max(SECTORS) * 512) as page:
        while True:
            count = draw.choice(SECTORS)
            # Half of the writes fall on an eighth of the disk, where they overwrite others before a flush.
            first = draw.randrange(0, (sectors if draw.random() < 0.5 else sectors // 8) - count)
            page[: count * 512] = draw.randbytes(count * 512)
            os.pwrite(file, memoryview(page)[: count * 512], first * 512)
            if draw.random() < FLUSH_SHARE:
                os.fdatasync(file)


def ext4(device: str, seed: int) -> None:
    """Work on a file system; when it fails, mount what the disk has, or make it anew."""
    place = Path("/run") / Path(device).name
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "ext4", device, str(place)]
    draw = random.Random(seed)
    while True:
        if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
            subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
            subprocess.run(mount, check=True)
        with contextlib.suppress(OSError):
            _files(place, draw)
        subprocess.run(["umount", "-l", str(place)], check=True)


def _files(place: Path, draw: random.Random) -> None:
    """Write files, new ones, over others and at their end; sync, rename and remove some."""
    while True:
        path = place / str(draw.randrange(40))
        with path.open(draw.choice(("wb", "ab")), buffering=0) as file:
            file.write(draw.randbytes(draw.randrange(1, 40_000)))
            if draw.random() < 0.5:
                os.fsync(file.fileno())
        if draw.random() < 0.2:
            path.rename(place / str(draw.randrange(40)))
        if draw.random() < 0.05:
            os.sync()
        if draw.random() < 0.1 or (path.exists() and path.stat().st_size > 200_000):
            path.unlink(missing_ok=True)


def main(seed: int, *loads: str) -> None:
    """Start all loads, and wait for their ends."""
    for number, (how, device) in enumerate(zip(loads[::2], loads[1::2], strict=True)):
        if os.fork() == 0:
            sys.exit({"raw": raw, "ext4": ext4}[how](device, seed + number))
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

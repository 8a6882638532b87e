"""A load in the guest that never ends by itself: `cut_load.py raw DEVICE SEED` or `cut_load.py ext4 DEVICE SEED`."""

from __future__ import annotations

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
    """Write files, new ones, over others and at their end, and sync some; what a cut left is mounted, if it can be."""
    place = Path("/run") / Path(device).name
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "ext4", device, str(place)]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        subprocess.run(mount, check=True)
    draw = random.Random(seed)
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


if __name__ == "__main__":
    how, where, number = sys.argv[1:]
    {"raw": raw, "ext4": ext4}[how](where, int(number))

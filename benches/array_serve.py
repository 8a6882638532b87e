"""A served array against the same array in virtual time: the same profile on both, and how late answers leave.

    python benches/array_serve.py [--folder DIR]...

What serving adds to the mean is told for the same I/Os: what the load measured, less what the model answered for
them. Between two runs the means of 260 I/Os a second differ by more than that, by chance. Each volume is written once
before, so that no part of a file is new to the file system, nor memory to the machine: a virtual machine gets its
memory when it first writes there, which takes several times as long as what is measured here. A model in virtual
time is measured once its caches have come to rest; the served array is loaded as long before it is measured. Lateness
is the server's own: from the time an answer was due, the way back to the program counted, to the time it left.
Everything runs on this machine, load and array. With several folders the store lies in one after the other: what the
disk beneath adds shows beside a store in memory. The table goes to benches/results/array-serve.md. Takes root and FUSE.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benches" / "results" / "array-serve.md"
ASSAY = (sys.executable, "-m", "assay")
MEASURED_S = 5

ARRAYS = (
    ("ps6100xv?raid=10", 3, (("--read", "100", "--queue-depth", "1"), ("--read", "100", "--queue-depth", "32"))),
    (
        "ps6100xv?raid=50&members=2",
        12,
        (("--read", "100", "--queue-depth", "64"), ("--read", "70", "--queue-depth", "32")),
    ),
    ("ps6100xv?raid=10&members=2", 3, (("--read", "0", "--queue-depth", "8"),)),
    ("{solid}", 3, (("--read", "100", "--queue-depth", "16"), ("--read", "100", "--queue-depth", "32"))),
)
"""Arrays, GiB of their volume, and the loads on each. A volume fits with its parity into this machine's memory; the one
that is read and written does not fit into the array's cache."""


def profile(*arguments: str | Path, duration_s: float = MEASURED_S, seed: int = 1) -> dict[str, Any]:
    """The last point of a profile of blocks of 8 KiB; without a warm-up, so that load and array count the same I/Os."""
    with tempfile.TemporaryDirectory() as results:
        command = (
            *ASSAY,
            "profile",
            *map(str, arguments),
            *("--warmup", "0s", "--duration", f"{duration_s:g}s", "--seed", str(seed)),
            "--block",
            "8K",
            "--no-report",
            "--json",
            "-o",
            results,
        )
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    point: dict[str, Any] = json.loads(done.stdout)["points"][-1]
    return point


def answered(status: dict[str, Any]) -> tuple[int, int]:
    """I/Os that the array's volume answered so far, and nanoseconds that its model took for them."""
    (counted,) = [volume["served"] for volume in status["volumes"]]
    return counted["reads"] + counted["writes"], counted["read_ns"] + counted["write_ns"]


class Served:
    """The array of a folder, served until the block ends; its store stays."""

    def __init__(self, folder: Path, array: str, *options: str) -> None:
        self._at = folder / "array"
        command = (*ASSAY, "array", "serve", array, "--at", self._at, "--store", folder / "store", *options)
        self._server = subprocess.Popen(tuple(map(str, command)), stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        assert self._server.stderr is not None
        if not any("served until" in line for line in self._server.stderr):
            raise RuntimeError("the array is not served")
        (self.volume,) = self._at.iterdir()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.send_signal(signal.SIGINT)
        self._server.wait()

    def status(self) -> dict[str, Any]:
        """What the array says of itself."""
        asked = (*ASSAY, "array", "status", "--json", "--at", str(self._at))
        told: dict[str, Any] = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        return told

    def write_once(self, gib: int) -> None:
        """Write the whole volume, with bytes that differ."""
        block = os.urandom(1 << 20)
        with self.volume.open("r+b", buffering=0) as file:
            for _ in range(gib << 10):
                file.write(block)

    def measure(self, load: tuple[str, ...], loaded_s: float) -> tuple[dict[str, Any], dict[str, Any], float]:
        """The point of a profile, the array's status after it, and the mean of the model's answers, ns."""
        on_volume = ("--volume", f"data={self.volume}", "--overwrite", self.volume, *load)
        if loaded_s > 0:
            profile(*on_volume, duration_s=loaded_s, seed=2)
        count, answered_ns = answered(self.status())
        point, after = profile(*on_volume), self.status()
        count_after, answered_after_ns = answered(after)
        return point, after, (answered_after_ns - answered_ns) / (count_after - count)


def rows(folder: Path, array: str, gib: int, loads: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """Served and virtual side by side, for each load and way to schedule."""
    options = f"{array}{'&' if '?' in array else '?'}volumes=data:1&volume_size={gib}GiB"
    file_system = subprocess.run(("stat", "-f", "-c", "%T", folder), capture_output=True, text=True, check=True)
    with Served(folder, options) as written:
        written.write_once(gib)
    try:
        for load in loads:
            in_virtual_time = profile(f"model:{options}&start=cold", *load)
            for scheduling in ((), ("--realtime",)):
                with Served(folder, options, *scheduling) as served:
                    figures = row(in_virtual_time, *served.measure(load, in_virtual_time["warmup_s"]))
                yield [
                    file_system.stdout.strip(),
                    array,
                    str(gib),
                    f"{load[1]} % reads, {load[3]} outstanding",
                    *figures,
                ]
    finally:
        shutil.rmtree(folder / "store")


def row(
    in_virtual_time: dict[str, Any], point: dict[str, Any], status: dict[str, Any], answered_ns: float
) -> list[str]:
    """Figures of one load."""
    virtual, rested_s = in_virtual_time["total"], in_virtual_time["warmup_s"]
    total, late = point["total"], status["lateness"]
    added_ns = total["latency_ns"]["mean"] - answered_ns
    return [
        status["scheduling"],
        f"{virtual['iops']:,.0f}",
        f"{total['iops']:,.0f} ({total['iops'] / virtual['iops'] - 1:+.1%})",
        f"{virtual['latency_ns']['mean'] / 1e6:.3f}",
        f"{added_ns / 1e3:+.0f}",
        f"{late['p50_ns'] / 1e3:.0f}",
        f"{late['p99_ns'] / 1e3:.0f}",
        f"{status['floor_ns'] / 1e3:.0f}",
        f"{rested_s:.0f}",
        "yes" if late["overdriven"] else "no",
    ]


HEAD = (
    "store on", "array", "GiB", "load, 8 KiB random", "scheduling", "virtual IOPS", "served IOPS", "virtual mean, ms",
    "added to the mean, us", "late p50, us", "late p99, us", "floor, us", "loaded before, s", "overdriven",
)  # fmt: skip


def main() -> None:
    """Measure all loads, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, action="append")
    parser.add_argument("--solid", default="nvme-mirror")
    arguments = parser.parse_args()
    begun = time.time()
    table = []
    for parent in arguments.folder or [Path(tempfile.gettempdir())]:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            for array, gib, loads in ARRAYS:
                for each in rows(Path(folder), array.format(solid=arguments.solid), gib, loads):
                    table.append(each)
                    print(" | ".join(each), flush=True)
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD), *(f"| {' | '.join(each)} |" for each in table)]
    about = (
        f"`benches/array_serve.py`, {time.strftime('%Y-%m-%d', time.gmtime(begun))}: Linux {platform.release()}, "
        f"{os.cpu_count()} cores that load, kernel and array share, load average {os.getloadavg()[0]:.1f} at the end."
    )
    aims = (
        "Aims: added to the mean at most 60 us; p99 of lateness at most 250 us with SCHED_FIFO (`realtime`) up to"
        " 20,000 IOPS; IOPS within 3 % where latencies are 2 ms or more."
    )
    RESULTS.write_text("# Served against virtual time\n\n" + about + "\n\n" + aims + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

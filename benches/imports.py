"""What importing costs: processor time and memory of `assay import` for a made Perfmon log of 100 MB.

    python benches/imports.py [--megabytes 100]

The aims are 10 s of processor time and 300 MB. Two logs are made: a server's, 217 of whose 257 counters are taken, and
months of four counters. Results go to benches/results/imports.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benches" / "results" / "imports.json"

DISK = (
    "% Idle Time", "Avg. Disk sec/Read", "Avg. Disk sec/Write", "Disk Reads/sec", "Disk Writes/sec",
    "Disk Read Bytes/sec", "Disk Write Bytes/sec", "Avg. Disk Queue Length", "Current Disk Queue Length",
    "Avg. Disk Bytes/Read",
)  # fmt: skip
WIDE = (
    *(rf"\\SQL1\PhysicalDisk({disk} X{disk}:)\{name}" for disk in range(20) for name in DISK),
    *(rf"\\SQL1\Processor({cpu})\% Processor Time" for cpu in range(16)), r"\\SQL1\Processor(_Total)\% Processor Time",
    *(rf"\\SQL1\Process(p{process})\% Processor Time" for process in range(40)),
)  # fmt: skip
NARROW = tuple(rf"\\SQL1\PhysicalDisk(0 C:)\{name}" for name in DISK[1:5])


def make(path: Path, counters: tuple[str, ...], megabytes: float) -> int:
    """Write a log with values of 17 digits, as Perfmon has them; returns its values."""
    dice = random.Random(7)
    texts = [repr(dice.random() * 100) for _ in range(6000)] + ["0"] * 500
    at, samples = datetime(2026, 1, 1), 0
    with path.open("w", newline="") as file:
        file.write(",".join(['"(PDH-CSV 4.0) (UTC)(0)"', *(f'"{one}"' for one in counters)]) + "\r\n")
        while file.tell() < megabytes * 1e6:
            for _ in range(1000):
                cells = '","'.join(dice.choices(texts, k=len(counters)))
                file.write(f'"{at:%m/%d/%Y %H:%M:%S}.000","{cells}"\r\n')
                at += timedelta(seconds=15)
                samples += 1
    return samples * len(counters)


def cost(counters: tuple[str, ...], megabytes: float) -> dict[str, Any]:
    """Processor time and memory of an import of a log with these counters."""
    with tempfile.TemporaryDirectory(prefix="assay-imports-") as place:
        log = Path(place, "log.csv")
        values = make(log, counters, megabytes)
        words = [sys.executable, "-m", "assay", "import", str(log), "-o", f"{place}/results"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, code, used = os.wait4(process.pid, 0)
        assert code == 0, code
        return {
            "bytes": log.stat().st_size,
            "values": values,
            "cpu_s": round(used.ru_utime + used.ru_stime, 2),
            "resident_bytes": used.ru_maxrss * 1024,
        }


def main() -> None:
    """Measure both logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    megabytes = parser.parse_args().megabytes
    found = {name: cost(counters, megabytes) for name, counters in (("server", WIDE), ("months", NARROW))}
    for name, one in found.items():
        used = f"{one['cpu_s']} s of processor time, {one['resident_bytes'] / 1e6:.0f} MB"
        print(f"{name}: {used}; {one['values']:,} values")
    if megabytes >= 100:
        RESULTS.write_text(
            json.dumps({"machine": platform.processor() or platform.machine(), **found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

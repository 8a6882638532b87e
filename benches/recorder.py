"""What the flight recorder costs: processor time and memory at one sample a second, alone and beside a PostgreSQL.

    python benches/recorder.py [--seconds 60]

The aims are below one hundredth of a core and below 50 MB. Processor time is that of the recorder's process and all its
threads after its start, memory the most that was resident. Results go to benches/results/recorder.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from servers.fixtures import shipped_programs  # noqa: E402
from servers.postgresql import PostgresqlServer  # noqa: E402
from servers.process import folder_of_files  # noqa: E402

RESULTS = ROOT / "benches" / "results" / "recorder.json"
START_S = 8.0
"""What is not counted: imports, connecting, the first samples."""


def cost(seconds: float, *options: str) -> dict[str, Any]:
    """Share of a core and bytes of a recorder that runs for so long."""
    with tempfile.TemporaryDirectory(prefix="assay-recorder-") as place:
        process = subprocess.Popen(
            [sys.executable, "-m", "assay", "record", f"{place}/rec", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            time.sleep(START_S)
            before = spent_s(process.pid)
            began = time.monotonic()
            time.sleep(seconds)
            share = (spent_s(process.pid) - before) / (time.monotonic() - began)
            resident = resident_bytes(process.pid)
            size = sum(path.stat().st_size for path in Path(place, "rec").iterdir())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    return {"cpu_share": round(share, 5), "resident_bytes": resident, "file_bytes": size, "seconds": seconds}


def spent_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """The most that was resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def main() -> None:
    """Measure both and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    found = {"alone": cost(given.seconds)}
    with folder_of_files("assay-pg-") as folder, contextlib.ExitStack() as stack:
        server = PostgresqlServer(folder, shipped_programs())
        server.start()
        stack.callback(server.stop)
        found["beside one PostgreSQL"] = cost(given.seconds, "--database", server.url)
    for name, row in found.items():
        print(f"{name:24} {row['cpu_share']:.2%} of a core, {row['resident_bytes'] / 1e6:.1f} MB resident")
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    RESULTS.write_text(
        json.dumps({"machine": machine, "aims": {"cpu_share": 0.01, "resident_bytes": 50e6}, **found}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()

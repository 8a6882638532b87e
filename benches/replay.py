"""Assay's replay against fio's `read_iolog`: the same I/Os at the same times on the same file, in turn, in one run.

    python benches/replay.py --folder /data --rates 2000,10000 --seconds 5

A row tells how long the trace took to be replayed over what it lasted, at its own speed and at twice that, and how late
Assay began I/Os. fio does not tell the latter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from assay.record.rows import TextColumn
from assay.traces.file import TraceWriter
from assay.traces.head import TraceHead
from assay.traces.ios import IoFlag, Ios

BLOCK_BYTES = 8192


def made(folder: Path, rate: float, seconds: float, file: Path, blocks: int) -> tuple[Path, Path]:
    """Reads at Poisson times, as a trace of Assay and as an iolog of fio."""
    rng = np.random.default_rng(1)
    count = round(rate * seconds)
    times = np.sort(rng.uniform(0, seconds * 1e9, count)).astype(np.int64)
    places = rng.integers(0, blocks, count) * BLOCK_BYTES
    none, zeros = TextColumn(np.zeros(count, np.int32), ["bench"]), np.zeros(count, np.int64)
    trace, iolog = folder / f"{rate:g}.trace", folder / f"{rate:g}.iolog"
    with TraceWriter(trace, TraceHead(source="bench")) as writer:
        flags = np.full(count, int(IoFlag.READ), np.uint16)
        writer.write(Ios(times, zeros, zeros + 100_000, places, zeros + BLOCK_BYTES, flags, none, none))
    # Version 3 has a time for each I/O, in microseconds.
    lines = ["fio version 3 iolog", f"0 {file} add", f"0 {file} open"]
    lines += [
        f"{at} {file} read {place} {BLOCK_BYTES}"
        for at, place in zip((times // 1000).tolist(), places.tolist(), strict=True)
    ]
    iolog.write_text("\n".join([*lines, f"{times[-1] // 1000} {file} close", ""]))
    return trace, iolog


def by_assay(trace: Path, file: Path, speed: float, results: Path) -> tuple[float, dict[str, Any]]:
    """Seconds that the I/Os of a replay took, by their rate, and its lateness."""
    words = [str(trace), str(file), "--speed", f"{speed:g}", "--no-report", "--quiet", "--json", "-o", str(results)]
    done = subprocess.run([sys.executable, "-m", "assay", "replay", *words], capture_output=True, text=True)
    (point,) = json.loads(done.stdout)["points"]
    count = sum(one["ios"] for one in point["replay"]["traces"])
    return count / point["total"]["iops"], point["replay"]["lateness"]


def by_fio(iolog: Path, file: Path, speed: float) -> float:
    """Seconds that fio took."""
    words = [f"--read_iolog={iolog}", f"--replay_time_scale={round(100 * speed)}", "--direct=1", "--iodepth=64"]
    named = ["--name=replay", "--ioengine=libaio", f"--filename={file}", "--output-format=json"]
    done = subprocess.run(["fio", *named, *words], capture_output=True, text=True, check=True)
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return float(job["read"]["runtime"]) / 1000


def main() -> None:
    """Print a row for each rate and speed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--rates", default="2000,10000")
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    print("| rate | speed | lasts | Assay | fio | lateness p50, p99, most (us) |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder, file = Path(name), Path(name) / "f.dat"
        blocks = (256 << 20) // BLOCK_BYTES
        for rate in map(float, given.rates.split(",")):
            trace, iolog = made(folder, rate, given.seconds, file, blocks)
            for speed in (1.0, 2.0):
                assay_s, late = by_assay(trace, file, speed, folder)
                fio_s, lasts = by_fio(iolog, file, speed), given.seconds / speed
                us = ", ".join(f"{late[key] / 1e3:.0f}" for key in ("p50_ns", "p99_ns", "max_ns"))
                print(
                    f"| {rate:,.0f} | {speed:g} | {lasts:.2f} s | {assay_s:.2f} s | {fio_s:.2f} s | {us} |", flush=True
                )


if __name__ == "__main__":
    main()

"""What a capture costs: fio's load with and without `assay trace record` beside it, in turn, in one run.

    python benches/trace.py --folder /data --rates 5000,20000 --seconds 5 --rounds 3 --keep orders.trace

Takes root. A row tells what fio did of the rate that was asked for, in both cases, the processor time of the capture
for each I/O with the start of the program, the events that it lost, and the bytes of an I/O in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from assay.traces.file import read_trace

FILE_BYTES = 256 << 20


def load(file: Path, rate: int, seconds: float) -> tuple[float, float]:
    """I/Os a second of fio, and its processor time as a share of one processor."""
    words = ["--rw=randrw", "--rwmixread=70", "--bs=8k", "--iodepth=32", "--ioengine=libaio", "--direct=1"]
    words += [f"--filename={file}", f"--size={FILE_BYTES}", f"--rate_iops={rate * 7 // 10},{rate * 3 // 10}"]
    words += ["--time_based", f"--runtime={seconds:g}", "--name=load", "--output-format=json", "--randrepeat=1"]
    done = subprocess.run(["fio", *words], capture_output=True, text=True, check=True)
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return job["read"]["iops"] + job["write"]["iops"], (job["usr_cpu"] + job["sys_cpu"]) / 100


def captured(file: Path, rate: int, seconds: float, trace: Path) -> tuple[float, float, float, int]:
    """Rate of fio beside a capture and its share of a processor; processor seconds of the capture, and lost events."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [
        sys.executable,
        "-m",
        "assay",
        "trace",
        "record",
        str(file),
        "--for",
        f"{seconds + 4:g}s",
        "-o",
        str(trace),
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as capture:
        assert capture.stderr is not None
        capture.stderr.readline()  # It says what it captures once it does.
        iops, share = load(file, rate, seconds)
        during = resource.getrusage(resource.RUSAGE_CHILDREN)
        fio_s = during.ru_utime + during.ru_stime - before.ru_utime - before.ru_stime
        capture.stderr.read()
        if capture.wait():
            sys.exit(f"the capture ended with {capture.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    end = read_trace(trace).end
    lost = 0 if end is None or end.lost_events is None else end.lost_events
    return iops, share, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - fio_s, lost


def main() -> None:
    """Print a row for each rate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--rates", default="5000,20000")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="Keep the last trace here.")
    given = parser.parse_args()
    if os.geteuid():
        sys.exit("a capture takes root")
    print("| rate | alone | beside a capture | ratio, of rounds | capture, us an I/O | lost | bytes an I/O |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        file, trace = Path(name) / "f.dat", Path(name) / "load.trace"
        load(file, 1000, 1)
        for rate in map(int, given.rates.split(",")):
            alone, beside, costs, losses, sizes = [], [], [], 0, []
            for _ in range(given.rounds):
                alone.append(load(file, rate, given.seconds)[0])
                trace.unlink(missing_ok=True)
                iops, _, cost_s, lost = captured(file, rate, given.seconds, trace)
                end = read_trace(trace).end
                ios = end.ios if end is not None else 0
                beside.append(iops)
                costs.append(cost_s / max(ios, 1) * 1e6)
                losses += lost
                sizes.append(trace.stat().st_size / max(ios, 1))
            ratios = sorted(one / other for one, other in zip(beside, alone, strict=True))
            print(
                f"| {rate:,} | {statistics.median(alone):,.0f} | {statistics.median(beside):,.0f} |"
                f" {ratios[0]:.3f} to {ratios[-1]:.3f} | {statistics.median(costs):.1f} | {losses:,} |"
                f" {statistics.median(sizes):.1f} |", flush=True,
            )  # fmt: skip
        if given.keep is not None:
            shutil.copyfile(trace, given.keep)


if __name__ == "__main__":
    main()

"""Assay's generator against fio: the same file, the same load, in turn, in one run.

    python benches/generator.py --file /data/bench.dat --size 2G --pairs 9 --seconds 3

Every row gives medians, the ratio Assay / fio pair by pair, and beside it the spread of fio against itself (each fio
run over the one before), because a ratio means nothing without it. CPU is that of the threads that do the I/O.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COUNTERS_AGREE_SHARE = 0.02


@dataclass(frozen=True)
class Result:
    """One run: I/Os per second, CPU per I/O, and reported I/Os over those the kernel's device counters saw."""

    iops: float
    cpu_ns: float
    counted_share: float | None = None


@dataclass(frozen=True)
class Case:
    """One load, as each tool is asked for it."""

    name: str
    assay: list[str]
    fio: list[str]
    aim: str
    counters: bool = False


def cases(file: str, size: str) -> list[Case]:
    """All loads compared."""
    mixed = ["--rw=randrw", "--rwmixread=70", "--bs=8k", "--norandommap"]
    direct = [f"--filename={file}", f"--size={size}", "--direct=1", "--ioengine=io_uring", *mixed]
    tuned = [*direct, "--registerfiles=1", "--fixedbufs=1"]
    table = [
        Case(
            f"null, queue depth {depth}",
            ["null:", "--block", "8K", "--read", "100", "--queue-depth", str(depth)],
            ["--ioengine=null", "--size=1t", "--rw=randread", "--bs=8k", "--norandommap", f"--iodepth={depth}"],
            "<= 60 ns per I/O; >= 5 x IOPS" if depth == 1 else "",
        )
        for depth in (1, 32)
    ]
    aims = {1: "CPU <= 1.0 x", 4: "CPU <= 0.9 x", 32: "CPU <= 0.8 x"}
    for depth, aim in aims.items():
        load = [file, "--block", "8K", "--read", "70", "--queue-depth", str(depth)]
        name = f"direct 8 KiB 70/30, queue depth {depth}"
        table.append(
            Case(name, load, [*direct, f"--iodepth={depth}"], f"IOPS within fio's spread or above; {aim}", True)
        )
        table.append(Case(f"{name}, fio tuned", load, [*tuned, f"--iodepth={depth}"], "", True))
    buffered = [
        f"--filename={file}",
        f"--size={size}",
        "--ioengine=io_uring",
        "--rw=randread",
        "--bs=8k",
        "--norandommap",
    ]
    table.append(
        Case(
            "buffered 8 KiB reads, queue depth 4",
            [file, "--block", "8K", "--read", "100", "--queue-depth", "4", "--buffered"],
            [*buffered, "--iodepth=4", "--invalidate=0"],
            "IOPS within fio's spread or above",
        )
    )
    return table


def run_assay(case: Case, seconds: float, folder: Path) -> Result:
    """One point of `assay profile`."""
    command = [sys.executable, "-m", "assay", "profile", *case.assay, "--duration", f"{seconds}s", "--warmup", "0.5s"]
    command += ["--json", "--no-report", "--quiet", "--output", str(folder)]
    # fio writes to the same file in between.
    command += [] if case.assay[0].startswith("null:") else ["--overwrite", case.assay[0]]
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    point = document["points"][0]
    iops = point["total"]["iops"]
    seen = point["telemetry"]["device_iops"] if case.counters else None
    return Result(iops, point["generator"]["cpu_share"] / iops * 1e9, iops / seen if seen else None)


def run_fio(case: Case, seconds: float, device: str | None) -> Result:
    """One fio job."""
    command = ["fio", "--name=bench", *case.fio, "--time_based", f"--runtime={seconds}", "--ramp_time=0.5"]
    before = device_ios(device)
    output = subprocess.run([*command, "--output-format=json"], check=True, capture_output=True, text=True).stdout
    job = json.loads(output[output.index("{") :])["jobs"][0]
    iops = job["read"]["iops"] + job["write"]["iops"]
    count = job["read"]["total_ios"] + job["write"]["total_ios"]
    busy_share = (job["usr_cpu"] + job["sys_cpu"]) / 100
    seen = device_ios(device) - before
    # fio counts no I/Os of its ramp, the kernel does.
    counted = count * (seconds + 0.5) / seconds / seen if case.counters and seen else None
    return Result(iops, busy_share / iops * 1e9, counted)


def device_ios(device: str | None) -> int:
    """Reads and writes the kernel counted on a device."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == device:
            return int(fields[3]) + int(fields[7])
    return 0


def compare(case: Case, pairs: int, assay: Callable[[], Result], fio: Callable[[], Result]) -> dict[str, Any]:
    """Run a case in turn and sum it up."""
    ours, theirs = [], []
    for index in range(pairs):
        # Whoever goes first may find a warmer or a cooler device, so they take turns at it.
        for which in ("assay", "fio") if index % 2 else ("fio", "assay"):
            (ours if which == "assay" else theirs).append(assay() if which == "assay" else fio())
    iops = [one.iops / other.iops for one, other in zip(ours, theirs, strict=True)]
    cpu = [one.cpu_ns / other.cpu_ns for one, other in zip(ours, theirs, strict=True)]
    itself = [one.iops / other.iops for one, other in zip(theirs[1:], theirs, strict=False)]
    itself_cpu = [one.cpu_ns / other.cpu_ns for one, other in zip(theirs[1:], theirs, strict=False)]
    counted = [one.counted_share for one in ours if one.counted_share is not None]
    return {
        "case": case.name,
        "aim": case.aim,
        "pairs": pairs,
        "assay_iops": statistics.median(one.iops for one in ours),
        "fio_iops": statistics.median(one.iops for one in theirs),
        "iops_ratio": spread(iops),
        "fio_iops_against_itself": spread(itself),
        "assay_cpu_ns_per_io": statistics.median(one.cpu_ns for one in ours),
        "fio_cpu_ns_per_io": statistics.median(one.cpu_ns for one in theirs),
        "cpu_ratio": spread(cpu),
        "fio_cpu_against_itself": spread(itself_cpu),
        "reported_over_kernel": spread(counted) if counted else None,
    }


def read_whole(file: str) -> None:
    """Bring a file into the page cache."""
    with open(file, "rb") as opened:
        while opened.read(1 << 24):
            pass


def spread(values: list[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def line(row: dict[str, Any]) -> str:
    """One case in one line."""

    def shown(value: dict[str, float] | None) -> str:
        return "-" if value is None else f"{value['median']:.3f} ({value['min']:.2f} - {value['max']:.2f})"

    return " | ".join(
        [
            row["case"],
            f"{row['assay_iops']:,.0f}",
            f"{row['fio_iops']:,.0f}",
            shown(row["iops_ratio"]),
            shown(row["fio_iops_against_itself"]),
            f"{row['assay_cpu_ns_per_io']:,.0f}",
            f"{row['fio_cpu_ns_per_io']:,.0f}",
            shown(row["cpu_ratio"]),
            shown(row["fio_cpu_against_itself"]),
            shown(row["reported_over_kernel"]),
            row["aim"],
        ]
    )


HEADING = [
    "case", "Assay IOPS", "fio IOPS", "IOPS ratio (min - max)", "fio against itself", "Assay CPU ns/IO",
    "fio CPU ns/IO", "CPU ratio", "fio CPU against itself", "Assay I/Os over kernel's", "aim",
]  # fmt: skip


def main() -> None:
    """Run the cases and write the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", default="assay-data/bench.dat", help="file to use; made if missing")
    parser.add_argument("--size", default="2G")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("benches: fio is missing; install it with: apt-get install fio")
    from assay.targets.host import device_of

    file = os.path.abspath(arguments.file)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    device = device_of(Path(file))
    fio_version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        prepare = [file, "--size", arguments.size, "--block", "8K", "--read", "100", "--queue-depth", "1"]
        run_assay(Case("layout", prepare, [], ""), 0.5, Path(folder))
        print(" | ".join(HEADING), flush=True)
        for case in cases(file, arguments.size):
            if arguments.only in case.name:
                if "--buffered" in case.assay:
                    read_whole(file)
                row = compare(
                    case,
                    arguments.pairs,
                    lambda case=case: run_assay(case, arguments.seconds, Path(folder)),
                    lambda case=case: run_fio(case, arguments.seconds, device),
                )
                rows.append(row)
                print(line(row), flush=True)
    facts = {
        "fio": fio_version,
        "kernel": platform.release(),
        "cpu_count": os.cpu_count(),
        "pairs": arguments.pairs,
        "seconds": arguments.seconds,
        "size": arguments.size,
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "generator.json").write_text(json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n")
    dashes = " | ".join(["---"] * len(HEADING))
    table = "\n".join(f"| {text} |" for text in [" | ".join(HEADING), dashes, *map(line, rows)])
    heading = f"{fio_version}, Linux {facts['kernel']}, {facts['cpu_count']} CPUs, medians of {facts['pairs']} pairs"
    (arguments.output / "generator.md").write_text(f"# Generator against fio\n\n{heading}\n\n{table}\n")


if __name__ == "__main__":
    main()

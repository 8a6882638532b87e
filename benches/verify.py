"""Verified writes and reads against fio `verify=crc32c`: the same file, block and queue depth, in turn, in one run.

    python benches/verify.py --folder /data --size 1G --pairs 9

Each run writes the whole file and then reads and verifies all of it. Every row gives medians, the ratio Assay / fio
pair by pair, and beside it the spread of fio against itself (each fio run over the one before). CPU is that of the
whole process, user and system, over bytes written plus bytes verified.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.base.units import parse_bytes

BLOCKS = (8192, 65536, 262144)
PAGE_BYTES = 8192
QUEUE_DEPTH = 32
LOG_BYTES = 1 << 20


@dataclass(frozen=True)
class Result:
    """Written and verified bytes per second, and CPU per byte of both."""

    write_bytes_per_s: float
    read_bytes_per_s: float
    cpu_ns_per_byte: float

    @property
    def bytes_per_s(self) -> float:
        """Bytes written and verified over the time of both phases."""
        return 2 / (1 / self.write_bytes_per_s + 1 / self.read_bytes_per_s)


def cpu_ns(usage: resource.struct_rusage) -> float:
    """User and system time."""
    return (usage.ru_utime + usage.ru_stime) * 1e9


def run_fio(file: Path, size_bytes: int, block_bytes: int) -> Result:
    """One run of fio: write, sync, read and verify."""
    command = [
        "fio",
        "--name=verify",
        f"--filename={file}",
        f"--size={size_bytes}",
        f"--bs={block_bytes}",
        f"--iodepth={QUEUE_DEPTH}",
        "--rw=write",
        "--ioengine=io_uring",
        "--direct=1",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_fatal=1",
        "--end_fsync=1",
        "--thread",
        "--output-format=json",
    ]
    before = cpu_ns(resource.getrusage(resource.RUSAGE_CHILDREN))
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=file.parent)
    cpu = cpu_ns(resource.getrusage(resource.RUSAGE_CHILDREN)) - before
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    assert job["error"] == 0
    rates = [job[side]["io_bytes"] / (job[side]["runtime"] / 1e3) for side in ("write", "read")]
    return Result(*rates, cpu / (job["write"]["io_bytes"] + job["read"]["io_bytes"]))


def run_assay(file: Path, log: Path, size_bytes: int, block_bytes: int) -> Result:
    """One run of the verifier without stress: prepare (and flush), audit."""
    child = [sys.executable, __file__, "--child", str(file), str(log), str(size_bytes), str(block_bytes)]
    before = cpu_ns(resource.getrusage(resource.RUSAGE_CHILDREN))
    done = subprocess.run(child, capture_output=True, text=True, check=True)
    cpu = cpu_ns(resource.getrusage(resource.RUSAGE_CHILDREN)) - before
    facts = json.loads(done.stdout)
    write, read = facts["phases"]
    return Result(write, read, (cpu - facts["start_cpu_ns"]) / (2 * size_bytes))


def child(file: str, log: str, size_bytes: int, block_bytes: int) -> None:
    """Runs the verifier and prints bytes per second of prepare and audit, and the CPU that Python took to start."""
    from assay import _core

    quiet = {"users": 0, "delay_after_cycles": 1, "delay_ns": 0}
    pages = {"pages_min": 1, "pages_max": 1}
    files = [(file, size_bytes, False), (log, LOG_BYTES, True)]
    plan = {
        "files": [
            {
                "name": Path(path).name,
                "path": path,
                "base_bytes": 0,
                "size_bytes": size,
                "max_bytes": size,
                "increment_bytes": 0,
                "log": is_log,
                "sector_bytes": 512,
                "direct": True,
            }
            for path, size, is_log in files
        ],
        "seed": 1,
        "run_id": time.time_ns(),
        "cycles": 1,
        "stress_ns": 0,
        "pool_bytes": PAGE_BYTES,
        "cache_hit_share": 0.0,
        "max_outstanding": QUEUE_DEPTH,
        "target_io_ns": 10**9,
        "bursts": True,
        "scatter_gather": False,
        "write_through": False,
        "force_read_ahead": True,
        "look_first": False,
        "rewrite_after_ns": 0,
        "pages_per_io": block_bytes // PAGE_BYTES,
        "rereads": 15,
        "reread_pause_ns": 10**7,
        "long_io_ns": 15 * 10**9,
        "io_timeout_ns": 120 * 10**9,
        "stop_on_error": False,
        "interval_ns": 10**9,
        "random": {
            "users": 0,
            "jump_share": 0.0,
            "chain_min": 1,
            "chain_max": 1,
            "update_share": 0.0,
            "log_bytes_min": 1,
            "log_bytes_max": 1,
            "rollback_share": 0.0,
            "sleep_ns": 0,
        },
        "audit": {**quiet, "pages": 1},
        "read_ahead": {**quiet, **pages},
        "bulk_update": {**quiet, **pages},
        "shrink": {"users": 0, "interval_min_ns": 1, "interval_max_ns": 1, "extents_min": 1, "extents_max": 1},
    }
    start = cpu_ns(resource.getrusage(resource.RUSAGE_SELF))
    run = _core.Verification(json.dumps({"plan": plan, "backend": "auto", "faulty": None, "journal": None}))
    report: dict[str, Any] = {"state": "running"}
    while report["state"] == "running":
        time.sleep(0.02)
        report = json.loads(run.poll())
    assert report["state"] == "ended", report
    assert report["audited"], report
    seconds = {phase["name"]: (phase["to_ns"] - phase["from_ns"]) / 1e9 for phase in report["phases"]}
    rates = [size_bytes / seconds["prepare"], size_bytes / seconds["audit"]]
    print(json.dumps({"phases": rates, "start_cpu_ns": start}))


def spread(values: list[float]) -> str:
    """The 10th and 90th percentile."""
    cuts = statistics.quantiles(values, n=10) if len(values) > 1 else values * 9
    return f"{cuts[0]:.2f}-{cuts[-1]:.2f}"


def row(name: str, ours: list[float], theirs: list[float], scale: float, aim: str) -> str:
    """Medians, ratio and spreads of one quantity."""
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    own = [later / earlier for earlier, later in itertools.pairwise(theirs)] or [1.0]
    return (
        f"| {name} | {statistics.median(ours) * scale:.4g} | {statistics.median(theirs) * scale:.4g}"
        f" | {statistics.median(ratios):.2f} | {spread(ratios)} | {spread(own)} | {aim} |"
    )


def compare(folder: Path, size_bytes: int, pairs: int) -> tuple[list[str], list[dict[str, Any]]]:
    """All blocks, runs of both tools in turn."""
    file, log = folder / "assay-bench-verify.dat", folder / "assay-bench-verify.log"
    lines, kept = [], []
    try:
        for path, size in ((file, size_bytes), (log, LOG_BYTES)):
            with path.open("wb") as handle:
                os.posix_fallocate(handle.fileno(), 0, size)
        run_fio(file, size_bytes, 1 << 20)
        for block_bytes in BLOCKS:
            ours, theirs = [], []
            for pair in range(pairs):
                print(f"block {block_bytes >> 10} KiB, pair {pair + 1} of {pairs}", file=sys.stderr)
                theirs.append(run_fio(file, size_bytes, block_bytes))
                ours.append(run_assay(file, log, size_bytes, block_bytes))
            name = f"{block_bytes >> 10} KiB"
            for title, get, scale, aim in (
                ("written and verified, MB/s", lambda result: result.bytes_per_s, 1e-6, ">= 1.0"),
                ("written, MB/s", lambda result: result.write_bytes_per_s, 1e-6, ""),
                ("read and verified, MB/s", lambda result: result.read_bytes_per_s, 1e-6, ""),
                ("CPU, ns per byte", lambda result: result.cpu_ns_per_byte, 1.0, ""),
            ):
                lines.append(
                    row(f"{name}: {title}", [get(one) for one in ours], [get(one) for one in theirs], scale, aim)
                )
            kept.append(
                {"block_bytes": block_bytes, "assay": [vars(one) for one in ours], "fio": [vars(one) for one in theirs]}
            )
    finally:
        file.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
    return lines, kept


def main() -> None:
    """Compare, print the table, keep it under benches/results."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the file is made (a temporary folder in /var/tmp)")
    parser.add_argument("--size", default="512M", type=lambda text: parse_bytes(text, what="--size"))
    parser.add_argument("--pairs", default=9, type=int)
    options = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("benches/verify.py: fio is not installed (apt-get install fio)")
    with tempfile.TemporaryDirectory(dir=options.folder or "/var/tmp") as folder:
        lines, kept = compare(Path(folder), options.size, options.pairs)
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    head = [
        f"# Verified throughput against {fio} `verify=crc32c`",
        "",
        f"{options.size >> 20} MiB written and verified, queue depth {QUEUE_DEPTH}, O_DIRECT, one fsync after writing;"
        f" {options.pairs} interleaved pairs; Linux {platform.release()}, {os.cpu_count()} CPUs.",
        "",
        "| what | Assay | fio | ratio | ratio 10-90 % | fio to itself | aim |",
        "|---|---|---|---|---|---|---|",
    ]
    text = "\n".join([*head, *lines, ""])
    print(text)
    results = Path(__file__).parent / "results"
    (results / "verify.md").write_text(text)
    (results / "verify.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()

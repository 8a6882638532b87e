"""Disks of iSCSI against tgt and against the file of the same array, in turn on this machine.

    cargo build --release --example memory -p assay-iscsi
    python benches/iscsi.py [--seconds S] [--rounds N] [--no-array] [--realtime]

Each server is started alone, and asked by `iscsi-perf` (libiscsi-bin) for random reads of 8 KiB over loopback, with one
and with 32 outstanding, all servers in turn and round after round. The file of the served array is asked by fio with
O_DIRECT. Time per I/O at one outstanding is the reciprocal of its rate. Servers, initiators and kernel share this
machine's processors. The lateness of answers is the array's own, from the time an answer was due to the time it left
for the session. `--realtime` runs servers and initiators under SCHED_FIFO, where other work shares the machine. The
table goes to benches/results/iscsi.md. Takes root and FUSE for the array, tgt, fio and libiscsi-bin.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benches" / "results" / "iscsi.md"
MEMORY = ROOT / "target" / "release" / "examples" / "memory"
ASSAY = (sys.executable, "-m", "assay")
DEPTHS = (1, 32)
MIB = 256
BLOCKS = 16
"""Blocks of 512 bytes of one read: 8 KiB."""
ARRAY = "nvme-mirror?volumes=data:1"
TGT_SETTINGS = (
    ("--bstype", "null"),
    ("--bstype", "rdwr"),
)


@dataclass
class Line:
    """Rates of one server, by the number of outstanding I/Os, and the lateness of its answers; one of each a round."""

    name: str
    rates: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})
    late_p99_us: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})


def free_port() -> int:
    """A port of loopback that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def answers(port: int) -> None:
    """Wait until something listens at a port."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens at {port}")


def asked(url: str, depth: int, seconds: int) -> float:
    """I/Os a second that iscsi-perf gets."""
    command = ("iscsi-perf", "-r", "-m", str(depth), "-b", str(BLOCKS), "-t", str(seconds), url)
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"iops average (\d+)", told)[-1])


def read_by_fio(path: Path, depth: int, seconds: int) -> float:
    """I/Os a second that fio gets of a file."""
    command = (
        "fio", "--name=file", f"--filename={path}", "--rw=randread", "--bs=8k", "--direct=1", "--ioengine=libaio",
        f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", "--output-format=json", "--allow_file_create=0",
    )  # fmt: skip
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return float(told["jobs"][0]["read"]["iops"])


@contextmanager
def memory() -> Iterator[str]:
    """The front of Assay over a disk in memory."""
    port = free_port()
    server = subprocess.Popen((MEMORY, f"127.0.0.1:{port}", str(MIB)), stdout=subprocess.DEVNULL)
    try:
        answers(port)
        yield f"iscsi://127.0.0.1:{port}/iqn.2026-11.assay:data/0"
    finally:
        server.kill()
        server.wait()


@contextmanager
def tgt(folder: Path, *store: str) -> Iterator[str]:
    """Debian's tgt over one of its stores."""
    port, control = free_port(), str(70 + os.getpid() % 100)
    environment = {**os.environ, "TGT_IPC_SOCKET": str(folder / "tgt")}
    disk = folder / "tgt.disk"
    with disk.open("wb") as file:
        file.truncate(MIB << 20)
    portal = ("--iscsi", f"portal=127.0.0.1:{port}")
    server = subprocess.Popen(
        ("tgtd", "-f", "-C", control, *portal, "-t", "4"), env=environment, stderr=subprocess.DEVNULL
    )

    def admin(*words: str) -> None:
        subprocess.run(("tgtadm", "-C", control, "--lld", "iscsi", *words), env=environment, check=True)

    try:
        answers(port)
        admin("--mode", "target", "--op", "new", "--tid", "1", "-T", "iqn.2026-11.tgt:data")
        unit = ("--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", "1")
        admin(*unit, "-b", str(disk), *store)
        admin("--mode", "target", "--op", "bind", "--tid", "1", "-I", "ALL")
        yield f"iscsi://127.0.0.1:{port}/iqn.2026-11.tgt:data/1"
    finally:
        server.kill()
        server.wait()
        disk.unlink()


@dataclass(frozen=True)
class Array:
    """A served array: its disk, its file, and where commands go."""

    url: str
    file: Path
    at: Path

    def late_p99_us(self) -> float:
        """p99 of how late answers left so far."""
        command = (*ASSAY, "array", "status", "--json", "--at", str(self.at))
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return float(told["lateness"]["p99_ns"]) / 1e3


@contextmanager
def array(folder: Path) -> Iterator[Array]:
    """A modelled mirror of two NVMe drives, whose store lies in memory."""
    port, at = free_port(), folder / "array"
    command = (*ASSAY, "array", "serve", ARRAY, "--at", str(at), "--store", str(folder / "store"), "--size", f"{MIB}M",
               "--iscsi", f"127.0.0.1:{port}")  # fmt: skip
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        if not any("served until" in line for line in server.stderr):
            raise RuntimeError("the array is not served")
        (file,) = at.iterdir()
        with file.open("r+b", buffering=0) as volume:
            for _ in range(MIB):
                volume.write(os.urandom(1 << 20))
        yield Array(f"iscsi://127.0.0.1:{port}/iqn.2026-11.invalid.assay:nvme-mirror-{file.name}/0", file, at)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(folder / "store", ignore_errors=True)


def measured(folder: Path, seconds: int, rounds: int, *, has_array: bool) -> list[Line]:
    """All servers in turn, round after round."""
    own, null, rdwr = Line("Assay, a disk in memory"), Line("tgt, null"), Line("tgt, rdwr on tmpfs")
    disk, file = Line(f"array {ARRAY.partition('?')[0]}, its disk"), Line("the same array, its file (FUSE)")
    for _ in range(rounds):
        for depth in DEPTHS:
            with memory() as url:
                own.rates[depth].append(asked(url, depth, seconds))
            for line, store in zip((null, rdwr), TGT_SETTINGS, strict=True):
                with tgt(folder, *store) as url:
                    line.rates[depth].append(asked(url, depth, seconds))
            for line, by in ((disk, "iscsi"), (file, "fuse")) if has_array else ():
                with array(folder) as served:
                    reads = (
                        read_by_fio(served.file, depth, seconds) if by == "fuse" else asked(served.url, depth, seconds)
                    )
                    line.rates[depth].append(reads)
                    line.late_p99_us[depth].append(served.late_p99_us())
    return [own, null, rdwr, disk, file] if has_array else [own, null, rdwr]


def row(line: Line) -> str:
    """A line of the table: medians and extremes."""

    def rate(depth: int) -> str:
        of = line.rates[depth]
        return f"{statistics.median(of):,.0f} ({min(of):,.0f} to {max(of):,.0f})"

    late = [f"{statistics.median(of):.0f}" if (of := line.late_p99_us[depth]) else "" for depth in DEPTHS]
    each_us = 1e6 / statistics.median(line.rates[1])
    return f"| {line.name} | {rate(1)} | {each_us:.0f} | {rate(32)} | {late[0]} | {late[1]} |"


def written(lines: list[Line], rounds: int, seconds: int, *, is_realtime: bool) -> str:
    """The page of results."""
    head = ("server", "IOPS at 1", "us an I/O at 1", "IOPS at 32", "late p99 at 1, us", "late p99 at 32, us")
    table = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *map(row, lines)]
    scheduling = "under SCHED_FIFO" if is_realtime else "under the ordinary scheduler"
    about = (
        f"`benches/iscsi.py`, {time.strftime('%Y-%m-%d')}: Linux {platform.release()}, {os.cpu_count()} cores that "
        f"servers, initiators and kernel share, load average {os.getloadavg()[0]:.1f} at the end, servers and "
        f"initiators {scheduling}; random reads of 8 KiB over loopback, {rounds} rounds of {seconds} s, "
        "medians and extremes."
    )
    aims = (
        "Aims: at most 120 us for an I/O of the front alone at one outstanding, 40,000 IOPS and more at 32, p99 of "
        "lateness at most 400 us."
    )
    return "# Disks of iSCSI\n\n" + about + "\n\n" + aims + "\n\n" + "\n".join(table) + "\n"


def main() -> None:
    """Measure all servers, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-array", action="store_true")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    arguments = parser.parse_args()
    for program in ("iscsi-perf", "tgtd", "fio"):
        if shutil.which(program) is None:
            sys.exit(f"{program}: is not installed")
    if arguments.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        lines = measured(Path(folder), arguments.seconds, arguments.rounds, has_array=not arguments.no_array)
    text = written(lines, arguments.rounds, arguments.seconds, is_realtime=arguments.realtime)
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

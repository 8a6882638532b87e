"""Disks of iSCSI and exports of NBD against tgt, QEMU and the file of the same array, in turn on this machine.

    cargo build --release --example memory -p assay-iscsi && cargo build --release --example nbd_memory -p assay-nbd
    python benches/iscsi.py [--seconds S] [--rounds N] [--no-array] [--realtime]

Each server is started alone, and asked for random reads of 8 KiB over loopback with one and with 32 outstanding, all
servers in turn and round after round: disks by `iscsi-perf` (libiscsi-bin), exports by fio's engine for NBD, and the
file of the served array by fio with O_DIRECT. The served array is filled, ended and served again, so that its lateness
is that of the reads alone. Time per I/O at one outstanding is the reciprocal of its rate. Servers, clients and kernel
share this machine's processors. The lateness of answers is the array's own, from the time an answer was due to the time
it left for the connection. `--realtime` runs servers and clients under SCHED_FIFO, where other work shares the machine.
The table goes to benches/results/iscsi.md. Takes root and FUSE for the array, tgt, fio, libiscsi-bin and
qemu-system-common.
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
NBD_MEMORY = ROOT / "target" / "release" / "examples" / "nbd_memory"
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


def read_by_fio(of: str | Path, depth: int, seconds: int) -> float:
    """I/Os a second that fio gets of a file, or of an export of NBD by its URL."""
    if isinstance(of, Path):
        engine = ("--ioengine=libaio", "--direct=1", f"--filename={of}", "--allow_file_create=0")
    else:
        engine = ("--ioengine=nbd", f"--uri={of}", f"--size={MIB}m", "--norandommap=1")
    command = (
        "fio", "--name=reads", "--rw=randread", "--bs=8k", *engine, f"--iodepth={depth}", f"--runtime={seconds}",
        "--time_based", "--output-format=json",
    )  # fmt: skip
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The engine for NBD says first that it has connected.
    told = json.loads(printed[printed.index("{") :])
    return float(told["jobs"][0]["read"]["iops"])


@contextmanager
def listening(port: int, *command: str | Path) -> Iterator[None]:
    """A server that listens at a port."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        answers(port)
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def memory() -> Iterator[str]:
    """The front of Assay over a disk in memory."""
    port = free_port()
    with listening(port, MEMORY, f"127.0.0.1:{port}", str(MIB)):
        yield f"iscsi://127.0.0.1:{port}/iqn.2026-11.assay:data/0"


@contextmanager
def nbd_memory() -> Iterator[str]:
    """Assay's server of NBD over a disk in memory."""
    port = free_port()
    with listening(port, NBD_MEMORY, f"127.0.0.1:{port}", str(MIB)):
        yield f"nbd://127.0.0.1:{port}/data"


@contextmanager
def qemu_null() -> Iterator[str]:
    """QEMU's server of NBD over its null device."""
    port = free_port()
    disk = f"driver=null-co,size={MIB << 20},read-zeroes=on,node-name=data"
    server = f"addr.type=inet,addr.host=127.0.0.1,addr.port={port}"
    export = ("--export", "type=nbd,id=e,node-name=data,name=data,writable=on")
    with listening(port, "qemu-storage-daemon", "--blockdev", disk, "--nbd-server", server, *export):
        yield f"nbd://127.0.0.1:{port}/data"


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
    """A served array: its disk, its export, its file, and where commands go."""

    url: str
    export: str
    file: Path
    at: Path

    def late_p99_us(self) -> float:
        """p99 of how late answers left so far."""
        command = (*ASSAY, "array", "status", "--json", "--at", str(self.at))
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return float(told["lateness"]["p99_ns"]) / 1e3


@contextmanager
def served(folder: Path, *, is_realtime: bool) -> Iterator[Array]:
    """A modelled mirror of two NVMe drives, whose store lies in memory, with what the store holds."""
    port, nbd_port, at = free_port(), free_port(), folder / "array"
    command = [*ASSAY, "array", "serve", ARRAY, "--at", str(at), "--store", str(folder / "store"), "--size", f"{MIB}M",
               "--iscsi", f"127.0.0.1:{port}", "--nbd", f"127.0.0.1:{nbd_port}"]  # fmt: skip
    server = subprocess.Popen(command + ["--realtime"] * is_realtime, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        if not any("served until" in line for line in server.stderr):
            raise RuntimeError("the array is not served")
        (file,) = at.iterdir()
        disk = f"iscsi://127.0.0.1:{port}/iqn.2026-11.invalid.assay:nvme-mirror-{file.name}/0"
        yield Array(disk, f"nbd://127.0.0.1:{nbd_port}/{file.name}", file, at)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


@contextmanager
def array(folder: Path, *, is_realtime: bool) -> Iterator[Array]:
    """An array that is full and has served nothing yet."""
    try:
        with served(folder, is_realtime=is_realtime) as filled, filled.file.open("r+b", buffering=0) as volume:
            for _ in range(MIB):
                volume.write(os.urandom(1 << 20))
        with served(folder, is_realtime=is_realtime) as full:
            yield full
    finally:
        shutil.rmtree(folder / "store", ignore_errors=True)


def measured(folder: Path, seconds: int, rounds: int, *, has_array: bool, is_realtime: bool) -> list[Line]:
    """All servers in turn, round after round."""
    own, null, rdwr = Line("Assay, iSCSI, a disk in memory"), Line("tgt, null"), Line("tgt, rdwr on tmpfs")
    own_nbd, qemu = Line("Assay, NBD, a disk in memory"), Line("qemu-storage-daemon, NBD, null")
    disk = Line(f"array {ARRAY.partition('?')[0]}, its disk (iSCSI)")
    export, file = Line("the same array, its export (NBD)"), Line("the same array, its file (FUSE)")
    for _ in range(rounds):
        for depth in DEPTHS:
            with memory() as url:
                own.rates[depth].append(asked(url, depth, seconds))
            for line, store in zip((null, rdwr), TGT_SETTINGS, strict=True):
                with tgt(folder, *store) as url:
                    line.rates[depth].append(asked(url, depth, seconds))
            for line, started in ((own_nbd, nbd_memory), (qemu, qemu_null)):
                with started() as url:
                    line.rates[depth].append(read_by_fio(url, depth, seconds))
            for line in (disk, export, file) if has_array else ():
                with array(folder, is_realtime=is_realtime) as full:
                    reads = (
                        asked(full.url, depth, seconds)
                        if line is disk
                        else read_by_fio(full.export if line is export else full.file, depth, seconds)
                    )
                    line.rates[depth].append(reads)
                    line.late_p99_us[depth].append(full.late_p99_us())
    alone = [own, null, rdwr, own_nbd, qemu]
    return [*alone, disk, export, file] if has_array else alone


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
    return "# Disks of iSCSI and exports of NBD\n\n" + about + "\n\n" + aims + "\n\n" + "\n".join(table) + "\n"


def main() -> None:
    """Measure all servers, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-array", action="store_true")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    arguments = parser.parse_args()
    for program in ("iscsi-perf", "tgtd", "fio", "qemu-storage-daemon"):
        if shutil.which(program) is None:
            sys.exit(f"{program}: is not installed")
    if arguments.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        lines = measured(
            Path(folder),
            arguments.seconds,
            arguments.rounds,
            has_array=not arguments.no_array,
            is_realtime=arguments.realtime,
        )
    text = written(lines, arguments.rounds, arguments.seconds, is_realtime=arguments.realtime)
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

"""Situations on this machine: real databases and real I/O, in control groups and network namespaces."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from assay.targets.databases.embedded.database import shipped_programs
from servers.process import PASSWORD, USER
from situations.making import (
    ASSAY,
    OLTP,
    SHORT,
    CannotBeMade,
    beside,
    load,
    pgbench,
    postgresql,
    profile,
    quietly,
    recording,
    run_in,
    running,
    script,
)


def cpu_hog(folder: Path) -> list[str]:
    """Programs that compute, beside a database."""
    with postgresql(5) as server:
        hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 1))]
        with running(*hogs):
            return load(server, folder, 25, "-S", "-c", "2")


def one_row(folder: Path) -> list[str]:
    """Many sessions that change one row."""
    with postgresql(1) as server:
        sql = (
            "begin;\nupdate pgbench_branches set bbalance = bbalance + 1 where bid = 1;\nselect pg_sleep(0.02);\nend;\n"
        )
        return load(server, folder, 25, "-n", "-f", script(folder, sql), "-c", "12")


def tiny_cache(folder: Path) -> list[str]:
    """A buffer cache that holds a hundredth of the data, without the page cache behind it."""
    with postgresql(60, shared_buffers="8MB", debug_io_direct="data") as server:
        return load(server, folder, 25, "-n", "-S", "-c", "2")


def storm(folder: Path) -> list[str]:
    """Checkpoints every few seconds."""
    with postgresql(30, shared_buffers="256MB", max_wal_size="32MB", min_wal_size="32MB") as server:
        return load(server, folder, 40, "-n", "-c", "4", "-R", "250")


def backup(folder: Path) -> list[str]:
    """A backup that begins halfway, while queries read from the same disk."""
    with postgresql(60, shared_buffers="64MB", debug_io_direct="data") as server:
        seconds = 50
        with (
            recording(folder, seconds, *beside(server)) as rec,
            running(pgbench(server, "-n", "-S", "-R", "300", "-c", "4", "-T", str(seconds))),
        ):
            time.sleep(20)
            ends = time.monotonic() + 25
            while time.monotonic() < ends:
                _forget_pages(server.data)
                _basebackup(server, folder / "backup.tar", ends - time.monotonic())
            time.sleep(3)
        return [rec]


def _basebackup(server: Any, to: Path, seconds: float) -> None:
    place = ["-h", "127.0.0.1", "-p", str(server.port), "-U", USER]
    command = [str(shipped_programs() / "pg_basebackup"), *place, "-D", "-", "-Ft", "-X", "none", "-c", "fast"]
    with to.open("wb") as file, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command,
            env={**os.environ, "PGPASSWORD": PASSWORD},
            stdout=file,
            stderr=subprocess.DEVNULL,
            timeout=max(seconds, 1),
        )


def _forget_pages(folder: Path) -> None:
    """Take files out of the page cache, so that the next backup reads the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def growing_file(folder: Path) -> list[str]:
    """Many sessions that append wide rows to one table."""
    with postgresql(1, shared_buffers="64MB", max_wal_size="16GB") as server:
        sql = "insert into wide select repeat('x', 1900) from generate_series(1, 200);\n"
        with psycopg.connect(server.url_of("bench"), autocommit=True) as connection:
            connection.execute("create unlogged table wide (t text)")
            connection.execute("alter table wide alter t set storage plain")
        return load(server, folder, 25, "-n", "-f", script(folder, sql), "-c", "16")


@contextlib.contextmanager
def loop_volume(folder: Path, size_mb: int) -> Iterator[tuple[Path, str]]:
    """A file system on a loop device: where it is mounted, and the device's number."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or shutil.which("losetup") is None:
        raise CannotBeMade("root, losetup and mkfs.ext4 are needed")
    image = folder / "image"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_mb << 20)
    device = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", str(image)], capture_output=True, text=True, check=True
    ).stdout.strip()
    mounted = folder / "mounted"
    mounted.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, str(mounted)], check=True)
        numbers = os.stat(device).st_rdev
        yield mounted, f"{os.major(numbers)}:{os.minor(numbers)}"
    finally:
        subprocess.run(["umount", str(mounted)], check=False)
        subprocess.run(["losetup", "-d", device], check=False)


@contextlib.contextmanager
def control_group(kind: str) -> Iterator[Path]:
    """A control group of version 1."""
    parent = Path(f"/sys/fs/cgroup/{kind}")
    if not (parent / "cgroup.procs").exists() or os.geteuid() != 0:
        raise CannotBeMade(f"no control groups of {kind} (version 1)")
    group = parent / f"assay-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()


def slow_log(folder: Path) -> list[str]:
    """The log on a volume that takes a hundred writes a second."""
    with (
        loop_volume(folder, 1200) as (mounted, numbers),
        control_group("blkio") as group,
        postgresql(5) as server,
    ):
        server.stop()
        log = mounted / "wal"
        shutil.move(str(server.data / "pg_wal"), log)
        owner = server.data.stat()
        for path in (mounted, log, *log.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        (server.data / "pg_wal").symlink_to(log)
        mounted.chmod(0o755)
        folder.chmod(0o755)
        server.start()
        (group / "cgroup.procs").write_text(str(server.pid))
        (group / "blkio.throttle.write_iops_device").write_text(f"{numbers} 100")
        return load(server, folder, 30, "-n", "-N", "-c", "6")


def memory_short(folder: Path) -> list[str]:
    """A program that reads more than its control group may keep."""
    path = folder / "data"
    with path.open("wb") as file:
        for _ in range(600):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    program = (
        "import mmap, random, sys\n"
        "f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); n = len(m) // 4096\n"
        "while True: m[random.randrange(n) * 4096]\n"
    )
    with control_group("memory") as group:
        (group / "memory.limit_in_bytes").write_text(str(100 << 20))
        program = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n{program}"
        with running(subprocess.Popen([sys.executable, "-c", program, str(path)])):
            with recording(folder, 25) as rec:
                time.sleep(25)
            return [rec]


def begun_profile(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A run of `assay profile` that goes on while something happens; `run_in` finds it."""
    reads = ("--size", "1G", "--block", "8K", "--read", "100", "--warmup", "1s")
    return quietly(*ASSAY, "profile", folder, *reads, *options, "--no-report", "--quiet", "-o", folder / "runs")


def whole_device(folder: Path) -> Path:
    """The disk below a folder, in /sys."""
    numbers = os.stat(folder).st_dev
    device = Path(f"/sys/dev/block/{os.major(numbers)}:{os.minor(numbers)}").resolve()
    return device.parent if (device / "partition").exists() else device


def neighbour(folder: Path) -> list[str]:
    """Another program that reads all the device gives, from halfway on."""
    if shutil.which("fio") is None:
        raise CannotBeMade("fio is not installed")
    ours = begun_profile(folder, "--rate", "200", "--duration", "50s")
    time.sleep(25)
    hog = quietly(
        "fio", "--name=hog", f"--filename={folder}/hog", "--size=2G", "--rw=randread", "--bs=256k", "--iodepth=64",
        "--ioengine=libaio", "--direct=1", "--time_based", "--runtime=60", "--thread", "--numjobs=2",
    )  # fmt: skip
    with running(hog):
        ours.wait(120)
    return run_in(folder)


def credits_gone(folder: Path) -> list[str]:
    """A limit on reads that sets in halfway, as where burst credits end."""
    name = (whole_device(folder) / "dev").read_text().strip()
    with control_group("blkio") as group:
        ours = begun_profile(folder, "--queue-depth", "4", "--duration", "60s")
        time.sleep(30)
        for pid in _family(ours.pid):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    (group / "tasks").write_text(thread.name)
        (group / "blkio.throttle.read_iops_device").write_text(f"{name} 500")
        ours.wait(120)
    return run_in(folder)


def _family(pid: int) -> list[int]:
    children = [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]
    return [pid, *(one for child in children for one in _family(child))]


def small_pieces(folder: Path) -> list[str]:
    """A device that takes 64 KiB at once, and reads of 1 MiB."""
    setting = whole_device(folder) / "queue" / "max_sectors_kb"
    if not os.access(setting, os.W_OK):
        raise CannotBeMade(f"{setting} cannot be written")
    kept = setting.read_text()
    setting.write_text("64")
    try:
        return profile(
            folder, str(folder), "--size", "1G", "--block", "1M", "--read", "100", "--queue-depth", "2", *SHORT
        )
    finally:
        setting.write_text(kept)


def one_at_a_time(folder: Path) -> list[str]:
    """A program that keeps one read outstanding, on storage that has room."""
    return profile(folder, str(folder), "--size", "1G", *OLTP[:2], "--read", "100", "--queue-depth", "1", *SHORT)


def null_target(folder: Path) -> list[str]:
    """A target that completes at once: the generator is all there is."""
    return profile(
        folder,
        "null:",
        "--size",
        "1G",
        "--block",
        "8K",
        "--workers",
        str(os.cpu_count() or 1),
        "--queue-depth",
        "32",
        *SHORT,
    )


def lost_segments(folder: Path) -> list[str]:
    """A database in another network namespace, and one segment in a hundred lost on the way."""
    if shutil.which("nft") is None or shutil.which("ip") is None or os.geteuid() != 0:
        raise CannotBeMade("root, ip and nft are needed")
    space = f"assay{os.getpid()}"
    commands = [
        f"ip netns add {space}",
        f"ip link add {space}a type veth peer name {space}b netns {space}",
        f"ip addr add 10.213.0.1/24 dev {space}a",
        f"ip link set {space}a up",
        f"ip netns exec {space} ip addr add 10.213.0.2/24 dev {space}b",
        f"ip netns exec {space} ip link set {space}b up",
        f"ip netns exec {space} ip link set lo up",
        f"ip netns exec {space} nft add table inet loss",
        f"ip netns exec {space} nft add chain inet loss in {{ type filter hook input priority 0 ; }}",
        f"ip netns exec {space} nft add chain inet loss out {{ type filter hook output priority 0 ; }}",
        f"ip netns exec {space} nft add rule inet loss in numgen random mod 100 < 1 drop",
        f"ip netns exec {space} nft add rule inet loss out numgen random mod 100 < 1 drop",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True)
        with postgresql(5, listen_addresses="127.0.0.1,10.213.0.1") as server:
            with (server.data / "pg_hba.conf").open("a") as file:
                file.write("host all all 10.213.0.0/24 scram-sha-256\n")
            server.execute("select pg_reload_conf()")
            with recording(folder, 30) as rec:
                environment = {**os.environ, "PGPASSWORD": PASSWORD}
                subprocess.run(
                    [
                        "ip",
                        "netns",
                        "exec",
                        space,
                        "pgbench",
                        "-n",
                        "-S",
                        "-c",
                        "8",
                        "-T",
                        "28",
                        "-h",
                        "10.213.0.1",
                        "-p",
                        str(server.port),
                        "-U",
                        USER,
                        "bench",
                    ],
                    env=environment,
                    capture_output=True,
                    timeout=60,
                )
            return [rec]
    finally:
        subprocess.run(["ip", "netns", "del", space], capture_output=True)
        subprocess.run(["ip", "link", "del", f"{space}a"], capture_output=True)


def quiet_host(folder: Path) -> list[str]:
    """A machine with nothing to do."""
    with recording(folder, 20) as rec:
        time.sleep(20)
    return [rec]


def calm_database(folder: Path) -> list[str]:
    """A database at a rate that it holds easily."""
    with postgresql(5, shared_buffers="256MB") as server:
        return load(server, folder, 30, "-n", "-c", "4", "-R", "60")


def calm_reads(folder: Path) -> list[str]:
    """A database that reads from its cache at a rate that it holds easily."""
    with postgresql(5, shared_buffers="256MB") as server:
        pgbench(server, "-n", "-S", "-T", "3", "-c", "2").wait()
        return load(server, folder, 30, "-n", "-S", "-c", "4", "-R", "400")


def calm_storage(folder: Path) -> list[str]:
    """Reads and writes at a rate that the storage holds easily."""
    return profile(folder, str(folder), "--size", "1G", *OLTP, "--rate", "100", *SHORT)

"""Storage that fails under Assay: each verb ends as docs/exit-codes.md says, and nothing hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.disks import Disk
from lab.machine import SHARE, Done, Machine, Running

DISKS = (
    Disk(name="GOOD", size_mib=128),
    Disk(name="GONE", bus="virtio-scsi"),
    Disk(name="NOFLUSH", fails="flush"),
)
GOOD, GONE, NOFLUSH = "/dev/vda", "/dev/sda", "/dev/vdb"
FAULTY = "/dev/mapper/faulty"

OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
READS = ("--block", "8K", "--read", "100", "--random", "100", "--warmup", "0s")
WRITES = ("--block", "8K", "--read", "0", "--random", "100", "--warmup", "0s")
VERIFY = ("--size", "16M", "--memory", "2M")


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    lab = machine(*DISKS).boot()
    lab.shell("modprobe -a dm_mod dm_flakey dm_delay dm_thin_pool")
    return lab


@pytest.fixture
def mapped(lab: Machine) -> Any:
    """Put a device mapper's table over the good disk, and change it while it is in use."""
    sectors = lab.shell(f"blockdev --getsz {GOOD}").strip()

    def map_(table: str) -> None:
        line = f"0 {sectors} {table}"
        lab.shell(
            f"if dmsetup info faulty >/dev/null 2>&1; then dmsetup suspend --noflush --nolockfs faulty;"
            f" dmsetup reload faulty --table '{line}'; dmsetup resume faulty;"
            f" else dmsetup create faulty --table '{line}'; fi"
        )

    map_(f"linear {GOOD} 0")
    yield map_
    lab.shell("dmsetup remove --retry faulty")


@pytest.fixture
def file_system(lab: Machine, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty file system on the mapped disk."""
    request.getfixturevalue("mapped")
    lab.shell(f"mkfs.ext4 -qF {FAULTY}; mkdir -p /run/faulty; mount -t ext4 {FAULTY} /run/faulty")
    yield "/run/faulty"
    lab.shell("until umount /run/faulty; do sleep 0.5; done")


@pytest.fixture
def removable(lab: Machine) -> Iterator[str]:
    """A disk that a test may remove; it is found again for the next one."""
    yield GONE
    lab.shell("for host in /sys/class/scsi_host/*; do echo '- - -' >$host/scan; done; sleep 2; test -b /dev/sda")


def overwriting(device: str) -> tuple[str, ...]:
    return ("--overwrite", device, "--yes-destroy", device)


VERIFYING = ("verify", FAULTY, *overwriting(FAULTY), *VERIFY, "--duration", "20s")


def under_way(lab: Machine, running: Running, device: str, ios: int = 1000) -> None:
    """Wait until a command has read and written on a device for a while."""
    before = lab.ios(device)
    lab.wait_for_run(running)
    lab.wait_until(lambda: lab.ios(device) > before + ios, running)


def said(done: Done) -> str:
    """Return the exit code and the line that an ended command left."""
    return f"exit code {done.code}: {(done.stderr.strip().splitlines() or ['nothing on standard error'])[-1]}"


@pytest.fixture
def struck(lab: Machine, mapped: Any, observed: Callable[[str], None]) -> Callable[..., Done]:
    """Run a command on the mapped disk, give the disk another table in the middle, and see how the command ends."""

    def run(table: str, *command: str, ios: int = 1000) -> Done:
        running = lab.start("assay", *command, *OUTPUT)
        under_way(lab, running, FAULTY, ios)
        mapped(table)
        done = running.end()
        observed(said(done))
        return done

    return run


@pytest.mark.lab(
    line="Faults: every write fails from a moment on (dm-flakey error_writes), verify",
    proves="an I/O error is found, told as such, and ends the run with exit code 4",
    cannot="",
)
def test_verify_finds_writes_that_fail(struck: Callable[..., Done], observed: Callable[[str], None]) -> None:
    done = struck(f"flakey {GOOD} 0 0 3600 1 error_writes", *VERIFYING)
    assert done.code == 4, done.stderr
    findings = done.document["integrity"]["findings"]
    observed(
        f"{findings['io_error']} I/O errors, no other finding"
        if sum(findings.values()) == findings["io_error"]
        else str(findings)
    )
    assert findings["io_error"] > 0


@pytest.mark.lab(
    line="Faults: writes are dropped and acknowledged (dm-flakey drop_writes), verify",
    proves="writes that never happened are found as lost, without any power cut",
    cannot="",
)
def test_verify_finds_writes_that_are_dropped(struck: Callable[..., Done], observed: Callable[[str], None]) -> None:
    done = struck(f"flakey {GOOD} 0 0 3600 1 drop_writes", *VERIFYING)
    assert done.code == 4, done.stderr
    findings = {kind: count for kind, count in done.document["integrity"]["findings"].items() if count}
    observed(", ".join(f"{count} {kind}" for kind, count in findings.items()))
    assert findings["lost"] + findings.get("log_break", 0) > 0


@pytest.mark.parametrize("work", ["reads", "writes"])
@pytest.mark.lab(
    line="Faults: every I/O fails from the first of two points on (dm-error), profile of {work}",
    proves="the run ends with exit code 3 at the point at which every I/O fails, although it had begun well",
    cannot="",
)
def test_a_profile_ends_when_every_io_fails(struck: Callable[..., Done], work: str) -> None:
    load = (*READS,) if work == "reads" else (*WRITES, *overwriting(FAULTY))
    # The error comes in the first point, which has good I/Os as well; at the second one every I/O fails.
    done = struck("error", "profile", FAULTY, *load, "--queue-depth", "1,4", "--duration", "8s")
    assert done.code == 3
    assert done.stderr.splitlines()[-1].startswith("assay: ")


@pytest.mark.lab(
    line="Faults: every I/O fails from the middle of the only point on (dm-error), profile",
    proves="a point that began well and ends on a dead disk is no answer: exit code 3",
    cannot="",
)
def test_a_point_that_ends_on_a_dead_disk_is_no_answer(struck: Callable[..., Done]) -> None:
    done = struck("error", "profile", FAULTY, *READS, "--queue-depth", "4", "--duration", "15s")
    assert done.code == 3, done.stdout
    assert "every I/O failed until the point's end (EIO" in done.stderr.splitlines()[-1]


@pytest.mark.lab(
    line="Faults: every I/O fails from a moment on (dm-error), verify",
    proves="the run ends by itself, and with the code for an I/O error or a target that failed",
    cannot="",
)
def test_verify_ends_when_every_io_fails(struck: Callable[..., Done]) -> None:
    done = struck("error", *VERIFYING)
    assert done.code in (3, 4), done.stderr


MAILBOX = (
    "--mailboxes", "20", "--mailbox-size", "1M", "--iops-per-mailbox", "2", "--databases", "1", "--cache", "1M",
    "--duration", "30s", "--warmup", "0s", "--maintenance", "0",
)  # fmt: skip


@pytest.mark.parametrize("verb", ["mailbox", "dss"])
@pytest.mark.lab(
    line="Faults: every I/O fails from a moment on (dm-error beneath ext4), {verb}",
    proves="the run ends by itself and in one line: exit code 3",
    cannot="",
)
def test_a_verb_ends_when_its_file_system_fails(struck: Callable[..., Done], file_system: str, verb: str) -> None:
    arguments: tuple[str, ...] = ("mailbox", file_system, *MAILBOX)
    if verb == "dss":
        arguments = ("dss", "tpch", f"duckdb:{file_system}/assay.db", "load", "run", "--scale", "0.02")
    done = struck("error", *arguments, ios=20)
    assert done.code == 3, done.stderr


@pytest.mark.lab(
    line="Faults: a thin pool that is full (error_if_no_space), verify",
    proves="a volume that takes no more is told as a full one, in one line: exit code 3",
    cannot="",
)
def test_a_full_thin_pool_is_told(lab: Machine, observed: Callable[[str], None]) -> None:
    lab.shell(
        f'dmsetup create meta --table "0 8192 linear {GOOD} 0";'
        f' dmsetup create store --table "0 16384 linear {GOOD} 8192";'
        " dd if=/dev/zero of=/dev/mapper/meta bs=4096 count=1 oflag=direct status=none;"
        ' dmsetup create pool --table "0 16384 thin-pool /dev/mapper/meta /dev/mapper/store 128 0 1 error_if_no_space";'
        ' dmsetup message pool 0 "create_thin 0"; dmsetup create thin --table "0 98304 thin /dev/mapper/pool 0"'
    )
    thin = "/dev/mapper/thin"
    done = lab.assay("verify", thin, *overwriting(thin), *VERIFY, "--duration", "5s", *OUTPUT)
    observed(said(done))
    lab.shell("for name in thin pool store meta; do dmsetup remove --retry $name; done")
    lab.shell(f"dd if=/dev/zero of={GOOD} bs=1M count=16 oflag=direct status=none")
    assert done.code == 3, done.stderr
    assert "full" in done.stderr.splitlines()[-1]


@pytest.mark.lab(
    line="Faults: a stall of 2 s in each I/O (dm-delay), open-loop profile",
    proves="time that requests waited for their start is in the figures: the tail of an open loop shows the stall",
    cannot="how long a stall is; only that it is seen, for emulation adds to each",
)
def test_an_open_loop_sees_a_stall(lab: Machine, mapped: Any, observed: Callable[[str], None]) -> None:
    mapped(f"delay {GOOD} 0 2000")
    load = ("--block", "8K", "--read", "100", "--random", "100", "--rate", "20", "--warmup", "0s", "--duration", "15s")
    done = lab.assay("profile", FAULTY, *load, *OUTPUT)
    observed(said(done))
    assert done.code in (0, 1, 5), done.stderr
    (point,) = done.document["points"]
    latency_ns = point["read"]["latency_ns"]
    observed(f"p50 {latency_ns['p50'] / 1e9:.1f} s")
    assert latency_ns["p50"] >= 2e9


@pytest.mark.lab(
    line="Faults: flushes fail with EIO (blkdebug), verify with fdatasync",
    proves="a flush that fails is an I/O error, never a silent pass",
    cannot="",
)
def test_a_flush_that_fails_is_found(lab: Machine, observed: Callable[[str], None]) -> None:
    (lab.share / "fdatasync.toml").write_text("write_through = false\n")
    plan = ("--plan", SHARE / "fdatasync.toml")
    done = lab.assay("verify", NOFLUSH, *overwriting(NOFLUSH), *VERIFY, *plan, "--duration", "10s", *OUTPUT)
    observed(said(done))
    assert done.code in (3, 4), done.stderr
    assert "gone" not in done.stderr


@pytest.mark.parametrize("verb", ["verify", "profile"])
@pytest.mark.lab(
    line="Faults: the disk is removed under load (SCSI delete), {verb}",
    proves="a disk that disappears ends the run in one line and with the code for it; nothing hangs",
    cannot="what a controller does meanwhile, which may take minutes of retries",
)
def test_a_disk_that_is_removed_ends_the_run(
    lab: Machine, removable: str, verb: str, observed: Callable[[str], None]
) -> None:
    load = VERIFY if verb == "verify" else (*WRITES, "--queue-depth", "4,8")
    running = lab.start("assay", verb, removable, *overwriting(removable), *load, "--duration", "20s", *OUTPUT)
    under_way(lab, running, removable)
    lab.shell("echo 1 >/sys/block/sda/device/delete")
    done = running.end()
    observed(said(done))
    assert done.code == 3, done.stderr
    assert "gone" in done.stderr.splitlines()[-1]


@pytest.mark.lab(
    line="Discard: online discards and fstrim under verify, ext4",
    proves="no page is wrong while files grow and shrink, and what they free is discarded beneath them",
    cannot="that a real disk discards what it was told to, and nothing else",
)
def test_verify_passes_while_space_is_discarded(
    lab: Machine, file_system: str, observed: Callable[[str], None]
) -> None:
    lab.shell(f"mount -o remount,discard {file_system}; fstrim {file_system}")
    begun = discards(lab)
    running = lab.start("assay", "verify", file_system, *VERIFY, "--duration", "20s", *OUTPUT)
    lab.wait_for_run(running)
    while not running.ended:
        lab.shell(f"fstrim {file_system}; sleep 1")
    done = running.end()
    discarded = discards(lab) - begun
    observed(f"exit code {done.code}; {discarded:,} discards meanwhile")
    assert done.code == 0, done.stderr
    assert discarded > 0


def discards(lab: Machine) -> int:
    """Return how many discards the mapped disk has completed."""
    return int(lab.shell(f"cat /sys/block/{lab.in_sys(FAULTY)}/stat").split()[11])


DELAY_MS = 50


@pytest.mark.lab(
    line="Figures: fio and profile on the same slow disk (dm-delay, 50 ms), 8 KiB random reads at queue depth 4",
    proves="both tell the same throughput and mean latency of a disk whose figures are known",
    cannot="that they agree on a fast disk, where the emulated processor is what is measured",
)
def test_figures_are_those_of_fio(lab: Machine, mapped: Any, observed: Callable[[str], None]) -> None:
    mapped(f"delay {GOOD} 0 {DELAY_MS}")
    theirs = lab.run(
        "fio", "--name=lab", f"--filename={FAULTY}", "--rw=randread", "--bs=8k", "--direct=1", "--ioengine=libaio",
        "--iodepth=4", "--time_based", "--runtime=15", "--output-format=json",
    ).checked().document["jobs"][0]["read"]  # fmt: skip
    done = lab.assay("profile", FAULTY, *READS, "--queue-depth", "4", "--duration", "15s", *OUTPUT)
    assert done.code in (0, 1, 5), done.stderr
    (point,) = done.document["points"]
    ours = point["read"]
    mean_ms, their_mean_ms = ours["latency_ns"]["mean"] / 1e6, theirs["lat_ns"]["mean"] / 1e6
    observed(f"fio {theirs['iops']:.1f} IOPS, {their_mean_ms:.1f} ms; Assay {ours['iops']:.1f} IOPS, {mean_ms:.1f} ms")
    # A delay is rounded up to the kernel's tick, and the emulator adds to it.
    assert min(mean_ms, their_mean_ms) >= DELAY_MS
    assert ours["iops"] == pytest.approx(theirs["iops"], rel=0.25)
    assert mean_ms == pytest.approx(their_mean_ms, rel=0.25)

"""Traces of Debian's kernel: what `assay trace record` keeps of each kind of device, and what a kill leaves behind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.record.rows import Integers
from assay.traces.file import Trace, read_trace
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios, joined_ios
from lab.disks import Disk
from lab.kinds import Kind, two_paths
from lab.machine import SHARE, Machine, Running

DISKS = (
    Disk(name="PLAIN"),
    Disk(name="FIRST"),
    Disk(name="SECOND"),
    Disk(name="TWOPORTS", bus="virtio-scsi", wwn=0x5000C50015EA71AE, ports=2),
    Disk(name="NVME", bus="nvme"),
)
TRACING = "/run/tracing"
CHUNK_BYTES = 32 << 10
FIO_BLOCK_BYTES = 8 << 10
FIO_IOS = (24 << 20) // FIO_BLOCK_BYTES
LINE_BEGIN_BYTES = 4 << 20
FLUSHED_BYTES = 16 << 10
"""A trace that is as long holds a batch, not the head alone."""
LONG_BYTES = 1 << 20
GROWTH_MAX_MIB = 16


@dataclass(frozen=True, kw_only=True)
class TracedKind(Kind):
    """A kind whose I/O is captured, and the disks at its bottom."""

    disks: tuple[str, ...]


KINDS = {
    "virtio-blk": TracedKind(device="/dev/vda", disks=("vda",)),
    "NVMe": TracedKind(device="/dev/nvme0n1", disks=("nvme0n1",)),
    "dm-linear": TracedKind(
        device="/dev/mapper/line",
        disks=("vdb",),
        make=f'modprobe dm_mod; dmsetup create line --table "0 65536 linear /dev/vdb {LINE_BEGIN_BYTES // 512}"',
        unmake="dmsetup remove line",
    ),
    "dm-stripe": TracedKind(
        device="/dev/mapper/striped",
        disks=("vdb", "vdc"),
        make="modprobe dm_mod; dmsetup create striped"
        f' --table "0 131072 striped 2 {CHUNK_BYTES // 512} /dev/vdb 0 /dev/vdc 0"',
        unmake="dmsetup remove striped",
    ),
    "multipath, two ports": TracedKind(
        device="/dev/mapper/mp",
        disks=("sda", "sdb"),
        make=two_paths("mp", "sda", "sdb"),
        unmake="dmsetup remove --retry mp",
    ),
}

LOAD = f"""
fio --name=lab --filename={{device}} --direct=1 --ioengine=libaio --rw=randrw --rwmixread=70 --bs={FIO_BLOCK_BYTES} \\
    --iodepth=16 --size=24M --fsync=100 >/dev/null
dd if=/dev/zero of={{device}} bs=1M count=8 conv=fsync status=none
blkdiscard --offset 16M --length 4M {{device}} || true
"""
"""Reads and writes at a queue depth, flushes, buffered writes that the kernel merges or splits, a discard."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What the kernel has counted of a disk: fields of /sys/block/NAME/stat (Documentation/block/stat)."""

    reads: int
    read_sectors: int
    writes: int
    write_sectors: int
    busy_ms: int
    discards: int
    discard_sectors: int

    @classmethod
    def of(cls, lab: Machine, disk: str) -> Counters:
        """Read them."""
        stat = lab.counters(f"/dev/{disk}")
        return cls(
            reads=stat[0], read_sectors=stat[2], writes=stat[4], write_sectors=stat[6], busy_ms=stat[3] + stat[7],
            discards=stat[11], discard_sectors=stat[13],
        )  # fmt: skip

    @property
    def as_counted(self) -> dict[str, int]:
        """The same as `counted` says of a trace."""
        return {
            "requests": self.reads + self.writes + self.discards,
            "read_sectors": self.read_sectors,
            "write_sectors": self.write_sectors,
            "discards": self.discards,
            "discard_sectors": self.discard_sectors,
        }

    def since(self, before: Counters) -> Counters:
        """Count from an earlier moment on."""
        return Counters(**{name: value - getattr(before, name) for name, value in vars(self).items()})


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    lab = machine(*DISKS).boot()
    # The kernel has tracefs mounted nowhere here: the first capture opens it by itself.
    lab.assay("trace", "record", "/dev/vda", "--dry-run").checked()
    lab.shell(f"mkdir {TRACING}; mount -t tracefs tracefs {TRACING}; modprobe null_blk nr_devices=0")
    return lab


@pytest.fixture(scope="module", params=list(KINDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kind(lab: Machine, name: str) -> Iterator[TracedKind]:
    kind = KINDS[name]
    with kind.made(lab):
        yield kind


def capturing(lab: Machine, place: str, path: Path) -> Running:
    """Start a capture; it is tracing when this returns."""
    running = lab.start("assay", "trace", "record", place, "-o", path, "--json")
    lab.wait_until(
        lambda: lab.run("grep", "-q", "1", *_enabled(lab)).code == 0 if _enabled(lab) else False, running, every_s=0.1
    )
    return running


def _enabled(lab: Machine) -> list[str]:
    """Switches of the last event that a capture switches on."""
    return lab.shell(f"ls {TRACING}/instances/*/events/block/block_rq_complete/enable 2>/dev/null || true").split()


def instances(lab: Machine) -> list[str]:
    """Instances of tracing that exist."""
    return lab.shell(f"ls {TRACING}/instances").split()


def all_of(trace: Trace) -> Ios:
    """The I/Os of a trace."""
    return joined_ios(list(trace.batches()))


def sectors(ios: Ios, flag: IoFlag) -> int:
    return int(ios.size_bytes[ios.has(flag)].sum()) // 512


def of_device(ios: Ios, name: str) -> Ios:
    return ios.where(ios.device.matching(name.__eq__))


def counted(ios: Ios) -> dict[str, int]:
    """What a trace counts, as the kernel does: a flush is one of its writes, of its reads below multipath."""
    return {
        "requests": len(ios),
        "read_sectors": sectors(ios, IoFlag.READ),
        "write_sectors": sectors(ios, IoFlag.WRITE),
        "discards": int(ios.has(IoFlag.DISCARD).sum()),
        "discard_sectors": sectors(ios, IoFlag.DISCARD),
    }


@pytest.mark.lab(
    line="Traces: {name}: capture",
    proves="the trace has exactly the I/Os and bytes that the kernel counted for each disk, none was lost, and the"
    " times agree with the kernel's",
    cannot="how much a capture costs on a processor",
)
def test_a_trace_has_what_the_kernel_counts(
    lab: Machine, kind: TracedKind, name: str, observed: Callable[[str], None]
) -> None:
    path = lab.share / f"{list(KINDS).index(name)}.trace"
    before = {disk: Counters.of(lab, disk) for disk in kind.disks}
    running = capturing(lab, kind.device, SHARE / path.name)
    lab.shell(LOAD.format(device=kind.device))
    report = lab.kill(running, signal.SIGTERM).checked().document
    found = {disk: Counters.of(lab, disk).since(before[disk]) for disk in kind.disks}

    ios = all_of(read_trace(path))
    devices = ", ".join(f"{len(of_device(ios, disk)):,} on {disk}" for disk in kind.disks)
    times = f"{mean_us(ios.queue_ns)} in the queue, {mean_us(ios.device_ns)} in the device"
    observed(f"{devices}; {report['lost_events']} events lost; {times}")
    assert (report["lost_events"], report["unfinished"], report["notices"]) == (0, 0, [])
    assert set(ios.device.column()) == set(kind.disks)
    assert {"fio", "dd"} <= set(ios.process.column())
    assert int((ios.size_bytes == FIO_BLOCK_BYTES).sum()) >= FIO_IOS
    for disk in kind.disks:
        own = of_device(ios, disk)
        assert counted(own) == found[disk].as_counted
        assert agree(own, found[disk].busy_ms)
    if name == "dm-linear":
        assert int(ios.place_bytes[ios.size_bytes > 0].min()) >= LINE_BEGIN_BYTES


def agree(ios: Ios, busy_ms: int) -> bool:
    """Whether the times of a trace add up to what the kernel counted; it counts from the request on, not the bio."""
    known = [times[times != UNKNOWN_NS] for times in (ios.queue_ns, ios.device_ns)]
    return 0.75 * busy_ms <= sum(float(times.sum()) for times in known) / 1e6 <= 1.33 * busy_ms


def mean_us(times_ns: Integers) -> str:
    known = times_ns[times_ns != UNKNOWN_NS]
    return f"{known.mean() / 1e3:,.0f} us" if len(known) else "unknown time"


@pytest.mark.lab(
    line="Traces: a capture that is killed (kill -9) under load",
    proves="the file is readable up to its last flush, and no tracing stays on; nor after the next capture where the"
    " shell that cleans up was killed as well",
    cannot="",
)
def test_a_killed_capture_leaves_a_readable_file_and_no_tracing(lab: Machine, observed: Callable[[str], None]) -> None:
    path = lab.share / "killed.trace"
    load = lab.start("fio", "--name=lab", "--filename=/dev/vda", "--direct=1", "--ioengine=libaio", "--rw=randread",
                     "--bs=8k", "--iodepth=8", "--time_based", "--runtime=600")  # fmt: skip
    running = capturing(lab, "/dev/vda", SHARE / path.name)
    lab.wait_until(lambda: path.stat().st_size > FLUSHED_BYTES, running, load)
    assert lab.kill(running, signal.SIGKILL).code != 0
    lab.wait_until(lambda: not instances(lab), load)
    assert lab.shell(f"cat {TRACING}/events/block/enable").strip() == "0"
    trace = read_trace(path)
    ios = all_of(trace)
    observed(f"{len(ios):,} I/Os can be read")
    assert trace.end is None
    assert len(ios) > 0
    lab.assay("trace", "show", SHARE / path.name, "--json").checked()

    running = capturing(lab, "/dev/vda", SHARE / "again.trace")
    lab.shell("pkill -KILL -f assay-trace-guardia[n]")
    lab.kill(running, signal.SIGKILL)
    assert len(instances(lab)) == 1
    lab.assay("trace", "record", "/dev/vda", "--dry-run").checked()
    assert instances(lab) == []
    lab.kill(load)


@pytest.mark.lab(
    line="Traces: memory of a capture under a long load (null_blk)",
    proves="memory does not grow with the number of I/Os",
    cannot="memory at the rates of real drives, which rings and waiting I/Os bound",
)
def test_memory_does_not_grow_with_the_trace(lab: Machine, observed: Callable[[str], None]) -> None:
    lab.shell(
        "mkdir /sys/kernel/config/nullb/nullb0; cd /sys/kernel/config/nullb/nullb0;"
        " echo 1024 >size; echo 2 >queue_mode; echo 1 >power"
    )
    device = "/dev/nullb0"
    path = lab.share / "long.trace"
    running = capturing(lab, device, SHARE / path.name)
    (process,) = {name.split("-")[1] for name in instances(lab)}
    load = lab.start("fio", "--name=lab", f"--filename={device}", "--direct=1", "--ioengine=libaio", "--rw=randread",
                     "--bs=4k", "--iodepth=32", "--time_based", "--runtime=600")  # fmt: skip
    lab.wait_until(lambda: path.stat().st_size > FLUSHED_BYTES, running, load)
    early = resident_mib(lab, process)
    lab.wait_until(lambda: path.stat().st_size > LONG_BYTES, running, load)
    late = resident_mib(lab, process)
    lab.kill(load)
    report = lab.kill(running, signal.SIGTERM).checked().document
    rate = report["ios"] / report["seconds"]
    observed(f"{report['ios']:,} I/Os at {rate:,.0f} IOPS; at most {early} MiB resident, then {late} MiB;"
             f" {report['lost_events']} events lost")  # fmt: skip
    assert report["lost_events"] == 0
    assert late - early < GROWTH_MAX_MIB


def resident_mib(lab: Machine, process: str) -> int:
    """The most memory of a process until now; it includes what all commands of the machine have imported."""
    return int(lab.shell(f"awk '/^VmHWM/ {{ print $2 }}' /proc/{process}/status")) // 1024

"""Collectors of the flight recorder: what they read of the kernel's texts, and what two readings mean."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import NotSupported
from assay.telemetry.collectors.block import BlockCollector, whole_devices
from assay.telemetry.collectors.interfaces import InterfacesCollector
from assay.telemetry.collectors.multipath import MultipathCollector, PathsCollector, multipath_maps
from assay.telemetry.collectors.nfs import NfsCollector
from assay.telemetry.collectors.paging import PagingCollector
from assay.telemetry.collectors.processes import ProcessesCollector
from assay.telemetry.collectors.raid import RaidCollector
from assay.telemetry.collectors.run_queue import RunQueueCollector
from assay.telemetry.collectors.tcp_recovery import TcpRecoveryCollector
from assay.telemetry.collectors.volumes import VolumesCollector
from assay.telemetry.recorder import Recorder

SECOND = 10**9

NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:  1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth1: {} 20 1 {} 0 0 0 0 4000 40 0 0 0 0 0 0
"""

DISKS = """ 253 0 dm-0 100 0 800 50 0 0 0 0 0 50 50
 8 16 sdb {} 0 {} {} 0 0 0 0 0 50 50
 8 32 sdc 50 0 400 25 0 0 0 0 0 50 50
"""

MOUNTS = """device /dev/vda1 mounted on / with fstype ext4
device nas:/vol mounted on /mnt/nas with fstype nfs4 statvers=1.1
\topts:\trw,hard
\tper-op statistics
\t        READ: {} {} 0 1000 {} 10 {} {}
\t       WRITE: 5 5 0 40960 500 1 20 25
"""


def between(collector: Any, change: Any = lambda: None) -> dict[tuple[str, str], float]:
    """Values of a second in which something changes."""
    before = collector.sample()
    change()
    after = collector.sample()
    found = {(one.entity, one.metric): one.value for one in collector.readings(before, after, SECOND)}
    collector.close()
    return found


def test_interfaces_count_bytes_drops_and_their_share_of_the_speed(tmp_path: Path) -> None:
    path, folder = tmp_path / "dev", tmp_path / "net"
    (folder / "eth1").mkdir(parents=True)
    (folder / "eth1" / "speed").write_text("1000\n")
    path.write_text(NET.format(1000, 2))

    found = between(InterfacesCollector(path, folder), lambda: path.write_text(NET.format(62_501_000, 5)))

    assert found["eth1", "in_bytes"] == 62_500_000
    assert found["eth1", "in_dropped_count"] == 3
    assert found["eth1", "rate_bits_per_s"] == 1e9
    assert found["eth1", "busy_share"] == pytest.approx(0.5)
    assert not any(entity == "lo" for entity, _ in found)


def test_counters_that_were_reset_give_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    path.write_text(NET.format(1000, 2))
    assert between(InterfacesCollector(path, tmp_path), lambda: path.write_text(NET.format(10, 0))) == {}


def test_nfs_tells_the_network_from_the_server(tmp_path: Path) -> None:
    path = tmp_path / "mountstats"
    path.write_text(MOUNTS.format(10, 10, 81920, 100, 110))

    found = between(NfsCollector(path), lambda: path.write_text(MOUNTS.format(20, 22, 163840, 200, 260)))

    assert found["/mnt/nas", "read_ios_count"] == 10
    assert found["/mnt/nas", "read_bytes"] == 81920
    assert found["/mnt/nas", "read_rtt_mean_ns"] == 10e6
    assert found["/mnt/nas", "read_latency_mean_ns"] == 15e6
    assert found["/mnt/nas", "retransmissions_count"] == 2
    path.write_text("device /dev/vda1 mounted on / with fstype ext4\n")
    with pytest.raises(NotSupported):
        NfsCollector(path).sample()


def test_paths_are_told_apart_and_failed_ones_counted(tmp_path: Path) -> None:
    for name in ("sdb", "sdc"):
        (tmp_path / name / "device").mkdir(parents=True)
        (tmp_path / name / "device" / "state").write_text("running\n")
    (tmp_path / "dm-0" / "dm").mkdir(parents=True)
    (tmp_path / "dm-0" / "dm" / "uuid").write_text("mpath-3600\n")
    (tmp_path / "dm-0" / "slaves").mkdir()
    for name in ("sdb", "sdc"):
        (tmp_path / "dm-0" / "slaves" / name).mkdir()
    assert multipath_maps(tmp_path) == {"dm-0": ["sdb", "sdc"]}

    found = between(
        MultipathCollector(tmp_path), lambda: (tmp_path / "sdc" / "device" / "state").write_text("offline\n")
    )
    assert found == {
        ("dm-0", "paths_running_count"): 1.0, ("dm-0", "paths_failed_count"): 1.0,
        ("dm-0/sdb", "failed_share"): 0.0, ("dm-0/sdc", "failed_share"): 1.0,
    }  # fmt: skip
    found = between(MultipathCollector(tmp_path), lambda: (tmp_path / "dm-0" / "slaves" / "sdc").rmdir())
    assert (found["dm-0", "paths_failed_count"], found["dm-0/sdc", "failed_share"]) == (1.0, 1.0)
    (tmp_path / "dm-0" / "slaves" / "sdc").mkdir()

    path = tmp_path / "diskstats"
    path.write_text(DISKS.format(10, 80, 5))
    found = between(
        PathsCollector({"dm-0": ["sdb", "sdc"]}, path=path), lambda: path.write_text(DISKS.format(20, 160, 105))
    )
    assert found["dm-0/sdb", "read_ios_count"] == 10
    assert found["dm-0/sdb", "read_latency_mean_ns"] == 10e6


def test_devices_can_be_recorded_with_the_sum_of_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "diskstats"
    path.write_text(DISKS.format(10, 80, 5))
    found = between(
        BlockCollector(["sdb"], path=path, totals=True), lambda: path.write_text(DISKS.format(20, 160, 105))
    )
    assert (found["sdb", "ios_count"], found["sdb", "bytes"]) == (10, 80 * 512)


def test_whole_devices_leave_out_what_holds_nothing(tmp_path: Path) -> None:
    for name, size in (
        ("sda", 100),
        ("loop0", 100),
        ("ram1", 100),
        ("zram0", 100),
        ("sr0", 0),
        ("nvme0n1", 5),
        ("dm-0", 5),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(f"{size}\n")
    assert whole_devices(tmp_path) == ["dm-0", "nvme0n1", "sda"]


def test_paging_adds_both_kinds_of_refaults(tmp_path: Path) -> None:
    path = tmp_path / "vmstat"
    text = "pswpin {0}\npswpout 0\npgmajfault 5\nworkingset_refault_anon {0}\nworkingset_refault_file {0}\n"
    path.write_text(text.format(10))

    found = between(PagingCollector(path), lambda: path.write_text(text.format(30)))

    assert found["memory", "pages_in_count"] == 20
    assert found["memory", "refaults_count"] == 40
    assert found["memory", "total_bytes"] > 0


def test_tasks_beyond_the_processors_wait(tmp_path: Path) -> None:
    path = tmp_path / "loadavg"
    path.write_text("0.1 0.2 0.3 1000/2000 12345\n")
    collector = RunQueueCollector(path)
    found = between(collector)
    assert found["cpu", "waiting_count"] == 1000 - found["cpu", "cpu_count"]
    path.write_text("nothing\n")
    with pytest.raises(NotSupported):
        RunQueueCollector(path).sample()


def test_time_outs_and_duplicates_of_tcp_are_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "netstat"
    text = "TcpExt: SyncookiesSent TCPTimeouts Other TCPDSACKOldSent\nTcpExt: 1 {} 3 {}\nIpExt: A\nIpExt: 1\n"
    path.write_text(text.format(7, 100))
    found = between(TcpRecoveryCollector(path), lambda: path.write_text(text.format(19, 130)))
    assert found == {("tcp", "timeouts_count"): 12.0, ("tcp", "duplicates_in_count"): 30.0}
    path.write_text("TcpExt: TCPTimeouts\nTcpExt: 1\n")
    with pytest.raises(NotSupported):
        TcpRecoveryCollector(path).sample()


def test_a_degraded_array_and_its_rebuild_are_told(tmp_path: Path) -> None:
    (tmp_path / "md0" / "md").mkdir(parents=True)
    (tmp_path / "md0" / "md" / "degraded").write_text("1\n")
    progress = tmp_path / "md0" / "md" / "sync_completed"
    progress.write_text("1000 / 20000\n")
    found = between(RaidCollector(tmp_path), lambda: progress.write_text("3000 / 20000\n"))
    assert found == {("md0", "degraded_count"): 1.0, ("md0", "rebuilt_bytes"): 2000 * 512.0}
    with pytest.raises(NotSupported):
        RaidCollector(tmp_path / "md0").sample()


def process(folder: Path, pid: int, name: str, read: int, ticks: int, parent: int = 1) -> None:
    place = folder / str(pid)
    place.mkdir(exist_ok=True)
    fields = ["S", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 6, "77", "0"]
    (place / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    (place / "io").write_text(f"rchar: 1\nread_bytes: {read}\nwrite_bytes: 0\n")


def test_programs_are_added_up_by_name(tmp_path: Path) -> None:
    process(tmp_path, 10, "postgres", 1000, 5)
    process(tmp_path, 11, "postgres", 0, 0)
    process(tmp_path, 12, "a) b (c", 0, 0)
    collector = ProcessesCollector(tmp_path, every_s=0.0)
    collector.sample()

    def change() -> None:
        process(tmp_path, 10, "postgres", 3000, 5)
        process(tmp_path, 11, "postgres", 500, 0)
        process(tmp_path, 12, "a) b (c", 50, 0)

    before = collector.sample()
    change()
    after = collector.sample()
    elapsed_ns = after[1].at_ns - before[1].at_ns
    found = {(one.entity, one.metric): one.value for one in collector.readings(before, after, elapsed_ns)}

    assert found["postgres", "read_bytes"] == pytest.approx(2500)
    assert found["a) b (c", "read_bytes"] == pytest.approx(50)


def test_what_a_child_did_is_not_counted_again_with_its_parent(tmp_path: Path) -> None:
    process(tmp_path, 10, "bash", 0, 0)
    process(tmp_path, 11, "cp", 1000, 0, parent=10)
    collector = ProcessesCollector(tmp_path, every_s=0.0)
    collector.sample()
    before = collector.sample()
    # The child wrote 500 more, ended, and its parent waited for it.
    shutil.rmtree(tmp_path / "11")
    process(tmp_path, 10, "bash", 1500, 0)
    after = collector.sample()

    found = {
        (one.entity, one.metric): one.value
        for one in collector.readings(before, after, after[1].at_ns - before[1].at_ns)
    }

    assert found["bash", "read_bytes"] == pytest.approx(500)


def test_file_systems_are_looked_at_once_a_minute() -> None:
    collector = VolumesCollector(every_s=3600)
    before = collector.sample()
    assert list(collector.readings(before, collector.sample(), SECOND)) == []
    assert before[1]["/"][0] >= before[1]["/"][1] > 0


class Moody:
    """A collector that fails while it is told to."""

    name, tier, source = "moody", "client", "test"

    def __init__(self) -> None:
        self.fails = True
        self.closed = 0

    def sample(self) -> int:
        if self.fails:
            raise NotSupported("not now")
        return 1

    def readings(self, before: int, after: int, interval_ns: int) -> list[Any]:
        del before, after, interval_ns
        return []

    def close(self) -> None:
        self.closed += 1


def test_a_collector_that_failed_is_tried_again_where_that_was_asked_for() -> None:
    collector = Moody()
    recorder = Recorder([collector], interval_s=1e-6, retry_s=0.0)
    recorder.sample()
    assert recorder.notices == ["recorder: moody is not recorded: not now"]
    collector.fails = False
    for _ in range(3):
        recorder.sample()
    assert [watched.collector for watched in recorder._watched] == [collector]
    assert recorder._away == []

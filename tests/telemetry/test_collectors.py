"""Collectors: texts of the kernel to values, and no text that makes a parser do anything but answer or refuse."""

from __future__ import annotations

import importlib
import os
import pkgutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.base.errors import NotSupported
from assay.record.machines import MACHINE_SOURCES
from assay.telemetry.collectors import (
    BlockCollector,
    CpuCollector,
    MemoryCollector,
    NetCollector,
    PsiCollector,
    StorageNetCollector,
    host_collectors,
)
from assay.telemetry.collectors.block import DeviceCounters, parse_diskstats
from assay.telemetry.collectors.cpu import CpuTimes, parse_stat
from assay.telemetry.collectors.memory import parse_meminfo
from assay.telemetry.collectors.net import TcpSegments, parse_snmp
from assay.telemetry.collectors.proc_file import ProcFile
from assay.telemetry.collectors.psi import parse_pressure
from assay.telemetry.collectors.storage_net import StorageConnection

GOLDEN = Path(__file__).parent / "golden"
SECOND_NS = 10**9


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def values(collector: Any, before: Any, after: Any, interval_ns: int = SECOND_NS) -> dict[str, float]:
    return {f"{r.entity} {r.metric}": r.value for r in collector.readings(before, after, interval_ns)}


# CPU


def test_cpu_times_are_those_of_all_cpus_with_nice_and_interrupts_in_their_places() -> None:
    assert parse_stat(golden("stat")) == CpuTimes(
        user=5919 + 31, system=3335 + 7 + 88, idle=114634, iowait=1170, steal=9
    )


def test_cpu_times_an_old_kernel_lacks_are_zero() -> None:
    assert parse_stat("cpu  1 2 3 4\n") == CpuTimes(3, 3, 4, 0, 0)


def test_cpu_shares_are_of_the_ticks_that_passed() -> None:
    before, after = CpuTimes(100, 100, 100, 100, 0), CpuTimes(150, 120, 110, 115, 5)
    assert values(CpuCollector(), before, after) == {
        "cpu user_share": 0.5,
        "cpu system_share": 0.2,
        "cpu iowait_share": 0.15,
        "cpu steal_share": 0.05,
    }


def test_iowait_that_runs_backwards_counts_as_nothing() -> None:
    found = values(CpuCollector(), CpuTimes(0, 0, 0, 50, 0), CpuTimes(10, 0, 10, 40, 0))
    assert found["cpu iowait_share"] == 0
    assert found["cpu user_share"] == 0.5


def test_no_tick_no_share() -> None:
    assert values(CpuCollector(), CpuTimes(1, 1, 1, 1, 1), CpuTimes(1, 1, 1, 1, 1)) == {}


@pytest.mark.parametrize("text", ["", "\n \n", "cpu0 1 2 3 4\n", "cpu 1 2 3\n", "cpu 1 2 x 4\n", "cpu 1 2 3 -4\n"])
def test_a_stat_without_cpu_times_is_refused(text: str) -> None:
    with pytest.raises(NotSupported, match=r"/proc/stat has no line 'cpu'"):
        parse_stat(text)


# Memory


def test_memory_is_in_bytes() -> None:
    assert parse_meminfo(golden("meminfo")) == {
        "available_bytes": 24185136 * 1024,
        "dirty_bytes": 12284 * 1024,
        "writeback_bytes": 8 * 1024,
    }


def test_memory_of_an_old_kernel_has_no_available_bytes() -> None:
    assert parse_meminfo("MemTotal: 5 kB\nDirty:  2 kB\nWriteback: no\n") == {"dirty_bytes": 2048}
    assert values(MemoryCollector(), {}, {"dirty_bytes": 2048}) == {"memory dirty_bytes": 2048.0}
    with pytest.raises(NotSupported, match="has none of MemAvailable, Dirty, Writeback"):
        parse_meminfo("WritebackTmp: 0 kB\n")


# Pressure


def test_pressure_is_the_total_stalled_time() -> None:
    assert parse_pressure(golden("pressure-io")) == {"some": 12323430, "full": 11470261}
    assert parse_pressure("some avg10=0.94 avg60=0.52 avg300=0.54 total=7657579\n") == {"some": 7657579}
    with pytest.raises(NotSupported, match="no line 'some' or 'full'"):
        parse_pressure("some avg10=0.94\n")


def test_pressure_shares_are_stalled_time_over_the_interval() -> None:
    before = {"io": {"some": 1_000_000, "full": 500}, "cpu": {"some": 0}}
    after = {"io": {"some": 1_500_000, "full": 500}, "cpu": {"some": 2_000_100, "full": 3}}
    assert values(PsiCollector(), before, after, 2 * SECOND_NS) == {
        "psi-io some_share": 0.25,
        "psi-io full_share": 0.0,
        "psi-cpu some_share": 1.0,
        "psi-cpu full_share": 0.0,
    }


# Network


def test_tcp_segments_are_found_by_name() -> None:
    assert parse_snmp(golden("snmp")) == TcpSegments(out_count=8529, retransmitted_count=17, in_count=13733)
    assert parse_snmp("Tcp: New RetransSegs OutSegs InSegs\nTcp: -1 2 300 4\n") == TcpSegments(300, 2, 4)


def test_tcp_values_are_counts_and_their_share() -> None:
    assert values(NetCollector(), TcpSegments(100, 1, 50), TcpSegments(300, 2, 90)) == {
        "tcp segments_in_count": 40.0,
        "tcp segments_out_count": 200.0,
        "tcp segments_retransmitted_count": 1.0,
        "tcp retransmit_share": 0.005,
    }


def test_without_segments_there_is_no_share_and_after_a_reset_nothing() -> None:
    assert "tcp retransmit_share" not in values(NetCollector(), TcpSegments(5, 0, 7), TcpSegments(5, 0, 7))
    assert values(NetCollector(), TcpSegments(5, 0, 7), TcpSegments(4, 0, 8)) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tcp: InSegs OutSegs RetransSegs\n",
        "Tcp: OutSegs\nTcp: 5\n",
        "Tcp: InSegs OutSegs RetransSegs\nTcp: 1 2 x\n",
    ],
)
def test_an_snmp_without_tcp_counters_is_refused(text: str) -> None:
    with pytest.raises(NotSupported, match="no line 'Tcp:' with InSegs, OutSegs and RetransSegs"):
        parse_snmp(text)


def test_segments_of_connections_to_storage_stand_by_their_interface() -> None:
    with socket.create_server(("127.0.0.1", 0)) as portal, socket.create_connection(portal.getsockname()) as client:
        server, _ = portal.accept()
        with server:
            collector = StorageNetCollector({portal.getsockname()[1]})
            before = collector.sample()
            for _ in range(20):
                client.send(b"x" * 100)
                server.recv(100)
            found = values(collector, before, collector.sample())
    assert found["lo storage_segments_out_count"] >= 20
    assert found["lo storage_segments_retransmitted_count"] == 0
    assert StorageNetCollector({1}).sample() == {}


def test_segments_sent_again_are_a_share_of_those_sent_over_all_connections_of_an_interface() -> None:
    before = {b"a": StorageConnection("127.0.0.1", 1000, 10), b"gone": StorageConnection("127.0.0.1", 5, 5)}
    after = {b"a": StorageConnection("127.0.0.1", 1100, 13), b"new": StorageConnection("127.0.0.1", 100, 1)}
    assert values(StorageNetCollector(), before, after) == {
        "lo storage_segments_out_count": 200.0,
        "lo storage_segments_retransmitted_count": 4.0,
        "lo storage_retransmit_share": 0.02,
    }


# Block devices

VDA = DeviceCounters(382069, 9125082, 92628, 250399, 11287096, 54481, 18428, 148809, 40985)


def test_diskstats_of_every_age_of_kernel_are_read() -> None:
    found = parse_diskstats(golden("diskstats"), ["vda", "sda", "dm-0", "nvme0n1", "sda1"])
    assert found["vda"] == VDA, "20 columns"
    assert found["dm-0"] == VDA._replace(flush_ios=None), "14 columns"
    assert found["sda"] == VDA._replace(flush_ios=None), "18 columns"
    assert found["nvme0n1"] == VDA, "more columns than today"
    assert "sda1" not in found, "a partition's 7 columns before kernel 2.6.25"


def test_only_named_devices_are_read_and_damaged_lines_are_skipped() -> None:
    line = golden("diskstats").splitlines()[0]
    assert parse_diskstats(golden("diskstats"), ["vd"]) == {}
    assert parse_diskstats(line.replace("382069", "38x069") + "\n" + line[:40], ["vda"]) == {}


def test_device_values_keep_reads_and_writes_apart() -> None:
    before = DeviceCounters(1000, 8000, 500, 2000, 16000, 700, 100, 1000, 10)
    after = DeviceCounters(1100, 9600, 700, 2050, 18400, 900, 600, 1400, 13)
    assert values(BlockCollector(["vda"]), {"vda": before}, {"vda": after}) == {
        "vda read_ios_count": 100.0, "vda read_bytes": 1600 * 512.0, "vda read_latency_mean_ns": 2_000_000.0,
        "vda read_size_mean_bytes": 8192.0, "vda write_ios_count": 50.0, "vda write_bytes": 2400 * 512.0,
        "vda write_latency_mean_ns": 4_000_000.0, "vda write_size_mean_bytes": 24576.0, "vda flush_ios_count": 3.0,
        "vda queue_mean_count": 0.4, "vda busy_share": 0.5,
    }  # fmt: skip


def test_times_wrap_at_32_bits() -> None:
    near = 2**32 - 100
    before = DeviceCounters(0, 0, near, 0, 0, near, near, near, 0)
    after = DeviceCounters(200, 200, 100, 200, 200, 300, 300, 500, 0)
    found = values(BlockCollector(["vda"]), {"vda": before}, {"vda": after})
    assert found["vda read_latency_mean_ns"] == 1_000_000
    assert found["vda write_latency_mean_ns"] == 2_000_000
    assert found["vda busy_share"] == pytest.approx(0.4)
    assert found["vda queue_mean_count"] == pytest.approx(0.6)


def test_an_idle_device_has_counts_but_no_latency() -> None:
    found = values(BlockCollector(["vda"]), {"vda": VDA}, {"vda": VDA})
    assert found["vda read_ios_count"] == found["vda busy_share"] == found["vda queue_mean_count"] == 0
    assert not any("mean_ns" in key or "mean_bytes" in key for key in found)


def test_a_device_that_came_back_with_new_counters_is_left_out_once() -> None:
    fresh = DeviceCounters(5, 40, 1, 0, 0, 0, 1, 1, 0)
    collector = BlockCollector(["vda", "vdb"])
    assert values(collector, {"vda": VDA}, {"vda": fresh, "vdb": fresh}) == {}


def test_devices_carry_their_role() -> None:
    collector = BlockCollector(["vda", "vdb"], roles={"vdb": "log"})
    readings = collector.readings({"vda": VDA, "vdb": VDA}, {"vda": VDA, "vdb": VDA}, SECOND_NS)
    assert {reading.entity: reading.role for reading in readings} == {"vda": "", "vdb": "log"}


def test_devices_that_are_all_missing_are_named() -> None:
    with pytest.raises(NotSupported, match="has no device nosuch0, nosuch1"):
        BlockCollector(["nosuch1", "nosuch0"], path=GOLDEN / "diskstats").sample()


# All of them


@pytest.mark.parametrize(
    ("collector", "entities"),
    [
        (CpuCollector(GOLDEN / "stat"), {"cpu"}),
        (MemoryCollector(GOLDEN / "meminfo"), {"memory"}),
        (NetCollector(GOLDEN / "snmp"), {"tcp"}),
        (BlockCollector(["vda", "sda"], path=GOLDEN / "diskstats"), {"vda", "sda"}),
    ],
)
def test_collectors_read_files_again_and_again(collector: Any, entities: set[str]) -> None:
    samples = [collector.sample() for _ in range(3)]
    assert samples[0] == samples[1] == samples[2]
    assert {reading.entity for reading in collector.readings(samples[0], samples[2], SECOND_NS)} <= entities
    collector.close()
    assert collector.sample() == samples[0]


@pytest.mark.parametrize("collector", [cls("/nonexistent") for cls in (CpuCollector, MemoryCollector, NetCollector)])
def test_a_missing_file_is_named(collector: Any) -> None:
    with pytest.raises(NotSupported, match="/nonexistent cannot be read: No such file"):
        collector.sample()


def test_a_kernel_without_pressure_information_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match=r"cpu cannot be read: No such file"):
        PsiCollector(tmp_path).sample()


def test_a_file_longer_than_one_read_is_read_whole(tmp_path: Path) -> None:
    text = "x" * 200_000
    (tmp_path / "f").write_text(text)
    assert ProcFile(tmp_path / "f").read() == text


@pytest.mark.skipif(not Path("/proc/diskstats").exists(), reason="needs Linux's /proc")
def test_this_host_can_be_read() -> None:
    devices = [line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()][:2]
    for collector in host_collectors(devices):
        if collector.name == "psi" and not os.access("/proc/pressure/io", os.R_OK):
            continue
        before = collector.sample()
        for reading in collector.readings(before, collector.sample(), SECOND_NS):
            assert reading.value >= 0
            assert reading.metric.rsplit("_", 1)[-1] in ("share", "bytes", "count", "ns")
        collector.close()


numbers = st.integers(-5, 2**64 + 5).map(str) | st.text("0123456789.-x", max_size=6) | st.just("9" * 5000)
words = st.sampled_from(
    ["cpu", "cpu0", "vda", "some", "full", "total=", "total=12", "Tcp:", "OutSegs", "RetransSegs", "Dirty:", "kB", "²"]
)
kernel_texts = st.lists(st.lists(words | numbers, max_size=20).map(" ".join), max_size=6).map("\n".join)


@given(text=kernel_texts | st.text())
@example("cpu " + "9" * 5000 + " 1 1 1")
@example("8 0 vda " + "²" * 11)
@example("Dirty: " + "9" * 5000 + " kB")
@pytest.mark.parametrize(
    "parse",
    [parse_stat, parse_meminfo, parse_pressure, parse_snmp, lambda text: parse_diskstats(text, ["vda", "cpu"])],
    ids=["stat", "meminfo", "pressure", "snmp", "diskstats"],
)
def test_any_text_is_answered_or_refused_in_one_line(parse: Callable[[str], object], text: str) -> None:
    refusal = ""
    try:
        parse(text)
    except NotSupported as error:
        refusal = str(error)
    assert len(refusal.splitlines()) <= 1


counters = st.integers(0, 2**64)
devices = st.builds(
    DeviceCounters, *[st.integers(0, 2**32 - 1 if i in (2, 5, 6, 7) else 2**64) for i in range(8)], st.none() | counters
)


@given(before=devices, after=devices, interval_ns=st.integers(1, 10**12))
def test_any_two_samples_of_a_device_give_values_that_can_be(
    before: DeviceCounters, after: DeviceCounters, interval_ns: int
) -> None:
    found = values(BlockCollector(["vda"]), {"vda": before}, {"vda": after}, interval_ns)
    assert all(value >= 0 for value in found.values())
    assert found.get("vda busy_share", 0) <= 1


def test_each_source_tells_of_a_machine_or_of_a_target() -> None:
    """A collector that is new says here which: what hosts on one machine all count must be told once."""
    from assay.telemetry import collectors

    found = set()
    for module in pkgutil.iter_modules(collectors.__path__):
        named = vars(importlib.import_module(f"{collectors.__name__}.{module.name}"))
        types = [one for one in named.values() if isinstance(one, type)]
        found |= {source for one in types if isinstance(source := getattr(one, "source", None), str)}
    assert found - MACHINE_SOURCES == {"", "array", "duckdb", "mariadb", "mssql", "postgresql"}
    assert found >= MACHINE_SOURCES

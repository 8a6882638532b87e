"""Drives while a load runs: looks beside the recorder, and lines of the kernel's log."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.base.errors import NotAnswering, NotSupported
from assay.record.shapes.drive import Drive, DriveHealth
from assay.telemetry.collectors.drives import DrivesCollector
from assay.telemetry.collectors.kernel_log import KernelLog, event_of, places_of
from insight.rules.machine import Machine

S = 10**9


def no_log(_: object) -> KernelLog:
    raise NotSupported("/dev/kmsg cannot be read (Operation not permitted)")


def looks(*found: DriveHealth | Exception) -> Callable[[Drive, bool], DriveHealth]:
    waiting: Iterator[DriveHealth | Exception] = iter(found)

    def look(_: Drive, __: bool) -> DriveHealth:
        one = next(waiting)
        if isinstance(one, Exception):
            raise one
        return one

    return look


DRIVE: Drive = {
    "name": "nvme0n1",
    "warning_celsius": 80.0,
    "before": {"utc_ns": 0, "temperature_celsius": 40.0, "throttled_s": 10.0, "throttles": 1, "media_errors": 0},
}


def collector(*found: DriveHealth | Exception) -> DrivesCollector:
    made = DrivesCollector(every_s=0.0, log=no_log, looking=looks(*found), starting=lambda work: work())
    made.add([DRIVE], {})
    return made


def test_what_a_look_finds_stands_until_the_next_and_what_it_counts_is_told_once() -> None:
    one = collector(
        {"utc_ns": 10 * S, "temperature_celsius": 84.0, "throttled_s": 13.0, "throttles": 2, "media_errors": 2},
    )
    one._every_s = 1000.0
    first = one.sample()
    again = one.sample()
    assert first == again, "no second look within the time"
    told = {(row.metric, row.kind): row.value for row in one.readings({}, first, S)}
    assert told == {
        ("temperature_celsius", "gauge"): 84.0,
        ("temperature_of_warning_share", "gauge"): 1.05,
        ("throttled_share", "gauge"): 0.3,
    }
    before = {"nvme0n1": first["nvme0n1"]._replace(newest=DRIVE["before"] or {})}
    assert ("media_errors_count", 2.0) in {(row.metric, row.value) for row in one.readings(before, first, S)}
    assert not any(row.kind == "delta" for row in one.readings(first, again, S))


def test_between_looks_a_drive_throttled_was_hot_or_neither_is_known() -> None:
    one = collector(
        {"utc_ns": 5 * S, "temperature_celsius": 60.0, "throttled_s": 10.0, "throttles": 1},
        {"utc_ns": 10 * S, "temperature_celsius": 85.0, "throttled_s": 10.0, "throttles": 1},
        {"utc_ns": 15 * S, "temperature_celsius": 79.0, "throttled_s": 12.0, "throttles": 2},
        {"utc_ns": 20 * S},
    )
    for _ in range(4):
        one.sample()
    assert [(two.is_throttled, two.is_hot) for two in one.intervals] == [
        (False, False), (False, True), (True, False), (None, None),
    ]  # fmt: skip
    assert [(two.from_ns, two.to_ns) for two in one.intervals][1:3] == [(5 * S, 10 * S), (10 * S, 15 * S)]


def test_a_drive_that_does_not_answer_is_told_of_once_and_left() -> None:
    one = collector(NotAnswering("nvme has not answered within 5 s"))
    one.sample()
    one.sample()
    assert one.missing == ["nvme0n1 is not looked at any more: nvme has not answered within 5 s"]
    assert not one.intervals


def test_the_recorder_does_not_wait_for_a_drive() -> None:
    begun: list[Callable[[], None]] = []
    one = DrivesCollector(every_s=0.0, log=no_log, looking=looks({"utc_ns": S}), starting=begun.append)
    one.add([DRIVE], {})
    for _ in range(3):
        assert one.sample()["nvme0n1"].newest == DRIVE["before"]
    assert len(begun) == 1, "a look is begun when the one before has ended"
    begun[0]()
    assert one.sample()["nvme0n1"].newest == {"utc_ns": S}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 3 timeout, aborting req_op:READ(0)", "reset"),
        ("nvme nvme0: I/O 12 QID 3 timeout, reset controller", "reset"),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "reset"),
        ("nvme nvme0: resetting controller", "reset"),
        ("blk_update_request: I/O error, dev nvme0n1, sector 123 op 0x0:(READ) flags 0x0 phys_seg 1", "error"),
        ("critical medium error, dev sda, sector 123 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "error"),
        ("ata3: hard resetting link", "reset"),
        ("ata3.00: failed command: READ FPDMA QUEUED", "reset"),
        ("nvme nvme0: 8/0/0 default/read/poll queues", None),
        ("nvme nvme7: resetting controller", None),
        ("I/O error, dev vda, sector 8", None),
        ("usb 1-1: reset high-speed USB device", None),
    ],
)  # fmt: skip
def test_lines_of_the_kernels_log(line: str, kind: str | None) -> None:
    event = event_of(line, {"nvme0": "nvme0n1", "nvme0n1": "nvme0n1", "sda": "sda", "ata3": "sda"})
    assert (event.kind if event else None) == kind


def test_the_log_calls_a_drive_by_its_controllers_and_its_port(tmp_path: Path) -> None:
    machine = Machine(tmp_path).disk("sda").disk("nvme0n1")
    machine.link("block/sda/device", "devices/pci0/ata3/host2/target2:0:0/2:0:0:0")
    machine.sys({f"devices/nvme{number}/state": "live" for number in (0, 1)})
    for number in (0, 1):
        machine.link(f"devices/nvme-subsys0/nvme{number}", f"devices/nvme{number}")
    machine.link("block/nvme0n1/device", "devices/nvme-subsys0")
    assert places_of(["sda", "nvme0n1"], machine.kernel) == {
        "sda": "sda", "ata3": "sda", "nvme0n1": "nvme0n1", "nvme0": "nvme0n1", "nvme1": "nvme0n1",
    }  # fmt: skip


def test_records_are_read_until_there_are_no_more_and_those_that_were_lost_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_bytes(b"")
    records: list[bytes | int] = [
        b"4,1,100,-;nvme nvme0: resetting controller\n SUBSYSTEM=nvme\n", errno.EPIPE,
        b"3,3,102,-;I/O error, dev nvme0n1, sector 1\x1b[2J\n", b"no form at all", errno.EAGAIN, b"4,9,9,-;no\n",
    ]  # fmt: skip

    def read(_: int, __: int) -> bytes:
        one = records.pop(0)
        if isinstance(one, int):
            raise OSError(one, os.strerror(one))
        return one

    log = KernelLog({"nvme0": "nvme0n1", "nvme0n1": "nvme0n1"}, path, read)
    assert [(one.kind, one.line.isprintable()) for one in log.events()] == [("reset", True), ("error", True)]
    assert len(records) == 1
    log.close()
    assert log.events() == []
    with pytest.raises(NotSupported, match=r"kmsg-that-is-not-there cannot be read \(No such file"):
        KernelLog({}, tmp_path / "kmsg-that-is-not-there")


def test_resets_and_errors_are_counted_for_each_drive(tmp_path: Path) -> None:
    path, lines = tmp_path / "kmsg", [b"4,1,100,-;nvme nvme0: resetting controller\n", b""]
    path.write_bytes(b"")
    one = DrivesCollector(
        every_s=0.0, looking=looks({"utc_ns": S}, {"utc_ns": S}), starting=lambda work: work(),
        log=lambda places: KernelLog(places, path, lambda _, __: lines.pop(0) if lines else b""),
    )  # fmt: skip
    one.add([DRIVE], {"nvme0": "nvme0n1"})
    first = one.sample()
    lines += [b"4,1,100,-;nvme nvme0: resetting controller\n", b"3,1,100,-;I/O error, dev nvme0n1, sector 2\n"]
    one._places["nvme0n1"] = "nvme0n1"
    told = {row.metric: row.value for row in one.readings(first, one.sample(), S) if row.metric.endswith("_count")}
    assert told == {"resets_count": 1.0, "io_errors_count": 1.0}
    one.close()

"""Binary logs of Perfmon: values as Performance Monitor shows them, times in UTC, and what is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.telemetry.importers.blg import COUNTERS_MAX, BinaryLog, NotReadable, TextOfLog, is_blg
from binary_logs import BUFFER, Declared, Values, binary_log
from foreign_files import taken

CPU = Declared("Processor", "*", "% Processor Time", 0x21510500)
WRITE = Declared("PhysicalDisk", "0 C:", "Avg. Disk Bytes/Write", 0x40020500, 2_725_536)
QUEUE = Declared("PhysicalDisk", "0 C:", "Avg. Disk Queue Length", 0x00550500)
BEGIN = 130057734178440000
"""2013-02-19 18:50:17.844, local."""
SECOND = 10_000_000

REAL = [
    (59518247936, 7028975, 9295050349000, 1170374257812, 130058022178447225),
    (59518740480, 7029031, 9295050746000, 1170383320312, 130058022188447585),
    (59519089152, 7029085, 9295051410000, 1170392734375, 130058022198448227),
    (59519363584, 7029145, 9295051481000, 1170401914062, 130058022208448333),
    (59519685120, 7029184, 9295051546000, 1170411601562, 130058022218448682),
]
"""Raw values of a real log: bytes, writes, queue time, idle time of all processors, and time in 100 ns, UTC."""


def real_log() -> bytes:
    samples: list[tuple[int, Values]] = [
        (BEGIN + at * SECOND, [(size, writes), (queue, now), {"_Total": (idle, now)}])
        for at, (size, writes, queue, idle, now) in enumerate(REAL)
    ]
    return binary_log([WRITE, QUEUE, CPU], samples)


def table(content: bytes, tmp_path: Path) -> list[list[str]]:
    path = tmp_path / "log.blg"
    path.write_bytes(content)
    with path.open("rb") as file:
        return list(
            csv.reader(io.TextIOWrapper(io.BufferedReader(TextOfLog(BinaryLog(file))), encoding="utf-8", newline=""))
        )


def test_values_are_those_that_performance_monitor_shows(tmp_path: Path) -> None:
    head, first, *rows = table(real_log(), tmp_path)
    assert head == [
        "(PDH-CSV 4.0) ()(480)", r"\\SQL1\PhysicalDisk(0 C:)\Avg. Disk Bytes/Write",
        r"\\SQL1\PhysicalDisk(0 C:)\Avg. Disk Queue Length", r"\\SQL1\Processor(_Total)\% Processor Time",
    ]  # fmt: skip
    assert first == ["02/19/2013 18:50:17.844", "", "", ""]
    # The published picture of this log: 6:50:18 PM to 6:50:21 PM.
    shown = [9.37826238255423, 5.86541344045712, 8.20410303650782, 3.1283808195094]
    assert [float(row[3]) for row in rows] == pytest.approx(shown, rel=1e-12)
    assert float(rows[0][1]) == pytest.approx((59518740480 - 59518247936) / 56)


def test_a_log_is_imported_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "log.blg"
    path.write_bytes(real_log())
    found, rows = taken(path)
    assert found.format == "perfmon"
    at = (BEGIN + SECOND) // 10_000_000 - 11_644_473_600 + 8 * 3600
    assert rows["SQL1", "cpu", "busy_share"][0][0] == pytest.approx(at * 10**9, abs=10**9)
    assert rows["SQL1", "cpu", "busy_share"][0][-1] == pytest.approx(0.0937826238255423)


@pytest.mark.parametrize(
    ("type_", "old", "new", "value"),
    [
        (0x10410400, (100, 0), (150, 2 * SECOND), 25.0), (0x10410500, (0, 0), (7, SECOND), 7.0),
        (0x20410500, (0, 0), (SECOND // 4, SECOND), 25.0), (0x20570500, (0, 0), (SECOND // 2, SECOND), 50.0),
        (0x21410500, (0, 0), (SECOND // 4, SECOND), 75.0), (0x00450500, (0, 0), (3 * SECOND, SECOND), 3.0),
        (0x30020400, (0, 10), (SECOND // 100, 20), 0.001), (0x30020400, (0, 10), (0, 10), 0.0),
        (0x40020500, (0, 1), (8192, 2), 8192.0), (0x20C20400, (0, 0), (1, 4), 25.0),
        (0x00400400, (3, 0), (10, 0), 7.0), (0x00010100, (3, 0), (10, 0), 10.0),
        (0x20020400, (3, 0), (1, 4), 25.0), (0x30240500, (0, 0), (0, 5 * SECOND), 5.0),
        (0x10410400, (100, 0), (50, SECOND), None), (0x10410400, (100, SECOND), (150, SECOND), None),
        (0x00000B00, (0, 0), (1, 1), None),
    ],
)  # fmt: skip
def test_a_type_has_its_formula(
    tmp_path: Path, type_: int, old: tuple[int, int], new: tuple[int, int], value: float | None
) -> None:
    counter = Declared("Memory", "", "Any", type_)
    *_, last = table(binary_log([counter], [(BEGIN, [old]), (BEGIN + SECOND, [new])]), tmp_path)
    assert last[1] == "" if value is None else float(last[1]) == pytest.approx(value)


def test_instances_that_come_and_go_have_columns_and_equal_names_are_numbered(tmp_path: Path) -> None:
    counter = Declared("Process", "*", "Handle Count", 0x00010000)
    log = binary_log([counter], [(BEGIN, [{"a": (1, 0)}]), (BEGIN + SECOND, [{"b": (2, 0), "a": (3, 0)}])])
    head, first, last = table(log, tmp_path)
    assert [name[14:17] for name in head[1:]] == ["(a)", "(b)"]
    assert (first[1:], last[1:]) == (["1.0", ""], ["3.0", "2.0"])
    # One name twice: Windows numbers the second.
    twice = binary_log([counter], [(BEGIN, [{"a": (1, 0), "A": (2, 0)}])]).replace(b"A\0\0\0", b"a\0\0\0")
    assert [name[14:] for name in table(twice, tmp_path)[0][1:]] == [r"(a)\Handle Count", r"(a#1)\Handle Count"]


def test_values_that_windows_calls_invalid_are_blank(tmp_path: Path) -> None:
    log = binary_log([Declared("Memory", "", "Any", 0x00010000)], [(BEGIN, [None]), (BEGIN + SECOND, [(5, 0)])])
    assert [row[1] for row in table(log, tmp_path)[1:]] == ["", "5.0"]


def test_a_circular_log_is_read_in_the_order_of_its_buffers(tmp_path: Path) -> None:
    counter = Declared("Memory", "", "Any", 0x00010000)
    log = binary_log([counter], [(BEGIN + at * SECOND, [(at, 0)]) for at in range(1500)])
    head, first, second, *rest = (log[at : at + BUFFER] for at in range(0, len(log), BUFFER))
    assert rest
    turned = b"".join([head, *rest, first, second])
    assert [row[1] for row in table(turned, tmp_path)[1:]] == [f"{at}.0" for at in range(1500)]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda log: log.replace(b"BL\x03\x02", b"BL\x03\x07"), "values of another form"),
        (lambda log: log.replace(b"BL\x03\x00", b"BL\x04\x00"), "samples of another form"),
        (lambda log: log.replace(b"\x14\xc0\x22\0", b"\x14\xc0\x23\0"), "events of kind 35"),
        (lambda log: log.replace(b"\x14\xc0\x20\0", b"\x14\x00\x20\0"), "events of another form"),
        (lambda log: log[:BUFFER], "declares no counter"),
    ],
)
def test_another_layout_is_refused_with_the_command_that_converts(tmp_path: Path, broken, message: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "log.blg"
    path.write_bytes(broken(real_log()))
    with pytest.raises(UsageError, match=message) as error:
        taken(path)
    assert "relog log.blg -f csv -o log.csv -y" in str(error.value)
    assert "\n" not in str(error.value)


def test_samples_with_other_counters_than_declared_are_refused(tmp_path: Path) -> None:
    for values in ([(1, 1)], [(1, 1), (2, 2), (3, 3)]):
        with pytest.raises(NotReadable, match="other counters than it declares"):
            table(binary_log([WRITE, QUEUE], [(BEGIN, values)]), tmp_path)


def test_instances_are_bounded(tmp_path: Path) -> None:
    counter = Declared("Process", "*", "Handle Count", 0x00010000)
    samples: list[tuple[int, Values]] = [
        (BEGIN + at * SECOND, [{f"{at}-{number}": (1, 0) for number in range(1000)}])
        for at in range(COUNTERS_MAX // 1000 + 1)
    ]
    with pytest.raises(NotReadable, match="more than"):
        table(binary_log([counter], samples), tmp_path)


def test_text_is_no_binary_log() -> None:
    assert not is_blg(b'"(PDH-CSV 4.0) (UTC)(0)"' * 100)
    assert not is_blg(b"\0" * 0x400)


@given(st.data())
def test_changed_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    log = bytearray(real_log())
    used = [*range(0x200), *range(BUFFER, BUFFER + 0x800)]
    for _ in range(data.draw(st.integers(1, 8))):
        log[data.draw(st.sampled_from(used))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("blg") / "log.blg"
    path.write_bytes(log[: data.draw(st.sampled_from([len(log), BUFFER + 0x300, BUFFER + 0x30]))])
    message = ""
    try:
        taken(path)
    except UsageError as error:
        message = str(error)
    assert "\n" not in message

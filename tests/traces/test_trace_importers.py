"""Forms of traces: what each line or record becomes, how files are merged, and what damaged ones give.

Rows are written here from the columns that each archive describes (docs/trace.md); no file of an archive is kept.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.traces.file import read_trace
from assay.traces.head import TraceHead
from assay.traces.importers import importing
from assay.traces.importers.importing import ImportedTrace, import_traces
from assay.traces.importers.joining import EVENT, BlockEvents, Joiner
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios, joined_ios

if TYPE_CHECKING:
    from assay.traces.importers.sources import Source

R, W = int(IoFlag.READ), int(IoFlag.WRITE)

MSR = """128166372003061629,hm,0,Write,7014912,4096,260000
128166372016382155,hm,0,Read,1074696192,8192,1130
128166372016382155,prn,1,Read,512,512,1
"""
SYSTOR = """Timestamp,Response,IOType,LUN,Offset,Size
1456135200.013118000,0.000806000,W,0,4096,4096
1456135200.113118000,,R,4,8192,4096
1456135200.213118000,9.7e-05,R,4,899056122368,131072
1456135200.313118000,0.1,,4,0,512
"""
XPERF = r"""BeginHeader
   DiskRead,  TimeStamp,  Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName
   DiskWrite, TimeStamp,  Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName
   DiskFlush, TimeStamp,  Process Name ( PID), ThreadID, CPU, IrpPtr, ElapsedTime, DiskNum, IrpFlags, DiskSvcTime, I/O Pri
   DiskReadInit, TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr
EndHeader
   DiskReadInit, 400, sqlservr.exe (1234), 77, 0, 0xfffffa80
   DiskRead, 1500, sqlservr.exe (1234), 77, 0, 0xfffffa80, 0x00010000, 0x00002000, 1100, 3, 0x60043, 900, Normal, , 0x1, "E:\a, b.mdf"
   DiskWrite, 2000, System (4), 8, 1, 0xfffffa81, 0x00000200, 0x00000200, 100, 3, 0x60a00, 100, Normal, , 0x2, "L:\l.ldf"
   DiskFlush, 2100, System (4), 8, 1, 0xfffffa82, 50, 3, 0x60a00, 50, Normal
"""  # noqa: E501 - as xperf writes it
WPA = """IO Type;Process (Name);Init Time (s);Complete Time (s);IO Time (µs);Disk Service Time (µs);Size (B);Min Offset;Disk;Count
Write;System;1,080034500;1,080111700;77,200;70,200;1.024;0x0000000000000200;1;1
Flush;System;1,090000000;1,090100000;100,000;100,000;0;0xFFFFFFFFFFFFFFFF;1;1
Read;app.exe;1,079943800;1,080031000;87,200;87,200;512;0x0000000000001000;1;1
"""  # noqa: E501 - as WPA writes it
BLKPARSE = """  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000011829   697  D   W 223490 + 8 [kjournald]
  8,0    1        4     0.000511829     0  C   W 223490 + 8 [0]
  8,0    1        5     0.000611829   697  D FWFS 0 + 16 [postgres]
  8,0    1        6     0.000711829     0  C FWFS 0 + 8 [0]
  8,0    1        7     0.000811829     0  C FWFS 8 + 8 [0]
  8,0    1        8     0.000911829    12  D   R 96 + 8 [fio]
CPU3 (8,0):
 Reads Queued:           0,        0KiB  Writes Queued:           1,        4KiB
"""
VSCSI = "# Trace format version 1\n# SN, length, SG, type, LBN, us\n1, 8192, 2, read, 100, 5000100\n" \
    "2, 512, 1, 2A, 7, 5000300\n"  # fmt: skip
IOLOG2 = (
    "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf wait 500\nf read 4096 8192\nf wait 200\nf sync\nf close\n"
)
IOLOG3 = "fio version 3 iolog\n30 f add\n100 f open\n200 f trim 0 2147483648\n260 f write 0 4096\n290 f datasync\n"

CASES = {
    "msr": (MSR, [(0, 7014912, 4096, W, 26_000_000, "hm.0"), (1_332_052_600, 1074696192, 8192, R, 113_000, "hm.0"),
                  (1_332_052_600, 512, 512, R, 100, "prn.1")]),
    "systor": (SYSTOR, [(0, 4096, 4096, W, 806_000, "LUN0"), (100_000_000, 8192, 4096, R, UNKNOWN_NS, "LUN4"),
                        (200_000_000, 899056122368, 131072, R, 97_000, "LUN4")]),
    "alibaba": ("419,W,8792731648,16384,1577808000000046\n7,R,512,4096,1577808000000146\n",
                [(0, 8792731648, 16384, W, UNKNOWN_NS, "disk419"), (100_000, 512, 4096, R, UNKNOWN_NS, "disk7")]),
    "tencent": ("1538323200,12910952,128,0,1063\n1538323201,6160447,8,1,1370\n",
                [(0, 12910952 * 512, 65536, R, UNKNOWN_NS, "volume1063"),
                 (10**9, 6160447 * 512, 4096, W, UNKNOWN_NS, "volume1370")]),
    "spc": ("0,20941264,8192,W,0.551706,Alpha/NT\n1, 3436288, 15872, r, 1.250720,0x123,5.99,test\n",
            [(0, 20941264 * 512, 8192, W, UNKNOWN_NS, "ASU0"),
             (699_014_000, 3436288 * 512, 15872, R, UNKNOWN_NS, "ASU1")]),
    "disksim": ("938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n",
                [(0, 264719034 * 512, 8192, W, UNKNOWN_NS, "disk4"),
                 (315_000, 197570570 * 512, 8192, R, UNKNOWN_NS, "disk3")]),
    "fiu": ("329131208190249 4892 syslogd 904265560 8 W 6 0 531e779b5eae14b1c1f1a1a2a3a4a5a6\n",
            [(0, 904265560 * 512, 4096, W, UNKNOWN_NS, "6,0")]),
    "xperf": (XPERF, [(0, 65536, 8192, R, 900_000, "disk3"), (1_500_000, 512, 512, W, 100_000, "disk3"),
                      (1_650_000, 0, 0, 8, 50_000, "disk3")]),
    "diskio": (WPA, [(0, 4096, 512, R, 87_200, "disk1"), (90_700, 512, 1024, W, 70_200, "disk1"),
                     (10_056_200, 0, 0, 8, 100_000, "disk1")]),
    "blkparse": (BLKPARSE, [(0, 223490 * 512, 4096, W, 500_000, "8,0"), (610_000, 0, 4096, 58, 100_000, "8,0"),
                            (610_000, 4096, 4096, 58, 200_000, "8,0"),
                            (910_000, 49152, 4096, R, UNKNOWN_NS, "8,0")]),
    "vscsistats": (VSCSI, [(0, 51200, 8192, R, UNKNOWN_NS, "disk"), (200_000, 3584, 512, W, UNKNOWN_NS, "disk")]),
    "fio": (IOLOG2, [(0, 0, 4096, W, UNKNOWN_NS, "f"), (500_000, 4096, 8192, R, UNKNOWN_NS, "f"),
                     (700_000, 0, 0, 8, UNKNOWN_NS, "f")]),
    "fio v3": (IOLOG3, [(0, 0, 2**31, 4, UNKNOWN_NS, "f"), (60_000, 0, 4096, W, UNKNOWN_NS, "f"),
                        (90_000, 0, 0, 8, UNKNOWN_NS, "f")]),
}  # fmt: skip
"""Time, place, size, flags, time of the device and its name, of each I/O."""


def imported(folder: Path, *contents: bytes, **options: object) -> tuple[ImportedTrace, TraceHead, Ios]:
    paths = [folder / f"in{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    output = folder / "out.trace"
    output.unlink(missing_ok=True)
    found = import_traces(paths, output, **options)  # type: ignore[arg-type]
    trace = read_trace(output)
    return found, trace.head, joined_ios(list(trace.batches()))


def rows_of(ios: Ios) -> list[tuple[object, ...]]:
    columns = (ios.t_ns, ios.place_bytes, ios.size_bytes, ios.flags, ios.device_ns)
    return list(zip(*(one.tolist() for one in columns), ios.device.column(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_form_is_known_by_its_content_and_read_to_the_unit(tmp_path: Path, case: str) -> None:
    text, wanted = CASES[case]
    found, head, ios = imported(tmp_path, text.encode())
    assert head.source == case.split()[0]
    assert rows_of(ios) == [(t_ns // 100 * 100, *rest) for t_ns, *rest in wanted]
    assert found.ios == len(wanted)
    assert {one.name for one in head.devices} == {row[-1] for row in wanted}


def test_times_of_queue_and_device_and_names_of_processes_are_kept(tmp_path: Path) -> None:
    _, head, ios = imported(tmp_path, XPERF.encode())
    assert head.times == "split"
    assert ios.queue_ns.tolist() == [200_000, 0, 0]
    assert ios.process.column() == ["sqlservr.exe", "System", "System"]
    _, _, ios = imported(tmp_path, BLKPARSE.encode())
    assert ios.queue_ns.tolist()[0] == 10_000
    assert ios.process.column() == ["kjournald", "postgres", "postgres", "fio"]


def test_the_time_of_day_is_kept_where_the_form_tells_it(tmp_path: Path) -> None:
    _, head, _ = imported(tmp_path, MSR.encode())
    assert head.origin_utc_ns == 1172163600306162900
    _, head, _ = imported(tmp_path, CASES["spc"][0].encode())
    assert head.origin_utc_ns is None


def test_the_reading_is_one_line(tmp_path: Path) -> None:
    found, _, _ = imported(tmp_path, MSR.encode())
    assert found.line() == ("MSR Cambridge CSV: 3 I/Os, 67% reads, 2 devices, offset max 1.001 GiB, 33% at a multiple "
                            "of 4 KiB, span 1 s")  # fmt: skip
    found, head, _ = imported(tmp_path, CASES["tencent"][0].encode())
    assert "whole seconds" in found.notes[0]
    assert "whole seconds" in head.notes[0]


# blktrace


def event(t_ns: int, action: int, categories: Sequence[int], *, sector: int = 0, size: int = 0, pid: int = 7,
          pdu: bytes = b"", order: str = "<") -> bytes:  # fmt: skip
    bits = action | sum(1 << (16 + one) for one in categories)
    record = struct.pack(f"{order}IIQQIIIIIHH", 0x65617407, 1, t_ns, sector, size, bits, pid, 8 << 20, 0, 0, len(pdu))
    return record + pdu


READ, WRITE, FLUSH, SYNC, QUEUE, ISSUE, COMPLETE, NOTIFY, DISCARD, FUA = 0, 1, 2, 3, 4, 6, 7, 10, 13, 15


def cpus(order: str) -> tuple[bytes, bytes]:
    """Events of two processors: a read is issued on one and completes on the other."""
    one = (
        event(0, 0, [NOTIFY], pid=7, pdu=b"postgres\0\0\0\0\0\0\0\0", order=order)
        + event(0, 1, [NOTIFY], pdu=struct.pack(f"{order}II", 1_700_000_000, 5), order=order)
        + event(1000, 1, [READ, QUEUE], sector=800, size=8192, order=order)
        + event(1500, 15, [READ, QUEUE], sector=800, size=8192, pdu=b"\0" * 16, order=order)
        + event(4000, 7, [READ, ISSUE], sector=800, size=8192, order=order)
        + event(9000, 7, [WRITE, SYNC, FUA, ISSUE], sector=16, size=512, order=order)
    )
    other = event(254_000, 8, [READ, COMPLETE], sector=800, size=8192, order=order) + event(
        309_000, 8, [WRITE, COMPLETE], sector=16, size=512, order=order
    )
    return one, other


@pytest.mark.parametrize("order", ["<", ">"])
def test_blktrace_of_either_byte_order_is_merged_over_processors(tmp_path: Path, order: str) -> None:
    _, head, ios = imported(tmp_path, *cpus(order))
    assert rows_of(ios) == [(0, 409600, 8192, R, 250_000, "8,0"),
                            (8000, 8192, 512, W | IoFlag.SYNC | IoFlag.FUA, 300_000, "8,0")]  # fmt: skip
    assert ios.queue_ns.tolist() == [3000, UNKNOWN_NS]
    assert ios.process.column() == ["postgres", "postgres"]
    assert head.origin_utc_ns == 1_700_000_000 * 10**9 + 5 + 1000


def test_a_blktrace_that_is_cut_off_or_damaged_gives_what_comes_before(tmp_path: Path) -> None:
    one, other = cpus("<")
    found, _, ios = imported(tmp_path, one + other[:-20])
    assert len(ios) == 2
    assert any("ends within a record" in note for note in found.notes)
    assert any("had not completed" in note for note in found.notes)
    found, _, ios = imported(tmp_path, one + other[:48] + b"\xff" * 480)
    assert len(ios) == 2
    assert any("is damaged after" in note for note in found.notes)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_magic_number_in_what_a_record_carries_begins_no_record(tmp_path: Path, order: str) -> None:
    magic = struct.pack(f"{order}I", 0x65617407) * 16
    one, other = cpus(order)
    found, _, ios = imported(tmp_path, one + event(9500, 0, [NOTIFY], pdu=magic, order=order) + other)
    assert (len(ios), found.notes) == (2, ())


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from([1, 1, 2, 6, 7, 7, 8, 8]), st.integers(0, 5), st.sampled_from([8, 8, 8, 16, 0])),
        min_size=1, max_size=120,
    )
)  # fmt: skip
def test_events_that_are_joined_at_once_give_what_they_give_one_by_one(drawn: list[tuple[int, int, int]]) -> None:
    """Events of few places, so that I/Os are handed back, end in parts, and overlap."""
    table = np.zeros(len(drawn), EVENT)
    letters = {1: "Q", 2: "M", 6: "R", 7: "D", 8: "C"}
    for place, (action, sector, sectors) in enumerate(drawn):
        table[place] = (
            100 * place,
            8 * sector,
            512 * sectors,
            8 << 20,
            place % 3,
            1 + sector % 2,
            ord(letters[action]),
        )

    def joined(joiner: Joiner) -> list[tuple[object, ...]]:
        source = cast("Source", SimpleNamespace(note=lambda _: None))
        found = joined_ios(list(joiner.ios([iter([BlockEvents(table)])], source)))
        columns = (found.t_ns, found.queue_ns, found.device_ns, found.place_bytes, found.size_bytes, found.flags)
        return sorted(zip(*(one.tolist() for one in columns), found.process.column(), strict=True))

    assert joined(Joiner("abc")) == joined(_OneByOne("abc"))


class _OneByOne(Joiner):
    """Joins event by event."""

    def _apart(self, table: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        return table[:0], table


def test_an_io_that_a_driver_handed_back_is_one_and_a_flush_neither_reads_nor_writes(tmp_path: Path) -> None:
    events = [
        event(1000, 7, [WRITE, ISSUE], sector=800, size=8192),
        event(6000, 7, [WRITE, ISSUE], sector=800, size=8192),
        event(9000, 8, [WRITE, COMPLETE], sector=800, size=8192),
        event(10_000, 7, [READ, FLUSH, ISSUE]),
        event(14_000, 8, [READ, FLUSH, COMPLETE]),
        event(20_000, 7, [WRITE, DISCARD, ISSUE], sector=8, size=4096),
    ]
    found, _, ios = imported(tmp_path, b"".join(events))
    assert rows_of(ios) == [(0, 409600, 8192, W, 3000, "8,0"), (9000, 0, 0, 8, 4000, "8,0"),
                            (19_000, 4096, 4096, 4, UNKNOWN_NS, "8,0")]  # fmt: skip
    assert ios.queue_ns.tolist() == [5000, UNKNOWN_NS, UNKNOWN_NS]
    assert found.notes == ("1 I/O had not completed when the trace ended",)


def vscsi_records(order: str, count: int) -> bytes:
    """Reads, writes and synchronisations of a cache in turn."""
    return b"".join(struct.pack(f"{order}IIIHHQQ", n, 4096, 1, (0x28, 0x2A, 0x35)[n % 3], 0x0100, n * 8, n * 50)
                    for n in range(count))  # fmt: skip


def test_records_of_vscsistats_have_either_byte_order(tmp_path: Path) -> None:
    for order in "<>":
        found, _, ios = imported(tmp_path, vscsi_records(order, 9))
        assert ios.place_bytes.tolist() == [n * 4096 for n in range(9) if n % 3 < 2]
        assert "3 commands that neither read nor write" in found.notes[0]


# Bad input


def test_gzip_is_read_and_one_that_is_cut_off_is_told(tmp_path: Path) -> None:
    packed = gzip.compress(MSR.encode() * 1000)
    found, _, _ = imported(tmp_path, packed)
    assert found.ios == 3000
    random = "".join(f"128166372{n:09d},hm,0,Write,{n * 7919 % 10**9 * 512},4096,{n % 997}\n" for n in range(20_000))
    packed = gzip.compress(random.encode())
    found, head, _ = imported(tmp_path, packed[: len(packed) // 2])
    assert 5000 < found.ios < 15_000
    assert any("cut off" in note for note in head.notes)


def test_clocks_that_go_back_are_sorted_within_the_window_and_told(tmp_path: Path) -> None:
    rows = [f"0,{n * 16},8192,R,{n + 0.5}" for n in range(50)]
    found, _, ios = imported(tmp_path, "\n".join(rows[30:] + rows[:30]).encode())
    assert (np.diff(ios.t_ns) > 0).all()
    assert any("times go back 1 time in the file, by up to 49 s" in note for note in found.notes)


def test_a_clock_that_goes_back_beyond_the_window_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.traces.importers.form.WINDOW_IOS", 64)
    monkeypatch.setattr("assay.traces.importers.form.WINDOW_LEAST", 64)
    monkeypatch.setattr("assay.traces.importers.sources.BLOCK_BYTES", 256)
    monkeypatch.setattr("assay.traces.importers.sources.Source.blocks.__defaults__", (256,))
    rows = [f"0,{n * 16},8192,R,{10_000 + n}.5" for n in range(300)] + [f"0,{n * 16},8192,R,{n}.5" for n in range(300)]
    found, _, ios = imported(tmp_path, "\n".join(rows).encode())
    assert (np.diff(ios.t_ns) >= 0).all()
    assert len(ios) == 600
    assert any("the clock was set back by 1.03e+04 s" in note for note in found.notes)
    assert 590 * 10**9 < ios.t_ns[-1] < 610 * 10**9


def test_lines_that_are_not_understood_are_counted_with_an_example(tmp_path: Path) -> None:
    found, head, _ = imported(tmp_path, (MSR * 10 + "128166372016382155,hm,0,Rea").encode())
    assert found.ios == 30
    assert (
        "1 of 31 lines are left out because they are not understood, such as '128166372016382155 hm 0 Rea'"
        in head.notes[1]
    )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", {}, "is empty"),
        (b"hello, world\n" * 30, {}, "no format of traces that is known here"),
        (b"hello, world\n" * 30, {"form": "msr"}, "30 of its 30 lines are not understood"),
        (MSR.encode(), {"form": "etw"}, "is no format of traces; accepted: blktrace, fio"),
        (MSR.encode(), {"device_bytes": 2**20}, "beyond 1 MiB"),
        (b"128166372003061629,hm,0,Write,9014398509481984000,4096,2600\n", {}, "the format or its unit is another one"),
        (event(0, 7, [READ, ISSUE], sector=1, size=512).replace(b"\x07tae", b"\x06tae"), {}, "version 6 of blktrace's"),
        (b"fio version 3 iolog\n1 f add\n", {}, "holds no I/O that can be used"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(
    tmp_path: Path, content: bytes, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        imported(tmp_path, content, **options)
    assert not (tmp_path / "out.trace").exists()


def test_files_of_two_forms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="import files of one format at a time"):
        imported(tmp_path, MSR.encode(), SYSTOR.encode())


def test_mutated_files_give_a_trace_or_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(41)
    whole = [text.encode() for text, _ in CASES.values()] + [b"".join(cpus("<")), b"".join(cpus(">"))]
    tried = 0
    for data in whole:
        for _ in range(12):
            mutated = bytearray(data)
            for place in rng.integers(0, len(mutated), rng.integers(1, 6)):
                mutated[place] = rng.integers(0, 256)
            cut = rng.integers(1, len(mutated) + 1) if rng.random() < 0.3 else len(mutated)
            with suppress(UsageError):
                _, _, ios = imported(tmp_path, bytes(mutated[:cut]))
                assert (np.diff(ios.t_ns) >= 0).all()
            tried += 1
    assert tried == 12 * len(whole)
    assert importing.DEVICE_BYTES_MAX == 2**53

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.record.rows import TextColumn
from assay.traces.file import BATCH_IOS, MAGIC, TraceWriter, read_trace
from assay.traces.head import TracedDevice, TraceHead
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios, joined_ios

HEAD = TraceHead(source="test", devices=(TracedDevice(name="vda", size_bytes=2**34),), times="split")


def ios_of(count: int, *, seed: int = 1, begin_ns: int = 0) -> Ios:
    rng = np.random.default_rng(seed)
    times = begin_ns + np.cumsum(rng.exponential(14_000, count)).astype(np.int64)
    return Ios(
        times, rng.lognormal(8, 0.5, count).astype(np.int64), rng.lognormal(13, 0.5, count).astype(np.int64),
        rng.integers(0, 2**21, count) * 8192, np.full(count, 8192), rng.choice([1, 2], count).astype(np.uint16),
        TextColumn(np.zeros(count, np.int32), ["vda"]),
        TextColumn(rng.integers(0, 3, count).astype(np.int32), ["postgres", "fio", ""]),
    )  # fmt: skip


def written(path: Path, ios: Ios) -> Path:
    with TraceWriter(path, HEAD) as trace:
        trace.write(ios)
    return path


def same(found: Ios, wanted: Ios) -> bool:
    numbers = ("place_bytes", "size_bytes", "flags")
    times = ("t_ns", "queue_ns", "device_ns")
    return (
        all((getattr(found, name) == getattr(wanted, name)).all() for name in numbers)
        and all((getattr(found, name) // 100 == getattr(wanted, name) // 100).all() for name in times)
        and found.device.column() == wanted.device.column()
        and found.process.column() == wanted.process.column()
    )


def test_what_is_written_comes_back_to_100_ns(tmp_path: Path) -> None:
    ios = ios_of(2 * BATCH_IOS + 5)
    trace = read_trace(written(tmp_path / "one.trace", ios))
    assert trace.head == HEAD
    assert trace.end is not None
    assert trace.end.ios == len(ios)
    assert same(joined_ios(list(trace.batches())), ios)


def test_an_io_takes_ten_bytes_even_at_random_places(tmp_path: Path) -> None:
    path = written(tmp_path / "one.trace", ios_of(BATCH_IOS))
    assert path.stat().st_size <= 10 * BATCH_IOS


def test_a_window_gives_the_ios_of_its_time_alone(tmp_path: Path) -> None:
    ios = ios_of(3 * BATCH_IOS)
    trace = read_trace(written(tmp_path / "one.trace", ios))
    begin, end = int(ios.t_ns[70_000]) // 100 * 100, int(ios.t_ns[140_000]) // 100 * 100
    found = joined_ios(list(trace.batches(begin, end)))
    assert len(found) == 70_000
    assert found.t_ns[0] == begin


@given(st.integers(0, 2**40), st.sampled_from([UNKNOWN_NS, 0, 99, 10**9, 10**12]))
def test_times_that_are_unknown_stay_so_and_long_ones_are_bounded(place: int, time_ns: int) -> None:
    none = TextColumn(np.zeros(1, np.int32), [""])
    flags = np.array([IoFlag.WRITE | IoFlag.FUA], np.uint16)
    t_ns, long_ns, places, sizes = (np.array([value], np.int64) for value in (5, time_ns, place, 512))
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "x", Ios(t_ns, long_ns, long_ns, places, sizes, flags, none, none))
        (found,) = read_trace(path).batches()
    assert found.place_bytes[0] == place
    assert found.flags[0] == flags[0]
    assert (found.queue_ns[0] == UNKNOWN_NS) == (time_ns == UNKNOWN_NS)
    assert found.queue_ns[0] <= max(time_ns, UNKNOWN_NS)


def test_a_trace_whose_writer_was_killed_is_read_to_its_last_whole_batch(tmp_path: Path) -> None:
    ios = ios_of(2 * BATCH_IOS)
    path = written(tmp_path / "one.trace", ios)
    spans = read_trace(path).spans
    os.truncate(path, spans[1].at_bytes + 1000)
    trace = read_trace(path)
    assert trace.end is None
    assert same(joined_ios(list(trace.batches())), ios.where(slice(0, BATCH_IOS)))


def test_times_that_go_back_are_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "one.trace", HEAD) as trace:
        trace.write(ios_of(5, begin_ns=10**9))
        with pytest.raises(ValueError, match="go back"):
            trace.write(ios_of(5))


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "one.trace"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        TraceWriter(path, HEAD)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\xff\xff\xff\xff\x00\x00\x00\x00", MAGIC * 3])
def test_other_files_are_no_traces(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other.trace"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="no trace of Assay"):
        read_trace(path)


def test_changed_bytes_are_refused_or_read_and_never_worse(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    whole = written(tmp_path / "one.trace", ios_of(300)).read_bytes()
    path = tmp_path / "changed.trace"
    for _ in range(500):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(0, 256)
        path.write_bytes(data)
        try:
            for ios in read_trace(path).batches():
                assert len(ios) <= 2**26
        except UsageError:
            pass


def test_other_readers_of_arrow_read_a_trace(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    ios = ios_of(BATCH_IOS + 7)
    with pa.ipc.open_stream(written(tmp_path / "one.trace", ios).read_bytes()) as stream:
        table = stream.read_all()
    assert table.num_rows == len(ios)
    assert table["process"].to_pylist() == ios.process.column()

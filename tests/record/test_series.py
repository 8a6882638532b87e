"""The series: rows come back exactly, once, by time, whatever a crash left of segments and Parquet file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.base.errors import IoFailed, RunFolderError
from assay.record import series
from assay.record.folder import Folder
from assay.record.run_folder import RunFolder
from assay.record.series import SeriesWriter, read_series
from series_rows import SCHEMA, batches_of

SOURCE = Path(__file__).parents[2] / "python"

texts = st.text(max_size=8)
int64 = st.integers(-(2**63), 2**63 - 1)
series_rows = st.fixed_dictionaries(
    {
        field.name: {pa.int64(): int64, pa.string(): texts, pa.float64(): st.floats(allow_nan=False)}[field.type]
        for field in SCHEMA
    }
)


def row(t_ns: int, value: float = 1.0, metric: str = "read_ios_count") -> dict[str, Any]:
    return {
        "t_ns": t_ns, "clock": "wall", "interval_ns": 10**9, "tier": "storage", "host": "h", "source": "block",
        "entity": "vda", "role": "", "metric": metric, "kind": "delta", "value": value,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def times(folder: Path) -> list[int]:
    found: list[int] = read_series(folder).t_ns.tolist()
    return found


def test_a_run_without_series_has_an_empty_table(folder: Path) -> None:
    assert len(read_series(folder)) == 0
    assert SeriesWriter(folder).compact() is None
    assert SeriesWriter(folder).close_segment("p0001") is None


@given(batches=st.lists(st.lists(series_rows, max_size=5), max_size=4), compact=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[dict[str, Any]]], compact: bool
) -> None:
    folder = tmp_path_factory.mktemp("run")
    writer = SeriesWriter(folder)
    for number, rows in enumerate(batches):
        writer.write(batches_of(rows))
        if number % 2:
            writer.close_segment(f"p{number}")
    if compact:
        writer.compact()
    written = [row for rows in batches for row in rows]
    found = read_series(folder).records()
    # By repr, since 0.0 and -0.0 are equal.
    assert sorted(repr(sorted(row.items())) for row in found) == sorted(repr(sorted(row.items())) for row in written)
    assert [row["t_ns"] for row in found] == sorted(row["t_ns"] for row in written)


def test_batches_with_different_texts_are_written_as_one(folder: Path) -> None:
    rows = [row(1), row(2, metric="write_ios_count"), row(3)]
    SeriesWriter(folder).write([batch for each in rows for batch in batches_of([each])])
    assert read_series(folder).records() == rows


def test_equal_rows_are_kept(folder: Path) -> None:
    """On a virtual clock every point begins at zero, so equal rows are not copies of each other."""
    writer = SeriesWriter(folder)
    for name in ("p0001", "p0002"):
        writer.write(batches_of([row(0), row(0)]))
        writer.close_segment(name)
    assert times(folder) == [0, 0, 0, 0]
    writer.compact()
    assert times(folder) == [0, 0, 0, 0]


def test_rows_of_one_moment_keep_their_order(folder: Path) -> None:
    writer = SeriesWriter(folder)
    writer.write(batches_of([row(t_ns, value) for value in range(500) for t_ns in (2, 1)]))
    writer.compact()
    found = read_series(folder).records()
    assert [each["value"] for each in found] == [*range(500), *range(500)]


def test_a_segment_is_closed_by_rename(folder: Path) -> None:
    writer = SeriesWriter(folder)
    writer.write(batches_of([row(1)]))
    (part,) = (folder / "series").iterdir()
    assert part.name.endswith(".arrow.part")
    assert writer.close_segment("p0001") == folder / "series" / "p0001.arrow"
    assert [path.name for path in (folder / "series").iterdir()] == ["p0001.arrow"]


def test_a_name_used_before_gets_a_number(folder: Path) -> None:
    writer = SeriesWriter(folder)
    for t_ns in (1, 2, 3):
        writer.write(batches_of([row(t_ns)]))
        writer.close_segment("p0001")
    assert sorted(path.name for path in (folder / "series").iterdir()) == [
        "p0001-2.arrow",
        "p0001-3.arrow",
        "p0001.arrow",
    ]
    writer.write(batches_of([row(4)]))
    with pytest.raises(ValueError, match="cannot be named"):
        writer.close_segment("../p")


def test_compaction_leaves_one_compressed_file_in_order_of_time(folder: Path) -> None:
    writer = SeriesWriter(folder)
    for t_ns in (3, 1, 2):
        writer.write(batches_of([row(t_ns)]))
        writer.close_segment("p")
    writer.write(batches_of([row(0)]))
    assert writer.compact() == folder / "series.parquet"
    assert [path.name for path in folder.iterdir()] == ["series.parquet"]
    with pq.ParquetFile(folder / "series.parquet") as file:
        assert file.read()["t_ns"].to_pylist() == [0, 1, 2, 3]
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_resumed_run_adds_to_the_parquet_file(folder: Path) -> None:
    for t_ns in (2, 1):
        writer = SeriesWriter(folder)
        writer.write(batches_of([row(t_ns)]))
        writer.close_segment("p0001")
        assert times(folder) == sorted({2, t_ns})
        writer.compact()
    assert times(folder) == [1, 2]
    assert SeriesWriter(folder).compact() == folder / "series.parquet"


@pytest.mark.parametrize("removed", range(4))
def test_a_crash_before_all_segments_are_removed_doubles_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    writer = SeriesWriter(folder)
    for t_ns in range(3):
        writer.write(batches_of([row(t_ns)]))
        writer.close_segment(f"p{t_ns}")
    unlink, calls = Folder.unlink, 0

    def crash(folder: Folder, name: str) -> None:
        nonlocal calls
        if name.endswith(".arrow"):
            calls += 1
            if calls > removed:
                raise KeyboardInterrupt
        unlink(folder, name)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "unlink", crash)
        if removed < 3:
            with pytest.raises(KeyboardInterrupt):
                writer.compact()
        else:
            writer.compact()
    assert len(list(folder.glob("series/*"))) == 3 - removed
    assert times(folder) == [0, 1, 2]

    resumed = SeriesWriter(folder)
    resumed.write(batches_of([row(3)]))
    resumed.close_segment("p0")
    assert times(folder) == [0, 1, 2, 3]
    resumed.compact()
    assert times(folder) == [0, 1, 2, 3]
    assert [path.name for path in folder.iterdir()] == ["series.parquet"]


def test_of_a_segment_cut_off_at_any_byte_the_whole_batches_are_salvaged(folder: Path) -> None:
    writer = SeriesWriter(folder)
    ends, part = [0], folder
    for t_ns in range(3):
        writer.write(batches_of([row(t_ns)]))
        (part,) = (folder / "series").iterdir()
        ends.append(part.stat().st_size)
    whole = part.read_bytes()
    for length in range(0, len(whole), 7):
        part.write_bytes(whole[:length])
        assert times(folder) == [t_ns for t_ns in range(3) if length >= ends[t_ns + 1]]
    part.write_bytes(whole[: ends[2]] + bytes(len(whole) - ends[2]))
    assert times(folder) == [0, 1], "a power cut may leave zeros"
    SeriesWriter(folder).compact()
    assert times(folder) == [0, 1]
    assert not (folder / "series").exists()


def test_a_damaged_closed_segment_is_an_error_and_compaction_removes_nothing(folder: Path) -> None:
    writer = SeriesWriter(folder)
    writer.write(batches_of([row(1)]))
    path = writer.close_segment("p0001")
    assert path is not None
    path.write_bytes(path.read_bytes()[:-100])
    for read in (lambda: read_series(folder), writer.compact):
        with pytest.raises(RunFolderError, match=r"p0001\.arrow is damaged"):
            read()
    assert path.exists()


def test_a_damaged_parquet_file_is_an_error(folder: Path) -> None:
    (folder / "series.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(RunFolderError, match=r"series\.parquet is damaged"):
        read_series(folder)


def test_folders_named_like_partitions_add_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "host=a"
    folder.mkdir()
    writer = SeriesWriter(folder)
    writer.write(batches_of([row(1)]))
    writer.compact()
    assert read_series(folder).records() == [row(1)]


def test_a_failed_write_loses_only_its_own_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SeriesWriter(folder)
    writer.write(batches_of([row(1)]))

    class Failing:
        def write(self, _data: bytes) -> None:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(writer, "_file", Failing())
    with pytest.raises(IoFailed, match=r"cannot write to .*series: Input/output error"):
        writer.write(batches_of([row(2)]))
    writer.write(batches_of([row(3)]))
    assert times(folder) == [1, 3]
    writer.close_segment("p0001")
    writer.compact()
    assert times(folder) == [1, 3]


def test_the_run_folder_hands_out_writer_and_table(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, "record", {}) as run:
        run.series_writer().write(batches_of([row(1)]))
        assert run.series().records() == [row(1)]
        with pytest.raises(RunFolderError, match="is in use"):
            RunFolder.open(run.path).series_writer()


WRITING = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(":")
from assay.record.series import SeriesWriter, read_series
from series_rows import batches_of
folder = Path(sys.argv[1])
times = read_series(folder).t_ns.tolist()
t_ns = times[-1] + 1 if times else 0
row = dict(clock="wall", interval_ns=1, tier="client", host="h", source="host", entity="cpu", role="", kind="gauge",
           metric="user_share", value=1.0)
print("ready", flush=True)
writer = SeriesWriter(folder)
while True:
    writer.write(batches_of([{**row, "t_ns": t_ns}]))
    print(t_ns, flush=True)
    t_ns += 1
    if t_ns % 3 == 0:
        writer.close_segment(f"p{t_ns % 5}")
    if t_ns % 7 == 0:
        writer.compact()
"""


def test_killing_the_process_at_any_time_neither_loses_nor_doubles_rows(folder: Path) -> None:
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    for kill in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, os.fspath(folder), f"{SOURCE}:{SOURCE.parent / 'tests'}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        reported = [int(number) for number in process.communicate(timeout=60)[0].split()]
        found = times(folder)
        assert found == list(range(len(found))), f"kill {kill} of seed {seed}"
        assert len(found) >= max(reported, default=-1) + 1, f"kill {kill} of seed {seed} lost a row"
    assert found, "no process lived long enough to write"


def test_reading_while_another_process_writes_and_compacts_sees_every_row_once(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, os.fspath(folder), f"{SOURCE}:{SOURCE.parent / 'tests'}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        seen = 0
        for _ in range(100):
            found = times(folder)
            assert found == list(range(len(found)))
            assert len(found) >= seen
            seen = len(found)
    finally:
        process.kill()
        process.communicate(timeout=60)


SEGMENTS = 60
ROWS_OF_A_SEGMENT = 400


def test_many_segments_are_numbered_together_and_take_little_more_than_their_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading grows with rows, not with segments, and puts one column after the other in order."""
    writer = SeriesWriter(folder)
    for number in reversed(range(SEGMENTS)):
        begin = number * ROWS_OF_A_SEGMENT
        writer.write(batches_of(row(begin + place) for place in range(ROWS_OF_A_SEGMENT)))
        writer.close_segment(f"p{SEGMENTS - number:04d}")
    numbered, once = list[str](), series._Rows._numbered
    monkeypatch.setattr(series, "ROWS_AT_A_TIME", 10 * ROWS_OF_A_SEGMENT)
    monkeypatch.setattr(
        series._Rows, "_numbered", lambda rows, name, column: numbered.append(name) or once(rows, name, column)
    )

    table = read_series(folder)

    assert table.t_ns.tolist() == list(range(SEGMENTS * ROWS_OF_A_SEGMENT))
    assert numbered.count("metric") == SEGMENTS // 10


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_putting_rows_in_order_keeps_no_second_table(folder: Path) -> None:
    writer = SeriesWriter(folder)
    for number in reversed(range(5)):
        (one,) = batches_of([row(0)])
        part = one.where(np.zeros(10**5, np.int64))
        writer.write([replace(part, t_ns=np.arange(number * 10**5, (number + 1) * 10**5))])
        writer.close_segment(f"p{5 - number}")
    tracemalloc.start()
    try:
        rows = read_series(folder)
        now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = sum(column.nbytes for column in (rows.t_ns, rows.interval_ns, rows.value))
    size += sum(column.numbers.nbytes for column in rows.texts.values())
    assert rows.t_ns[0] == 0
    assert size <= now < 1.5 * size
    assert most < 2 * size

"""A series that unfolds to more than a machine has: it is refused before it is unfolded."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from assay.base.errors import RunFolderError
from assay.record import series
from assay.record.series import ROWS_MAX, SeriesWriter, read_series
from series_rows import SCHEMA, batches_of

WITHIN_BYTES = 2**29
"""What reading may add to the memory of a process: half a gigabyte, most of it libraries."""


def columns(count: int, *, text: str = "x") -> pa.Table:
    """Rows that are all the same, which compress to nothing."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * count, pa.int32()) if count < 10**6 else _zeros(count), [text]
    )
    numbers = {
        pa.int64(): pa.nulls(count, pa.int64()).fill_null(0),
        pa.float64(): pa.nulls(count, pa.float64()).fill_null(0),
    }
    arrays = [texts if field.type == pa.string() else numbers[field.type] for field in SCHEMA]
    return pa.table(arrays, pa.schema([field.with_type(one.type) for field, one in zip(SCHEMA, arrays, strict=True)]))


def _zeros(count: int) -> pa.Array:
    return pa.nulls(count, pa.int32()).fill_null(0)


def peak_bytes(run: Path) -> tuple[str, int]:
    """What reading a series says in a process of its own, and how much memory that took."""
    code = (
        "import sys, resource\n"
        "from pathlib import Path\n"
        "from assay.base.errors import AssayError\n"
        "from assay.record.series import read_series\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: print(len(read_series(Path(sys.argv[1]))))\n"
        "except AssayError as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    told, peak = done.stdout.splitlines()
    return told, int(peak)


def one_line(run: Path) -> str:
    """Rows of a series that was damaged on purpose, or nothing where that is said in one line."""
    try:
        return str(len(read_series(run)))
    except RunFolderError as error:
        if "\n" in str(error):
            raise AssertionError(f"several lines: {error}") from error
        return ""


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_small_file_of_thirty_million_rows(tmp_path: Path) -> None:
    with pq.ParquetWriter(tmp_path / "series.parquet", columns(1).schema, compression="zstd") as writer:
        million = columns(10**6)
        for _ in range(30):
            writer.write_table(million)
    assert (tmp_path / "series.parquet").stat().st_size < 2 * 10**6
    told, peak = peak_bytes(tmp_path)
    assert f"holds 30,000,000 rows; at most {ROWS_MAX:,} of a run are read" in told
    assert peak < WITHIN_BYTES


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_one_text_of_a_gigabyte(tmp_path: Path) -> None:
    """A dictionary of one long text takes nothing compressed, and the footer may claim anything."""
    pq.write_table(columns(10, text="x" * 2**25), tmp_path / "series.parquet", compression="zstd")
    assert (tmp_path / "series.parquet").stat().st_size < 2**20
    told, peak = peak_bytes(tmp_path)
    assert "series.parquet is damaged: a page unfolds to" in told
    assert peak < WITHIN_BYTES


def test_encodings_in_which_a_value_repeats_the_one_before(tmp_path: Path) -> None:
    table = pa.table(
        [["x" * 1000] * 5000 if field.type == pa.string() else [0] * 5000 for field in SCHEMA], schema=SCHEMA
    )
    encodings = {field.name: "DELTA_BYTE_ARRAY" for field in SCHEMA if field.type == pa.string()}
    pq.write_table(
        table, tmp_path / "series.parquet", use_dictionary=False, column_encoding=encodings, compression="zstd"
    )
    with pytest.raises(RunFolderError, match=r"series\.parquet is damaged: a page has encoding 7"):
        read_series(tmp_path)


@pytest.mark.parametrize("name", ["p0001.arrow", "p0001.arrow.part"])
def test_a_batch_whose_buffers_unfold_to_gigabytes(tmp_path: Path, name: str) -> None:
    (tmp_path / "series").mkdir()
    with ipc.new_stream(tmp_path / "series" / name, SCHEMA, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(columns(1, text="y" * 2**24).cast(SCHEMA).to_batches()[0])
    assert (tmp_path / "series" / name).stat().st_size < 2**20
    told, peak = peak_bytes(tmp_path)
    # Of a segment that was not closed what comes before is salvaged, and that is nothing.
    assert told == "0" if name.endswith(".part") else "p0001.arrow is damaged: a batch unfolds to more than" in told
    assert peak < WITHIN_BYTES


def test_a_message_that_claims_more_than_the_file_has(tmp_path: Path) -> None:
    (tmp_path / "series").mkdir()
    path = tmp_path / "series" / "p0001.arrow"
    with ipc.new_stream(path, SCHEMA) as writer:
        writer.write_batch(columns(10).cast(SCHEMA).to_batches()[0])
    whole = path.read_bytes()
    for at in range(8, len(whole) - 8, 8):
        path.write_bytes(whole[:at] + struct.pack("<q", 2**61) + whole[at + 8 :])
        assert one_line(tmp_path) in ("", "0", "10")


def test_rows_of_many_segments_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "ROWS_MAX", 25)
    writer = SeriesWriter(tmp_path)
    for number in range(3):
        writer.write(batches_of(columns(10).to_pylist()))
        writer.close_segment(f"p{number}")
    with pytest.raises(RunFolderError, match="holds 30 rows; at most 25"):
        read_series(tmp_path)
    assert writer.compact() is None, "what cannot be read is not merged"
    assert len(list((tmp_path / "series").iterdir())) == 3, "and nothing is removed"


def texts_without_end(path: Path) -> None:
    many = pa.array([f"entity {number}" for number in range(40_000)])
    table = columns(40_000).set_column(SCHEMA.names.index("entity"), SCHEMA.field("entity"), many)
    pq.write_table(table, path, compression="zstd")


def other_columns(path: Path) -> None:
    pq.write_table(pa.table({"t_ns": [1], "value": ["text"]}), path)


def nothing_of_a_value(path: Path) -> None:
    table = columns(3).set_column(10, "value", pa.nulls(3, pa.float64()))
    pq.write_table(table, path)


def merged_segments_that_are_no_list(path: Path) -> None:
    pq.write_table(columns(3).replace_schema_metadata({"assay.merged_segments": "5"}), path, compression="zstd")


@pytest.mark.parametrize(
    "write",
    [texts_without_end, other_columns, nothing_of_a_value, merged_segments_that_are_no_list, os.mkfifo, os.mkdir],
)
def test_what_is_no_series_is_one_line(tmp_path: Path, write: Callable[[Path], Any]) -> None:
    write(tmp_path / "series.parquet")
    with pytest.raises(RunFolderError, match=r"series\.parquet (is damaged|cannot be read): ") as caught:
        read_series(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["p0001.arrow", "p0001.arrow.part"])
@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/etc/hostname")])
def test_a_segment_is_a_regular_file(tmp_path: Path, name: str, plant: Callable[[Path], Any]) -> None:
    (tmp_path / "series").mkdir()
    plant(tmp_path / "series" / name)
    with pytest.raises(RunFolderError, match="cannot be read"):
        read_series(tmp_path)


def test_every_torn_file_is_one_line(tmp_path: Path) -> None:
    writer = SeriesWriter(tmp_path)
    writer.write(batches_of(columns(100).to_pylist()))
    path = writer.compact()
    assert path is not None
    whole = path.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 150, 1)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        one_line(tmp_path)

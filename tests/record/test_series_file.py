"""A series that is written at once: whole and by time, or not there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.record import series_file
from assay.record.series import PARQUET_NAME, read_series
from assay.record.series_file import SeriesFile
from series_rows import SCHEMA, batches_of, series_rows

READS = series_rows("block", "vda", "read_ios_count", [1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize("rows", [2, 2**17])
def test_rows_of_several_files_are_put_in_order_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(series_file, "GROUP_ROWS", rows)
    with SeriesFile(tmp_path) as file:
        for part in (READS[2:], READS[:2], series_rows("host", "cpu", "busy_share", [0.5] * 4)):
            file.write(batches_of(part))
    found = read_series(tmp_path)
    assert [t_ns // 10**9 for t_ns in found.t_ns.tolist()] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    reads = [row["value"] for row in found.records() if row["metric"] == "read_ios_count"]
    assert reads == [1.0, 2.0, 3.0, 4.0, 5.0]
    # Readers that do not number texts have plain ones.
    types = pq.read_schema(tmp_path / PARQUET_NAME)
    plain = [one.value_type if pa.types.is_dictionary(one) else one for one in types.types]
    assert (types.names, plain) == (SCHEMA.names, SCHEMA.types)
    assert [path.name for path in tmp_path.iterdir()] == [PARQUET_NAME]


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_without_rows_and_after_an_error_there_is_no_file(tmp_path: Path) -> None:
    with SeriesFile(tmp_path):
        pass
    file = SeriesFile(tmp_path)
    file.write(batches_of(READS) * 2**16)
    file.__exit__(ValueError, None, None)
    assert list(tmp_path.iterdir()) == []

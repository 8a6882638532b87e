"""Measured needs: the busiest hours' percentile by volume and role, how much of a week, and what is too short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.measured import MeasuredDemand, VolumeDemand, measure
from assay.insight.sizing.measured_need import derating_of, table_of
from assay.insight.sizing.need import NeedAsWritten, need_of
from assay.record.run_folder import RunFolder
from sizing_needs import need, of_the_day, recording

DAYS = 2
DAY_S = 86400


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> MeasuredDemand:
    path = recording(tmp_path_factory.mktemp("two") / "rec", seconds=DAYS * DAY_S, every_s=300, rate=of_the_day)
    return measure(path, percentile=0.95, busiest=4)


def test_the_busiest_hours_are_found_and_split_by_role(two_days: MeasuredDemand) -> None:
    data, log = two_days.roles["data"], two_days.roles["log"]
    # Hours 10 and 11 of both days: 3,000 a second give or take 5 %.
    assert 2900 < data.iops < 3160
    assert log.iops == pytest.approx(data.iops / 10, rel=0.01)
    assert (data.read_share, data.block_bytes) == (pytest.approx(0.7), 8192)
    assert (log.read_share, log.block_bytes) == (0.0, 16384)
    assert {one.name for one in two_days.volumes} == {"sda", "sdb"}


def test_it_says_how_well_a_week_is_covered(two_days: MeasuredDemand) -> None:
    assert two_days.coverage is not None
    assert two_days.coverage["hours_of_week"] == 48
    assert two_days.coverage["share"] == pytest.approx(48 / 168)
    assert "48 hours of the 168 of a week" in two_days.coverage["text"]
    assert "other 120 is not known" in two_days.coverage["text"]


def test_it_becomes_a_need(two_days: MeasuredDemand) -> None:
    made = need_of(table_of(two_days, None), "measured")
    (database,) = made.database
    assert database.size == 300_000_000_000
    assert database.ios == pytest.approx(two_days.roles["data"].iops * 1.1, rel=0.01)
    assert database.log == pytest.approx(1 / 11, rel=0.01)


def test_a_stated_need_keeps_what_was_not_measured(two_days: MeasuredDemand) -> None:
    stated = {"years": 2, "database": [{"name": "orders", "size": "1TB", "growth": "5%", "transactions": 7}]}
    made = need_of(table_of(two_days, stated), "both")
    (database,) = made.database
    assert (database.size, database.growth, made.years, database.transactions) == (10**12, 0.05, 2, None)
    assert database.ios > 3000


def test_a_recording_of_five_minutes_is_refused_and_may_be_accepted(tmp_path: Path) -> None:
    path = recording(tmp_path / "rec", seconds=300, every_s=10)
    with pytest.raises(UsageError, match="covers 5 min and has no busiest hours; record an hour at least"):
        measure(path, percentile=0.95, busiest=4)
    assert measure(path, percentile=0.95, busiest=4, short=True).roles["data"].iops == pytest.approx(1000)


def test_large_reads_are_scans_and_a_log_that_is_not_recorded_is_said() -> None:
    scanned = VolumeDemand(name="data", role="data", iops=800, bytes_per_s=2e8, read_share=0.99, block_bytes=262144)
    told = MeasuredDemand(source="r", percentile=0.95, volumes=[scanned], roles={"data": scanned}, size_bytes=10**12)
    (database,) = need_of(table_of(told, None), "measured").database
    assert (database.scan, database.scan_block, database.ios) == (2e8, 262144, 0)
    random = replace(scanned, block_bytes=8192)
    (database,) = need_of(table_of(replace(told, roles={"data": random}), None), "measured").database
    assert (database.scan, database.ios, database.log) == (None, 800, 0)


def test_several_databases_cannot_share_one_measured_load(two_days: MeasuredDemand) -> None:
    stated = {"database": [{"size": "1TB", "iops": 1}, {"size": "1TB", "iops": 1, "name": "b"}]}
    with pytest.raises(UsageError, match="2 databases; give one"):
        table_of(two_days, stated)


def test_a_measured_derating_takes_the_place_of_the_published_one(tmp_path: Path) -> None:
    common = {"part": "raw", "follows": "database", "point_ids": ["p0001"], "block_bytes": 8192, "read_share": 0.7,
              "database_iops": 1.0, "raw_iops": 1.0, "sentences": ["a gap"]}  # fmt: skip
    gaps = [{**common, "gap_share": share, "sequential": in_order}
            for share, in_order in ((0.30, False), (0.32, False), (-0.1, True))]  # fmt: skip
    study = {"name": "raw-vs-database", "title": "t", "question": "q", "factors": [], "comparison": None,
             "levels": {}, "order": [], "gaps": gaps}  # fmt: skip
    manifest = {"study": study, "parts": [], "answers": [], "verdict": []}
    with RunFolder.create(tmp_path, "study", manifest) as folder:
        path = folder.path
    asked = NeedAsWritten({"database": [{"size": "1TB", "iops": 100}]}, "need.toml", need())
    for keys, value, origin in derating_of(path):
        asked = asked.with_value(keys, value, origin)
        assert path.name in asked.origins[keys]
    assert asked.origins["rules", "derating_transactions"].endswith("mean of 2 repeats")
    # A database that reached more than the raw profile is not credited with it.
    assert (asked.need.rules.derating_transactions, asked.need.rules.derating_scans) == (0.31, 0.0)


def test_a_run_without_a_gap_gives_no_derating(tmp_path: Path) -> None:
    path = recording(tmp_path / "rec", seconds=60, every_s=10)
    with pytest.raises(UsageError, match="assay study run raw-vs-database"):
        derating_of(path)

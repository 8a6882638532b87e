"""Ticks summed, batched and written as rows of the series."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.targets.files.spec import VolumeSpec
from assay.targets.files.volume import OpenVolume
from assay.telemetry.columns import SeriesColumns
from assay.telemetry.ticks import BATCHES, batches, tick_sums
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec
from assay.workloads.io.plan import IoTiming
from assay.workloads.io.ticks import add_session, tick_length_s
from series_rows import rows_of


def tick(number: int, reads: int, mean_ns: float = 100.0, *, writes: int = 0, activity: int = 0) -> dict[str, Any]:
    def side(count: int) -> dict[str, Any]:
        latency = {"mean_ns": mean_ns, "p50_ns": 90, "p99_ns": 200, "max_ns": 300}
        return {"count": count, "bytes": count * 8192, **(latency if count else dict.fromkeys(latency))}

    return {
        "tick": number, "activity": activity, "volume": 0, "read": side(reads), "write": side(writes),
        "error_count": 0, "cpu_ns": 0,
    }  # fmt: skip


series = st.lists(st.integers(0, 1000), min_size=1, max_size=100)


@given(counts=series)
def test_sums_have_every_tick_and_lose_nothing(counts: list[int]) -> None:
    ticks = [tick(number, count) for number, count in enumerate(counts) if count]
    sums = tick_sums(ticks, 0, len(counts))

    assert [total["count"] for total in sums] == counts
    assert sum(total["latency_ns"] for total in sums) == pytest.approx(100.0 * sum(counts))


def test_sums_hold_only_the_ticks_asked_for() -> None:
    ticks = [tick(number, number) for number in range(10)]

    assert [total["count"] for total in tick_sums(ticks, 3, 6)] == [3, 4, 5]
    assert tick_sums(ticks, 6, 3) == []


@given(counts=series)
def test_batches_are_few_equal_and_keep_the_mean(counts: list[int]) -> None:
    table = batches([tick(number, count) for number, count in enumerate(counts)], 0, len(counts), 0.5)
    ticks_each = table["seconds"] / 0.5

    batched = table["total"]["iops"]
    assert len(batched) <= 2 * BATCHES
    assert len(batched) * ticks_each <= len(counts)
    used = counts[: int(len(batched) * ticks_each)]
    assert sum(batched) * table["seconds"] == pytest.approx(sum(used))


def test_batches_keep_reads_and_writes_apart() -> None:
    table = batches([tick(0, 10, writes=30), tick(1, 20, writes=0)], 0, 2, 1.0)

    assert table["read"]["iops"] == [10, 20]
    assert table["write"] == {"iops": [30, 0], "latency_mean_ns": [100.0, None]}
    assert table["total"]["iops"] == [40, 20]


@pytest.mark.parametrize("duration_s", [0.3, 1, 3, 10, 30, 300, 3600, 86400])
def test_a_point_has_enough_ticks_to_judge_and_few_enough_to_keep(duration_s: float) -> None:
    count = duration_s / tick_length_s(IoTiming(duration_s=duration_s))

    assert 5.9 < count < 300.1


def test_rows_of_the_series_name_the_volume_and_end_each_interval() -> None:
    spec = VolumeSpec(name="f", kind="null", path=None)
    volume = OpenVolume(spec=spec, roles=("data",), size_bytes=1 << 20, sector_bytes=512)
    columns = SeriesColumns()
    add_session(columns, [tick(4, 7)], 1_000, 0.1, IoWorkloadSpec(activities=(IoActivity(),)), [volume])
    rows = rows_of(columns.take())

    assert {row["t_ns"] for row in rows} == {1_000 + 5 * 100_000_000}
    assert {(row["entity"], row["role"], row["tier"], row["source"]) for row in rows} == {
        ("f", "data", "client", "assay")
    }
    values = {row["metric"]: (row["kind"], row["value"]) for row in rows}
    assert values["read_ios_count"] == ("delta", 7.0)
    assert values["read_latency_p99_ns"] == ("gauge", 200.0)
    assert "write_latency_mean_ns" not in values


def test_activities_that_run_at_once_have_rows_of_their_own() -> None:
    spec = VolumeSpec(name="f", kind="null", path=None)
    volume = OpenVolume(spec=spec, roles=("data",), size_bytes=1 << 20, sector_bytes=512)
    workload = IoWorkloadSpec(activities=(IoActivity(name="reads"), IoActivity(name="log", role="log")))
    columns = SeriesColumns()
    add_session(columns, [tick(0, 1), tick(0, 1, activity=1)], 0, 1.0, workload, [volume])
    rows = rows_of(columns.take())

    assert {(row["entity"], row["role"]) for row in rows} == {("f/reads", "data"), ("f/log", "log")}

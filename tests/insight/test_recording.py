"""The load that a recording tells of: percentiles and means by hand, sums at each moment, devices upon others."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.insight.recording import HOUR_NS, SECOND_NS, busiest_hours, device_rows, load_of_all, loads_of, trends
from assay.record.flight import read_recording, spreads
from assay.record.rows import Rows
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter
from series_rows import series_of

START = 1795460400 * SECOND_NS


def row(
    step: int, entity: str, metric: str, value: float, *, host: str = "h", interval_s: int = 10
) -> dict[str, object]:
    return {
        "t_ns": START + (step + 1) * interval_s * SECOND_NS, "clock": "wall", "interval_ns": interval_s * SECOND_NS,
        "tier": "storage", "host": host, "source": "block", "entity": entity, "role": "", "metric": metric,
        "kind": "delta", "value": value,
    }  # fmt: skip


def frame(*rows: dict[str, object]) -> Rows:
    return series_of(rows)


def of_device(
    entity: str, reads: list[float], latencies: list[float | None], host: str = "h"
) -> list[dict[str, object]]:
    found = []
    for step, (count, latency) in enumerate(zip(reads, latencies, strict=True)):
        found.append(row(step, entity, "read_ios_count", count, host=host))
        found.append(row(step, entity, "write_ios_count", 0.0, host=host))
        found.append(row(step, entity, "read_bytes", count * 8192, host=host))
        if latency is not None:
            found.append(row(step, entity, "read_latency_mean_ns", latency, host=host))
    return found


def test_rates_are_of_the_interval_and_means_are_over_ios() -> None:
    rows = device_rows(frame(*of_device("sda", [1000.0, 0.0, 3000.0], [1e6, None, 5e6])))
    (load,) = loads_of(rows)

    assert (load.iops_peak, load.peak_ns) == (300.0, START + 30 * SECOND_NS)
    # Of 0, 100 and 300 the value that 95 % do not exceed is the third: between them lies none that was recorded.
    assert load.iops_p95 == pytest.approx(300.0)
    assert load.bytes_per_s_peak == pytest.approx(300 * 8192)
    # A thousand at 1 ms and three thousand at 5 ms: the mean of the intervals' means would be 3 ms.
    assert load.read_latency_ns == pytest.approx(4e6)
    assert (load.read_share, load.size_mean_bytes, load.share) == (1.0, 8192, 1.0)


def test_peaks_at_different_times_are_not_added() -> None:
    one, other = [1000.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1000.0]
    rows = device_rows(frame(*of_device("sda", one, [None] * 4), *of_device("sdb", other, [None] * 4, host="g")))
    load = load_of_all(rows)
    assert load is not None
    assert load.iops_peak == 100.0
    assert [one.share for one in loads_of(rows)] == [0.5, 0.5]


def test_devices_that_lie_on_others_have_no_share_and_are_in_no_sum() -> None:
    rows = device_rows(frame(*(one for name in ("sda", "dm-0") for one in of_device(name, [100.0] * 3, [None] * 3))))
    load = load_of_all(rows)
    assert load is not None
    assert load.iops_peak == 10.0
    assert {one.name: one.share for one in loads_of(rows)} == {"sda": 1.0, "dm-0": None}


def test_reads_and_writes_together_as_sar_has_them() -> None:
    rows = [row(step, "vda", metric, value) for step in range(3)
            for metric, value in (("ios_count", 50.0), ("read_bytes", 4096.0), ("latency_mean_ns", 2e6))]  # fmt: skip
    (load,) = loads_of(device_rows(frame(*rows)))
    assert (load.iops_p95, load.read_share, load.latency_ns, load.read_latency_ns) == (5.0, None, 2e6, None)


def test_hours_are_ranked_by_what_was_done_in_them() -> None:
    rows = [row(step, "sda", "read_ios_count", 1000.0 if step >= 360 else 10.0) for step in range(720)]
    (first, iops, _), (second, fewer, _) = busiest_hours(device_rows(frame(*rows)))
    assert (first - second, iops, fewer) == (HOUR_NS, 100.0, 1.0)


def test_what_has_no_interval_or_too_few_says_nothing() -> None:
    rows = device_rows(frame(*of_device("sda", [1.0, 2.0], [None, None])))
    assert loads_of(rows) == []
    assert load_of_all(rows) is None
    none = frame(row(0, "sda", "read_latency_mean_ns", 1.0, interval_s=0))
    assert not len(device_rows(none))


def test_a_trend_is_the_median_slope_and_says_when_it_is_full() -> None:
    gib, day = float(2**30), 24 * HOUR_NS
    rows = [
        {
            "t_ns": number * day // 24, "interval_ns": HOUR_NS, "host": "db1", "source": "volume", "entity": "/data",
            "metric": metric, "value": value,
        }
        for number in range(1, 73)
        for metric, value in (("used_bytes", 10 * gib + number / 24 * gib), ("size_bytes", 100 * gib))
    ]  # fmt: skip

    (found,) = trends(series_of(rows))

    assert found.per_day == pytest.approx(gib)
    assert found.full_days is not None
    assert found.full_days[0] == pytest.approx(87.0, abs=0.1)
    assert trends(series_of(rows[:20])) == []


def test_percentiles_of_a_flight_recording_are_those_of_its_seconds(tmp_path: Path) -> None:
    begin_ns = 1_800_000_000 * 10**9
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 601):
            ios = 1000.0 if number % 10 == 0 else 100.0
            readings = [
                Reading("sda", "ios_count", "delta", ios), Reading("sda", "bytes", "delta", ios * 8192),
                Reading("sda", "read_ios_count", "delta", ios), Reading("sda", "read_bytes", "delta", ios * 8192),
            ]  # fmt: skip
            t_ns = begin_ns + number * 10**9
            writer.add(readings, t_ns=t_ns, interval_ns=10**9, tier="storage", source="block")
        readings = [Reading("sdb", "ios_count", "delta", 1.0)]
        writer.add(readings, t_ns=t_ns + 60 * 10**9, interval_ns=60 * 10**9, tier="storage", source="block")
        writer.commit()
    # What is left are minutes, whose means know nothing of the peaks.
    (tmp_path / "recording-000001.sqlite").unlink()
    recorded = read_recording(tmp_path)

    (plain,) = loads_of(device_rows(recorded))
    (load,) = loads_of(device_rows(recorded), spreads(tmp_path, ["ios_count", "bytes"]))

    assert plain.iops_peak == pytest.approx(190.0)
    assert load.iops_peak == pytest.approx(1000.0)
    assert load.iops_p95 == pytest.approx(1000.0, rel=0.05)

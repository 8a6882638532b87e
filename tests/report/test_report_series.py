"""Rows of the timeline: sums over volumes, means weighted by their I/Os, percentiles never averaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sample import row

from assay.document.series import RESENT_PANEL, SeriesClock, hosts_text
from assay.document.series_charts import PAGE_HEIGHT, SPACING, panel_height
from assay.record.machines import without_twins
from assay.record.rows import Rows, joined_rows
from assay.record.source import RunFacts
from assay.report.sections.series import ROLE_PANELS, VOLUME_PANEL, point_bands, timeline_rows
from series_rows import series_of

SECOND = 10**9


def frame(*rows: dict[str, Any]) -> Rows:
    return series_of(rows)


def columns(rows: Rows, *names: str) -> list[tuple[str, ...]]:
    return list(zip(*(rows.texts[name].column() for name in names), strict=True))


def values(rows: list[dict[str, Any]], panel: str, series: str) -> list[float | None]:
    return [row["value"] for row in rows if row["panel"].startswith(panel) and row["series"] == series]


def volumes(metric: str, first: float, second: float, t_ns: int = SECOND) -> list[dict[str, Any]]:
    return [row(t_ns, "assay", "a", metric, first), row(t_ns, "assay", "b", metric, second)]


def test_ios_of_volumes_add_up() -> None:
    rows = timeline_rows(frame(*volumes("read_ios_count", 100.0, 50.0)), SeriesClock(0, 1.0, 1.0), [])
    assert values(rows, "I/Os per second", "read") == [150.0]


def test_ios_of_each_volume_stand_upon_each_other_reads_and_writes_together() -> None:
    table = frame(*volumes("read_ios_count", 100.0, 50.0), *volumes("write_ios_count", 10.0, 0.0, 2 * SECOND))
    rows = timeline_rows(table, SeriesClock(0, 2.0, 1.0), [])
    assert values(rows, VOLUME_PANEL, "a") == [100.0, 10.0]
    assert values(rows, VOLUME_PANEL, "b") == [50.0, 0.0]

    activities = table.renamed("entity", lambda entity: f"{entity}/reads")
    rows = timeline_rows(joined_rows([table, activities]), SeriesClock(0, 2.0, 1.0), [])
    assert values(rows, VOLUME_PANEL, "a") == [200.0, 20.0]

    alone = timeline_rows(table.of(entity="a"), SeriesClock(0, 2.0, 1.0), [])
    assert VOLUME_PANEL not in {row["panel"] for row in alone}


def test_a_mean_is_weighted_by_the_ios_it_stands_for() -> None:
    table = frame(*volumes("read_ios_count", 300.0, 100.0), *volumes("read_latency_mean_ns", 1e6, 5e6))
    assert values(timeline_rows(table, SeriesClock(0, 1.0, 1.0), []), "latency", "read mean") == [2.0]


def test_of_percentiles_the_largest_is_shown() -> None:
    table = frame(*volumes("write_latency_p99_ns", 3e6, 9e6))
    assert values(timeline_rows(table, SeriesClock(0, 1.0, 1.0), []), "latency", "write p99") == [9.0]


def test_data_and_log_have_latencies_of_their_own() -> None:
    table = frame(*volumes("write_ios_count", 300.0, 100.0), *volumes("write_latency_mean_ns", 1e6, 5e6),
                  *volumes("write_latency_p99_ns", 3e6, 9e6))  # fmt: skip
    roles = table.texts["entity"].renamed({"a": "data", "b": "log"}.__getitem__)
    table = replace(table, texts={**table.texts, "role": roles})
    rows = timeline_rows(table, SeriesClock(0, 1.0, 1.0), [])
    assert {row["series"]: row["value"] for row in rows if row["panel"] == ROLE_PANELS["write"]} == {
        "data": 1.0, "log": 5.0
    }  # fmt: skip
    assert values(rows, "p99", "write p99") == [9.0]


def test_wide_steps_give_rates_not_sums() -> None:
    table = frame(*(row(second * SECOND, "assay", "a", "read_ios_count", 100.0) for second in range(1, 11)))
    assert values(timeline_rows(table, SeriesClock(0, 10.0, 5.0), []), "I/Os per second", "read") == [100.0, 100.0]


def test_a_line_breaks_where_nothing_was_recorded() -> None:
    table = frame(*(row(second * SECOND, "assay", "a", "read_ios_count", 100.0) for second in (1, 2, 8, 9)))
    assert values(timeline_rows(table, SeriesClock(0, 9.0, 1.0), []), "I/Os per second", "read") == [
        100.0,
        100.0,
        None,
        100.0,
        100.0,
    ]


def test_telemetry_coarser_than_the_steps_keeps_its_line() -> None:
    table = frame(*(row(second * SECOND, "host", "cpu", "user_share", 0.5) for second in (1, 2, 3, 8)))
    rows = timeline_rows(table, SeriesClock(0, 8.0, 0.25), [])
    assert values(rows, "host CPU", "user") == [50.0, 50.0, 50.0, None, 50.0]


def test_only_the_device_of_the_target_is_shown() -> None:
    table = frame(*(row(SECOND, "block", device, "read_bytes", 2.0**20) for device in ("vda", "vda1")))
    rows = timeline_rows(table, SeriesClock(0, 1.0, 1.0), [(None, "vda")])
    assert values(rows, "device (MiB/s)", "read") == [1.0]


def test_segments_sent_again_are_shown_of_each_interface() -> None:
    names = ("storage_segments_out_count", "storage_segments_retransmitted_count")
    table = frame(*(row(second * SECOND, "net", "eth1", name, count)
                    for second, counts in ((1, (1000.0, 0.0)), (2, (500.0, 5.0)), (3, (0.0, 0.0)))
                    for name, count in zip(names, counts, strict=True)))  # fmt: skip
    rows = timeline_rows(table, SeriesClock(0, 3.0, 1.0), [])
    assert values(rows, RESENT_PANEL, "eth1") == [0.0, 1.0]


def test_shares_are_shown_in_percent() -> None:
    rows = timeline_rows(frame(row(SECOND, "host", "cpu", "user_share", 0.25)), SeriesClock(0, 1.0, 1.0), [])
    assert values(rows, "host CPU", "user") == [25.0]


# Several hosts


def of_hosts(*rows: tuple[str, dict[str, Any]]) -> Rows:
    return frame(*({**one, "host": host} for host, one in rows))


def test_counts_of_hosts_add_up_and_shares_are_means() -> None:
    table = of_hosts(
        *((host, row(SECOND, "assay", "null", "read_ios_count", count)) for host, count in (("a", 100.0), ("b", 50.0))),
        *((host, row(SECOND, "host", "cpu", "user_share", share)) for host, share in (("a", 0.2), ("b", 0.6))),
        *((host, row(SECOND, "block", "vda", "queue_mean_count", queue)) for host, queue in (("a", 3.0), ("b", 4.0))),
        *(
            (host, row(SECOND, "assay", "null", "read_latency_mean_ns", mean))
            for host, mean in (("a", 1e6), ("b", 4e6))
        ),
    )
    rows = timeline_rows(table, SeriesClock(0, 1.0, 1.0), [])
    assert values(rows, "I/Os per second", "read") == [150.0]
    assert values(rows, "host CPU", "user") == [40.0]
    assert values(rows, "device queue", "mean queue") == [7.0]
    assert values(rows, "latency", "read mean") == [2.0]
    assert "sums over 2 hosts, shares are their means" in hosts_text(table)
    assert hosts_text(frame(*volumes("read_ios_count", 1.0, 1.0))) == ""


def test_no_sum_lacks_a_host_that_counts_at_other_moments() -> None:
    def ended(host: str, step: int) -> tuple[str, dict[str, Any]]:
        return host, {**row((step + 1) * SECOND, "assay", "null", "read_ios_count", 400.0), "interval_ns": 4 * SECOND}

    table = of_hosts(*(ended("a", step) for step in (3, 7, 11)), *(ended("b", step) for step in (5, 9, 13)))
    rows = timeline_rows(table, SeriesClock(0, 14.0, 1.0), [])
    assert values(rows, "I/Os per second", "read") == [200.0] * 6

    # One interval that ends a moment late counts in the step after its own.
    late = of_hosts(
        *(("a", row(second * SECOND, "assay", "null", "read_ios_count", 100.0)) for second in (1, 2, 3)),
        *(("b", row(t_ns, "assay", "null", "read_ios_count", 50.0)) for t_ns in (SECOND, 2 * SECOND + 1, 3 * SECOND)),
    )
    assert values(timeline_rows(late, SeriesClock(0, 3.0, 1.0), []), "I/Os per second", "read") == [150.0] * 3


def test_a_host_that_is_away_is_in_no_sum() -> None:
    table = of_hosts(
        *(("a", row(second * SECOND, "assay", "null", "read_ios_count", 100.0)) for second in range(1, 11)),
        *(("b", row(second * SECOND, "assay", "null", "read_ios_count", 50.0)) for second in (1, 2, 9, 10)),
    )
    found = values(timeline_rows(table, SeriesClock(0, 10.0, 1.0), []), "I/Os per second", "read")
    assert (found[0], found[4], found[9]) == (150.0, 100.0, 150.0)


def test_devices_of_one_machine_count_once_and_each_by_its_role() -> None:
    data, log = ({**row(SECOND, "block", name, "read_bytes", 2.0**20), "role": role}
                 for name, role in (("vda", "data"), ("vdb", "log")))  # fmt: skip
    table = of_hosts(
        ("a", data), ("b", {**data, "role": ""}), ("b", log), ("a", {**log, "role": ""}), ("c", data),
        ("a", row(SECOND, "host", "cpu", "user_share", 0.2)), ("b", row(SECOND, "host", "cpu", "user_share", 0.2)),
        ("a", row(SECOND, "assay", "null", "read_ios_count", 7.0)),
        ("b", row(SECOND, "assay", "null", "read_ios_count", 7.0)),
    )  # fmt: skip
    hosts = [{"name": "a", "machine": "m"}, {"name": "b", "machine": "m"}, {"name": "c", "machine": "n"}]
    alone = without_twins(table, hosts)
    kept = columns(alone, "host", "source", "entity", "role")
    assert kept == [
        ("a", "block", "vda", "data"), ("b", "block", "vdb", "log"), ("c", "block", "vda", "data"),
        ("a", "host", "cpu", ""), ("a", "assay", "null", ""), ("b", "assay", "null", ""),
    ]  # fmt: skip
    rows = timeline_rows(alone, SeriesClock(0, 1.0, 1.0), [])
    assert values(rows, "device (MiB/s)", "read") == [3.0]
    assert values(rows, "I/Os per second", "read") == [14.0]

    # A run of before, which does not know, is left as it is.
    assert len(without_twins(table, [{"name": name} for name in "abc"])) == len(table)


def test_what_a_server_counts_counts_once_and_each_of_its_databases_by_itself() -> None:
    def counted(host: str, database: str, metric: str, value: float) -> tuple[str, dict[str, Any]]:
        return host, row(SECOND, "postgresql", database, metric, value)

    table = of_hosts(*(
        counted(host, database, metric, value)
        for host, database in (("a", "one"), ("b", "two"), ("c", "one"))
        for metric, value in (("log_bytes", 2.0**20), ("commits_count", 5.0))
    ))  # fmt: skip
    hosts = [{"name": host, "servers": {database: server}}
             for host, database, server in (("a", "one", "s"), ("b", "two", "s"), ("c", "one", "t"))]  # fmt: skip
    kept = columns(without_twins(table, hosts), "host", "entity", "metric")
    assert kept == [
        ("a", "one", "log_bytes"), ("a", "one", "commits_count"), ("b", "two", "commits_count"),
        ("c", "one", "log_bytes"), ("c", "one", "commits_count"),
    ]  # fmt: skip


def test_a_host_s_own_device_is_shown_where_another_host_has_one_of_its_name() -> None:
    table = of_hosts(*((host, row(SECOND, "block", device, "read_bytes", 2.0**20))
                       for host in "ab" for device in ("vda", "vdb")))  # fmt: skip
    rows = timeline_rows(table, SeriesClock(0, 1.0, 1.0), [("a", "vda"), ("b", "vdb")])
    assert values(rows, "device (MiB/s)", "read") == [2.0]


@pytest.mark.parametrize("panels", [1, 7, 9, 14])
def test_all_panels_fit_a_page(panels: int) -> None:
    assert panels * panel_height(panels) + (panels - 1) * SPACING <= PAGE_HEIGHT


@pytest.mark.parametrize("count", [3, 30])
def test_labels_of_points_never_overlap(count: int) -> None:
    points = [
        {"id": f"p{n:04d}", "part": "oltp" if n < count / 2 else "dss", "started_utc_ns": n * 2 * SECOND,
         "warmup_s": 0.5, "measured_s": 1.0}
        for n in range(count)
    ]  # fmt: skip
    bands = point_bands(RunFacts({}, list(points)), SeriesClock(0, count * 2.0, 1.0))
    labels = [band["label"] for band in bands if band["label"]]
    assert labels == ([f"p{n:04d}" for n in range(3)] if count == 3 else ["oltp", "dss"])
    assert len(bands) == count


def test_drives_have_their_heat_and_what_throttles_and_clouds_their_credit() -> None:
    hot = [row(SECOND, "drive", "nvme0n1", "temperature_celsius", 81.0),
           row(SECOND, "drive", "nvme1n1", "temperature_celsius", 60.0)]  # fmt: skip
    throttled = [row(SECOND, "drive", "nvme0n1", "throttled_share", share) for share in (0.0, 0.5)]
    credit = [row(SECOND, "model", name, "burst_balance_share", left) for name, left in (("v01", 0.2), ("v02", 0.0))]
    clock = SeriesClock(0, 1.0, 1.0)

    cool = timeline_rows(frame(*hot, throttled[0]), clock, [])
    assert values(cool, "drive (C)", "hottest drive") == [81.0]
    assert not any(one["panel"].startswith("throttled") for one in cool)
    rows = timeline_rows(frame(*hot, throttled[1], *credit), clock, [])
    assert values(rows, "throttled", "most of a drive") == [50.0]
    assert values(rows, "burst credit", "mean of volumes") == [10.0]

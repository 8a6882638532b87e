"""SQL Server's collector on rows as the vendor's reference describes them; not verified on SQL Server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from assay.record.machines import OF_ONE_DATABASE
from assay.telemetry.collectors import mssql
from assay.telemetry.collectors.database import Counters
from assay.telemetry.collectors.mssql import MssqlCollector

SECOND_NS = 10**9
NAMES = {"tpcc": "first", "tpcc2": "second"}


class Server:
    """Answers each query by the view it asks."""

    def __init__(self, step: int) -> None:
        self.step = step

    def query(self, sql: str, params: object = ()) -> list[tuple[Any, ...]]:
        del params
        views: dict[str, list[tuple[Any, ...]]] = {
            "dm_io_virtual_file_stats": [
                ("tpcc", 0, "rows", 100 * self.step, 819_200 * self.step, 200 * self.step, 50, 409_600, 60, 2**30),
                ("tpcc", 0, "p1", 20 * self.step, 4096 * self.step, 40 * self.step, 5, 8192 * self.step, 60, 2**20),
                ("tpcc", 1, "tpcc_log", 0, 0, 0, 40 * self.step, 20_000 * self.step, 80 * self.step, 2**20),
                ("tpcc2", 0, "rows", 1, 8192, 1, 1, 8192, 1, 2**30),
                ("master", 0, "master", 9, 9, 9, 9, 9, 9, 9),
            ],
            "dm_os_wait_stats": [
                ("WRITELOG", 30 * self.step, 90 * self.step),
                ("PAGEIOLATCH_SH", 5, 10),
                ("PAGEIOLATCH_EX", 5, 10),
                ("LCK_M_X", 1, 7),
            ],
            "dm_os_performance_counters": [
                ("Transactions/sec  ", "tpcc  ", 500 * self.step),
                ("Transactions/sec", "_Total", 9999),
                ("Log Flushes/sec", "tpcc", 45 * self.step),
                ("Batch Requests/sec", "", 700 * self.step),
                ("Page lookups/sec", "", 10_000 * self.step),
                ("Page reads/sec", "", 1_000 * self.step),
                ("Checkpoint pages/sec", "", 3 * self.step),
                ("Number of Deadlocks/sec", "_Total", 2),
                ("Number of Deadlocks/sec", "Key", 2),
            ],
            "dm_os_sys_info": [(datetime(2026, 1, 1),)],
        }
        return next(rows for view, rows in views.items() if view in sql)

    def close(self) -> None:
        pass


def readings() -> dict[tuple[str, str], float]:
    collector = MssqlCollector(lambda: Server(1), NAMES)
    before, after = (collector.read(Server(step)) for step in (1, 2))
    timed = [
        Counters(found.counts, found.gauges, found.identity, t_ns=number * SECOND_NS)
        for number, found in enumerate((before, after))
    ]
    return {(found.entity, found.metric): found.value for found in collector.readings(timed[0], timed[1], SECOND_NS)}


def test_files_waits_and_counters_become_metrics() -> None:
    found = readings()
    assert found["first", "read_bytes"] == 819_200 + 4096
    assert found["first", "read_latency_mean_ns"] == 2e6
    assert found["first", "log_bytes"] == 20_000
    assert found["first", "log_write_latency_mean_ns"] == 2e6
    assert found["first", "log_flushes_count"] == 45
    assert found["first", "commits_count"] == 500
    assert found["first", "size_bytes"] == 2**30 + 2 * 2**20
    assert found["second", "read_bytes"] == 0
    assert found["first", "log_wait_time_ns"] == 90e6
    assert found["first", "page_reads_count"] == 1000
    assert found["first", "checkpoint_written_bytes"] == 3 * 8192
    assert found["first", "deadlocks_count"] == 0
    assert {entity: value for (entity, metric), value in found.items() if metric == "file_written_bytes"} == {
        "first/rows": 0, "first/p1": 8192, "first/tpcc_log": 20_000, "second/rows": 0
    }  # fmt: skip
    assert "master" not in {entity.partition("/")[0] for entity, _ in found}


def test_it_is_known_which_figures_are_one_databases() -> None:
    own, found = OF_ONE_DATABASE["mssql"], readings()
    assert {metric for entity, metric in found if entity.partition("/")[0] == "second"} <= own
    assert not own & {metric for metric, _ in mssql._OF_SERVER.values()}
    assert not own & {metric for _, metric in found if "wait" in metric}


def test_waits_of_one_kind_are_added_up() -> None:
    assert mssql.wait_counts([("PAGEIOLATCH_SH", 5, 10), ("LCK_M_X", 1, 7), ("WRITELOG", 2, 3)]) == {
        "page_waits_count": 5, "page_wait_time_ns": 10e6, "lock_waits_count": 1, "lock_wait_time_ns": 7e6,
        "log_waits_count": 2, "log_wait_time_ns": 3e6,
    }  # fmt: skip


def test_statements_that_may_hold_a_password_are_left_out() -> None:
    def query(*_: Any) -> list[tuple[Any, ...]]:
        return [("0x1", "SELECT 1", 3, 1500, 3, 9, 1), ("0x2", "ALTER LOGIN x WITH PASSWORD = 'y'", 1, 1, 0, 0, 0)]

    assert mssql.statements(query) == {
        "0x1": {"text": "SELECT 1", "calls_count": 3, "time_ns": 1.5e6, "rows_count": 3, "page_requests_count": 9,
                "page_reads_count": 1, "read_bytes": 8192}
    }  # fmt: skip


def test_tables_have_what_was_looked_up_and_changed() -> None:
    assert mssql.tables(lambda *_: [("stock", 10, 1, 2, 3, 4)]) == {
        "stock": {"fetched_count": 10, "inserted_count": 1, "updated_count": 2, "deleted_count": 3, "time_ns": 4e6}
    }

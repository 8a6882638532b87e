"""Storage beside transactions: figures follow from rows by hand, windows add up, and what is not known stays None."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.record.rows import Rows
from assay.telemetry.summary import folded, summarise
from assay.workloads.databases.storage import roles_of, storage, volumes_of
from series_rows import batches_of

SECOND_NS = 10**9
LATENCIES = ("read_latency_mean_ns", "write_latency_mean_ns")

Row = dict[str, Any]


def row(second: int, source: str, entity: str, metric: str, value: float, kind: str = "delta") -> Row:
    return {"t_ns": (second + 1) * SECOND_NS, "interval_ns": SECOND_NS, "source": source, "entity": entity,
            "metric": metric, "kind": kind, "value": value}  # fmt: skip


def device_rows(second: int, device: str, reads: float, writes: float, read_ns: float, write_ns: float) -> list[Row]:
    rows = [row(second, "block", device, "read_ios_count", reads),
            row(second, "block", device, "read_bytes", reads * 8192),
            row(second, "block", device, "write_ios_count", writes),
            row(second, "block", device, "write_bytes", writes * 16384)]  # fmt: skip
    if reads:
        rows.append(row(second, "block", device, "read_latency_mean_ns", read_ns, "gauge"))
    if writes:
        rows.append(row(second, "block", device, "write_latency_mean_ns", write_ns, "gauge"))
    return rows


def database_rows(second: int, **counts: float) -> list[Row]:
    return [row(second, "postgresql", "db", metric, value) for metric, value in counts.items()]


def host_rows(second: int, user: float, system: float, recorder: float = 0.0) -> list[Row]:
    return [row(second, "host", "cpu", "user_share", user, "gauge"),
            row(second, "host", "cpu", "system_share", system, "gauge"),
            row(second, "assay", "recorder", "cpu_share", recorder, "gauge")]  # fmt: skip


def two_seconds() -> list[Row]:
    rows = device_rows(0, "vda", 100, 300, 1e6, 2e6) + device_rows(1, "vda", 300, 100, 3e6, 4e6)
    for second in (0, 1):
        rows += database_rows(second, log_bytes=1000.0, log_flushes_count=50.0, log_flush_time_ns=50 * 4e5,
                              log_writes_count=60.0, page_requests_count=1000.0, page_reads_count=100.0,
                              checkpoints_count=float(second))  # fmt: skip
        rows += host_rows(second, 0.5, 0.2, 0.02)
    return rows


def of_two_seconds(**fields: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"devices_by_role": {"data": ["vda"], "log": ["vda"]}, "transactions_count": 200,
                             "client_cpu_ns": 0.4 * SECOND_NS, "is_local": True, "cpu_count": 2}  # fmt: skip
    return storage(batches_of(two_seconds()), 0, 2 * SECOND_NS, **(asked | fields))


def test_figures_of_a_device_are_weighted_by_its_ios() -> None:
    (device,) = of_two_seconds()["devices"]
    assert device == {
        "device": "vda", "roles": ["data", "log"], "read_iops": 200.0, "write_iops": 200.0,
        "read_bytes_per_s": 200 * 8192, "write_bytes_per_s": 200 * 16384,
        "read_latency_mean_ns": (100 * 1e6 + 300 * 3e6) / 400, "write_latency_mean_ns": (300 * 2e6 + 100 * 4e6) / 400,
        "read_size_mean_bytes": 8192, "write_size_mean_bytes": 16384, "read_share": 0.5,
    }  # fmt: skip


def test_bytes_stand_beside_the_transactions_of_the_same_window() -> None:
    found = of_two_seconds()
    assert found["read_bytes_per_transaction"] == 400 * 8192 / 200
    assert found["written_bytes_per_transaction"] == 400 * 16384 / 200
    assert found["log_bytes_per_transaction"] == 10
    assert found["bytes_from"] == "devices"
    assert found["log_flush_latency_mean_ns"] == pytest.approx(4e5)
    assert found["log_flushes_per_s"] == 50
    assert found["buffer_hit_share"] == 0.9
    assert found["checkpoints_count"] == 1


def test_the_server_has_what_client_and_recorder_left() -> None:
    assert of_two_seconds()["server_cpu_share"] == pytest.approx(0.7 - (0.2 + 0.02) / 2)
    assert of_two_seconds(is_local=False)["server_cpu_share"] is None
    assert of_two_seconds(client_cpu_ns=None)["server_cpu_share"] is None
    assert of_two_seconds(client_cpu_ns=10 * SECOND_NS)["server_cpu_share"] == 0


def test_without_rows_nothing_is_known() -> None:
    found = storage([], 0, SECOND_NS, {"data": ["vda"]}, 10, 1.0, True)
    assert found["devices"] == []
    known = {name for name, value in found.items() if value not in (None, [])}
    assert known == {"seconds", "database"}
    assert set(found["database"].values()) == {None}
    assert roles_of(found) == {}


def test_without_transactions_there_is_nothing_per_transaction() -> None:
    found = of_two_seconds(transactions_count=0)
    assert {found[f"{what}_bytes_per_transaction"] for what in ("read", "written", "log")} == {None}


def test_a_remote_server_is_judged_by_what_it_saw() -> None:
    rows = database_rows(0, read_bytes=8192.0 * 10, reads_count=10.0, read_time_ns=1e7, timed_reads_count=10.0,
                         written_bytes=8192.0 * 5, writes_count=5.0, log_bytes=500.0, log_writes_count=4.0)  # fmt: skip
    found = storage(batches_of(rows), 0, SECOND_NS, {}, 10, None, False)
    assert found["bytes_from"] == "databases"
    assert found["read_bytes_per_transaction"] == 8192
    assert found["read_write"] == {"operations": 2.0, "bytes": 2.0}
    roles = roles_of(found)
    assert roles["data"]["read"] == {"count": 10, "iops": 10.0, "bytes_per_s": 81920.0, "latency_ns": {"mean": 1e6},
                                     "histogram": None}  # fmt: skip
    assert roles["data"]["write"]["latency_ns"] == {"mean": None}
    assert roles["data"]["total"]["latency_ns"] == {"mean": None}
    assert roles["log"]["write"]["latency_ns"] == {"mean": None}
    assert volumes_of(found) == []


def test_log_latency_is_the_databases_own_where_log_and_data_share_a_device() -> None:
    shared = roles_of(of_two_seconds())
    assert shared["log"]["write"] == {"count": 120, "iops": pytest.approx(60), "bytes_per_s": 1000.0,
                                      "latency_ns": {"mean": pytest.approx(4e5)}, "histogram": None}  # fmt: skip
    assert shared["data"]["write"]["latency_ns"]["mean"] == (300 * 2e6 + 100 * 4e6) / 400


def test_log_latency_is_that_of_its_device_where_it_has_one() -> None:
    rows = two_seconds() + device_rows(0, "vdb", 0, 50, 0, 7e6) + device_rows(1, "vdb", 0, 50, 0, 9e6)
    found = storage(batches_of(rows), 0, 2 * SECOND_NS, {"data": ["vda"], "log": ["vdb"]}, 200, None, True)
    roles = roles_of(found)
    assert roles["log"]["write"]["latency_ns"]["mean"] == 8e6
    assert roles["log"]["read"] is None
    assert roles["data"]["read"]["iops"] == 200
    assert [(volume["name"], volume["role"]) for volume in volumes_of(found)] == [("vda", "data"), ("vdb", "log")]


def test_nothing_stands_for_temporary_files_on_a_device_with_data() -> None:
    assert set(roles_of(of_two_seconds(devices_by_role={"data": ["vda"], "log": ["vda"], "tempdb": ["vda"]}))) == {
        "data",
        "log",
    }
    apart = storage(
        batches_of(two_seconds() + device_rows(0, "vdc", 5, 5, 1e6, 1e6)), 0, 2 * SECOND_NS,
        {"data": ["vda"], "tempdb": ["vdc"]}, 1, None, True,
    )  # fmt: skip
    assert roles_of(apart)["tempdb"]["read"]["latency_ns"]["mean"] == 1e6


def test_a_log_whose_writes_reach_storage_by_themselves_is_timed_by_its_writes() -> None:
    rows = database_rows(0, log_writes_count=10.0, log_write_time_ns=3e7, log_flushes_count=0.0, log_flush_time_ns=0.0)
    assert storage(batches_of(rows), 0, SECOND_NS, {}, 1, None, False)["log_flush_latency_mean_ns"] == 3e6


def test_a_server_that_was_away_does_not_lower_its_rates() -> None:
    rows = database_rows(0, log_bytes=1000.0) + database_rows(3, log_bytes=1000.0)
    found = storage(batches_of(rows), 0, 4 * SECOND_NS, {}, 400, None, False)
    assert found["database"]["log_bytes_per_s"] == 1000
    assert found["log_bytes_per_transaction"] == 10


def test_databases_of_a_window_are_added_up() -> None:
    rows = [row(0, "postgresql", name, "log_bytes", 100.0) for name in ("one", "two")]
    assert storage(batches_of(rows), 0, SECOND_NS, {}, 1, None, False)["log_bytes_per_transaction"] == 200


COUNTS = st.integers(0, 10_000)
TIMES = st.floats(1e3, 1e9)
SECONDS = st.lists(st.tuples(COUNTS, COUNTS, TIMES, TIMES, COUNTS, COUNTS), min_size=2, max_size=12)


@given(seconds=SECONDS, cut=st.floats(0.0, 1.0), transactions=st.integers(1, 10_000))
def test_parts_of_a_window_add_up_to_the_whole(
    seconds: list[tuple[int, int, float, float, int, int]], cut: float, transactions: int
) -> None:
    rows: list[Row] = []
    for number, (reads, writes, read_ns, write_ns, flushes, log_bytes) in enumerate(seconds):
        rows += device_rows(number, "vda", reads, writes, read_ns, write_ns)
        rows += database_rows(number, log_bytes=float(log_bytes), log_flushes_count=float(flushes),
                              log_flush_time_ns=flushes * write_ns, checkpoints_count=float(reads % 3))  # fmt: skip
    end_ns = len(seconds) * SECOND_NS
    middle_ns = min(max(round(end_ns * cut), 1), end_ns - 1)
    windows = [(0, middle_ns), (middle_ns, end_ns), (0, end_ns)]
    one, other, whole = (
        storage(batches_of(rows), start_ns, stop_ns, {"data": ["vda"]}, transactions, None, False)
        for start_ns, stop_ns in windows
    )
    for name in ("read_bytes_per_transaction", "written_bytes_per_transaction", "log_bytes_per_transaction"):
        assert one[name] + other[name] == pytest.approx(whole[name], rel=1e-6, abs=1e-3)
    assert one["checkpoints_count"] + other["checkpoints_count"] == whole["checkpoints_count"]
    for side in ("read", "write"):
        spent = [
            (found["devices"][0][f"{side}_latency_mean_ns"] or 0.0)
            * found["devices"][0][f"{side}_iops"]
            * found["seconds"]
            for found in (one, other, whole)
        ]
        assert spent[0] + spent[1] == pytest.approx(spent[2], rel=1e-6, abs=1e-3)
    flushed = [found["log_flushes_per_s"] * found["seconds"] for found in (one, other, whole)]
    assert flushed[0] + flushed[1] == pytest.approx(flushed[2], rel=1e-6, abs=1e-3)


@given(seconds=SECONDS)
def test_no_mean_leaves_the_range_of_what_it_is_the_mean_of(
    seconds: list[tuple[int, int, float, float, int, int]],
) -> None:
    rows: list[Row] = []
    for number, (reads, writes, read_ns, write_ns, _, _) in enumerate(seconds):
        rows += device_rows(number, "vda", reads, writes, read_ns, write_ns)
    found = storage(batches_of(rows), 0, len(seconds) * SECOND_NS, {"data": ["vda"], "log": ["vda"]}, 1, None, False)
    for metric, place, count in (("read_latency_mean_ns", 2, 0), ("write_latency_mean_ns", 3, 1)):
        seen = [values[place] for values in seconds if values[count]]
        mean = found["devices"][0][metric]
        if seen:
            assert min(seen) * 0.999 <= mean <= max(seen) * 1.001
        else:
            assert mean is None
    total = roles_of(found).get("data", {}).get("total")
    if total:
        latencies = [found["devices"][0][metric] for metric in LATENCIES if found["devices"][0][metric] is not None]
        assert min(latencies) * 0.999 <= total["latency_ns"]["mean"] <= max(latencies) * 1.001


@given(
    seconds=st.lists(
        st.tuples(*[st.integers(0, 500)] * 2, st.floats(1e4, 1e8), st.floats(1e4, 1e8)), min_size=2, max_size=12
    ),
    cuts=st.tuples(st.integers(1, 11), st.integers(1, 11)),
    start_s=st.floats(0, 1.5),
)
def test_folding_what_is_old_changes_no_figure(
    seconds: list[tuple[int, int, float, float]], cuts: tuple[int, int], start_s: float
) -> None:
    rows_of = [
        device_rows(second, "vda", *given)
        + database_rows(second, log_bytes=given[0] * 10.0, log_flushes_count=5.0, log_flush_time_ns=given[2],
                        page_requests_count=1000.0, page_reads_count=float(given[1]), checkpoints_count=1.0)
        + host_rows(second, 0.5, 0.1 + second / 100, 0.02)
        for second, given in enumerate(seconds)
    ]  # fmt: skip
    start_ns, end_ns = round(start_s * SECOND_NS), len(seconds) * SECOND_NS
    whole = [row for rows in rows_of for row in rows]
    parts: list[Rows] = []
    for second, rows in enumerate(rows_of):
        parts += batches_of(rows)
        if second in cuts:
            parts = folded(parts, start_ns)
    asked: dict[str, Any] = {"devices_by_role": {"data": ["vda"], "log": ["vda"]}, "transactions_count": 200,
                             "client_cpu_ns": 0.4 * SECOND_NS, "is_local": True, "cpu_count": 2}  # fmt: skip
    expected, found = (storage(rows, start_ns, end_ns, **asked) for rows in (batches_of(whole), parts))
    # The first checkpoint is counted by the end of its interval, or by the share of it that is in the window.
    assert abs(found.pop("checkpoints_count") - expected.pop("checkpoints_count")) <= 1
    assert_alike(found, expected)
    assert_alike(*(summarise(rows, start_ns, end_ns) for rows in (parts, batches_of(whole))))


def test_what_was_before_the_window_is_left_out_of_what_is_folded() -> None:
    assert folded(batches_of(two_seconds()), 2 * SECOND_NS) == []
    assert folded([], 0) == []


def assert_alike(found: Any, expected: Any) -> None:
    """The same figures but for rounding, however deep."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_alike(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    else:
        assert found == expected

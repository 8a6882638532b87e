"""Work on a database whose data came from memory says so, and neither ranks nor advises."""

from __future__ import annotations

from typing import Any

import pytest
from sample import Sample
from sample_oltp import run, search
from shown import facts_of

from assay.record.judgement import judge
from assay.record.limits import parse_limits
from assay.workloads.databases.in_memory import queries_in_memory, transactions_in_memory
from assay.workloads.databases.shapes import Storage
from assay.workloads.registry import workload_named


def stored(read_bytes: float, *, reads: float = 10.0, hits: float | None = None) -> Storage:
    device: Any = {"device": "vda", "roles": ["data"], "read_iops": reads / 10, "read_bytes_per_s": read_bytes / 10}
    return {"seconds": 10.0, "devices": [device], "buffer_hit_share": hits}


def test_queries_asked_the_storage_where_they_read_a_part_of_their_data() -> None:
    assert queries_in_memory(stored(60e6), 1e9) == ""
    assert queries_in_memory(stored(2 << 20, hits=0.9998), 1 << 30) == (
        "2 MiB of 1 GiB of data were read from storage, 99.98 % of page requests were answered from the server's memory"
    )


def test_transactions_asked_the_storage_where_they_read_now_and_then() -> None:
    assert transactions_in_memory(stored(1e6, reads=300), 1000) == ""
    assert transactions_in_memory(stored(1e6, reads=100), 1000) == "a transaction asked for 0.1 reads of storage"


@pytest.mark.parametrize("storage", [{}, {"seconds": 10.0, "devices": [], "database": {}}])
def test_what_was_not_counted_is_not_said_to_be_from_memory(storage: Storage) -> None:
    assert queries_in_memory(storage, 1e9) == transactions_in_memory(storage, 1000) == ""


def test_a_server_elsewhere_counts_for_its_devices() -> None:
    storage: Storage = {"seconds": 10.0, "devices": [], "database": {"read_iops": 1.0, "read_bytes_per_s": 8192.0}}
    assert queries_in_memory(storage, 1e9).startswith("80 KiB of ")


def test_what_other_programs_read_of_the_device_is_not_read_for_the_database() -> None:
    storage = stored(500e6, reads=70_000)
    storage["database"] = {"read_iops": 1.0, "read_bytes_per_s": 8192.0}
    assert queries_in_memory(storage, 1e9).startswith("80 KiB of ")
    assert transactions_in_memory(storage, 1000) == "a transaction asked for 0.01 reads of storage"


def queried(storage: Storage, bytes_read: float | None = None) -> Any:
    return workload_named("tpch").remarks(facts_of((queries(storage, bytes_read), {})))


def queries(storage: Storage, bytes_read: float | None = None) -> Sample:
    sample = Sample(1)
    queries = [
        {"stream": 0, "query": number, "started_utc_ns": 0, "seconds": number / 1000, "rows": 1, "ended_by": "done",
         "bytes_read": bytes_read, "temp_bytes": 5e6, "device_queue": 2.0, "cpu_share": 0.1}
        for number in range(1, 23)
    ]  # fmt: skip
    dss = {"scale": 0.02, "test": "power", "streams": 1, "queries": queries, "storage": storage,
           "tables": [{"table": "lineitem", "read_bytes": 1e6, "share": 0.734}]}  # fmt: skip
    point = {"id": "p0001", "part": "queries", "workload": {"kind": "tpch"}, "load": {"streams": 1}, "dss": dss,
             "roles": {"data": {"read": {"bytes_per_s": 4e4}}}, "telemetry": {"cpu_share": 0.1}}  # fmt: skip
    sample.points = [point]
    return sample


def test_queries_from_memory_are_named_as_such_and_give_no_advice() -> None:
    told = queried(stored(3000.0, hits=0.9998))
    (headline,) = told.headlines
    assert headline.text.startswith("Scale 0.02 fits in memory: 2.93 KiB of 40.05 MiB of data were read from storage, ")
    assert "so that these 22 queries say nothing of the storage" in headline.text
    assert "slowest" not in headline.text
    assert (list(told.limiting), list(told.next_steps)) == ([], [])


def test_the_speed_of_other_programs_is_no_scan_speed() -> None:
    (headline,) = queried(stored(500e6), 142.0).headlines
    assert headline.text.startswith("Scale 0.02 fits in memory: 3.051 KiB of 40.05 MiB of data were read from storage")
    storage = stored(500e6)
    storage["database"] = {"read_bytes_per_s": 1 << 20}
    (headline,) = queried(storage).headlines
    assert headline.text.startswith("Scans 1.00 MiB/s ")


def test_limits_on_io_are_unknown_where_memory_answered_the_queries() -> None:
    limits = parse_limits(["read.mean<=20ms", "cpu<80%"])
    (point,) = queries(stored(500e6), 142.0).points
    point["roles"]["data"]["read"] |= {"count": 5000, "latency_ns": {"mean": 2e5}}
    workload = workload_named("tpch")
    read, cpu = judge(limits, point, workload.figures, untouched=workload.untouched(point))
    assert (read["met"], read["value"], read["reason"]) == (None, None, "from memory")
    assert "3.051 KiB of 40.05 MiB of data were read from storage" in str(read["why"])
    assert cpu["reason"] != "from memory"
    (point,) = queries(stored(60e6), 3e6).points
    point["roles"]["data"]["read"] |= {"count": 5000, "latency_ns": {"mean": 2e5}}
    assert judge(limits, point, workload.figures, untouched=workload.untouched(point))[0]["met"] is True


def test_queries_from_storage_are_ranked_and_advised() -> None:
    told = queried(stored(60e6))
    (headline,) = told.headlines
    assert "query 22 is the slowest" in headline.text
    assert told.limiting
    assert "lineitem is 73" in told.next_steps[0]


@pytest.mark.parametrize("is_search", [False, True])
def test_transactions_from_memory_are_named_as_such_and_give_no_advice(*, is_search: bool) -> None:
    sample, fields = search() if is_search else run()
    told = workload_named("tpcc").remarks(facts_of((sample, fields)))
    assert not any("fit in memory" in line.text for line in told.headlines)
    for found in (fields["oltp"], *(point["oltp"] for point in sample.points)):
        for device in found["storage"]["devices"]:
            device["read_iops"] = 0.1
    told = workload_named("tpcc").remarks(facts_of((sample, fields)))
    assert sum("its data fit in memory: a transaction asked for" in line.text for line in told.headlines) == 1
    assert not any("paths" in text or "device" in text for text in told.next_steps)

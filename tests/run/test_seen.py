"""What the storage under databases saw, as a plan of I/O; and the gap to it."""

from __future__ import annotations

from typing import Any

import pytest

from assay.insight.studies.raw_gap import gaps_of
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.registry import workload_of
from assay.workloads.transactions.seen import seen_io


def device(name: str, *roles: str, reads: float, writes: float, bytes_per_s: float) -> dict[str, Any]:
    return {"device": name, "roles": list(roles), "read_iops": reads, "write_iops": writes,
            "read_bytes_per_s": 0.0, "write_bytes_per_s": bytes_per_s}  # fmt: skip


def point(*devices: dict[str, Any], **storage: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "devices": list(devices), "database": None, "buffer_hit_share": 0.987, "read_bytes_per_transaction": 2048.0,
        "written_bytes_per_transaction": 8192.0, "log_bytes_per_transaction": 4096.0, "server_cpu_share": 0.5,
        "log_flush_latency_mean_ns": 1.5e6,
    }  # fmt: skip
    return {"id": "p0001", "part": "database", "workload": {"kind": "tpcc"}, "limits": [],
            "generator": {"saturated": False},
            "oltp": {"users": 4, "storage": known | storage}}  # fmt: skip


PLAN = load_plan({"activity": [{"block_bytes": "64K", "read_share": 0.1, "random_share": 1.0}]}, source="plan")


def seen_plan(plan: IoPlan, found: dict[str, Any]) -> IoPlan:
    seen = seen_io(found)
    assert seen is not None
    like: IoPlan = workload_of(plan).like(plan, seen)
    return like


def test_size_and_share_are_those_of_the_devices_of_the_data() -> None:
    seen = seen_io(
        point(
            device("vda", "data", reads=300, writes=100, bytes_per_s=400 * 9000),
            device("vdb", "data", reads=300, writes=100, bytes_per_s=400 * 9000),
            device("vdc", "log", reads=0, writes=5000, bytes_per_s=5000 * 512),
        )
    )

    assert seen is not None
    assert (seen.iops, seen.size_mean_bytes, seen.read_share, seen.by_devices) == (800, 9000, 0.75, True)
    assert seen.block_bytes == 8192


@pytest.mark.parametrize(
    ("mean_bytes", "block_bytes"), [(512, 4096), (5792, 4096), (5794, 8192), (17_800, 16384), (8 << 20, 1 << 20)]
)
def test_blocks_are_the_nearest_power_of_two_within_bounds(mean_bytes: float, block_bytes: int) -> None:
    seen = seen_io(point(device("vda", "data", reads=0, writes=10, bytes_per_s=10 * mean_bytes)))

    assert seen is not None
    assert seen.block_bytes == block_bytes


def test_the_plan_keeps_all_but_block_and_share() -> None:
    plan = seen_plan(PLAN, point(device("vda", "data", reads=333, writes=667, bytes_per_s=1000 * 8192)))

    (workload,) = plan.workloads()
    assert (workload.activities[0].block_bytes, workload.activities[0].read_share) == (8192, 0.33)
    assert workload.activities[0].random_share == 1.0
    assert seen_plan(plan, point(device("vda", "data", reads=333, writes=667, bytes_per_s=1000 * 8192))) == plan


def test_without_devices_the_server_is_asked() -> None:
    database = {"read_iops": 75.0, "write_iops": 25.0, "read_bytes_per_s": 819_200.0, "write_bytes_per_s": 0.0}
    seen = seen_io(point(database=database))

    assert seen is not None
    assert (seen.read_share, seen.block_bytes, seen.by_devices) == (0.75, 8192, False)


# The gap


def gap(
    found: dict[str, Any], best: dict[str, Any] | None, limited_by: str = "read.mean<=20ms", random_share: float = 1.0
) -> dict[str, Any]:
    answer = {
        "part": "raw",
        "workload": {"block_bytes": 8192, "read_share": 0.7},
        "max": best,
        "limited_by": limited_by,
    }
    raw = {"name": "raw", "follows": "database", "plan": {"activity": [{"random_share": random_share}]}}
    (one,) = gaps_of([{"name": "database"}, raw], [found], [answer])
    return one


def test_the_gap_is_explained_by_cache_bytes_and_limits() -> None:
    found = point(device("vda", "data", reads=2100, writes=900, bytes_per_s=3000 * 8192))
    one = gap(found, {"iops": 4000.0, "bytes_per_s": 4000.0 * 8192, "point_id": "p0009"})

    assert (one["gap_share"], one["raw_iops"], one["database_iops"]) == (0.25, 4000, 3000)
    assert one["point_ids"] == ["p0001", "p0009"]
    assert one["sentences"] == [
        "The storage under the database did 3,000 IOPS, 8 KiB each, 70 % reads; the raw profile holds 4,000 IOPS of"
        " 8 KiB at 70 % reads: the database reaches 25 % fewer.",
        "Its buffer cache answered 98.7 % of the requests for pages; a transaction read 2 KiB and wrote 8 KiB, 4 KiB of"
        " log among it; the database was limited by its 4 users, waiting for each commit: a flush of the log takes"
        " 1.50 ms; the raw profile is limited by read.mean<=20ms.",
    ]


def test_a_profile_in_order_is_compared_in_bytes_per_second() -> None:
    found = point(device("vda", "data", reads=100, writes=0, bytes_per_s=100 * 131072))
    one = gap(found, {"iops": 400.0, "bytes_per_s": 400.0 * 131072, "point_id": "p0009"}, random_share=0.0)

    assert (one["sequential"], one["gap_share"]) == (True, 0.75)
    assert (one["database_bytes_per_s"], one["raw_bytes_per_s"]) == (100 * 131072, 400 * 131072)
    assert one["sentences"][0] == (
        "The storage under the database did 12.5 MiB/s (13.1 MB/s), 128 KiB each, 100 % reads; in order the storage"
        " gives 50.0 MiB/s (52.4 MB/s) of 8 KiB at 70 % reads: the database scans 25 % of that."
    )


def test_a_busy_server_is_the_limit_and_a_raw_profile_may_hold_nothing() -> None:
    found = point(device("vda", "data", reads=0, writes=900, bytes_per_s=900 * 8192), server_cpu_share=0.91)
    one = gap(found, None)

    assert one["gap_share"] is None
    assert one["sentences"][0].endswith("the raw profile of 8 KiB at 70 % reads held no load within its limits.")
    assert "limited by the CPU of its server (91 % busy)" in one["sentences"][1]


@pytest.mark.parametrize(
    ("limited_by", "words"),
    [
        ("axis end", "the raw profile meets its limits up to the largest load tried: the storage may hold more."),
        ("generator", "the raw profile is limited by the load generator: the storage may hold more."),
        ("saturation", "the raw profile is limited by the storage itself: more load brings no more."),
    ],
)
def test_what_ended_the_raw_profile_is_said(limited_by: str, words: str) -> None:
    found = point(device("vda", "data", reads=2100, writes=900, bytes_per_s=3000 * 8192))
    one = gap(found, {"iops": 4000.0, "bytes_per_s": 4000.0 * 8192, "point_id": "p0009"}, limited_by=limited_by)

    assert one["sentences"][1].endswith(f"; {words}")


def test_of_a_database_on_an_array_that_was_overdriven_there_is_no_gap() -> None:
    found = point(device("v01", "data", reads=2100, writes=900, bytes_per_s=3000 * 8192))
    found["served"] = [{"lateness": {"overdriven": True, "overdriven_s": 9, "busy_s": 10}}]
    one = gap(found, {"iops": 4000.0, "bytes_per_s": 4000.0 * 8192, "point_id": "p0009"})

    assert one["gap_share"] is None
    assert one["sentences"] == [
        "Nothing can be said of the gap: the served array was overdriven in 9 of 10 seconds: this host cannot serve"
        " such load in time."
    ]


def test_without_an_answer_there_is_no_gap() -> None:
    assert gaps_of([{"name": "raw", "follows": "database"}], [point()], []) == []

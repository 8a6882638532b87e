"""The search over memory: the plan, the figures that it bounds, and its answer in a sentence."""

from __future__ import annotations

from typing import Any, cast

import pytest

from assay.base.errors import UsageError
from assay.record.answers import least_words
from assay.record.shapes.point import Point
from assay.targets.databases.duckdb.database import Duckdb
from assay.targets.databases.postgresql.database import Postgresql
from assay.workloads.registry import workload_named
from assay.workloads.tpch.figures import FAILED, FIGURES, QUERIES_PER_H, SPILLING
from assay.workloads.tpch.plan import TpchPlan

TPCH = workload_named("tpch")


def loaded(**keys: Any) -> TpchPlan:
    return cast(TpchPlan, TPCH.load_plan(keys, source="plan"))


def test_a_search_has_limits_of_its_own_unless_the_user_gives_some() -> None:
    found = loaded(search={"axis": "memory"}, limits=["read.mean<=20ms"])
    asked = loaded(search={"axis": "memory"}, limits=["failed<=2"], user_limits=True)

    assert (found.limits, asked.limits) == (("failed<=0", "spilled<=0"), ("failed<=2",))
    assert loaded(limits=["read.mean<=20ms"]).limits == ("read.mean<=20ms",)
    # Between loads nothing changes the tables.
    assert (found.with_memory().refresh, found.with_memory().test) == (False, "power")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"search": {"axis": "memory", "start": "1M", "end": "2M"}}, "tried from the most down"),
        ({"search": {"axis": "memory"}, "repeats": 2}, "--search-repeats"),
        ({"search": {"axis": "streams"}}, "'none' or 'memory'"),
    ],
)
def test_a_search_that_cannot_be_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        loaded(**keys)


def test_memory_is_tried_in_powers_of_two_from_a_share_of_the_hosts_down() -> None:
    most, *_, least = Postgresql.query_memory.steps(24 << 30)
    assert (most, least) == (1 << 30, 64 << 10)
    assert Duckdb.query_memory.steps(3 << 20) == (1 << 20,)


def point_of(*queries: tuple[str, float | None]) -> Point:
    told = [{"query": 1, "ended_by": ended, "seconds": 2.0, "temp_bytes": temp} for ended, temp in queries]
    return cast(Point, {"dss": {"queries": told, "completion_s": 10.0}})


def test_queries_that_spill_and_fail_are_counted_where_they_are_known() -> None:
    point = point_of(("done", 0.0), ("done", 8192.0), ("error", None))

    assert [figure.value(point) for figure in (SPILLING, FAILED, QUERIES_PER_H)] == [1, 1, 720]
    assert SPILLING.value(point_of(("done", None))) is None
    # MariaDB counts how often it spilled, and no bytes.
    counted = point_of(("done", None), ("done", None))
    for query, spilled in zip(counted["dss"]["queries"], (0.0, 3.0), strict=True):  # type: ignore[typeddict-item]
        query["temp_files"] = spilled
    assert SPILLING.value(counted) == 1
    assert [SPILLING.words(count) for count in (0, 1, 3)] == ["no query spills", "1 query spills", "3 queries spill"]


def test_queries_that_all_fail_ruin_a_run_but_no_search() -> None:
    point = point_of(("error", None))
    point["dss"]["queries"][0]["error"] = "out of memory"  # type: ignore[typeddict-item]

    assert "out of memory" in str(TPCH.ruined(cast(Point, {**point, "load": {"streams": 1}})))
    assert TPCH.ruined(cast(Point, {**point, "load": {"streams": 1, "memory_bytes": 1 << 20}})) is None


ANSWER = {
    "axis": "memory_bytes", "limits": ["failed<=0", "spilled<=0"], "limited_by": "spilled<=0",
    "edge": {"memory_bytes": 64 << 20, "queries_spilled": 0, "queries_failed": 0},
    "first_failing": {"memory_bytes": 32 << 20, "queries_spilled": 3, "queries_failed": 0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "no query fails and no query spills from 64 MiB of memory on; with 32 MiB 3 queries spill"),
        ({"limits": ["spilled<=0"]}, "no query spills from 64 MiB of memory on; with 32 MiB 3 queries spill"),
        (
            {"first_failing": None},
            "no query fails and no query spills from 64 MiB of memory on; that was the least that was tried",
        ),
        ({"edge": None}, "no memory that was tried meets the limits: with 32 MiB 3 queries spill"),
        (
            {"limits": ["cpu<80%"], "limited_by": "errors"},
            "the limits are met from 64 MiB of memory on; with 32 MiB a limit is missed (errors)",
        ),
    ],
)
def test_the_answer_is_one_sentence(changes: dict[str, Any], said: str) -> None:
    assert least_words(ANSWER | changes, FIGURES) == said

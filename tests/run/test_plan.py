"""Plans: presets, levels, what is refused, and that a plan printed is the plan understood."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.registry import workload_named

IO_KIND = workload_named("io")

shares = st.integers(0, 1000).map(lambda thousandth: thousandth / 1000)
blocks = st.sampled_from([512, 4096, 8192, 65536, "8K", "64KiB", "1M"])
mixes = st.dictionaries(st.sampled_from(["512", "4K", "8K", "64K"]), st.integers(1, 100), min_size=1, max_size=4)


def levels_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


ACCESS: dict[str, st.SearchStrategy[Any]] = {
    "block_bytes": levels_of(blocks | mixes),
    "read_share": levels_of(shares | shares.map(lambda share: f"{share * 100:g}%")),
    "random_share": levels_of(shares),
    "skew": st.sampled_from(["uniform", "zipf:0.99", "zipf:1.2", "hot:0.8/0.2"]),
    "streams": levels_of(st.integers(1, 64)),
    "align_bytes": st.sampled_from([512, "4K", 8192]),
    "region": st.tuples(shares, shares).filter(lambda ends: ends[0] < ends[1]).map(list),
    "compressible_share": shares,
    "duplicate_share": shares,
    "io_mode": st.sampled_from(["direct", "buffered"]),
    "sync": levels_of(st.sampled_from(["none", "dsync", "fdatasync", "fsync"])),
    "sync_every": st.integers(1, 100),
    "role": st.sampled_from(["data", "log", "tempdb"]),
    "workers": levels_of(st.integers(1, 8)),
    "queue_depth": st.integers(1, 4096),
}
activities = st.fixed_dictionaries({}, optional=ACCESS)
durations = st.sampled_from([0.5, 1, "2s", "1500ms", "1m", 90])
timings = st.fixed_dictionaries(
    {}, optional={"warmup_s": durations, "duration_s": durations, "rest_s": durations, "io_timeout_s": durations}
)
limits = st.lists(
    st.sampled_from(["read.mean<=20ms", "log.write.p99.9<5ms", "cpu<80%", "total.iops>=100", "tcp.retransmit<0.5%"]),
    unique=True,
)
plans = st.fixed_dictionaries(
    {"activity": st.lists(activities, min_size=1, max_size=3)},
    optional={
        "name": st.text(max_size=10),
        "title": st.text(max_size=10),
        "seed": st.integers(0, 2**63 - 1),
        "limits": limits,
        "user_limits": st.booleans(),
        "backend": st.sampled_from(["auto", "io-uring", "threads"]),
        "timing": timings,
        "search": st.fixed_dictionaries(
            {"axis": st.sampled_from(["none", "queue-depth", "rate"])},
            optional={"start": st.integers(1, 50), "end": st.integers(50, 4096), "repeats": st.integers(0, 5)},
        ),
        "case": st.lists(st.fixed_dictionaries({}, optional={"read_share": shares, "random_share": shares}), min_size=1,
                         max_size=3),
    },
)  # fmt: skip


@given(data=plans)
def test_a_plan_printed_is_the_plan_understood(data: dict[str, Any]) -> None:
    plan = load_plan(data, source="plan")
    printed = json.loads(json.dumps(plan.model_dump(mode="json"), allow_nan=False))
    again = load_plan(printed, source="plan")

    assert again.model_dump(mode="json") == printed
    assert again.workloads() == plan.workloads()
    assert (again.timing, again.search, again.limits, again.seed) == (
        plan.timing,
        plan.search,
        plan.limits,
        plan.seed,
    )


@given(data=plans)
def test_every_combination_of_levels_is_measured_once(data: dict[str, Any]) -> None:
    assume(len(data["activity"]) == 1)
    data.pop("case", None)
    expected = math.prod(
        len(value) for key, value in data["activity"][0].items() if isinstance(value, list) and key != "region"
    )

    assert len(load_plan(data, source="plan").workloads()) == expected


def test_levels_combine_in_the_order_they_are_written() -> None:
    plan = load_plan({"activity": [{"block_bytes": ["8K", "64K"], "read_share": [1.0, 0.7]}]}, source="plan")

    assert [workload.title for workload in plan.workloads()] == [
        "8 KiB random read",
        "8 KiB random 70/30",
        "64 KiB random read",
        "64 KiB random 70/30",
    ]


def test_cases_change_the_first_activity_one_after_the_other() -> None:
    data = {"activity": [{"read_share": 0.5}], "case": [{"random_share": 0.0}, {"read_share": 1.0}]}

    assert [workload.title for workload in load_plan(data, source="plan").workloads()] == [
        "8 KiB sequential 50/50",
        "8 KiB random read",
    ]


@pytest.mark.parametrize("key", [*IoPlan.model_fields])
def test_a_misspelt_key_names_the_key_that_was_meant(key: str) -> None:
    with pytest.raises(UsageError, match=f"unknown key '{key}x'; did you mean '{key}'"):
        load_plan({f"{key}x": 1}, source="plan")


@pytest.mark.parametrize("key", [*ACCESS, "rate", "burst_bytes", "volume"])
def test_a_misspelt_key_of_an_activity_too(key: str) -> None:
    with pytest.raises(UsageError, match=f"activity 1: unknown key '{key}x'; did you mean '{key}'"):
        load_plan({"activity": [{f"{key}x": 1}]}, source="plan")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"search": {"axis": "queue-depth"}, "activity": [{"queue_depth": [1, 2]}]}, "exclude each other"),
        ({"search": {"axis": "queue-depth"}, "activity": [{"rate": 5.0}]}, "exclude each other"),
        ({"search": {"axis": "rate"}, "activity": [{"rate": [5.0, 6.0]}]}, "exclude each other"),
        ({"search": {"axis": "rate", "start": 10, "end": 5}}, "start 10 is above end 5"),
        ({"search": {"axis": "queue-depth", "start": 2000}}, "start 2000 is above end 1024"),
        ({"timing": {"min_s": 9, "max_s": 3}}, "min_s 9 is above max_s 3"),
        ({"timing": {"duration_s": 0}}, "duration_s"),
        ({"activity": []}, "no activity"),
        ({"activity": [{"burst_bytes": "1M"}]}, "go together"),
        ({"activity": [{"rate": 5, "burst_bytes": "1M", "burst_interval_s": 1}]}, "exclude each other"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
    ],
)
def test_what_contradicts_itself_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        load_plan(data, source="plan x")

    assert str(error.value).startswith("plan x: ")


class TestSearchAxis:
    @pytest.mark.parametrize(
        ("search", "first", "last"),
        [
            ({"axis": "queue-depth"}, 1, 1024),
            ({"axis": "rate"}, 100, 10e6),
            ({"axis": "rate", "end": 5000}, 100, 5000),
            ({"axis": "rate", "end": 50}, 50, 50),
            ({"axis": "queue-depth", "start": 4, "end": 8}, 4, 8),
        ],
    )
    def test_its_ends_are_those_given_or_those_of_the_axis(
        self, search: dict[str, Any], first: float, last: float
    ) -> None:
        chosen = load_plan({"search": search}, source="plan").search

        assert (chosen.first_load, chosen.last_load) == (first, last)


class TestPresets:
    def test_all_of_them_are_plans(self) -> None:
        assert IO_KIND.presets() == [
            "database",
            "dss",
            "log",
            "oltp",
            "sqlio-random",
            "sqlio-sequential",
            "tempdb",
        ]
        assert all(IO_KIND.preset(name).workloads() for name in IO_KIND.presets())

    def test_oltp_is_the_grid_of_the_method(self) -> None:
        plan = IO_KIND.preset("oltp")

        assert plan.limits == ("read.mean<=20ms", "write.mean<=20ms")
        assert plan.search.axis == "queue-depth"
        assert [(w.activities[0].block_bytes, w.activities[0].read_share) for w in plan.workloads()] == [
            (block << 10, share) for block in (8, 16, 32, 64) for share in (1.0, 0.8, 0.7, 0.6)
        ]

    def test_log_appends_durably_by_one_and_several(self) -> None:
        plan = IO_KIND.preset("log")
        activities = [workload.activities[0] for workload in plan.workloads()]

        assert plan.limits == ("write.mean<=5ms",)
        assert {(a.read_share, a.random_share, a.sync, a.depth, a.role) for a in activities} == {
            (0.0, 0.0, "dsync", 1, "log")
        }
        assert {a.workers for a in activities} == {1, 4}
        assert (min(a.largest_block_bytes for a in activities), max(a.largest_block_bytes for a in activities)) == (
            512,
            60 << 10,
        )

    def test_a_database_does_everything_at_once(self) -> None:
        (workload,) = IO_KIND.preset("database").workloads()

        assert [(a.name, a.role) for a in workload.activities] == [
            ("reads", "data"),
            ("checkpoint", "data"),
            ("log", "log"),
            ("log reads", "log"),
            ("tempdb", "tempdb"),
        ]

    def test_an_unknown_one_names_the_nearest_and_all(self) -> None:
        with pytest.raises(
            UsageError, match=r"unknown preset 'olpt', did you mean 'oltp'\?; known: database, .*tempdb"
        ):
            IO_KIND.preset("olpt")

"""An acceptance test of a contract: what it asks of which target, and how its clauses are judged."""

from __future__ import annotations

from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.contracts.acceptance import judged_test, latency_interval
from assay.insight.contracts.asked_loads import QUICK, AskedLoads, AskedTiming, asked_loads, does_not_count
from assay.insight.contracts.contract import StorageContract, contract_of
from assay.record.intervals import percentile_interval
from assay.record.shapes.acceptance import AcceptanceClause, AcceptanceLoad, AcceptanceTest
from assay.workloads.io.plan import IoPlan

READS: dict[str, Any] = {"name": "reads", "statistic": "mean", "most": "2ms", "iops": 500}
MODEL = "model:ps6100xv?raid=50&volumes=2"


def contract(**table: Any) -> StorageContract:
    return contract_of(table or {"latency": [READS]}, "test")


def asked(target: str, **table: Any) -> AskedLoads:
    return asked_loads(contract(**table), target, QUICK)


def plan_of(found: AskedLoads, part: str) -> IoPlan:
    plan = next(one.plan for one in found.parts if one.name == part)
    assert isinstance(plan, IoPlan)
    return plan


# What is asked


def test_a_latency_is_asked_for_at_its_load_and_at_the_ends_of_what_it_holds_for() -> None:
    found = asked("/data", latency=[{**READS, "blocks": ["4KiB", "16KiB"], "reads": ["50%", "100%"]}])
    made = [spec.activities[0] for spec in plan_of(found, "latency-1").workloads()]
    assert [(one.block_bytes, one.read_share, one.rate) for one in made] == [
        (8192, 0.7, 500.0), (4096, 0.7, 500.0), (16384, 0.7, 500.0), (8192, 0.5, 500.0), (8192, 1.0, 500.0),
    ]  # fmt: skip


def test_a_load_by_the_tb_counts_by_the_promised_capacity() -> None:
    clause = {"name": "reads", "most": "2ms", "iops_per_tb": 50}
    found = asked("/data", latency=[clause], capacity={"least": "20TB"})
    assert plan_of(found, "latency-1").workloads()[0].activities[0].rate == 1000.0


def test_ends_that_do_not_count_are_not_asked_for() -> None:
    found = asked("/data", latency=[{**READS, "blocks": ["4KiB", "64KiB"]}], exclude={"above_block": "32KiB"})
    assert [one.activities[0].block_bytes for one in plan_of(found, "latency-1").workloads()] == [8192, 4096]


@pytest.mark.parametrize(
    ("mix", "exclude", "said"),
    [
        ({"block": "64KiB"}, {"above_block": "32KiB"}, "64 KiB"),
        ({"read": "20%"}, {"below_random_reads": "30%"}, "20 % random reads"),
        ({"read": "0%"}, {}, "no reads"),
        ({}, {"below_iops": 600}, "500 IOPS"),
    ],
)
def test_a_mix_that_does_not_count_is_not_asked_for(mix: dict[str, str], exclude: dict[str, Any], said: str) -> None:
    table: dict[str, Any] = {
        "latency": [{**READS, "mix": mix}],
        "exclude": exclude,
        "iops": [{"name": "most", "least": 1}],
    }
    made = contract(**table)
    assert said in does_not_count(made, made.latency[0])
    assert [part.name for part in asked("/data", **table).parts] == ["iops-1"]


def test_rare_ios_get_the_time_that_their_percentile_needs() -> None:
    timing = AskedTiming()
    clause = {**READS, "statistic": "p99.9", "iops": 100}
    timed = asked_loads(contract(latency=[clause]), "/data", timing).parts[0].plan.timing
    assert timed.min_s == pytest.approx(3 * 2995 / 70)
    most = asked_loads(contract(latency=[{**clause, "statistic": "p99.99"}]), "/data", timing).parts[0].plan.timing
    assert most.min_s == timing.longest_s


def test_a_model_loses_a_disk_in_its_state_and_a_served_array_as_the_load_begins() -> None:
    table: dict[str, Any] = {"latency": [READS], "rebuild": {"most": "12h"}}
    found = asked(f"{MODEL}&seed=3", **table)
    states = {part.name: part.target_text for part in found.parts if part.target_text}
    assert states["latency-1-degraded"] == f"{MODEL}&seed=3&state=degraded"
    assert {*states} == {"latency-1-degraded", "rebuild-at-rest", "rebuild-under-load"}
    served = asked("array:ps6100xv?raid=50", **table)
    events = {part.name: [one.do for one in part.plan.events] for part in served.parts}
    assert events["latency-1-degraded"] == ["pull member0/disk0 keep-spare"]
    assert events["rebuild-at-rest"] == ["pull member0/disk0 keep-spare", "insert member0/disk0"]


@pytest.mark.parametrize("target", ["/data", "model:ps6100xv?raid=0", f"{MODEL}&state=degraded", "model:gp3"])
def test_what_cannot_lose_a_disk_says_so(target: str) -> None:
    found = asked(target, latency=[READS], rebuild={"most": "12h"})
    assert [part.name for part in found.parts] == ["latency-1"]
    assert {*found.lacking} == {"with a disk lost", "rebuild"}


def test_data_are_checked_where_there_are_bytes() -> None:
    assert [part.name for part in asked("/data", loss={"none": True}).parts] == ["integrity"]
    with_model = asked(MODEL, loss={"none": True}, latency=[READS])
    assert "holds no bytes" in with_model.lacking["loss"]


def test_a_contract_without_a_test_is_refused() -> None:
    with pytest.raises(UsageError, match="promises nothing that a test measures"):
        asked("/data", availability={"least": "99%"})


# How it is judged


def point(part: str = "latency-1", *, mean_ns: float = 1e6, batches: list[float] | None = None, **more: Any) -> Any:
    read = {"count": 50_000, "iops": 350.0, "bytes_per_s": 1.0, "latency_ns": {"mean": mean_ns, "max": 9e6}}
    return {
        "id": "p0001", "part": part, "ended_by": "duration", "read": read, "write": read, "total": read,
        "workload": {"kind": "io", "block_bytes": 8192, "read_share": 0.7, "random_share": 1.0},
        "load": {"rate": 500.0}, "errors": {"count": 0}, "generator": {}, "offered": {"sustained": True},
        "batches": {"read": {"latency_mean_ns": batches or [mean_ns] * 10}}, "limits": [], **more,
    }  # fmt: skip


def judged(
    terms: str, points: list[Any], loads: list[AcceptanceLoad], *, lacking: dict[str, str] | None = None,
    answers: list[Any] | None = None, **manifest: Any,
) -> dict[str, AcceptanceClause]:  # fmt: skip
    test: AcceptanceTest = {
        "source": "contract.toml", "terms": terms, "title": "", "vendor": "", "reference": "", "loads": loads,
        "lacking": lacking or {}, "mounts": [{"path": "/mnt/a", "size_bytes": 5 * 10**12}],
    }  # fmt: skip
    made = judged_test({"parts": [], **manifest, "contract": test}, points, answers or [])
    return {one["name"]: one for one in made["clauses"]}


def load(part: str = "latency-1", clause: str = "reads", state: Any = "whole") -> AcceptanceLoad:
    return {"clause": clause, "part": part, "state": state}


def latency(most: str, *points: Any, loads: list[AcceptanceLoad] | None = None, more: str = "") -> AcceptanceClause:
    terms = f'[[latency]]\nname = "reads"\nstatistic = "mean"\nmost = "{most}"\niops = 500\n{more}'
    return judged(terms, [*points], loads or [load()])["reads"]


NOISY = [0.8e6, 1.2e6, 0.9e6, 1.1e6, 0.85e6, 1.15e6, 1.0e6, 1.0e6, 0.95e6, 1.05e6]


@pytest.mark.parametrize(("most", "met"), [("2ms", True), ("0.5ms", False), ("1.02ms", None)])
def test_a_latency_is_met_or_missed_where_its_interval_says_so(most: str, met: bool | None) -> None:
    found = latency(most, point(batches=NOISY))
    assert found["met"] is met
    assert ("holds the limit" in found["why"]) is (met is None)
    low, high = found["evidence"][0]["interval_95"] or (0.0, 0.0)
    assert low < 1e6 < high


def test_a_load_that_is_not_served_misses_and_one_that_was_not_made_is_unknown() -> None:
    unserved = latency("2ms", point(offered={"sustained": False, "rate": 500.0}))
    assert unserved["met"] is False
    assert "350 of 500 IOPS were served" in unserved["found"]
    # Waiting grows with the point's length: an interval of it would say nothing of the storage.
    assert unserved["evidence"][0]["interval_95"] is None
    assert latency("2ms", point(errors={"count": 3}))["met"] is False
    found = latency("2ms", point(generator={"saturated": True, "reason": "generator"}))
    assert (found["met"], "generator" in found["why"]) == (None, True)
    assert latency("2ms")["why"] == "it was not measured to its end"


@pytest.mark.parametrize(("terms", "met"), [("", False), ('[test]\ndegraded = "told"', True)])
def test_a_lost_disk_counts_unless_the_contract_says_otherwise(terms: str, met: bool) -> None:
    points = point(), point("latency-1-degraded", mean_ns=5e6)
    loads = [load(), load("latency-1-degraded", state="degraded")]
    found = latency("2ms", *points, loads=loads, more=terms)
    assert found["met"] is met
    assert "a disk lost: mean 5.00 ms" in found["found"]


def test_a_latency_for_every_load_is_never_met_by_one() -> None:
    terms = '[[latency]]\nname = "reads"\nstatistic = "mean"\nmost = "{}"'
    assert judged(terms.format("2ms"), [point()], [load()])["reads"]["met"] is None
    assert judged(terms.format("0.5ms"), [point()], [load()])["reads"]["met"] is False


@pytest.mark.parametrize(
    ("least", "limited_by", "band", "met"),
    [
        (900, "saturation", None, True),
        (1020, "saturation", None, None),
        (2000, "saturation", None, False),
        (2000, "generator", None, None),
        (2000, "axis end", None, None),
        (900, "saturation", [700.0, 1300.0], None),
    ],
)
def test_a_rate_is_judged_by_the_interval_of_its_search(
    least: int, limited_by: str, band: list[float] | None, met: bool | None
) -> None:
    answer = {
        "part": "iops-1", "axis": "outstanding", "max": {"iops": 1000.0, "outstanding": 16, "point_id": "p0001"},
        "interval_95": [950.0, 1050.0], "band_90": band, "limited_by": limited_by, "workload": {"kind": "io"},
    }  # fmt: skip
    terms = f'[[iops]]\nname = "most"\nleast = {least}'
    found = judged(terms, [point("iops-1")], [load("iops-1", "most")], answers=[answer])["most"]
    assert (found["met"], bool(found["why"])) == (met, met is None)


@pytest.mark.parametrize(
    ("at_rest_h", "under_load_h", "met"), [(1, 10, True), (1, 20, None), (13, 20, False), (None, 10, None)]
)
def test_a_rebuild_is_judged_at_rest_and_under_load(
    at_rest_h: float | None, under_load_h: float, met: bool | None
) -> None:
    hours = {"rebuild-at-rest": at_rest_h, "rebuild-under-load": under_load_h}
    points = [point(part, array={"rebuild_s": h and h * 3600}) for part, h in hours.items()]
    loads = [load(part, "rebuild", "rebuilding") for part in hours]
    assert judged('[rebuild]\nmost = "12h"', points, loads)["rebuild"]["met"] is met


def test_a_served_array_never_proves_the_rebuild_of_a_whole_disk() -> None:
    events = [
        {"t_ns": 10**9, "what": "inserted", "state": "rebuilding"},
        {"t_ns": 61 * 10**9, "what": "whole", "state": "healthy"},
    ]
    points = [point("rebuild-at-rest", served=[{"events": events}])]
    loads = [load("rebuild-at-rest", "rebuild", "rebuilding")]
    assert judged('[rebuild]\nmost = "12h"', points, loads)["rebuild"]["met"] is None
    assert judged('[rebuild]\nmost = "30s"', points, loads)["rebuild"]["met"] is False


def test_what_no_test_can_tell_says_so() -> None:
    terms = '[capacity]\nleast = "4TB"\nmounts = ["/mnt/a"]\n[availability]\nleast = "99%"\n'
    terms += '[power]\nmost_per_tb = "5W"\n[loss]\nnone = true'
    found = judged(terms, [], [], lacking={"loss": "this target holds no bytes"})
    assert {name: one["met"] for name, one in found.items()} == {
        "capacity": True, "availability": None, "power": None, "loss": None,
    }  # fmt: skip
    assert all(one["why"] for one in found.values() if one["met"] is None)
    assert (
        judged('[capacity]\nleast = "4TB"\nmounts = ["/b"]', [], [])["capacity"]["why"]
        == "/b is not mounted on this host"
    )


def test_a_manifest_with_a_damaged_contract_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"contract\.toml"):
        judged("latency = 3", [], [])


# Intervals


def test_the_interval_of_a_percentile_holds_it_as_often_as_it_says() -> None:
    import numpy

    draws = numpy.random.default_rng(7)
    held = 0
    for _ in range(400):
        values, counts = numpy.unique(draws.exponential(1000.0, 2000).round().astype(int), return_counts=True)
        found = percentile_interval(list(zip(values.tolist(), counts.tolist(), strict=True)), 0.0, 0.9)
        assert found is not None
        held += found[0] <= 1000 * 2.302585 <= found[1]
    assert 0.93 <= held / 400 <= 0.98


def test_few_ios_above_a_percentile_have_no_interval() -> None:
    assert percentile_interval([(100, 1000)], 0.0, 0.999) is None
    assert latency_interval(point(batches=[1e6] * 3), "read", "mean") is None

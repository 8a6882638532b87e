"""Comparing runs: what changed, by how much, and how sure that is."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.insight.compare import compare_runs
from assay.insight.differences import COLUMNS, ComparedRun, ComparedSide, FigureDifference, RunComparison
from assay.record.intervals import BATCHES_MIN, by_answer_intervals, by_blocks, by_repeats, relative_error

Run = ComparedRun
PAIRS = 300
"""Simulated A/A pairs. Of 300 fair 5 % chances 95 % stay below 7.3 %, and all but one in 10,000 below 9.5 %."""
FALSE_ALARMS_MAX = 0.095

core = pytest.importorskip("assay._core", reason="the compiled module is not built")


def correlated(generator: numpy.random.Generator, mean: float, *, spread: float, r: float, n: int) -> list[float]:
    """A first-order process: batches of which neighbours have the correlation r and the whole the relative spread."""
    values, value = [], generator.normal()
    for noise in generator.normal(size=n):
        value = r * value + math.sqrt(1 - r * r) * noise
        values.append(mean * (1 + spread * value))
    return values


def make_point(
    seed: int, *, factor: float = 1.0, n: int = 20, r: float = 0.3, spread: float = 0.03, ios: int = 100,
    load: dict[str, Any] | None = None, saturated: bool = False, clock: str = "virtual", **workload: Any,
) -> dict[str, Any]:  # fmt: skip
    """A point of n batches with `ios` reads each, at 5,000 IOPS and 1 ms times and over `factor`.

    Batches vary by `spread`, neighbours correlate by r, and within a batch latencies are exponential.
    """
    generator = numpy.random.default_rng(seed)
    iops = correlated(generator, 5000 * factor, spread=spread, r=r, n=n)
    latency, histogram = [], core.Histogram()
    for mean_ns in correlated(generator, 1e6 / factor, spread=spread, r=r, n=n):
        drawn = generator.exponential(max(mean_ns, 1.0), ios).astype(int) + 1
        latency.append(float(drawn.mean()))
        for latency_ns in drawn:
            histogram.record(int(latency_ns))
    direction = {
        "count": n * ios,
        "iops": sum(iops) / n,
        "bytes_per_s": sum(iops) / n * 8192,
        "latency_ns": {"mean": histogram.mean, "p99": histogram.percentile(99.0)},
        "histogram": histogram.to_base64(),
    }
    batches = {"iops": iops, "latency_mean_ns": latency}
    return {
        "id": f"p{seed}",
        "clock": clock,
        "started_utc_ns": seed,
        "ended_by": "steady",
        "workload": {"kind": "io", "name": "8 KiB random read", "block_bytes": 8192, "read_share": 1.0,
                     "random_share": 1.0, **workload},
        "load": load or {"queue_depth": 8, "workers": 1, "outstanding": 8},
        "read": direction,
        "write": None,
        "total": direction,
        "generator": {"saturated": saturated},
        "batches": {"seconds": 0.5, "read": batches, "total": batches},
    }  # fmt: skip


def make_run(
    *points: dict[str, Any], name: str = "run", answers: list[dict[str, Any]] | None = None, clock: str = "virtual"
) -> Run:
    # Compare skips points of an unknown kind; this one only carries the clock.
    strange = {"id": "p0", "clock": clock, "workload": {"kind": "of tomorrow"}, "load": {}}
    return Run({"run_id": name, "answers": answers or []}, list(points) or [strange])


def row_of(comparison: RunComparison, metric: str) -> FigureDifference:
    (row,) = [row for row in comparison.differences if row.metric == metric]
    return row


@given(
    seed=st.integers(0, 10**6), spread=st.floats(0, 0.15), n=st.integers(0, 30), repeats=st.integers(1, 3),
    read_share=st.sampled_from([1.0, 0.7]),
)  # fmt: skip
def test_a_run_compared_with_itself_has_not_changed(
    seed: int, spread: float, n: int, repeats: int, read_share: float
) -> None:
    points = [make_point(seed + at, spread=spread, n=max(n, 1), ios=20, read_share=read_share) for at in range(repeats)]
    for point in points:
        if n == 0:
            point["batches"] = None
    run = make_run(*points, answers=[answer(5000.0)])
    comparison = compare_runs([run, copy.deepcopy(run)])
    assert comparison.compared
    assert {row.status for row in comparison.compared} == {"not changed"}
    assert {row.relative for row in comparison.differences} == {0.0}
    assert [row.status for row in comparison.answers] == ["not changed"]
    assert comparison.unmatched == ()
    assert not any(row.stands for row in comparison.differences)


@pytest.mark.parametrize(("n", "r"), [(10, 0.0), (20, 0.3), (60, 0.6), (20, 0.8)])
def test_runs_that_differ_by_chance_alone_seldom_seem_changed(n: int, r: float) -> None:
    alarms = {"iops": 0, "read_latency_mean_ns": 0}
    load = {"rate": 5000.0, "arrivals": "poisson"}
    for pair in range(PAIRS):
        a, b = (make_run(make_point(7 * 10**6 + 2 * pair + side, n=n, r=r, ios=20, load=load)) for side in range(2))
        comparison = compare_runs([a, b])
        for metric in alarms:
            alarms[metric] += row_of(comparison, metric).status == "changed"
    assert {metric: count for metric, count in alarms.items() if count / PAIRS > FALSE_ALARMS_MAX} == {}


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_tail_that_differs_by_chance_alone_seldom_seems_changed() -> None:
    alarms, judged = 0, 0
    for pair in range(PAIRS // 2):
        a, b = (make_run(make_point(2 * pair + side, n=20, r=0.3, ios=400)) for side in range(2))
        row = row_of(compare_runs([a, b]), "read_latency_p99_ns")
        judged += row.method == "bootstrap"
        alarms += row.status == "changed"
    # A run whose batches seem to vary much is held to have too few independent I/Os; that must be the exception.
    assert judged >= 0.8 * PAIRS // 2
    # Of 150 fair 5 % chances all but one in 1,000 stay below 11.4 %.
    assert alarms / judged <= 0.114


@pytest.mark.parametrize("repeats", [2, 3, 5])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_repeats_that_differ_from_run_to_run_seldom_seem_changed(repeats: int) -> None:
    generator = numpy.random.default_rng(4)
    template = make_point(1, ios=1)
    alarms = 0
    for _ in range(PAIRS):
        sides = []
        for _ in range(2):
            points = [copy.deepcopy(template) for _ in range(repeats)]
            for point in points:
                # What varies between repeats, 10 %, is far more than what varies within one.
                point["total"]["iops"] = 5000 * math.exp(0.1 * generator.normal())
            sides.append(make_run(*points))
        row = row_of(compare_runs(sides), "iops")
        assert row.method == "repeats"
        alarms += row.status == "changed"
    assert alarms / PAIRS <= FALSE_ALARMS_MAX


def test_of_many_comparisons_without_any_change_nothing_stands_out_from_chance() -> None:
    loads = [{"queue_depth": depth, "workers": 1, "outstanding": depth} for depth in range(1, 31)]
    families = 0
    for family in range(20):
        sides = [
            make_run(*(make_point(10**6 * side + 100 * family + at, load=load, ios=1) for at, load in enumerate(loads)))
            for side in range(2)
        ]
        comparison = compare_runs(sides)
        families += any(row.stands for row in comparison.differences if row.metric == "iops")
    # 5 % of 20 families is 1; 5 or more would happen once in 400 times.
    assert families <= 4


@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
def test_a_true_change_of_20_percent_is_found_with_its_direction(factor: float) -> None:
    comparison = compare_runs([make_run(make_point(1)), make_run(make_point(2, factor=factor))])
    row = row_of(comparison, "iops")
    assert (row.status, row.better, row.stands) == ("changed", factor > 1, True)
    assert row.relative == pytest.approx(factor - 1, abs=0.05)
    assert row.interval_95 is not None
    assert row.interval_95[0] <= row.relative <= row.interval_95[1]
    assert "stands out from chance" in comparison.sentence


def test_iops_throughput_and_mean_latency_at_a_fixed_depth_are_one_comparison() -> None:
    comparison = compare_runs([make_run(make_point(1)), make_run(make_point(2, factor=1.2))])
    told = {row.metric: (row.status, row.follows) for row in comparison.differences}
    assert told == {
        "iops": ("changed", ""),
        "bytes_per_s": ("follows", "IOPS"),
        "read_latency_mean_ns": ("follows", "IOPS"),
        "read_latency_p99_ns": (row_of(comparison, "read_latency_p99_ns").status, ""),
    }
    assert comparison.sentence.startswith("Of 2 figures ")
    assert not any(row.p is not None or row.stands for row in comparison.differences if row.follows)
    latency = row_of(comparison, "read_latency_mean_ns")
    assert latency.relative == pytest.approx(1 / 1.2 - 1, abs=0.05)
    assert [row[-2:] for row in comparison.rows() if row[2] == "read mean"] == [("-", "follows from IOPS")]
    shown = {row["metric"]: (row["status"], row["follows"]) for row in comparison.to_dict()["differences"]}
    assert shown == told


def test_of_reads_and_writes_together_one_mean_follows_from_iops_and_one_does_not() -> None:
    """IOPS x mean latency is the depth; with two directions IOPS and one mean tell the other."""

    def mixed(seed: int, write_ns: float) -> dict[str, Any]:
        point = make_point(seed, read_share=0.7)
        write = copy.deepcopy(point["read"]) | {"iops": point["read"]["iops"] * 0.4, "latency_ns": {"mean": write_ns}}
        return point | {"write": write}

    comparison = compare_runs([make_run(mixed(1, 2e5)), make_run(mixed(2, 4e5))])
    assert row_of(comparison, "read_latency_mean_ns").follows == "IOPS"
    assert row_of(comparison, "write_latency_mean_ns").follows == ""


def test_at_a_given_rate_latency_says_what_iops_cannot() -> None:
    load = {"rate": 5000.0, "arrivals": "poisson"}
    comparison = compare_runs([make_run(make_point(1, load=load)), make_run(make_point(2, load=load))])
    assert [row.metric for row in comparison.differences if row.follows] == ["bytes_per_s"]


def test_a_change_of_the_tail_is_found_where_the_ios_suffice() -> None:
    a, b = (make_run(make_point(seed, factor=factor, ios=400)) for seed, factor in ((1, 1.0), (2, 0.7)))
    row = row_of(compare_runs([a, b]), "read_latency_p99_ns")
    assert (row.method, row.status, row.better) == ("bootstrap", "changed", False)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for pair in range(PAIRS):
        a, b = make_point(2 * pair, r=0.4, ios=1), make_point(2 * pair + 1, factor=1.2, r=0.4, ios=1)
        row = row_of(compare_runs([make_run(a), make_run(b)]), "iops")
        assert row.interval_95 is not None
        covered += row.interval_95[0] <= 0.2 <= row.interval_95[1]
    assert covered / PAIRS >= 1 - FALSE_ALARMS_MAX


def test_noise_wider_than_what_is_worth_noticing_cannot_tell() -> None:
    a, b = (make_run(make_point(seed, spread=0.4)) for seed in (1, 2))
    assert row_of(compare_runs([a, b]), "iops").status == "cannot tell"
    a, b = (make_run(make_point(seed, spread=0.004)) for seed in (1, 4))
    assert row_of(compare_runs([a, b]), "iops").status == "not changed"
    assert row_of(compare_runs([a, b], smallest_share=0.0001), "iops").status != "not changed"


def test_two_bad_latencies_and_one_good_name_which_way_is_better() -> None:
    load = {"rate": 5000.0, "arrivals": "poisson"}
    a, b = (make_run(make_point(seed, factor=factor, load=load)) for seed, factor in ((1, 1.0), (2, 0.5)))
    row = row_of(compare_runs([a, b]), "read_latency_mean_ns")
    assert (row.status, row.better) == ("changed", False)
    assert row.relative == pytest.approx(1.0, abs=0.15)


def test_points_are_matched_by_workload_and_load_and_not_by_name() -> None:
    a = make_run(make_point(1, name="old label"), make_point(2, block_bytes=65536))
    b = make_run(make_point(3, name="new label"), make_point(4, load={"rate": 5000.0, "arrivals": "poisson"}))
    comparison = compare_runs([a, b])
    assert {(row.workload, row.load) for row in comparison.differences} == {("old label", "8 outstanding")}
    assert comparison.unmatched == (
        "8 KiB random read, 8 outstanding: in A, not in B",
        "8 KiB random read, 5,000/s: in B, not in A",
    )


def test_what_differs_by_less_than_is_worth_noticing_is_never_told_as_changed() -> None:
    a, b = (make_run(make_point(seed, factor=factor, spread=0.004)) for seed, factor in ((1, 1.0), (4, 1.03)))
    comparison = compare_runs([a, b])
    assert row_of(comparison, "iops").stands
    unknown = sum(row.status == "cannot tell" for row in comparison.compared)
    assert unknown == 1
    assert comparison.sentence.startswith(
        "No difference of 5 % or more in 1 of 2 figures; 1 cannot tell; of smaller differences 1 stands out from chance"
    )
    assert "changed" not in comparison.sentence
    (told,) = [row[-1] for row in comparison.rows() if row[2] == "IOPS"]
    assert told == "differs by less than 5 %"


def test_answers_that_cannot_tell_are_counted() -> None:
    unsure = answer(5000.0, interval=[4000.0, 6000.0])
    comparison = compare_runs([make_run(answers=[unsure]), make_run(answers=[answer(5100.0)])])
    assert comparison.sentence == "Whether a difference is 5 % or more cannot be told."


def test_loads_of_one_name_say_what_they_differ_in() -> None:
    a, b = make_transactions(1), make_transactions(2)
    b["workload"]["warehouses"] = 2
    assert compare_runs([make_run(a), make_run(b)]).unmatched == ("hammerdb, 8 users: warehouses 10 in A, 2 in B",)


def test_long_facts_are_cut_to_where_they_differ() -> None:
    a, b = make_transactions(1), make_transactions(2)
    for one, last in ((a, "dense"), (b, "wide, and more of it than a line has room for")):
        one["workload"]["layout"] = f"/srv/databases/of/the/year/2025/tables/{last}"
    assert compare_runs([make_run(a), make_run(b)]).unmatched == (
        "hammerdb, 8 users: layout ...25/tables/dense in A, ...25/tables/wide, and more of it than a li... in B",
    )


def test_many_loads_that_one_run_has_alone_are_a_line_by_kind() -> None:
    many = [make_point(at, n=3, ios=1, load={"outstanding": at}, name=f"mix {at % 5}") for at in range(1, 11)]
    comparison = compare_runs([make_run(make_transactions(1)), make_run(*many)])
    assert comparison.unmatched == (
        "hammerdb, 8 users: in A, not in B",
        "10 loads of mix 1, mix 2, mix 3 and 2 more workloads: in B, not in A",
    )


def test_repeats_are_pooled_and_their_spread_is_the_evidence() -> None:
    a = make_run(*(make_point(seed, factor=1 + 0.2 * at) for at, seed in enumerate((1, 2, 3))))
    b = make_run(*(make_point(seed, factor=1 + 0.2 * at) for at, seed in enumerate((4, 5, 6))))
    comparison = compare_runs([a, b])
    row = row_of(comparison, "iops")
    assert (row.method, row.repeats, row.status) == ("repeats", (3, 3), "cannot tell")
    assert row.a == pytest.approx(5000 * 1.2, rel=0.05)
    merged = core.Histogram()
    for point in a.points:
        merged.merge(core.Histogram.from_base64(point["read"]["histogram"]))
    assert row_of(comparison, "read_latency_p99_ns").a == merged.percentile(99.0)


def test_one_repeat_on_a_side_borrows_the_spread_of_the_other() -> None:
    a = make_run(*(make_point(seed) for seed in (1, 2, 3, 4)))
    row = row_of(compare_runs([a, make_run(make_point(5, factor=1.5))]), "iops")
    assert (row.method, row.repeats, row.status) == ("repeats", (4, 1), "changed")


def test_without_repeats_and_batches_there_is_no_interval_and_the_reason_says_so() -> None:
    a, b = (make_run(make_point(seed, n=BATCHES_MIN - 1)) for seed in (1, 2))
    row = row_of(compare_runs([a, b]), "iops")
    assert (row.interval_95, row.p, row.status) == (None, None, "cannot tell")
    assert "batches" in row.reason
    few = compare_runs([make_run(make_point(1, ios=5)), make_run(make_point(2, ios=5))])
    assert "above p99" in row_of(few, "read_latency_p99_ns").reason


def test_a_saturated_generator_is_no_evidence() -> None:
    comparison = compare_runs([make_run(make_point(1)), make_run(make_point(2, factor=2.0, saturated=True))])
    assert {row.status for row in comparison.compared} == {"cannot tell"}
    assert all("bottleneck in B" in row.reason and row.p is None for row in comparison.compared)


def test_a_direction_measured_in_one_run_only_cannot_tell() -> None:
    a, b = make_point(1), make_point(2)
    b["read"] = None
    row = row_of(compare_runs([make_run(a), make_run(b)]), "read_latency_mean_ns")
    assert (row.b, row.relative, row.status, row.reason) == (None, None, "cannot tell", "nothing measured in B")


def test_points_that_were_cut_short_are_left_out_and_told() -> None:
    cut = make_point(2) | {"ended_by": "interrupted"}
    comparison = compare_runs([make_run(make_point(1)), make_run(cut)])
    assert comparison.differences == ()
    assert "8 KiB random read, 8 outstanding: interrupted in B" in comparison.unmatched
    assert comparison.sentence.startswith("Nothing can be compared")


def test_more_than_two_runs_are_each_compared_with_the_first() -> None:
    runs = [make_run(make_point(seed, factor=factor), name=name) for seed, factor, name in
            ((1, 1.0, "one"), (2, 1.0, "two"), (3, 1.5, "three"))]  # fmt: skip
    comparison = compare_runs(runs)
    assert comparison.runs == ("one", "two", "three")
    iops = {row.run: row.status for row in comparison.differences if row.metric == "iops"}
    assert set(iops) == {1, 2}
    assert iops[2] == "changed"
    assert {row[4].split()[-1] for row in comparison.rows()} == {"(B)", "(C)"}


def answer(
    iops: float | None, *, interval: list[float] | None = None, limited_by: str = "read.mean<=20ms"
) -> dict[str, Any]:
    largest = None if iops is None else {"outstanding": 96, "iops": iops, "bytes_per_s": iops * 8192}
    return {
        "workload": {"kind": "io", "name": "8 KiB 70/30", "block_bytes": 8192}, "axis": "outstanding", "max": largest,
        "limited_by": limited_by, "interval_95": interval if interval or iops is None else [0.99 * iops, 1.01 * iops],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "status", "better"),
    [
        (answer(5000.0), answer(6000.0), "changed", True),
        (answer(5000.0), answer(4000.0), "changed", False),
        (answer(5000.0), answer(5010.0), "not changed", None),
        (answer(5000.0, interval=[4000.0, 6000.0]), answer(5500.0), "cannot tell", None),
        (answer(5000.0), answer(None), "changed", False),
        (answer(None), answer(5000.0), "changed", True),
        (answer(None), answer(None, limited_by="errors"), "not changed", None),
    ],
)
def test_answers_are_compared_by_their_intervals(
    a: dict[str, Any], b: dict[str, Any], status: str, better: bool | None
) -> None:
    (row,) = compare_runs([make_run(answers=[a]), make_run(answers=[b])]).answers
    assert (row.status, row.better) == (status, better)


def test_an_answer_at_the_end_of_the_axis_says_so() -> None:
    a, b = answer(5000.0), answer(6000.0, limited_by="axis end")
    (row,) = compare_runs([make_run(answers=[a]), make_run(answers=[b])]).answers
    assert row.reason == "the largest load of the plan passed in B"
    b["interval_95"] = None
    (row,) = compare_runs([make_run(answers=[a]), make_run(answers=[b])]).answers
    assert (row.status, row.interval_95, row.reason) == ("cannot tell", None, "the search gave no interval")


def test_rows_fit_a_table_and_the_document_is_json() -> None:
    runs = [
        make_run(make_point(seed, factor=factor), answers=[answer(5000.0 * factor)])
        for seed, factor in ((1, 1), (2, 2))
    ]
    comparison = compare_runs(runs)
    rows = comparison.rows() + comparison.answer_rows()
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert all(isinstance(cell, str) and "\n" not in cell for row in rows for cell in row)
    document = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert document["sentence"] == comparison.sentence
    assert document["differences"][0]["metric"] == "iops"
    assert document["answers"][0]["relative"] == pytest.approx(1.0)


@pytest.mark.parametrize(("count", "smallest"), [(0, 0.05), (1, 0.05), (2, 0.0), (2, 1.0), (2, -0.1)])
def test_too_few_runs_and_a_meaningless_threshold_are_refused(count: int, smallest: float) -> None:
    with pytest.raises(UsageError, match="compare:"):
        compare_runs([make_run(make_point(1))] * count, smallest_share=smallest)


def test_independent_batches_have_the_textbook_error_and_correlated_ones_a_larger() -> None:
    # Alternating values correlate negatively, which is not held in their favour: s / sqrt(n) / mean.
    values = [99.0, 101.0] * 10
    error, freedom = relative_error(values) or (0.0, 0.0)
    assert error == pytest.approx(numpy.std(values, ddof=1) / math.sqrt(20) / 100)
    assert freedom == 19
    drifting = sorted(values)
    assert (relative_error(drifting) or (0.0, 0.0))[0] > 2 * error
    assert relative_error([5.0] * 20) == (0.0, 19.0)
    assert relative_error([0.0] * 20) is None
    assert relative_error([1.0] * (BATCHES_MIN - 1)) is None


def test_repeats_give_student_s_interval() -> None:
    from scipy import stats

    a, b = [100.0, 110.0, 105.0], [120.0, 130.0]
    center = numpy.mean(numpy.log(b)) - numpy.mean(numpy.log(a))
    estimate, _ = by_repeats(a, b, float(center))
    test = stats.ttest_ind(numpy.log(b), numpy.log(a))
    interval = test.confidence_interval(0.95)
    assert estimate is not None
    assert estimate.p == pytest.approx(test.pvalue)
    assert (estimate.low, estimate.high) == (pytest.approx(interval.low), pytest.approx(interval.high))


def test_equal_answer_intervals_widen_the_ratio_by_root_two() -> None:
    edges = (5000 / 1.1, 5000 * 1.1)
    estimate = by_answer_intervals(5000.0, 5000.0, edges, edges)
    assert estimate.high == pytest.approx(math.sqrt(2) * math.log(1.1))
    assert estimate.low == pytest.approx(-estimate.high)


# Transactions


def make_transactions(seed: int, *, factor: float = 1.0, n: int = 20, **load: Any) -> dict[str, Any]:
    """A point of users on a database, at 10,000 NOPM times `factor`, with one device under the data."""
    generator = numpy.random.default_rng(seed)
    nopm = correlated(generator, 10_000 * factor, spread=0.02, r=0.2, n=n)
    mean = sum(nopm) / n
    write = {"count": 1000, "iops": 100.0, "bytes_per_s": 8e5, "latency_ns": {"mean": 4e5 / factor}, "histogram": None}
    latency = {"latency_ns": {"mean": 2e6 / factor, "p90": 5e6 / factor}, "histogram": None, "count": 1000}
    return {
        "id": f"p{seed}", "clock": "virtual", "ended_by": "time",
        "workload": {"kind": "tpcc", "name": "hammerdb", "warehouses": 10},
        "load": load or {"users": 8}, "read": None, "write": None, "total": None, "roles": {"data": {"write": write}},
        "oltp": {"nopm": mean, "tpm_client": 2.3 * mean, "by_transaction": {"new_order": latency, "payment": latency}},
        "generator": {"saturated": False}, "batches": {"seconds": 3.0, "total": {"nopm": nopm}},
    }  # fmt: skip


def test_two_identical_runs_of_transactions_show_no_difference() -> None:
    comparison = compare_runs([make_run(make_transactions(1)), make_run(make_transactions(1))])
    assert {row.metric for row in comparison.differences} == {
        "nopm", "tpm", "response_p90_ns", "payment_response_p90_ns", "data_write_latency_mean_ns",
    }  # fmt: skip
    assert {row.status for row in comparison.compared} == {"not changed"}
    assert not comparison.sentence.startswith("Nothing can be compared")


def test_transactions_have_intervals_from_batches_and_a_direction() -> None:
    comparison = compare_runs([make_run(make_transactions(1)), make_run(make_transactions(2, factor=1.5))])
    nopm, response = row_of(comparison, "nopm"), row_of(comparison, "response_p90_ns")
    assert (nopm.method, nopm.status, nopm.better, nopm.load) == ("batches", "changed", True, "8 users")
    assert row_of(comparison, "tpm").follows == "NOPM"
    assert (response.interval_95, response.status) == (None, "cannot tell")
    assert response.relative == pytest.approx(1 / 1.5 - 1)
    assert any("NOPM" in cell for row in comparison.rows() for cell in row)


def test_repeats_of_transactions_tell_of_response_times_too() -> None:
    sides = [
        make_run(*(make_transactions(10 * side + at, factor=side + 0.01 * at) for at in range(3))) for side in (1, 2)
    ]
    row = row_of(compare_runs(sides), "data_write_latency_mean_ns")
    assert (row.method, row.status, row.better) == ("repeats", "changed", True)


def test_answers_of_transactions_are_compared_by_what_their_search_maximises() -> None:
    def found(nopm: float) -> dict[str, Any]:
        end = {"users": 32, "nopm": nopm, "tpm": 2.3 * nopm, "point_id": "p0001"}
        return {
            "workload": {"kind": "tpcc", "name": "hammerdb"}, "axis": "users", "max": end, "limited_by": "cpu<80%",
            "interval_95": [0.99 * nopm, 1.01 * nopm],
        }  # fmt: skip

    comparison = compare_runs([make_run(answers=[found(10_000)]), make_run(answers=[found(12_000)])])
    (row,) = comparison.answers
    assert (row.status, row.better, row.relative) == ("changed", True, pytest.approx(0.2))
    assert comparison.answer_rows()[0][2:5] == ("NOPM within limits", "10,000 NOPM", "12,000 NOPM")
    (told,) = comparison.to_dict()["answers"]
    assert (told["a_nopm"], told["b_nopm"], told["axis"]) == (10_000, 12_000, "users")


def test_knee_and_edge_are_compared_where_both_runs_know_them() -> None:
    def found(outstanding: int, iops: float) -> dict[str, Any]:
        most = answer(iops)
        end = most["max"] | {"outstanding": outstanding, "interval_95": [iops * 0.98, iops * 1.02]}
        return most | {"max": end, "knee": end, "edge": end}

    both = compare_runs([make_run(answers=[found(48, 5000.0)]), make_run(answers=[found(72, 6000.0)])])
    older = compare_runs([make_run(answers=[answer(5000.0)]), make_run(answers=[found(72, 6000.0)])])

    assert [(row.end, row.a_load, row.b_load, row.status) for row in both.answers] == [
        (end, 48, 72, "changed") for end in ("max", "knee", "edge")
    ]
    assert [row[1:3] for row in both.answer_rows()] == [
        ("outstanding 48 and 72", f"IOPS {where}") for where in ("within limits", "at the knee", "at the edge")
    ]
    assert [row.end for row in older.answers] == ["max"]


def test_answers_of_io_keep_their_keys() -> None:
    (told,) = compare_runs([make_run(answers=[answer(5000.0)]), make_run(answers=[answer(6000.0)])]).to_dict()[
        "answers"
    ]
    assert (told["a_iops"], told["b_iops"]) == (5000, 6000)


def test_a_kind_of_tomorrow_is_left_alone() -> None:
    point = make_point(1, kind="of tomorrow")
    assert compare_runs([make_run(point), make_run(point)]).differences == ()


def test_runs_that_hold_the_same_measurements_do_not_differ_whenever_they_were_made() -> None:
    a = make_transactions(1, n=3)
    b = copy.deepcopy(a) | {"id": "p9", "started_utc_ns": 2, "generator": {"saturated": True}}
    a["generator"]["saturated"] = True
    assert {row.status for row in compare_runs([make_run(a), make_run(b)]).compared} == {"not changed"}


# One run each, and several


def test_one_run_each_on_the_wall_clock_cannot_tell_what_only_the_noise_within_shows() -> None:
    a, b = (make_run(make_point(seed, factor=factor, clock="wall")) for seed, factor in ((1, 1.0), (2, 1.156)))
    comparison = compare_runs([a, b])
    row = row_of(comparison, "iops")
    assert (row.status, row.reason) == ("cannot tell", "one run each cannot tell")
    assert not row.stands
    assert "one run each cannot tell whether that is the storage" in comparison.sentence
    far = row_of(compare_runs([a, make_run(make_point(3, factor=3.0, clock="wall"))]), "iops")
    assert (far.status, far.better, far.stands) == ("changed", True, True)


def test_runs_that_differ_from_each_other_by_chance_alone_seldom_seem_changed() -> None:
    generator = numpy.random.default_rng(11)
    alarms = 0
    for pair in range(PAIRS):
        a, b = (
            make_run(make_point(2 * pair + side, factor=math.exp(0.08 * generator.normal()), ios=20, clock="wall"))
            for side in range(2)
        )
        alarms += row_of(compare_runs([a, b]), "iops").status == "changed"
    assert alarms / PAIRS <= FALSE_ALARMS_MAX


@pytest.mark.parametrize(("factor", "most", "least"), [(1.0, FALSE_ALARMS_MAX, 0.0), (1.2, 1.0, 0.8)])
def test_runs_of_a_side_are_repeats(factor: float, most: float, least: float) -> None:
    """Three runs a side that vary by 5 %: none seems changed but one in twenty, and 20 % are found."""
    generator = numpy.random.default_rng(5)
    found = 0
    for pair in range(PAIRS // 3):
        sides = [
            ComparedSide(tuple(
                make_run(make_point(
                    6 * pair + 3 * side + run, factor=(factor if side else 1.0) * math.exp(0.05 * generator.normal()),
                    ios=2, clock="wall",
                ))
                for run in range(3)
            ))
            for side in range(2)
        ]  # fmt: skip
        row = row_of(compare_runs(sides), "iops")
        assert (row.method, row.repeats) == ("repeats", (3, 3))
        found += row.status == "changed"
    assert least <= found / (PAIRS // 3) <= most


def test_repeats_within_a_run_of_several_are_one_value() -> None:
    twice = make_run(make_point(1, clock="wall"), make_point(2, clock="wall"))
    row = row_of(
        compare_runs([ComparedSide((twice, make_run(make_point(3, clock="wall")))), ComparedSide((twice, twice))]),
        "iops",
    )
    assert row.repeats == (2, 2)


def test_answers_of_several_runs_are_repeats_and_of_one_run_each_cannot_tell() -> None:
    def side(*held: float) -> ComparedSide:
        return ComparedSide(tuple(make_run(answers=[answer(value)], clock="wall") for value in held))

    (row,) = compare_runs([side(5000.0), side(5600.0)]).answers
    assert (row.status, row.reason) == ("cannot tell", "one run each cannot tell")
    (row,) = compare_runs([side(5000.0, 5050.0, 4950.0), side(5600.0, 5650.0, 5550.0)]).answers
    assert (row.method, row.status, row.better) == ("repeats", "changed", True)
    assert row.b == pytest.approx(5600.0, rel=1e-3)


def around(seed: int, deviation: float, factor: float = 1.0) -> Run:
    """A run that differs from others of its target by chance."""
    noise = numpy.random.default_rng(seed).normal()
    return make_run(make_point(seed, factor=factor * math.exp(deviation * noise), ios=20, clock="wall"))


def test_other_runs_of_the_target_take_the_place_of_what_is_assumed_between_runs() -> None:
    a, b = make_run(make_point(1, clock="wall")), make_run(make_point(2, factor=1.156, clock="wall"))
    steady = [ComparedSide(tuple(around(seed, 0.01) for seed in range(10, 18)))]
    known, assumed = compare_runs([a, b], history=steady), compare_runs([a, b])

    row = row_of(known, "iops")
    assert (row.status, row.better) == ("changed", True)
    assert row.between_runs is not None
    assert row.between_runs[1] == 8
    assert known.basis.startswith("From run to run the target varies by ")
    assert "8 other runs of it" in known.basis
    assert known.to_dict()["basis"] == known.basis
    assert row_of(assumed, "iops").between_runs == (0.12, 0)
    assert assumed.basis.startswith("A standard deviation of 12 % from run to run is assumed")


def test_two_other_runs_of_the_target_are_no_history() -> None:
    a, b = make_run(make_point(1, clock="wall")), make_run(make_point(2, factor=1.156, clock="wall"))
    row = row_of(compare_runs([a, b], history=[ComparedSide((around(5, 0.01), around(6, 0.01)))]), "iops")
    assert row.between_runs == (0.12, 0)


def test_a_model_needs_no_history() -> None:
    comparison = compare_runs([make_run(make_point(1)), make_run(make_point(2))])
    assert row_of(comparison, "iops").between_runs is None
    assert comparison.basis == ""


def test_identical_runs_seldom_seem_changed_by_the_history_of_their_target() -> None:
    alarms = 0
    for pair in range(PAIRS // 3):
        runs = [around(10 * pair + number, 0.05) for number in range(6)]
        alarms += row_of(compare_runs(runs[:2], history=[ComparedSide(tuple(runs[2:]))]), "iops").status == "changed"
    assert alarms / (PAIRS // 3) <= FALSE_ALARMS_MAX


def test_pairs_take_out_what_drifts_meanwhile() -> None:
    def side(factor: float, first: int) -> ComparedSide:
        return ComparedSide(tuple(around(first + at, 0.01, factor * 1.3**at) for at in range(4)))

    sides = [side(1.0, 20), side(1.1, 40)]
    assert row_of(compare_runs(sides), "iops").status == "cannot tell"
    row = row_of(compare_runs(sides, paired=True), "iops")
    assert (row.method, row.status, row.better, row.repeats) == ("repeats", "changed", True, (4, 4))


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3)])
def test_sides_that_are_no_pairs_are_refused(a: int, b: int) -> None:
    sides = [ComparedSide((make_run(make_point(1)),) * count) for count in (a, b)]
    with pytest.raises(UsageError, match="--paired: the sides have"):
        compare_runs(sides, paired=True)


def test_blocks_of_two_rows_are_the_t_of_pairs() -> None:
    from scipy import stats

    a, b = [100.0, 130.0, 90.0, 111.0], [108.0, 139.0, 101.0, 118.0]
    logs = numpy.log(b) - numpy.log(a)
    estimate, _ = by_blocks([a, b], float(logs.mean()))
    test = stats.ttest_1samp(logs, 0.0)
    interval = test.confidence_interval(0.95)
    assert estimate is not None
    assert estimate.p == pytest.approx(test.pvalue)
    assert (estimate.low, estimate.high) == (pytest.approx(interval.low), pytest.approx(interval.high))

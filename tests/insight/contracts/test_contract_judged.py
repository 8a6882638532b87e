"""A contract over a recording: what counts, what is in breach, what cannot be told, and never a word too much."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import RunFolderError, UsageError
from assay.base.tables import TableValue
from assay.insight.contracts.contract import contract_of
from assay.insight.contracts.judge import JudgedClause, JudgedContract, judge_recording
from assay.insight.contracts.latency import COARSE, IN_BUCKET, NO_HISTOGRAM, Minutes
from assay.insight.contracts.times import STATISTICS, IoTimes
from assay.telemetry.columns import Reading
from contract_recordings import BEGIN_NS, DAY, HOUR, MINUTE, SECOND, Minute, of, record

FAST, SLOW = of(30_000, 30), of(30_000, 3000)
READS: dict[str, TableValue] = {"name": "reads", "most": "2ms"}


def judged(folder: Path, latency: dict[str, TableValue] | None = None, **table: TableValue) -> JudgedContract:
    return judge_recording(contract_of({"latency": [latency or READS], **table}, "test"), folder)


def clause(found: JudgedContract, name: str = "reads") -> JudgedClause:
    return next(one for one in found.clauses if one.name == name)


def minutes(found: JudgedContract) -> Minutes:
    judge = clause(found).latency
    assert judge is not None
    return judge.minutes


def hour_of_slowness(number: int) -> Minute:
    return SLOW if 180 <= number < 240 else FAST


@pytest.fixture(scope="module")
def slow_hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours, of which the fourth is slow; only read."""
    return record(tmp_path_factory.mktemp("slow"), 360, hour_of_slowness)


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour that is fast; only read."""
    return record(tmp_path_factory.mktemp("fast"), 60, lambda _: FAST)


# Percentiles are merged, and no limit is judged that the buckets cannot tell


def bucketed(times_ns: list[int]) -> IoTimes:
    counts: dict[int, float] = {}
    for time_ns in times_ns:
        bucket = 0 if time_ns < 1000 else min(math.floor(math.log2(time_ns / 1000) * 2) + 1, 61)
        counts[bucket] = counts.get(bucket, 0.0) + 1
    return IoTimes(counts, len(times_ns), float(sum(times_ns)), float(max(times_ns)))


times = st.lists(st.integers(min_value=0, max_value=10**10), min_size=1, max_size=300)


@given(times, st.integers(min_value=1500, max_value=10**10), st.sampled_from([*STATISTICS, "mean", "max"]))
def test_a_histogram_says_of_a_limit_what_the_times_say_or_nothing(
    times_ns: list[int], most_ns: int, statistic: str
) -> None:
    limit_ns = most_ns + 0.5
    if statistic == "mean":
        truth = sum(times_ns) / len(times_ns) <= limit_ns
    elif statistic == "max":
        truth = max(times_ns) <= limit_ns
    else:
        truth = sum(one <= limit_ns for one in times_ns) >= STATISTICS[statistic] * len(times_ns) - 1e-6
    assert bucketed(times_ns).keeps(statistic, limit_ns) in (truth, None)


@given(times, times)
def test_times_add_up_without_loss(some: list[int], others: list[int]) -> None:
    added = bucketed(some)
    added.add(bucketed(others))
    assert added == bucketed([*some, *others])


def test_a_month_is_of_all_its_ios_and_no_mean_of_its_intervals(tmp_path: Path) -> None:
    # A quarter hour with few slow I/Os among many quiet ones: the mean of their percentiles would be far above.
    record(tmp_path, 300, lambda number: of(100, 100) if number < 15 else of(60_000, 0))

    found = judged(tmp_path, {**READS, "over": "all"})

    judge = clause(found).latency
    assert judge is not None
    assert clause(found).met is True
    assert judge.times.ios == 15 * 200 + 285 * 60_000
    assert judge.times.counts == {18: 15 * 100 + 285 * 60_000, 26: 15 * 100}
    assert (judged(tmp_path).clauses[0].met, minutes(judged(tmp_path)).missed) == (False, pytest.approx(15))


# Minutes


def test_minutes_in_breach_are_counted_by_clause_and_the_worst_hour_has_its_evidence(slow_hour: Path) -> None:
    found = judged(slow_hour)

    judge = clause(found).latency
    assert judge is not None
    assert (found.met, clause(found).met) == (False, False)
    assert (judge.minutes.missed, judge.minutes.met) == (pytest.approx(60), pytest.approx(5 * 60))
    worst = judge.worst()
    assert [(one.begin_ns, one.missed) for one in worst] == [(BEGIN_NS + 3 * HOUR, pytest.approx(60))]
    assert worst[0].ios == pytest.approx(60 * (33_000 + 6000))
    assert 5.7e6 < (worst[0].value_ns or 0) < 7e6
    assert [one.begin_ns for one in judge.days.values()] == [BEGIN_NS]


@pytest.mark.parametrize(("allowed", "met"), [("16%", False), ("17%", True)])
def test_a_contract_may_allow_a_share_of_the_time(slow_hour: Path, allowed: str, met: bool) -> None:
    found = judged(slow_hour, {**READS, "allowed": allowed})
    judge = clause(found).latency
    assert judge is not None
    assert clause(found).met is met
    assert judge.left_minutes() == pytest.approx(max(float(allowed[:-1]) / 100 * 360 - 60, 0), abs=1e-6)


@pytest.mark.parametrize(
    ("exclude", "clauses", "reason"),
    [
        ({"below_iops": 1000}, {}, "below 1,000 IOPS"),
        ({"above_block": "4KiB"}, {}, "I/Os above 4 KiB"),
        ({"below_random_reads": "90%"}, {}, "random reads below 90 %"),
        ({"maintenance": [{"begin": "2026-11-02T03:00:00Z", "end": "2026-11-02T04:00:00Z", "why": "firmware"}]}, {},
         "maintenance: firmware"),
        ({"weekly": [{"day": "Mon", "hours": "3-4"}]}, {}, "maintenance: weekly maintenance"),
        ({"weekly": [{"day": "Sun", "hours": "22-4"}]}, {}, "maintenance: weekly maintenance"),
        ({}, {"iops": 600}, "above the promised 600 IOPS"),
        ({}, {"blocks": ["16KiB", "64KiB"]}, "I/Os not of 16 KiB to 64 KiB"),
        ({}, {"reads": ["10%", "50%"]}, "reads not 10 % to 50 % of the I/Os"),
        ({}, {"direction": "write"}, ""),
    ],
)  # fmt: skip
def test_what_does_not_count_is_told_with_its_reason(
    slow_hour: Path, exclude: dict[str, TableValue], clauses: dict[str, TableValue], reason: str
) -> None:
    found = minutes(judged(slow_hour, {**READS, **clauses}, exclude=exclude))

    if not reason:
        assert found.unknown == {NO_HISTOGRAM: pytest.approx(360)}
        return
    assert reason in found.excluded
    assert found.missed == 0
    assert found.counted + found.excluded_sum == pytest.approx(360)


def test_reads_that_may_be_sequential_are_unknown_unless_both_sides_state_their_share(slow_hour: Path) -> None:
    exclude: dict[str, TableValue] = {"below_random_reads": "30%"}

    unknown = judged(slow_hour, exclude=exclude)
    stated = judged(slow_hour, exclude=exclude, assumed={"random_reads": "80%"})

    assert (unknown.met, minutes(unknown).missed, minutes(unknown).unknown_sum) == (None, 0, pytest.approx(60))
    assert "random" in clause(unknown).why
    assert (stated.met, minutes(stated).missed) == (False, pytest.approx(60))


# What was not recorded


def test_a_percentile_without_histograms_cannot_be_judged(tmp_path: Path) -> None:
    record(tmp_path, 60, lambda _: Minute())

    found = judged(tmp_path)

    assert (found.met, minutes(found).met, minutes(found).missed) == (None, 0, 0)
    assert clause(found).why.startswith("cannot be judged from what was recorded")
    assert NO_HISTOGRAM in clause(found).why


@pytest.mark.parametrize(("most", "met"), [("1ms", True), ("400us", None)])
def test_the_kernels_mean_bounds_a_mean_from_above(tmp_path: Path, most: str, met: bool | None) -> None:
    record(tmp_path, 60, lambda _: Minute())
    assert clause(judged(tmp_path, {"name": "reads", "statistic": "mean", "most": most})).met is met


def test_a_limit_within_a_bucket_is_unknown_and_the_limits_beside_it_are_told(tmp_path: Path) -> None:
    record(tmp_path, 60, lambda _: SLOW)
    found = judged(tmp_path, {"name": "reads", "most": "6ms"})
    assert found.met is None
    assert IN_BUCKET in clause(found).why
    assert "5.79 ms or 8.19 ms is told exactly" in clause(found).why
    assert judged(tmp_path, {"name": "reads", "most": "5.79ms"}).met is False
    assert judged(tmp_path, {"name": "reads", "most": "8.2ms"}).met is True


def test_time_of_which_only_quarter_hours_are_kept_is_judged_by_the_quarter_hour_alone(
    tmp_path: Path, slow_hour: Path
) -> None:
    shutil.copytree(slow_hour, tmp_path, dirs_exist_ok=True)
    for path in [*tmp_path.glob("recording-0*"), *tmp_path.glob("recording-minutes-*")]:
        path.unlink()

    by_quarters, by_minutes = judged(tmp_path), judged(tmp_path, interval="1min")

    assert minutes(by_quarters).missed == pytest.approx(60)
    assert (minutes(by_minutes).missed, minutes(by_minutes).met) == (0, 0)
    assert set(minutes(by_minutes).unknown) == {COARSE}


def test_minutes_and_quarter_hours_say_the_same(tmp_path: Path, slow_hour: Path) -> None:
    shutil.copytree(slow_hour, tmp_path, dirs_exist_ok=True)
    before = minutes(judged(tmp_path))
    for path in tmp_path.glob("recording-0*"):
        path.unlink()
    after = minutes(judged(tmp_path))
    # The last minute, which is not over, is in no minute yet.
    assert (after.missed, after.met) == (before.missed, pytest.approx(before.met - 1))


def test_a_damaged_file_is_named_and_costs_itself_alone(tmp_path: Path, slow_hour: Path) -> None:
    shutil.copytree(slow_hour, tmp_path, dirs_exist_ok=True)
    (tmp_path / "recording-minutes-000001.sqlite").write_bytes(b"no database")

    found = judged(tmp_path)

    assert any("recording-minutes-000001.sqlite" in text for text in found.notices)
    assert minutes(found).missed == pytest.approx(60)


# Other clauses


def test_what_stood_still_was_not_available(tmp_path: Path) -> None:
    still = Minute(reads=0, writes=0, queue=8.0)
    record(tmp_path, 1000, lambda number: still if number in (500, 501) else FAST)

    found = {least: judged(tmp_path, availability={"least": least}) for least in ("99.8%", "99.9%")}

    assert clause(found["99.8%"], "availability").met is True
    assert clause(found["99.9%"], "availability").met is False
    assert "99.8 %" in clause(found["99.9%"], "availability").found


def test_time_that_was_not_recorded_is_neither_available_nor_not(tmp_path: Path) -> None:
    record(tmp_path, 720, lambda number: None if 300 <= number < 400 else FAST)

    found = judged(tmp_path, availability={"least": "99%"})
    stated = judged(tmp_path, availability={"least": "99%"}, assumed={"unrecorded": "available"})

    assert clause(found, "availability").met is None
    assert found.unrecorded_ns == pytest.approx(100 * MINUTE)
    assert clause(stated, "availability").met is True
    assert minutes(found).counted == pytest.approx(620)


def test_a_rebuild_is_timed(tmp_path: Path) -> None:
    rebuilt = lambda number: [("raid", Reading("md0", "rebuilt_bytes", "delta", 1e9))] if 60 <= number < 180 else []  # noqa: E731
    record(tmp_path, 360, lambda _: FAST, also=rebuilt)
    for most, met in (("1h", False), ("2h", True)):
        found = clause(judged(tmp_path, rebuild={"most": most}), "rebuild")
        assert (found.met, "took 2 h" in found.found) == (met, True)


def test_a_rate_is_met_once_it_was_served_and_unknown_before(fast: Path) -> None:
    for least, met in ((600, True), (700, None)):
        assert clause(judged(fast, iops=[{"name": "rate", "least": least}]), "rate").met is met
    assert clause(judged(fast, throughput=[{"name": "scan", "least": "1GB/s"}]), "scan").met is None
    assert clause(judged(fast, throughput=[{"name": "scan", "least": "1MB/s"}]), "scan").met is True


def test_capacity_is_that_of_the_file_systems_and_power_what_a_meter_showed(tmp_path: Path) -> None:
    record(tmp_path, 60, lambda _: FAST, also=lambda _: [("volume", Reading("/data", "size_bytes", "gauge", 2e12))])
    capacity = {"least": "2TB", "mounts": ["/data"]}
    found = judged(tmp_path, capacity=capacity, power={"most_per_tb": "5W", "measured": "11W"}, loss={})
    assert clause(found, "capacity").met is True
    assert clause(found, "power").met is False
    assert clause(found, "loss").met is None
    assert clause(judged(tmp_path, capacity={"least": "3TB", "mounts": ["/data"]}), "capacity").met is False
    assert clause(judged(tmp_path, capacity={"least": "3TB", "mounts": ["/x"]}), "capacity").met is None


# Bad input


def test_devices_and_hosts_that_were_not_recorded_are_refused(fast: Path) -> None:
    for storage, words in (
        ({"devices": ["sdz"]}, "device 'sdz' was not recorded; there is sda"),
        ({"role": "log"}, "no device has the role 'log'"),
        ({"host": "db9"}, "host 'db9' was not recorded; there is db1"),
    ):
        with pytest.raises(UsageError, match=words):
            judged(fast, storage=storage)


def test_a_recording_of_several_hosts_needs_one_named(tmp_path: Path) -> None:
    record(tmp_path, 20, lambda _: FAST)
    record(tmp_path, 20, lambda _: SLOW, begin_ns=BEGIN_NS + DAY, host="db2")
    with pytest.raises(UsageError, match="holds the hosts db1, db2"):
        judged(tmp_path)
    assert judged(tmp_path, storage={"host": "db1"}).met is True
    assert judged(tmp_path, storage={"host": "db2"}).met is False


def test_times_that_no_recording_has_are_refused(tmp_path: Path) -> None:
    record(tmp_path, 20, lambda _: FAST)
    record(tmp_path, 20, lambda _: FAST, begin_ns=BEGIN_NS + 40 * 366 * DAY)
    with pytest.raises(RunFolderError, match="20 years apart"):
        judged(tmp_path)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "promises nothing"),
        ({"latency": [{"name": "a", "most": "2"}]}, "latency 1.most: 2 has no unit"),
        ({"latency": [{"name": "a", "most": 2}]}, "latency 1.most: 2 has no unit"),
        ({"latency": [{"name": "a", "most": "2ms", "percentile": "p99"}]}, "unknown key 'percentile'"),
        ({"latency": [READS, READS]}, "'reads' is given twice"),
        ({"latency": [{**READS, "iops_per_tb": 5}]}, "reads counts by the TB"),
        ({"latency": [{**READS, "iops_per_tb": 5, "iops": 5}]}, "contradict each other"),
        ({"latency": [{**READS, "blocks": ["8KiB", "4KiB"]}]}, "latency 1.blocks: give the smaller value first"),
        ({"latency": [{**READS, "allowed": "101%"}]}, "is above 100%"),
        ({"iops": [{"name": "a"}]}, "give least or least_per_tb"),
        ({"loss": {}, "exclude": {"weekly": [{"day": "noday", "hours": "2-4"}]}}, "no day of the week"),
        ({"loss": {}, "exclude": {"maintenance": [{"begin": "2026-11-02", "end": "x"}]}}, "time zone"),
        ({"loss": {}, "exclude": {"maintenance": [{"begin": "2026-11-02T00:00Z", "end": "2026-11-01T00:00Z"}]}},
         "is not after begin"),
        ({"loss": {}, "interval": "5min"}, "interval"),
        ({"loss": {}, "storage": {"role": "a", "devices": ["b"]}}, "role and devices contradict"),
    ],
)  # fmt: skip
def test_a_wrong_contract_is_refused_by_its_key(table: dict[str, TableValue], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        contract_of(table, "contract.toml")
    assert words in str(caught.value)


@pytest.mark.slow("the same judging as in the tests above, of many days")
def test_many_days_are_judged_in_the_memory_of_few(tmp_path: Path) -> None:
    import tracemalloc

    def peak_of(days: int) -> tuple[JudgedContract, int]:
        # The recording is written without tracing, which makes it many times slower.
        (tmp_path / f"{days}").mkdir()
        folder = record(tmp_path / f"{days}", days * 1440, lambda number: hour_of_slowness(number % 1440))
        tracemalloc.start()
        try:
            return judged(folder), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    _, few = peak_of(2)
    found, many = peak_of(6)
    assert many < max(1.2 * few, few + (1 << 20))
    assert minutes(found).missed == pytest.approx(6 * 60)
    assert found.total_ns == pytest.approx(6 * DAY, rel=1e-3)
    assert SECOND < MINUTE

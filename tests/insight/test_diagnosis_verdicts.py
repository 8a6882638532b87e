"""Four verdicts: a cause, bad without one, judged fine, not judged; signals that one bad device or program gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.inputs import sources_of
from assay.insight.diagnosis.observed import ObservedSource
from assay.insight.diagnosis.verdict import BAD, FINE, FOUND, UNJUDGED
from assay.report.sections.diagnosis import limiting_words
from assay.telemetry.importers.importer import Options
from series_rows import series_of, series_rows

CASES = Path(__file__).parent / "cases"


def of(*parts: list[dict[str, Any]]) -> Diagnosis:
    frame = series_of([row for part in parts for row in part])
    return diagnose([ObservedSource(name="made", manifest={}, series=frame)])


def of_file(name: str, **roles: str) -> Diagnosis:
    """The diagnosis of a file that an engineer attached to a ticket."""
    return diagnose(sources_of([CASES / name], Options(zone_s=0, roles=roles)).sources)


def cpu(busy: Sequence[float], step_s: int = 1, **more: Sequence[float]) -> list[dict[str, Any]]:
    made = series_rows("host", "cpu", "user_share", busy, step_s=step_s)
    for metric, values in more.items():
        made += series_rows("host", "cpu", metric, values, step_s=step_s)
    return made


def disk(name: str = "sda", step_s: int = 1, **metrics: Sequence[float | None]) -> list[dict[str, Any]]:
    """A device; counts are per step."""
    return [
        row
        for metric, values in metrics.items()
        for row in series_rows(
            "block", name, metric, values, step_s=step_s, tier="storage",
            kind="delta" if metric.endswith(("ios_count", "bytes")) else "gauge",
        )
    ]  # fmt: skip


def healthy(steps: int = 60, step_s: int = 1) -> list[dict[str, Any]]:
    return disk(
        step_s=step_s, read_ios_count=[400.0] * steps, write_ios_count=[200.0] * steps,
        read_latency_mean_ns=[2e6] * steps, write_latency_mean_ns=[1e6] * steps,
        queue_mean_count=[1.0] * steps, busy_share=[0.3] * steps,
    )  # fmt: skip


def test_few_ios_that_are_very_late_are_a_slow_disk() -> None:
    found = of_file("few-ios-very-late.txt")

    assert found.first == "slow-disk"
    assert "sdb: writes take" in found.verdict["what"]
    assert "7.20 s (bad from 20.0 ms); also sdb: reads take" in found.verdict["what"]
    assert [cell.state for cell in found.cells if (cell.tier, cell.resource) == ("storage", "disk")] == ["hot"]


def test_ios_that_hang_are_a_cause_of_their_own_with_its_time_and_length() -> None:
    found = of_file("device-stands-still.txt")

    cause = found.record()["causes"][0]
    assert cause["cause"] == "device-stands-still"
    assert cause["confidence"] >= 0.5
    assert cause["recurs"]["longest_s"] == 8.0
    assert "2021-03-02 10:00:07 UTC" in found.verdict["since"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_device_that_lies_on_others_may_hang_by_itself(beside: bool) -> None:
    hung = [30 <= step < 40 for step in range(60)]
    stacked = disk(
        "dm-0", write_ios_count=[0.0 if one else 50.0 for one in hung],
        queue_mean_count=[24.0 if one else 0.1 for one in hung], busy_share=[1.0 if one else 0.1 for one in hung],
    )  # fmt: skip

    found = of(cpu([0.2] * 60), stacked, *([healthy()] if beside else []))

    assert found.first == "device-stands-still"
    assert "dm-0" in found.verdict["what"]


def test_ios_that_hang_under_windows_are_in_the_queue_of_the_moment_alone() -> None:
    hung = [30 <= step < 40 for step in range(60)]
    counts = [0.0 if one else 6000.0 for one in hung]
    stuck = disk("0 D:", step_s=15, read_ios_count=counts, queue_mean_count=[0.0 if one else 1.2 for one in hung],
                 queue_now_count=[128.0 if one else 1.0 for one in hung])  # fmt: skip

    found = of(cpu([0.2] * 60, step_s=15), stuck)

    assert found.first == "device-stands-still"
    assert found.record()["causes"][0]["recurs"]["longest_s"] == 150.0


def test_late_flushes_are_what_commits_wait_for() -> None:
    found = of_file("late-flushes.txt", sda="log")

    assert found.first == "log-flush"
    assert "sda: a flush takes: 85.0 ms" in found.verdict["what"]
    assert [cell.state for cell in found.cells if (cell.tier, cell.resource) == ("storage", "disk")] == ["hot"]


def test_fine_names_what_came_nearest_to_its_threshold_first() -> None:
    quick = [
        disk(f"sd{letter}", read_ios_count=[400.0] * 60, read_latency_mean_ns=[mean * 1e6] * 60)
        for letter, mean in (("a", 1), ("b", 2), ("c", 15), ("d", 3), ("e", 4))
    ]

    verdict = of(cpu([0.1] * 60), *quick).verdict

    assert verdict["state"] == FINE
    assert verdict["what"].startswith("sdc reads 15.0 ms (bad from 20.0 ms); ")
    assert verdict["what"].endswith("farther from theirs")
    assert len(verdict["judged"]) >= 6


@pytest.mark.parametrize(
    ("source", "entity", "told"),
    [("guest", "db01:scsi0:1", "esxtop"), ("nfs", "/srv", "nfsiostat"), ("block", "sda", "iostat")],
)
def test_one_signal_is_confirmed_where_the_device_is(source: str, entity: str, told: str) -> None:
    late = series_rows(source, entity, "read_latency_mean_ns", [60e6] * 60, tier="storage")
    done = series_rows(source, entity, "read_ios_count", [900.0] * 60, tier="storage", kind="delta")

    found = of(cpu([0.2] * 60), late, done)

    assert found.first == "slow-disk"
    assert told in found.causes[0].confirm
    assert found.answer[0].startswith("Cause found (likely, confidence 25 %): slow-disk: ")
    assert limiting_words(found).startswith("Likely: ")


def test_the_sum_of_all_disks_is_no_disk() -> None:
    found = of(cpu([0.2] * 60), disk("_Total", read_ios_count=[400.0] * 60, read_latency_mean_ns=[85e6] * 60))

    assert found.causes[0].advice.startswith("Record each disk")


def test_each_threshold_has_a_source_of_its_own_subject() -> None:
    evidence = {one["of"]: one for one in of_file("late-flushes.txt").record()["causes"][0]["evidence"]}

    assert evidence["busy"]["text"] == "sda: time with a flush under way: 100 % (bad from 50 %)"
    assert "flush" in str(evidence["busy"]["source"])


def test_iowait_that_no_recorded_device_explains_points_to_others() -> None:
    found = of_file("iowait-without-a-disk.txt")

    assert found.first == "unrecorded-storage"
    assert "nfsiostat" in found.verdict["do"]


def test_an_application_that_stalls_by_itself_is_bad_with_its_period() -> None:
    found = of_file("pgbench-stalls.txt")

    record = found.record()
    assert found.verdict["state"] == BAD
    assert record["causes"][0]["cause"] == "cause-not-found"
    assert record["causes"][0]["recurs"]["period_s"] == 60.0
    assert record["causes"][0]["recurs"]["length_s"] == 15.0
    assert "every 60 s, 15 s long" in found.verdict["since"]
    assert "checkpoints" in found.verdict["do"]


def test_fine_names_what_was_judged_and_how_far_that_reaches() -> None:
    found = of(cpu([0.2] * 60), healthy())

    assert found.verdict["state"] == FINE
    assert found.title == "What was recorded is fine"
    assert any("sda reads" in text and "bad from 20.0 ms" in text for text in found.verdict["judged"])
    assert any(text.startswith("the database") for text in found.verdict["not_judged"])


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([cpu([0.2] * 60)], id="without storage"),
        pytest.param([healthy()], id="without processors"),
        pytest.param([cpu([0.2] * 60), healthy(steps=30)], id="storage for half of the time"),
        pytest.param([cpu([0.2] * 3), healthy(steps=3)], id="three samples"),
    ],
)
def test_silence_is_not_called_fine(parts: list[list[dict[str, Any]]]) -> None:
    found = of(*parts)

    assert found.verdict["state"] == UNJUDGED
    assert found.first == "not-judged"
    assert found.verdict["what"]


def test_a_cell_says_what_causes_it_or_that_this_is_not_found() -> None:
    found = of(cpu([0.2] * 60), healthy(), series_rows("net", "eth0", "busy_share", [0.9] * 60))

    verdicts = {(cell["tier"], cell["resource"]): cell for cell in found.record()["matrix"]}
    assert verdicts["client", "network"]["verdict"] == BAD
    assert verdicts["client", "cpu"]["verdict"] == FINE
    assert verdicts["database", "cpu"]["verdict"] == UNJUDGED
    assert found.verdict["state"] == BAD


@pytest.mark.parametrize(("more", "confidence"), [({}, 0.25), ({"queue_mean_count": [40.0] * 60}, 0.5)])
def test_a_second_signal_raises_what_one_makes_likely(more: dict[str, list[float]], confidence: float) -> None:
    late = disk(read_ios_count=[500.0] * 60, read_latency_mean_ns=[85e6] * 60, **more)

    (cause,) = of(cpu([0.2] * 60), late).causes

    assert cause.cause == "slow-disk"
    assert cause.confidence == pytest.approx(confidence)
    assert bool(cause.confirm) == (confidence < 0.5)


def test_a_mean_of_both_directions_counts_as_one_of_each() -> None:
    late = disk(ios_count=[500.0] * 60, latency_mean_ns=[85e6] * 60, queue_mean_count=[40.0] * 60)

    found = of(cpu([0.2] * 60), late)

    assert found.first == "slow-disk"
    assert [cell.state for cell in found.cells if (cell.tier, cell.resource) == ("storage", "disk")] == ["hot"]


def test_a_few_late_ios_of_an_idle_disk_are_no_finding() -> None:
    # Every half minute a disk that sleeps otherwise writes fifteen blocks in 30 ms each.
    steps = 600
    burst = [15.0 if step % 30 == 0 else 0.0 for step in range(steps)]
    idle = disk(
        write_ios_count=burst, write_latency_mean_ns=[30e6 if count else None for count in burst],
        queue_mean_count=[0.45 if count else 0.0 for count in burst],
    )  # fmt: skip

    assert of(cpu([0.2] * steps), idle).verdict["state"] in (FINE, UNJUDGED)


def test_writes_that_are_late_while_reads_are_not_are_told_from_a_slow_disk() -> None:
    found = of(
        cpu([0.1] * 60),
        disk(
            read_ios_count=[300.0] * 60, write_ios_count=[150.0] * 60, read_latency_mean_ns=[3e6] * 60,
            write_latency_mean_ns=[60e6] * 60, queue_mean_count=[10.0] * 60,
        ),
    )  # fmt: skip

    assert found.first == "slow-writes"


def test_a_flat_top_with_a_growing_queue_is_a_limit() -> None:
    low, high = [100.0 * (1 + step % 20) for step in range(60)], [3000.0] * 120
    ios, wait = low + high, [1e6] * 60 + [5e6 + 0.4e6 * step for step in range(120)]
    queue = [count * late / 1e9 for count, late in zip(ios, wait, strict=True)]

    found = of(
        cpu([0.2] * 180),
        disk("nvme1n1", read_ios_count=ios, read_latency_mean_ns=wait, queue_mean_count=queue,
             read_bytes=[count * 16384 for count in ios]),
    )  # fmt: skip

    assert found.first == "throughput-limit"


def test_one_full_processor_beside_idle_ones() -> None:
    cores = [
        row
        for core in range(8)
        for row in series_rows("host", f"cpu/{core}", "user_share", [0.99 if core == 3 else 0.05] * 60)
    ]

    found = of(cpu([0.17] * 60), cores, healthy())

    assert found.first == "single-core"


def test_steal_alone_is_a_guest_that_lacks_processors() -> None:
    found = of(cpu([0.3] * 60, steal_share=[0.35] * 60), healthy())

    assert found.first == "guest-cpu"
    assert found.verdict["state"] == FOUND


def test_what_comes_back_each_night_says_so() -> None:
    steps, step_s = 3 * 144, 600
    late = [60e6 if 12 <= step % 144 < 18 else 2e6 for step in range(steps)]
    queue = [30.0 if one > 20e6 else 0.5 for one in late]

    found = of(
        cpu([0.2] * steps, step_s=step_s),
        disk(step_s=step_s, read_ios_count=[60_000.0] * steps, read_latency_mean_ns=late, queue_mean_count=queue),
    )

    cause = found.record()["causes"][0]
    assert cause["cause"] == "slow-disk"
    assert cause["recurs"]["words"] == "each day at 02:00 UTC, 1 h 0 min long (3 times)"


def test_a_disk_that_is_late_for_seconds_of_each_minute_is_found_with_its_period() -> None:
    late = [80e6 if step % 60 < 4 else 2e6 for step in range(600)]

    found = of(cpu([0.2] * 600), disk(read_ios_count=[500.0] * 600, read_latency_mean_ns=late,
                                      queue_mean_count=[40.0 if one > 20e6 else 1.0 for one in late]))  # fmt: skip

    cause = found.record()["causes"][0]
    assert cause["cause"] == "slow-disk"
    assert cause["recurs"]["period_s"] == 60.0

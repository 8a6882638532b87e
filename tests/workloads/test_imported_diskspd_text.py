"""DiskSpd's text says the same as its XML, as far as it says it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from assay.run.imports import read_results
from assay.telemetry.importers.importer import NotTaken, Options
from assay.workloads.imported import ImportedRun
from assay.workloads.io.importers.diskspd import DiskSpdText

SAMPLES = Path(__file__).parent / "imported"
NEW = (SAMPLES / "diskspd_text-2.txt").read_text()
OLD = (SAMPLES / "diskspd_text-old.txt").read_text()


def read(text: str, **options: Any) -> tuple[ImportedRun, list[dict[str, Any]]]:
    assert DiskSpdText().recognises(text[:65536])
    run = read_results(text, DiskSpdText(), Options(zone_s=0, **options))
    return run, [point.as_point() for point in run.points]


def test_threads_of_targets_alike_are_workers_on_volumes() -> None:
    run, (point,) = read(NEW)
    assert (run.program, run.hostname) == ("DiskSpd", "SQL1")
    assert point["load"] == {"queue_depth": 4, "workers": 4, "outstanding": 16}
    assert [one["name"] for one in point["volumes"]] == ["a.dat", "b (copy).dat"]
    assert [one["size_bytes"] for one in run.volumes] == [10 << 30, 10 << 30]
    assert (point["read"]["count"], point["write"]["count"]) == (18000, 12000)
    # The mean of a target is of its threads by their I/Os.
    assert point["volumes"][0]["read"]["latency_ns"] == {"mean": 9.25e6}
    assert point["warmup_s"] == 15.0
    assert point["telemetry"] == {"cpu_share": 0.075}
    assert point["started_utc_ns"] == 1691152267 * 10**9


def test_rates_are_those_that_are_printed_to_the_last_digit() -> None:
    """The time has two digits, count over rate has more."""
    _, (point,) = read(NEW)
    assert point["measured_s"] == 30000 / 499.90
    assert point["total"]["iops"] == pytest.approx(499.90, abs=1e-9)
    assert point["total"]["bytes_per_s"] == pytest.approx(1966080000 / 60.012, rel=1e-5)
    # A rate that does not agree with the time says nothing of it.
    _, (point,) = read(NEW.replace("499.90", "480.00"))
    assert point["measured_s"] == 60.01


def test_percentiles_are_those_of_the_time_span_not_of_a_target() -> None:
    run, (point,) = read(NEW)
    assert point["read"]["latency_ns"] == {
        "mean": 10.25e6, "p50": 3.589e6, "p90": 46.524e6, "p95": 48.437e6, "p99": 49.633e6, "p99_9": 53.694e6,
        "p99_99": 66.206e6, "max": 107.957e6,
    }  # fmt: skip
    assert point["write"]["latency_ns"]["p99_9"] == 1.396e6
    assert run.taken.ignored["target 50th"] == "percentiles are those of the time span"


def test_runs_of_a_file_are_points_of_their_own() -> None:
    run, (log, data) = read(OLD)
    assert "holds 2 runs, one after the other" in run.taken.notes
    assert (log["workload"]["block_bytes"], log["workload"]["sync"], log["workload"]["io_mode"]) == (
        524288, "dsync", "direct",
    )  # fmt: skip
    assert log["workload"]["random_share"] == 0.0
    assert (log["write"]["bytes_per_s"], log["write"]["latency_ns"]) == (524288000.0, {})
    # Early versions give the writes of a hundred; what they write is a pattern unless they say otherwise.
    assert data["workload"]["read_share"] == 0.7
    assert log["workload"]["compressible_share"] == 1.0
    assert data["workload"]["random_share"] == 0.5
    assert data["read"]["latency_ns"] == {"mean": 2e6, "p50": 1.5e6, "p99": 9.5e6, "max": 19.5e6}


def test_what_changes_the_load_is_kept_though_its_words_are_not_known() -> None:
    _, (_, data) = read(OLD)
    assert data["workload"]["other_options"] == {
        "BurstSize": "2", "IOPriority": "low", "ThinkTime": "5", "Throughput": "100 IOPS", "some new sentence": "7",
    }  # fmt: skip
    run, _ = read(OLD.replace("random seed: 0", "moon phase: 3"))
    assert run.taken.unread == {"moon phase": "moon phase: 3"}


def test_tables_alone_do_not_say_what_was_asked() -> None:
    run, points = read(NEW[NEW.index("Results for timespan") :])
    (point,) = points
    assert (point["workload"]["block_bytes"], point["workload"]["read_share"]) == (65536, 0.6)
    assert point["workload"]["random_share"] is None
    assert point["load"] == {"kind": "unknown"}
    assert point["total"]["count"] == 30000
    assert any("does not say what was asked" in note for note in run.taken.notes)


@pytest.mark.parametrize(("sentence", "content"), [("zeroing write buffers", 1.0), ("write buffer size: 1MiB", 0.0)])
def test_what_is_written_is_said(sentence: str, content: float) -> None:
    _, points = read(OLD.replace("performing write test", f"{sentence}\n                performing write test"))
    assert points[0]["workload"]["compressible_share"] == content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEW[: NEW.index("Results for")], "says what DiskSpd was asked and holds no results"),
        (re.sub(r"actual test time:.*", "", NEW), "does not say how long it took"),
        (NEW[: NEW.index("Results for")] + "Results for timespan 1:\nThe test was interrupted before it began.\n",
         "has no results: time span 1 is left out: The test was interrupted"),
    ],
)  # fmt: skip
def test_texts_without_results_are_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(NotTaken, match=message):
        read(text)

"""Drives that throttle, are reset or have errors, and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.observed import ObservedSource
from assay.insight.diagnosis.verdict import FINE
from series_rows import series_of
from series_rows import series_rows as rows

STEPS = 120
QUICK, LATE = 300e3, 40e6
HALF = STEPS // 2


def of(*parts: list[dict[str, Any]]) -> Diagnosis:
    return diagnose(
        [ObservedSource(name="made", manifest={}, series=series_of([row for part in parts for row in part]))]
    )


def drive(metric: str, values: Sequence[float | None], kind: str = "gauge") -> list[dict[str, Any]]:
    return rows("drive", "nvme0n1", metric, values, kind=kind, tier="storage")


def block(read_ns: Sequence[float], ios: Sequence[float]) -> list[dict[str, Any]]:
    return [
        *rows("block", "nvme0n1", "read_latency_mean_ns", read_ns, tier="storage"),
        *rows("block", "nvme0n1", "read_ios_count", ios, kind="delta", tier="storage"),
        *rows("block", "nvme0n1", "queue_mean_count", [8.0] * STEPS, tier="storage"),
        *rows("host", "cpu", "user_share", [0.2] * STEPS),
    ]


THEN = [QUICK] * HALF + [LATE] * HALF
FEWER = [5000.0] * HALF + [500.0] * HALF
WELL = block([QUICK] * STEPS, [5000.0] * STEPS)


def test_a_drive_that_throttles_is_the_cause_of_late_ios_and_says_how_hot_it_was() -> None:
    found = of(
        block(THEN, FEWER),
        drive("throttled_share", [0.0] * HALF + [0.9] * HALF),
        drive("temperature_celsius", [60.0] * HALF + [84.0] * HALF),
    )
    assert found.first == "drive-throttles"
    (cause, *_) = found.causes
    assert {signal.of for signal in cause.signals} == {"throttling", "latency", "throughput"}
    assert "nvme0n1: up to 84 degrees" in cause.notes


@pytest.mark.parametrize("source", ["array", "model"])
def test_a_drive_of_a_served_or_modelled_array_that_throttles_is_named(source: str) -> None:
    hot = rows(source, "member0/disk0", "throttled_share", [0.0] * HALF + [0.9] * HALF, tier="storage")
    assert "drive-throttles" in [one.cause for one in of(block(THEN, FEWER), hot).causes]


def test_a_hot_drive_is_a_cause_only_where_it_is_slower() -> None:
    hot = drive("temperature_of_warning_share", [0.8] * HALF + [1.02] * HALF)
    assert of(block(THEN, FEWER), hot).first == "drive-throttles"
    assert "drive-throttles" not in [one.cause for one in of(WELL, hot).causes]


@pytest.mark.parametrize("metric", ["resets_count", "io_errors_count", "media_errors_count"])
def test_one_reset_or_error_is_enough(metric: str) -> None:
    once = [0.0] * STEPS
    once[70] = 1.0
    found = of(WELL, drive(metric, once, kind="delta"))
    assert found.first == "drive-errors"
    assert any(cell.state != "cool" and cell.resource == "disk" for cell in found.cells if cell.host == "db1")


def paths(*, failing: Sequence[str]) -> list[dict[str, Any]]:
    """Two paths of a multipath device, the first lost in the second half; disks whose I/Os fail just before that."""
    errors = [0.0] * STEPS
    errors[HALF - 3] = 4.0
    parts = [rows("multipath", "dm-0", "paths_failed_count", [0.0] * HALF + [1.0] * HALF, tier="storage")]
    for path, failed in (("sda", 1.0), ("sdb", 0.0)):
        own = errors if path in failing else [0.0] * STEPS
        parts.append(rows("multipath", f"dm-0/{path}", "failed_share", [0.0] * HALF + [failed] * HALF, tier="storage"))
        parts.append(rows("drive", path, "io_errors_count", own, kind="delta", tier="storage"))
    return [row for part in parts for row in part]


def test_ios_that_fail_on_a_path_that_is_lost_are_the_paths() -> None:
    assert [one.cause for one in of(paths(failing=["sda"])).causes] == ["lost-path"]


def test_ios_that_fail_on_every_path_or_on_one_that_stays_are_the_drives() -> None:
    for failing in (["sda", "sdb"], ["sdb"]):
        assert "drive-errors" in [one.cause for one in of(paths(failing=failing)).causes]


def test_a_drive_that_is_well_is_judged_fine_by_name() -> None:
    counts = [drive(name, [0.0] * STEPS, kind="delta") for name in ("resets_count", "io_errors_count")]
    found = of(WELL, *counts, drive("throttled_share", [0.0] * STEPS), drive("error_log_entries_count", [0.0] * STEPS))
    assert found.verdict["state"] == FINE
    assert any("nvme0n1 throttles" in one.bound_words for cell in found.cells for one in cell.judged)

"""What a run's points mean for the exit code, and why a point is no answer."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import ExitCode
from assay.results.points import describe_load
from assay.run.execute import estimate_s, exit_code_of
from assay.run.points import PointLoop
from assay.workloads.io.plan import load_plan
from assay.workloads.io.workload import IoWorkload
from assay.workloads.workload import Part


def part(**plan: Any) -> Part:
    return Part(name="p", title="P", plan=load_plan(plan, source="plan"))


def point(*met: bool | None, purpose: str = "grid") -> dict[str, Any]:
    return {"part": "p", "purpose": purpose, "limits": [{"met": one} for one in met]}


ANSWERED, UNANSWERED = {"max": {"outstanding": 4}}, {"max": None}


@pytest.mark.parametrize(
    ("user_limits", "points", "answers", "code"),
    [
        (True, [point(True), point(None)], [], ExitCode.DONE),
        (True, [point(True), point(True, False)], [], ExitCode.LIMIT_MISSED),
        (False, [point(False)], [], ExitCode.DONE),
        (True, [point(False, purpose="search")], [ANSWERED], ExitCode.DONE),
        (False, [point(False, purpose="search")], [UNANSWERED], ExitCode.LIMIT_MISSED),
        (False, [], [ANSWERED, UNANSWERED], ExitCode.LIMIT_MISSED),
        (False, [], [], ExitCode.DONE),
    ],
)
def test_exit_code(user_limits: bool, points: list[Any], answers: list[Any], code: ExitCode) -> None:
    assert exit_code_of([part(user_limits=user_limits)], points, answers) is code


def test_limits_of_one_part_do_not_count_for_another() -> None:
    other = Part(name="q", title="Q", plan=load_plan({"user_limits": True}, source="plan"))

    assert exit_code_of([part(), other], [point(False)], []) is ExitCode.DONE


GOOD: dict[str, Any] = {
    "errors": {"count": 0},
    "total": {"iops": 1.0},
    "generator": {"saturated": False},
    "limits": [{"limit": "read.mean<=1ms", "met": True}, {"limit": "write.mean<=1ms", "met": None}],
    "offered": None,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"errors": {"count": 1}}, "errors"),
        ({"total": None}, "no I/O ended"),
        ({"generator": {"saturated": True}}, "generator"),
        ({"limits": [{"limit": "cpu<80%", "met": False}]}, "cpu<80%"),
        ({"offered": {"sustained": False}}, "rate not sustained"),
        ({"offered": {"sustained": True}}, None),
        # What the generator could not ask for says nothing about the device's limits.
        ({"generator": {"saturated": True}, "limits": [{"limit": "cpu<80%", "met": False}]}, "generator"),
    ],
)
def test_why_a_point_is_no_answer(change: dict[str, Any], reason: str | None) -> None:
    loop = PointLoop.__new__(PointLoop)
    loop.workload = IoWorkload()

    assert loop.failure(GOOD | change) == reason


def test_time_is_estimated_from_the_points() -> None:
    timing = {"warmup_s": 1, "duration_s": 9, "rest_s": 2}
    grid = part(timing=timing, activity=[{"queue_depth": [1, 2, 3]}])

    assert estimate_s([grid]) == (36, 36)
    assert estimate_s([part(timing=timing, search={"axis": "rate"})])[1] > 36


@pytest.mark.parametrize(
    ("load", "text"),
    [
        ({"queue_depth": 4, "workers": 1, "outstanding": 4}, "queue depth 4"),
        ({"queue_depth": 4, "workers": 3, "outstanding": 12}, "queue depth 4 x 3"),
        ({"rate": 5000.0, "arrivals": "poisson", "workers": 1}, "5,000 I/Os per s, poisson"),
        ({"kind": "mixed"}, "mixed"),
    ],
)
def test_a_load_is_told_in_words(load: dict[str, Any], text: str) -> None:
    assert describe_load(load) == text

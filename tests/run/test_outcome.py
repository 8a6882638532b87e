"""What a run's points mean for the exit code, and why a point is no answer."""

from __future__ import annotations

import math
from typing import Any

import pytest

from assay.base.errors import ExitCode
from assay.record.limits import parse_limits
from assay.record.points import describe_load
from assay.record.shapes.point import VerdictLine
from assay.run.bracket import SearchCurve
from assay.run.execute import exit_code_of
from assay.run.part import estimate_s
from assay.run.points import PointLoop
from assay.workloads.io.plan import load_plan
from assay.workloads.io.workload import IoWorkload
from assay.workloads.plan import Part
from assay.workloads.steps import Axis


def part(**plan: Any) -> Part:
    return Part(name="p", title="P", plan=load_plan(plan, source="plan"))


def line(met: bool | None, *, asked: bool = True) -> VerdictLine:
    return VerdictLine(
        question="q", limit="read.mean<=1ms", value=None, unit="ns", met=met, meaning="", point_id=None, asked=asked
    )


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], ExitCode.DONE),
        ([line(True)], ExitCode.DONE),
        ([line(True), line(None)], ExitCode.LIMIT_UNKNOWN),
        ([line(True), line(None), line(False)], ExitCode.LIMIT_MISSED),
        ([line(True), line(None, asked=False), line(False, asked=False)], ExitCode.DONE),
    ],
)
def test_exit_code(lines: list[VerdictLine], code: ExitCode) -> None:
    assert exit_code_of(lines) is code
    assert exit_code_of(lines, {"mailbox": {"bad_pages": 1}}) is ExitCode.INTEGRITY_FAILED


MISSED = {"limit": "cpu<80%", "scope": "host", "value": 0.9, "met": False}
GOOD: dict[str, Any] = {
    "errors": {"count": 0},
    "total": {"iops": 1.0},
    "generator": {"saturated": False},
    "met": True,
    "limits": [
        {"limit": "read.mean<=1ms", "scope": "data", "value": 0.9e6, "met": True},
        {"limit": "write.mean<=1ms", "scope": "data", "value": None, "met": None},
    ],
    "offered": None,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"errors": {"count": 1}}, "errors"),
        ({"total": None}, "no I/O ended"),
        ({"generator": {"saturated": True}}, "generator"),
        ({"limits": [MISSED], "met": False}, "cpu<80%"),
        ({"offered": {"sustained": False}}, "rate not sustained"),
        ({"offered": {"sustained": True}}, None),
        # What the generator could not ask for says nothing about the device's limits.
        ({"generator": {"saturated": True}, "limits": [MISSED]}, "generator"),
        # A limit that is missed says more than the rate, which was missed with it.
        ({"offered": {"sustained": False}, "limits": [MISSED], "met": False}, "cpu<80%"),
    ],
)
def test_why_a_point_is_no_answer(change: dict[str, Any], reason: str | None) -> None:
    loop = PointLoop.__new__(PointLoop)
    loop.workload = IoWorkload()
    loop.limits = parse_limits(["read.mean<=1ms", "write.mean<=1ms", "cpu<80%"])

    curve = SearchCurve(axis=Axis(name="outstanding", start=1, end=8, whole=True), figures=loop.workload.figures)
    curve.add(1, GOOD, loop.reading(GOOD | change))
    assert curve.judged(1).reason == reason


@pytest.mark.parametrize(
    ("text", "value", "missed_by"),
    [
        ("read.mean<=20ms", 10e6, -math.log(2)),
        ("read.mean<=20ms", 40e6, math.log(2)),
        ("total.iops>=1000", 500.0, math.log(2)),
        ("total.iops>=1000", 2000.0, -math.log(2)),
        ("tcp.retransmit<=0%", 0.1, math.log(1000)),
        ("tcp.retransmit<1%", 0.0, -math.log(1000)),
        ("cpu<80%", 0.8, 1e-12),
        ("cpu<=80%", 0.8, 0.0),
    ],
)
def test_how_far_a_point_is_from_its_limit(text: str, value: float, missed_by: float) -> None:
    loop = PointLoop.__new__(PointLoop)
    loop.workload = IoWorkload()
    (limit,) = loop.limits = parse_limits([text])
    judged = {"limit": text, "scope": "all", "value": value, "met": limit.met_by(value)}

    (distance,) = loop.reading(GOOD | {"limits": [judged]}).distances
    assert distance.missed_by == pytest.approx(missed_by)
    assert (distance.missed_by > 0) is not limit.met_by(value)


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

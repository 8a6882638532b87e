"""A replay over several hosts: what each gets, and what a point of all of them says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.workloads.registry import workload_named
from assay.workloads.replay.plan import ReplayPlan
from assay.workloads.replay.workload import ReplayWorkload
from assay.workloads.spread import Share
from made_traces import poisson_trace


def kind() -> ReplayWorkload:
    found = workload_named("replay")
    assert isinstance(found, ReplayWorkload)
    return found


def plan_of(path: Path) -> ReplayPlan:
    return kind().load_plan({"traces": [f"{path}@5s"]}, source="test")


def test_ios_are_dealt_to_hosts_and_a_shared_target_is_not_written_to(tmp_path: Path) -> None:
    reads = plan_of(poisson_trace(tmp_path / "r.trace", seconds=1, read_share=1.0))
    writes = plan_of(poisson_trace(tmp_path / "w.trace", seconds=1))
    assert reads.traces[0].at_s == 5
    assert kind().share(reads, Share(place=1, hosts=3, shared=True)).host == (1, 3)
    assert kind().share(writes, Share(place=2, hosts=3)).host == (2, 3)
    with pytest.raises(UsageError, match="--shared"):
        kind().share(writes, Share(place=0, hosts=2, shared=True))


def test_a_point_of_all_hosts_holds_what_they_hold_together_and_is_as_late_as_the_latest() -> None:
    def point(iops: float, rate: float, p99_ns: int) -> dict[str, Any]:
        direction = {"count": 10, "iops": iops, "bytes_per_s": 1.0, "latency_ns": {"mean": 1.0}, "histogram": None}
        return {
            "total": direction, "offered": {"rate": rate, "sustained": iops == rate}, "measured_s": 1.0,
            "replay": {"speed": 2.0, "traces": [{"name": "a", "ios": 100}], "is_replay": p99_ns < 100,
                       "lateness": {"count": 10, "p99_ns": p99_ns}},
        }  # fmt: skip

    found = kind().merged([point(100.0, 100.0, 5), point(50.0, 100.0, 500)])["replay"]
    assert found["times_recorded"] == pytest.approx(1.5)
    assert found["traces"] == [{"name": "a", "ios": 100}]
    assert found["lateness"]["p99_ns"] == 500
    assert found["is_replay"] is False

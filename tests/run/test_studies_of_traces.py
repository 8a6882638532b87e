"""Studies whose load is a trace's, and the load of several servers laid over each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.base.errors import UsageError
from assay.insight.studies.files import read_study, study_names, study_variants
from assay.insight.studies.parts import study_parts
from assay.insight.studies.traced import takes_traces, with_traces
from assay.workloads.replay.plan import ReplayPlan
from made_traces import poisson_trace

if TYPE_CHECKING:
    from assay_command import Bench


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return str(poisson_trace(tmp_path / "orders.trace"))


def test_studies_that_vary_the_target_alone_take_a_trace() -> None:
    taking = [name for name in study_names() if any(takes_traces(one) for one in study_variants(name))]
    assert {"raid-policy", "consolidation", "degraded"} <= {*taking}
    assert not {"queue-depth", "published", "oltp-layout", "steady-state", "write-saturation"} & {*taking}
    text = (Path(__file__).parents[2] / "docs/studies.md").read_text()
    assert [name for name in taking if f"`{name}`" not in text] == []


def test_a_search_is_for_the_speed_and_levels_differ_in_times_the_load(trace: str) -> None:
    study = with_traces(read_study("raid-policy"), [trace])
    assert study.comparison is not None
    assert (study.comparison.figure, study.comparison.also) == ("times_recorded", ("iops",))
    parts, _ = study_parts(study, target=str(study.target))
    assert [part.levels["raid"] for part in parts] == ["10", "50", "6"]
    for part in parts:
        assert isinstance(part.plan, ReplayPlan)
        assert (part.plan.search.axis, part.plan.fit) == ("speed", "fold")
        assert part.plan.limits == ("read.mean<=20ms", "write.mean<=20ms")


def test_servers_bring_copies_that_begin_apart(trace: str) -> None:
    study = with_traces(read_study("consolidation"), [trace], [])
    parts, _ = study_parts(study, target=str(study.target), levels={"servers": ["1", "4"]})
    alone, four = (part.plan for part in parts)
    assert [one.at_s for one in alone.traces] == [0]
    begins = [one.at_s for one in four.traces]
    assert begins == pytest.approx([0, 0.1, 0.2, 0.3], abs=0.01)
    assert four.timing.warmup_s == begins[-1]


def test_servers_bring_so_many_times_the_rate() -> None:
    parts, _ = study_parts(read_study("consolidation"), target="model:ps6100xv", levels={"servers": ["1", "16"]})
    assert [part.plan.activity[0]["rate"] for part in parts] == [100, 1600]


def test_a_study_that_varies_what_is_asked_refuses_a_trace(trace: str) -> None:
    with pytest.raises(UsageError, match=r"queue-depth varies what is asked.*: raid-policy"):
        with_traces(read_study("queue-depth"), [trace], ["raid-policy"])


def test_copies_of_a_trace_on_a_model(bench: Bench, trace: str) -> None:
    done = bench.assay("study", "run", "consolidation", "--trace", trace, "--levels", "servers=1,2", "--json")
    assert done.code == 0, done.stderr
    results = done.document["study"]["results"]
    assert [result["workload"] for result in results] == ["orders", "orders 2 times"]
    iops = sorted(point["total"]["iops"] for point in done.document["points"])
    assert iops[1] == pytest.approx(2 * iops[0], rel=0.1)

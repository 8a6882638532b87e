"""What a calibration is fitted to: which points of a run are of use, repeats, contradictions, published figures."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from small_array import small

from assay.base.errors import UsageError
from assay.insight.calibration.observations import (
    FEWEST_IOS,
    MEASURED_MIN,
    PUBLISHED_SHARE,
    TIMING,
    Observation,
    activity_of,
    guess_black_box,
    observations_of_points,
    observations_of_published,
    observations_of_run,
    point_figures,
)
from assay.record.run_folder import RunFolder, RunFolderError
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import configure
from assay.workloads.io.plan import load_plan

Point = dict[str, Any]


def run(plan: dict[str, Any]) -> list[Point]:
    timed = {"timing": {"warmup_s": 1, "duration_s": 2}, **plan}
    return simulate(small(), load_plan(timed, source="test"))[0]


@pytest.fixture(scope="module")
def measured() -> Point:
    """One point; take a copy to change it."""
    return run({"activity": [{"block_bytes": 8192, "read_share": 0.7, "queue_depth": 4}]})[0]


def changed(point: Point, **values: Any) -> Point:
    """A copy of the point; `__` goes a level deeper."""
    made = deepcopy(point)
    for dotted, value in values.items():
        inner = made
        *sections, last = dotted.split("__")
        for section in sections:
            inner = inner[section]
        inner[last] = value
    return made


def complaint(act: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        act()
    assert "\n" not in str(error.value)
    return str(error.value)


class TestPoints:
    def test_figures_and_the_plan_that_asks_for_the_same(self, measured: Point) -> None:
        (found,) = observations_of_points([measured], small(), "run")

        assert found.figures == pytest.approx(
            {
                "iops": measured["total"]["iops"],
                "read_ns": measured["read"]["latency_ns"]["mean"],
                "write_ns": measured["write"]["latency_ns"]["mean"],
            }
        )
        assert found.label == "8 KiB random 70/30, load 4"
        (workload,) = found.plan.workloads()
        (activity,) = workload.activities
        assert (activity.depth, activity.workers, activity.read_share, activity.blocks) == (4, 1, 0.7, {8192: 1.0})
        assert found.plan.timing.duration_s == TIMING["duration_s"]
        assert found.predicted({})["iops"] == pytest.approx(measured["total"]["iops"], rel=0.03)
        assert found.conditions == {
            "raid": "10", "members": 1, "fill": 0.125, "block_bytes": 8192, "read_share": 0.7, "random_share": 1.0
        }  # fmt: skip

    @pytest.mark.parametrize(
        "activity",
        [
            {"rate": 300.0, "arrivals": "poisson", "read_share": 0.5},
            {"queue_depth": 2, "workers": 3, "skew": "zipf:0.9", "region": [0.0, 0.5]},
            {"queue_depth": 2, "random_share": 0.0, "streams": 4, "block_bytes": 65536},
            {"queue_depth": 3, "block_bytes": {"4096": 80, "65536": 20}, "align_bytes": 65536},
        ],
    )
    def test_the_activity_asked_for_again_is_that_of_the_point(self, activity: dict[str, Any]) -> None:
        (point,) = run({"activity": [activity]})
        (again,) = run({"activity": [activity_of(point, 2)]})

        assert again["load"] == point["load"]
        assert again["workload"] == point["workload"]
        assert again["total"] == point["total"]

    def test_few_latencies_are_no_figure(self, measured: Point) -> None:
        assert "write_ns" in point_figures(changed(measured, write__count=FEWEST_IOS))
        assert "write_ns" not in point_figures(changed(measured, write__count=FEWEST_IOS - 1))
        assert "write_ns" not in point_figures(changed(measured, write=None))

    @pytest.mark.parametrize(
        "values",
        [
            {"workload__kind": "integrity"},
            {"workload__activities": []},
            {"workload__sync": "fsync"},
            {"ended_by": "interrupted"},
            {"ended_by": "not-answering"},
            {"errors__count": 1},
            {"total": None},
            {"generator__saturated": True},
        ],
        ids=lambda values: next(iter(values)),
    )
    def test_points_a_model_cannot_be_asked_for_are_left_out(self, measured: Point, values: dict[str, Any]) -> None:
        other = changed(measured, load__queue_depth=2)
        wrong = changed(measured, **values)

        (found,) = observations_of_points([wrong, other], small(), "run")

        assert found.label.endswith("load 2")
        message = complaint(lambda: observations_of_points([wrong], small(), "--from r"))
        assert message.startswith("--from r: no point of one activity without errors")

    def test_noise_is_that_of_the_steady_state_and_no_less_than_one_percent(self, measured: Point) -> None:
        rough = changed(measured, steady__half_width_share=0.0392)
        exact = changed(measured, steady__half_width_share=0.001, load__queue_depth=5)
        none = changed(measured, steady__half_width_share=None, load__queue_depth=6)

        found = observations_of_points([rough, exact, none], small(), "run")

        assert [each.noise_share for each in found] == [pytest.approx(0.02), MEASURED_MIN, MEASURED_MIN]

    def test_repeats_are_one_observation_of_their_geometric_mean(self, measured: Point) -> None:
        again = changed(measured, total__iops=measured["total"]["iops"] * 1.21, steady__half_width_share=0.098)
        other = changed(measured, load__queue_depth=7)

        first, second = observations_of_points([measured, other, again], small(), "run")

        assert first.figures["iops"] == pytest.approx(measured["total"]["iops"] * 1.1)
        assert first.figures["read_ns"] == pytest.approx(measured["read"]["latency_ns"]["mean"])
        assert first.noise_share == pytest.approx(0.05)
        assert second.figures["iops"] == pytest.approx(measured["total"]["iops"])

    def test_a_figure_that_only_one_repeat_has_is_left_out(self, measured: Point) -> None:
        (found,) = observations_of_points([measured, changed(measured, write__count=5)], small(), "run")

        assert set(found.figures) == {"iops", "read_ns"}

    def test_repeats_that_contradict_each_other_are_refused(self, measured: Point) -> None:
        again = changed(measured, total__iops=measured["total"]["iops"] * 1.3)

        message = complaint(lambda: observations_of_points([measured, again], small(), "--from r"))

        assert message.startswith("--from r: points contradict each other: 8 KiB random 70/30, load 4 gave iops of ")
        assert message.endswith("measure again, longer")


class TestRun:
    def folder(self, tmp_path: Path, points: list[Point], sizes: tuple[int, ...] = (50_000_000_000,) * 3) -> Path:
        volumes = [{"name": f"v{number}", "size_bytes": size} for number, size in enumerate(sizes)]
        with RunFolder.create(tmp_path, "profile", {"target": {"volumes": volumes}}) as folder:
            for point in points:
                folder.append_point(point)
            return folder.path

    def test_the_structure_gets_the_volumes_of_the_run(self, tmp_path: Path, measured: Point) -> None:
        path = self.folder(tmp_path, [measured], (50_000_000_000, 40_000_000_000, 50_000_000_000))

        (found,) = observations_of_run(path, small(fill="0.3", volumes="1"))

        assert [size for _, size in found.configuration.volumes] == [40_000_000_000] * 3
        assert "fill" not in found.configuration.options

    def test_workers_are_those_of_a_volume(self, tmp_path: Path, measured: Point) -> None:
        path = self.folder(tmp_path, [changed(measured, load__workers=6)])

        (found,) = observations_of_run(path, small())

        assert found.plan.activity[0]["workers"] == 2

    def test_volumes_beyond_the_structure_are_refused(self, tmp_path: Path, measured: Point) -> None:
        path = self.folder(tmp_path, [measured], (10**12,) * 3)

        assert "3 volumes of 1 TB" in complaint(lambda: observations_of_run(path, small()))

    @pytest.mark.parametrize(("sizes", "words"), [((), "has no volumes"), ((10**9,), "no point of one activity")])
    def test_a_run_without_what_is_needed(self, tmp_path: Path, sizes: tuple[int, ...], words: str) -> None:
        path = self.folder(tmp_path, [], sizes)

        assert words in complaint(lambda: observations_of_run(path, small()))

    def test_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(RunFolderError, match="does not exist"):
            observations_of_run(tmp_path / "none", small())


PUBLISHED = """
[[point]]
id = "a"
title = "first"
source = "S"
array = "ps6100xv"
target = { volumes = 6 }
activity = { block_bytes = "8K", read_share = 0.7 }
limits = ["read.mean<=20ms", "write.mean<=20ms"]
value = 5037
fit = true
"""
SECOND = PUBLISHED.replace('"a"', '"b"').replace('"first"', '"second"')


class TestPublished:
    def read(self, tmp_path: Path, text: str) -> tuple[list[Observation], list[Observation]]:
        (tmp_path / "p.toml").write_text(text)
        return observations_of_published(configure("ps6100xv"), tmp_path / "p.toml")

    def test_those_that_come_with_assay(self) -> None:
        fitted, held = observations_of_published(configure("ps6100xv"), None)

        assert [each.figures for each in fitted] == [{"iops": value} for value in (5037, 2118, 4175, 1858)]
        assert [len(each.configuration.volumes) for each in fitted] == [6, 6, 12, 12]
        assert {each.limit_ns for each in fitted} == {20e6}
        assert {each.noise_share for each in fitted} == {PUBLISHED_SHARE}
        assert held == []

    def test_an_array_without_any_to_fit_to(self) -> None:
        message = complaint(lambda: observations_of_published(configure("ps6110x"), None))

        assert message == "--from published.toml: no point of ps6110x is marked fit = true"

    def test_those_not_for_fitting_are_held_and_ratios_left_out(self, tmp_path: Path) -> None:
        ratio = SECOND.replace('"b"', '"c"').replace("fit = true", 'ratio_of = "a"').replace("5037", "1.4")
        other = SECOND.replace('"b"', '"d"').replace('"ps6100xv"', '"fas3070"')
        held_text = SECOND.replace("fit = true", "").replace("5037", "4000")

        fitted, held = self.read(tmp_path, PUBLISHED + held_text + ratio + other)

        assert [each.label for each in fitted] == ["first"]
        assert [(each.label, each.figures) for each in held] == [("second", {"iops": 4000.0})]

    def test_contradictions_are_refused(self, tmp_path: Path) -> None:
        near = self.read(tmp_path, PUBLISHED + SECOND.replace("5037", "4100"))[0]
        message = complaint(lambda: self.read(tmp_path, PUBLISHED + SECOND.replace("5037", "4000")))

        assert len(near) == 2
        assert "points contradict each other: 'first' and 'second' ask the same" in message
        assert "iops of 5,037 and 4,000" in message

    def test_other_volumes_are_another_question(self, tmp_path: Path) -> None:
        text = PUBLISHED + SECOND.replace("5037", "2000").replace("volumes = 6", "volumes = 12")

        assert len(self.read(tmp_path, text)[0]) == 2

    @pytest.mark.parametrize("limits", ['["read.p99<=20ms"]', '["read.mean<=20ms", "write.mean<=10ms"]'])
    def test_only_one_limit_of_mean_latency(self, tmp_path: Path, limits: str) -> None:
        text = PUBLISHED.replace('["read.mean<=20ms", "write.mean<=20ms"]', limits)

        assert "published point a: only one limit of mean latency" in complaint(lambda: self.read(tmp_path, text))


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_at_a_limit_the_throughput_of_a_search() -> None:
    limits = ["read.mean<=20ms", "write.mean<=20ms"]
    data = {"limits": limits, "activity": [{"block_bytes": 8192, "read_share": 0.7}]}
    timing = {"timing": {"warmup_s": 1, "duration_s": 6}}
    _, (answer,) = simulate(
        small(), load_plan({**data, **timing, "search": {"axis": "queue-depth", "repeats": 0}}, source="t")
    )
    plan = load_plan({"timing": TIMING, "activity": data["activity"]}, source="t")
    asked = Observation(
        label="x", configuration=small(), plan=plan, figures={"iops": 1.0}, noise_share=0.04, limit_ns=20e6
    )

    predicted = asked.predicted({})["iops"]

    # Half a step below the limit, and the search stops up to a step below it.
    assert answer["max"]["iops"] * 0.97 <= predicted <= answer["first_failing"]["iops"]
    assert abs(2 * asked.near["depth"] - answer["max"]["outstanding"]) <= 4
    assert asked.predicted({"disk.command_overhead": 1_200_000.0})["iops"] < 0.9 * predicted


def test_a_black_box_begins_with_the_shortest_latency_and_littles_law(measured: Point) -> None:
    points = [
        changed(measured, total__iops=iops, read__latency_ns__mean=read_ns, write=None, load__queue_depth=depth)
        for iops, read_ns, depth in ((1000.0, 1e6, 1), (8000.0, 4e6, 32))
    ]

    guessed = guess_black_box(observations_of_points(points, small(), "run"))

    # Half of the shortest read is taken for the way, the rest for service; 8,000/s x 0.5 ms are 4 at once.
    times = dict.fromkeys(("links.latency", "disk.read_time", "disk.program_time"), 0.5e6)
    assert guessed == pytest.approx(times | {"disk.channels": 4.0})

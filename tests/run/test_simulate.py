"""A plan on a model without a run folder: the same figures as the command, settling, and interrupts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import Interrupted, UsageError
from assay.run.simulate import model_volumes, simulate, simulate_bytes_per_s
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.workloads.io.plan import load_plan

SMALL = {"disks.count": "6", "disks.spares": "0", "volumes": "2", "volume_size": "20GB"}
FIGURES = ("read", "write", "total", "volumes", "activities", "array", "batches", "errors", "load", "warmup_s")


def array(**options: str) -> Configuration:
    return configure("ps6100xv", {**SMALL, **options})


def run(configuration: Configuration, activity: dict[str, Any], **more: Any) -> Any:
    data = {"timing": {"warmup_s": 1, "duration_s": 2}, "activity": [activity], **more}
    return simulate(configuration, load_plan(data, source="test"))


def test_a_total_is_spread_over_volumes_that_take_turns() -> None:
    """One I/O more than two volumes can share evenly: both do the same, between what 4 and 5 each would do."""
    rate = {}
    for load in ({"queue_depth": 4}, {"outstanding": 9}, {"queue_depth": 5}):
        ((point,), _) = run(array(), {"block_bytes": 8192, **load}, timing={"warmup_s": 1, "duration_s": 20})
        total, volumes = point["total"], [volume["total"]["iops"] for volume in point["volumes"]]
        under_way = total["iops"] * total["latency_ns"]["mean"] / 1e9
        assert under_way == pytest.approx(point["load"]["outstanding"], rel=0.01)
        assert volumes[0] == pytest.approx(volumes[1], rel=0.03)
        rate[point["load"]["outstanding"]] = total["iops"]

    assert rate[8] < rate[9] < rate[10]


@pytest.mark.parametrize(
    ("options", "warmup_s"),
    [({}, 1), ({"cache": "64MB"}, 0), ({"start": "cold", "write_back": "no"}, 1)],
)
def test_bytes_per_second_alone_are_those_of_the_point(options: dict[str, str], warmup_s: int) -> None:
    """Settling as well: a cache that fills prolongs the warm-up of both."""
    activity = {"block_bytes": 8192, "read_share": 0.6, "queue_depth": 5}
    plan = load_plan({"timing": {"warmup_s": warmup_s, "duration_s": 2}, "activity": [activity]}, source="test")
    ((point,), _) = simulate(array(**options), plan)

    assert simulate_bytes_per_s(array(**options), plan) == point["total"]["bytes_per_s"]
    interrupt = threading.Event()
    interrupt.set()
    with pytest.raises(Interrupted):
        simulate_bytes_per_s(array(), plan, interrupt=interrupt)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_search_steps_finer_than_one_io_a_volume() -> None:
    volumes = 6
    many = array(volumes=str(volumes), volume_size="5GB")
    _, (answer,) = run(
        many, {"block_bytes": 16384, "read_share": 0.8}, limits=["read.mean<=30ms"], search={"axis": "queue-depth"}
    )

    loads = [answer[end]["outstanding"] for end in ("edge", "first_failing")]
    assert any(load % volumes for load in loads)
    assert answer["step_share"] <= 0.06 < volumes / loads[1]
    assert answer["edge"]["outstanding"] <= answer["crossing"]["outstanding"] <= answer["first_failing"]["outstanding"]


@pytest.mark.slow(reason="a whole search by the command; the searches of this file are the same code")
def test_the_command_gives_the_same_figures(tmp_path: Path) -> None:
    plan = {
        "name": "custom",
        "seed": 9,
        "limits": ["read.mean<=20ms"],
        "timing": {"warmup_s": 1, "duration_s": 2},
        "search": {"axis": "queue-depth", "repeats": 1},
        "activity": [{"block_bytes": 8192, "read_share": 0.7}],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    # Where the file is sure of all values, a band takes one simulation instead of thirty.
    sure = re.sub(r"(unit = .*?)(?:, plus_minus = [0-9.]+)? }", r"\1, plus_minus = 0 }", array().model.text)
    file = tmp_path / "sure.toml"
    file.write_text(sure)
    configuration = configure(str(file), {**SMALL, "raid": "5"})
    command = ["profile", configuration.target_text, "--plan", "plan.json", "--no-report", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "assay", *command],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)

    points, answers = simulate(configuration, load_plan(plan, source="test"))

    assert len(points) == len(document["points"]) > 4
    for ours, theirs in zip(points, document["points"], strict=True):
        assert {key: ours[key] for key in FIGURES} == {key: theirs[key] for key in FIGURES}
    # A band belongs to what is told of a run, not to what calibration asks of a model.
    (answer,) = document["answers"]
    assert answers == [{key: value for key, value in answer.items() if not key.startswith("band_")}]
    assert answer["band_90"][0] < answer["max"]["iops"] < answer["band_90"][1]


def test_repeats_are_other_runs_of_the_same() -> None:
    activity = {"queue_depth": 4, "read_share": 0.7}
    first, same, other = (run(array(), activity, seed=seed)[0][0] for seed in (1, 1, 2))

    assert first["total"] == same["total"]
    assert first["total"]["histogram"] != other["total"]["histogram"]
    assert first["total"]["iops"] == pytest.approx(other["total"]["iops"], rel=0.1)


def test_points_follow_each_other_in_virtual_time() -> None:
    points, _ = run(array(), {"queue_depth": [1, 2, 4]})

    assert points[0]["started_utc_ns"] == 0
    for before, after in pairwise(points):
        assert before["measured_to_utc_ns"] <= after["started_utc_ns"]
        assert after["started_utc_ns"] < before["measured_to_utc_ns"] + 10**9
        assert after["measured_from_utc_ns"] - after["started_utc_ns"] == after["warmup_s"] * 1e9


class TestSettling:
    """The warm-up goes on until as much goes to the disks as is written."""

    WRITES = {"queue_depth": 4, "read_share": 0.0}  # noqa: RUF012

    def test_parity_from_a_cold_start_takes_longer_than_asked(self) -> None:
        (cold,), _ = run(array(raid="5", start="cold", cache="64M"), self.WRITES)
        (warm,), _ = run(array(raid="5", cache="64M"), self.WRITES)

        assert cold["warmup_s"] >= 4
        assert cold["measured_s"] == warm["measured_s"] == 2
        assert (cold["measured_from_utc_ns"] - cold["started_utc_ns"]) == cold["warmup_s"] * 1e9
        # Once the cache is at its level, where it began is no longer seen.
        assert cold["total"]["iops"] == pytest.approx(warm["total"]["iops"], rel=0.15)

    def test_a_larger_cache_takes_longer_to_fill(self) -> None:
        waits = [
            run(array(raid="5", start="cold", cache=size), self.WRITES)[0][0]["warmup_s"] for size in ("32M", "512M")
        ]

        assert waits[0] < waits[1] <= 301

    @pytest.mark.parametrize(("asked_s", "took_s"), [(1, 2), (2, 2), (5, 5)])
    def test_reads_are_settled_after_the_first_look(self, asked_s: int, took_s: int) -> None:
        timing = {"warmup_s": asked_s, "duration_s": 2}
        (point,), _ = run(array(raid="5", start="cold"), {"queue_depth": 4, "read_share": 1.0}, timing=timing)

        assert point["warmup_s"] == took_s


def test_an_interrupt_ends_it() -> None:
    interrupt = threading.Event()
    interrupt.set()
    plan = load_plan({"timing": {"warmup_s": 1, "duration_s": 2}, "activity": [{"queue_depth": 4}]}, source="test")

    with pytest.raises(Interrupted):
        simulate(array(), plan, interrupt=interrupt)


def test_a_workload_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="multiple of the sector"):
        run(array(), {"block_bytes": 1000, "queue_depth": 1})
    with pytest.raises(UsageError, match="is smaller than a block"):
        run(array(volume_size="1MiB"), {"block_bytes": 2 << 20, "queue_depth": 1})


def test_volumes_are_those_of_the_array() -> None:
    volumes = model_volumes(array())

    assert [(volume.name, volume.size_bytes, volume.sector_bytes) for volume in volumes] == [
        ("v01", 20 * 10**9, 512), ("v02", 20 * 10**9, 512)
    ]  # fmt: skip
    assert all(volume.spec.array is not None for volume in volumes)

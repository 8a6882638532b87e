"""What a run that goes on says of itself: the file others watch it by, and that it never disturbs the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.base.progress import Gauge, Moment, ProgressStep, Silent, Status
from assay.record.limits import parse_limits
from assay.record.run_folder import RunFolder
from assay.run.live import EVERY_S, Live


class Seen(Silent):
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.statuses: list[Status] = []

    def status(self, status: Status) -> None:
        self.statuses.append(status)


class Watching:
    """A run that is watched, on a clock of the test."""

    def __init__(self, folder: RunFolder) -> None:
        self.now_s = 100.0
        self.seen, self.folder = Seen(), folder
        self.live = Live(self.seen, folder, clock_s=lambda: self.now_s, utc_ns=lambda: round(self.now_s * 1e9))

    @property
    def file(self) -> Path:
        return self.folder.path / "live.json"

    def told(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.file.read_bytes())
        return document

    def measure(self, iops: float, read_ns: float) -> None:
        gauges = (
            Gauge(name="iops", title="IOPS", value=iops, unit="iops"),
            Gauge(name="read_latency_ns", title="read latency", value=read_ns, unit="ns", limit="read.mean"),
        )
        self.live.point(ProgressStep("line", Moment(part="oltp", what="8 KiB", phase="measuring", gauges=gauges)))


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    with RunFolder.create(tmp_path, "profile", {}) as folder:
        yield Watching(folder)


def point(number: int, outstanding: int, iops: float, read_ns: float) -> Mapping[str, Any]:
    side = {"count": 100, "iops": iops, "bytes_per_s": iops * 8192, "latency_ns": {"mean": read_ns, "p99": read_ns}}
    return {
        "id": f"p{number:04d}",
        "part": "oltp",
        "workload": {"kind": "io", "name": "8 KiB"},
        "load": {"outstanding": outstanding, "queue_depth": outstanding, "workers": 1},
        "read": side,
        "write": None,
        "total": side,
        "limits": [{"limit": "read.mean<=2ms", "scope": "data", "value": read_ns, "unit": "ns", "met": read_ns <= 2e6}],
        "met": read_ns <= 2e6,
        "errors": {"count": 0, "kinds": {}},
    }


def test_histories_have_a_value_each_second(watching: Watching) -> None:
    for step in range(9):
        watching.measure(1000.0 + step, 1e6)
        watching.now_s += 0.5
    iops, read = watching.told()["gauges"]

    assert iops["history"] == [1000.0, 1002.0, 1004.0, 1006.0, 1008.0]
    assert (read["title"], read["value"]) == ("read latency", 1e6)
    assert watching.told()["times_utc_ns"] == [round((100 + second) * 1e9) for second in range(5)]


def test_progress_that_comes_too_often_costs_nothing(watching: Watching) -> None:
    for _ in range(1000):
        watching.measure(1.0, 1.0)
    assert len(watching.seen.statuses) == 1
    watching.now_s += EVERY_S
    watching.measure(1.0, 1.0)
    assert len(watching.seen.statuses) == 2


def test_a_finished_point_is_told_at_once_with_the_curve_and_the_nearest_limit(watching: Watching) -> None:
    watching.live.begin(parse_limits(["read.mean<=2ms"]))
    watching.measure(1000.0, 0.5e6)
    watching.live.point_done(point(1, 8, 5000.0, 1e6))
    watching.live.point_done(point(2, 16, 9000.0, 1.8e6))
    told = watching.told()

    assert [(one["load"], one["value"], one["met"]) for one in told["curve"]["points"]] == [
        (8.0, 5000.0, True),
        (16.0, 9000.0, True),
    ]
    assert told["curve"]["axis"] == "outstanding"
    assert (told["nearest"]["where"], told["nearest"]["share"]) == ("p0002", pytest.approx(0.9))
    assert [row["id"] for row in told["points"]] == ["p0001", "p0002"]
    assert told["points"][1]["figures"][0]["text"] == "9,000 IOPS"


def test_what_is_under_way_may_be_nearest_to_its_limit(watching: Watching) -> None:
    watching.live.begin(parse_limits(["read.mean<=2ms"]))
    watching.live.point_done(point(1, 8, 5000.0, 1e6))
    watching.now_s += 1
    watching.measure(1000.0, 3e6)
    assert (watching.told()["nearest"]["where"], watching.told()["nearest"]["share"]) == ("now", 1.5)


def test_another_part_begins_another_curve(watching: Watching) -> None:
    watching.live.point_done(point(1, 8, 5000.0, 1e6))
    watching.live.point_done({**point(2, 8, 5000.0, 1e6), "part": "log"})
    assert [one["id"] for one in watching.told()["curve"]["points"]] == ["p0002"]


def test_the_end_leaves_no_file(watching: Watching) -> None:
    watching.measure(1.0, 1.0)
    assert watching.file.exists()
    watching.live.end()
    watching.now_s += 10
    watching.measure(1.0, 1.0)
    watching.live.phase("writing the report")
    assert sorted(path.name for path in watching.folder.path.iterdir()) == [".lock", "run.json"]


def test_a_folder_that_takes_no_file_stops_nothing(watching: Watching) -> None:
    # A folder stands in the file's place, which no rename replaces.
    watching.file.mkdir()
    watching.measure(1.0, 1.0)
    watching.live.point_done(point(1, 8, 5000.0, 1e6))
    assert len(watching.seen.statuses) == 2
    assert not [path for path in watching.folder.path.iterdir() if path.name.endswith(".part")]

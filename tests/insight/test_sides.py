"""Runs of a comparison as they lie in folders: repeats of one side, and other runs of the same target."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.apps.api import profile
from assay.apps.ui.runs import Runs
from assay.base.errors import UsageError
from assay.insight.comparable import target_identity, target_place
from assay.insight.sides import read_sides
from assay.record.repeats import sides_below
from assay.record.titles import run_title
from assay.record.types import Manifest

PLAN = {"timing": {"warmup_s": 0.0, "duration_s": 0.5}, "activity": [{"block_bytes": 8192, "queue_depth": 2}]}


def made(results: Path, target: str = "null:?latency=1ms") -> Path:
    """A run with one point, in which the generator kept up however busy the host is."""
    path = profile(target, plan=PLAN, output=results).path
    (point,) = map(json.loads, (path / "points.jsonl").read_text().splitlines())
    (path / "points.jsonl").write_text(
        json.dumps(point | {"generator": {**point["generator"], "saturated": False}}) + "\n"
    )
    return path


def test_other_runs_of_the_target_in_the_folder_are_its_history(tmp_path: Path) -> None:
    runs = [made(tmp_path) for _ in range(5)]
    made(tmp_path, "null:?latency=2ms")
    shutil.copytree(runs[4], tmp_path / "repeats" / runs[4].name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")

    read = read_sides(runs[:2])
    assert [[run.manifest["run_id"] for run in side.runs] for side in read.history] == [
        [run.name for run in sorted([*runs[2:], runs[4]], reverse=True)]
    ]
    compared = read.compared()
    assert compared.compared[0].between_runs is not None
    assert compared.compared[0].between_runs[1] == 4
    assert "4 other runs of it" in compared.basis


def test_repeats_need_no_history(tmp_path: Path) -> None:
    runs = [made(tmp_path / side) for side in ("before", "before", "after", "after")]
    read = read_sides(runs)
    assert [len(side.runs) for side in read.sides] == [2, 2]
    assert read.history == []
    assert read.compared().compared[0].method == "repeats"
    assert read.compared(paired=True).basis == ""


def test_sides_are_called_by_their_titles_with_their_folders_beside(tmp_path: Path) -> None:
    runs = [made(tmp_path / side, target) for side, target in (("before", "null:?latency=1ms"),) * 2
            + (("after", "null:?latency=2ms"),)]  # fmt: skip
    manifest = json.loads((runs[2] / "run.json").read_text())
    (runs[2] / "run.json").write_text(json.dumps(manifest | {"title": "New firmware"}))

    before, after = read_sides(runs).names

    assert after == ("New firmware", str(runs[2]))
    assert before.folders == f"{runs[0]}, {runs[1]}"
    assert before.title == f"{run_title(json.loads((runs[0] / 'run.json').read_text()))} (2 runs)"


@pytest.mark.parametrize(
    ("key", "value"), [("path", "/data/other.dat"), ("size_bytes", 2), ("model", "an array"), ("name", "v02")]
)
def test_a_target_is_the_same_by_host_and_volumes(key: str, value: object) -> None:
    volume: Any = {"name": "v01", "path": "/data/f.dat", "kind": "file", "size_bytes": 1, "state": "fresh"}
    manifest: Manifest = {"host": {"hostname": "one"}, "target": {"volumes": [volume]}}
    other: Manifest = {"host": {"hostname": "one"}, "target": {"volumes": [volume | {key: value}]}}
    again: Manifest = {**manifest, "target": {"volumes": [volume | {"state": "kept"}]}}
    assert target_identity(manifest) == target_identity(again)
    assert target_identity(manifest) != target_identity(other)
    # A history follows a place whose drive is replaced.
    assert (target_place(manifest) == target_place(other)) == (key == "model")
    assert target_identity({"target": {"volumes": []}}) is None


def test_repeats_lie_below_one_folder_and_links_lead_elsewhere(tmp_path: Path) -> None:
    def run(path: Path) -> Path:
        path.mkdir(parents=True)
        (path / "run.json").write_text("{}")
        return path

    plain = [run(tmp_path / "group" / name) for name in ("1", "2")]
    in_turns = [run(tmp_path / "turns" / side / name) for side in ("A", "B") for name in ("1", "2")]
    (tmp_path / "group" / "3").symlink_to(in_turns[0])
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "A").symlink_to(tmp_path / "turns" / "A")

    assert sides_below(tmp_path / "group") == [plain]
    assert sides_below(tmp_path / "turns") == [in_turns[:2], in_turns[2:]]
    assert sides_below(tmp_path / "linked") == sides_below(plain[0]) == sides_below(tmp_path / "nowhere") == []
    listed = {place.path for place in Runs([tmp_path]).places()}
    assert listed == {*plain, *in_turns}


def in_state(results: Path, name: str | None, target: str = "null:?latency=1ms") -> Path:
    """A run whose target was in a state; an older run says nothing of it."""
    path = made(results, target)
    (point,) = map(json.loads, (path / "points.jsonl").read_text().splitlines())
    state = {} if name is None else {"state": {"name": name}}
    kept = {key: value for key, value in point.items() if key != "state"}
    (path / "points.jsonl").write_text(json.dumps(kept | state) + "\n")
    return path


def test_runs_in_different_states_are_compared_only_if_that_is_asked_for(tmp_path: Path) -> None:
    purged, steady, older = (in_state(tmp_path, name) for name in ("purged", "steady", None))

    with pytest.raises(UsageError, match=r"one target was purged.* another in steady state.*--any-state"):
        read_sides([purged, steady]).compared()
    assert read_sides([purged, steady]).compared(any_state=True).differences
    # Nothing says that an older run differs.
    assert read_sides([older, steady]).compared().differences
    assert read_sides([steady, steady]).compared().differences

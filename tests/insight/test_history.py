"""Histories of run folders: what is comparable, levels and changes, what changed there, and what is skipped."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from past_runs import past_folder, point

from assay.insight.history import reading
from assay.insight.history.facts import FactChange, RunFact, fact_changes, facts_of, rare_changes
from assay.insight.history.kept import read_folders
from assay.insight.history.reading import PastRun, read_runs, run_paths
from assay.insight.history.telling import (
    change_words,
    day_of,
    event_words,
    history_document,
    history_sentence,
    trend_words,
)
from assay.insight.history.trends import RunsHistory, history_of


def history(results: Path) -> RunsHistory:
    return history_of(read_runs(run_paths([results])))


def noise(days: int, share: float = 0.01) -> list[float]:
    return [math.exp(share * value) for value in np.random.default_rng(1).standard_normal(days)]


def with_a_step(results: Path, **after: Any) -> RunsHistory:
    """Sixty days of which the last thirty do a tenth less, with other facts."""
    for day, factor in enumerate(noise(60)):
        step = day >= 30
        past_folder(results, day, [point((900 if step else 1000) * factor)], **(after if step else {}))
    return history(results)


def test_a_step_is_found_with_what_changed_there(tmp_path: Path) -> None:
    found = with_a_step(tmp_path, host={"kernel": "6.12"}, volume={"mount_options": "rw,noatime"})
    (target,) = found.targets
    (load,) = target.loads
    iops = load.trends[0]
    assert (iops.figure.name, len(iops.values)) == ("iops", 60)
    assert [(level.first, level.count) for level in iops.levels] == [(0, 30), (30, 30)]
    (change,) = iops.changes
    assert change.at == 30
    assert change.better is False
    assert change.interval_95 is not None
    assert change.interval_95[0] < -0.1 < change.interval_95[1]
    assert iops.now.interval_95 is not None
    assert iops.now.interval_95[0] < 900 < iops.now.interval_95[1]
    (event,) = target.events
    assert (event.at, len(event.changed), event.worse) == (30, 2, 2)
    assert [(fact.name, fact.after) for fact in event.facts] == [("kernel", "6.12"), ("mount options", "noatime,rw")]


def test_a_history_in_words(tmp_path: Path) -> None:
    found = with_a_step(tmp_path, host={"kernel": "6.12"})
    target = found.targets[0]
    assert history_sentence(found) == (
        "60 runs of 1 target, 1 load: the level of 2 figures changed, once: 2 for the worse. The last time: read p99"
        " +11.2 % since 2026-01-31 (8 KiB, 100 % read, 100 % random, 4 outstanding)."
    )
    assert event_words(target, target.events[0]) == (
        "2026-01-31, run 31 of 60: 2 figures changed: 2 for the worse. What changed there: kernel 6.1 -> 6.12."
    )
    iops = next(one for one in target.events[0].changed if one.trend.figure.name == "iops")
    assert change_words(iops).startswith("8 KiB, 100 % read, 100 % random, 4 outstanding: IOPS -10.")
    assert trend_words(iops.trend).endswith("on 2026-01-31, 30 runs ago")
    document = history_document(found)
    assert document["targets"][0]["events"][0]["facts"][0]["name"] == "kernel"
    assert json.loads(json.dumps(document))["targets"][0]["loads"][0]["trends"][0]["metric"] == "iops"


def test_too_few_runs_are_not_judged(tmp_path: Path) -> None:
    for day in range(4):
        past_folder(tmp_path, day, [point(1000.0 + day)])
    trend = history(tmp_path).targets[0].loads[0].trends[0]
    assert trend.changes == ()
    assert trend_words(trend) == f"not judged: {trend.runs_to_find} more runs needed"


def test_only_what_is_comparable_lies_in_one_series(tmp_path: Path) -> None:
    """Another load, timing, state or place is another series; a replaced drive is a fact of the same one."""
    plain = [past_folder(tmp_path, day, [point(1000.0)]) for day in range(2)]
    past_folder(tmp_path, 2, [point(1000.0, depth=8)])
    past_folder(tmp_path, 3, [point(1000.0)], duration_s=60.0)
    past_folder(tmp_path, 4, [point(1000.0, state="steady")])
    past_folder(tmp_path, 5, [point(1000.0)], volume={"path": "/other/f.dat"})
    past_folder(tmp_path, 6, [point(1000.0)], host={"hostname": "db2"})
    past_folder(tmp_path, 7, [point(1000.0)], volume={"model": "another drive"})
    loads = [load for target in history(tmp_path).targets for load in target.loads]
    assert [[Path(run.path).name for run in load.trends[0].runs] for load in loads] == [
        [*(path.name for path in plain), "20260108-000000-profile-000007"]
    ]


def test_levels_of_a_study_are_series_of_their_own(tmp_path: Path) -> None:
    levels = {"one": {"raid": "10"}, "two": {"raid": "50"}}
    study = {"name": "raid-policy", "title": "RAID", "question": "Which?", "factors": [], "comparison": None,
             "order": [*levels], "levels": levels}  # fmt: skip
    parts = [{"name": name, "title": name, "plan": {}} for name in levels]
    told = (("p1", "one", 900.0), ("p2", "two", 500.0))
    for day in range(3):
        points = [{**point(iops), "id": one, "key": one, "part": part} for one, part, iops in told]
        past_folder(tmp_path, day, points, study=study, parts=parts)
    (target,) = history(tmp_path).targets
    values = {load.workload.rpartition(", ")[2]: [*load.trends[0].values] for load in target.loads}
    assert values == {"raid 10": [900.0] * 3, "raid 50": [500.0] * 3}


def test_points_that_say_nothing_of_the_target_are_left_out(tmp_path: Path) -> None:
    saturated = {**point(1000.0), "generator": {"saturated": True}}
    cut = {**point(1000.0), "ended_by": "interrupted"}
    for day, one in enumerate((saturated, cut)):
        past_folder(tmp_path, day, [one])
    assert history(tmp_path).targets == ()


def test_broken_folders_are_skipped_with_one_line_each(tmp_path: Path) -> None:
    good = [past_folder(tmp_path, day, [point(1000.0)]) for day in range(2)]
    damaged, large, odd = (past_folder(tmp_path, day, [point(1000.0)]) for day in range(2, 5))
    (damaged / "run.json").write_text("{")
    with (large / "run.json").open("r+b") as file:
        file.truncate(5 * 2**20)
    (odd / "points.jsonl").write_text(json.dumps({**point(1000.0), "total": {"iops": "\x1b[31m"}}) + "\n" * 2)
    found = history(tmp_path)
    assert found.runs == len(good)
    assert [Path(one.path).name for one in found.skipped] == [one.name for one in (damaged, large, odd)]
    assert all(one.reason and one.reason.isprintable() and len(one.reason) <= 200 for one in found.skipped)


def test_facts_are_bounded_and_printable() -> None:
    settings = {f"setting{number}": "x" * 1000 for number in range(2000)}
    database: Any = {"name": "\x1b[2Jpg", "kind": "postgresql", "version": "18", "settings": settings}
    facts = facts_of({"schema_version": 1, "target": {"databases": [database]}})
    assert len(facts) == 500
    assert all(len(fact.value) <= 120 and fact.name.isprintable() for fact in facts)


def test_volumes_tell_once_what_they_share() -> None:
    volumes: Any = [
        {"name": name, "mount_options": "rw,noatime", "queue": {"scheduler": scheduler}}
        for name, scheduler in (("v01", "none"), ("v02", "bfq"))
    ]
    told = [(fact.name, fact.value) for fact in facts_of({"schema_version": 1, "target": {"volumes": volumes}})]
    assert told == [
        ("mount options", "noatime,rw"),
        ("v01: I/O scheduler", "none"),
        ("v02: I/O scheduler", "bfq"),
    ]


def test_a_fact_that_differs_in_every_run_explains_nothing() -> None:
    runs = [[RunFact("seed", str(run)), RunFact("kernel", "6.1" if run < 20 else "6.12")] for run in range(40)]
    assert rare_changes(fact_changes(runs), len(runs)) == [FactChange("kernel", "6.1", "6.12", 20)]


@pytest.mark.parametrize("started", [None, -1, 1 << 62])
def test_runs_without_a_believable_time_are_told_without_one(started: int | None) -> None:
    run = PastRun("r", "r", "t", "t", started or 0, (), ())
    assert day_of(run) == "an unknown day"


def test_what_was_read_is_kept_until_a_run_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    results = tmp_path / "results"
    made = [past_folder(results, day, [point(1000.0)]) for day in range(3)]
    first = read_folders([results])
    with monkeypatch.context() as patch:
        patch.setattr(reading, "past_run", lambda path: pytest.fail(f"read again: {path}"))
        assert read_folders([results]) == first
    (made[1] / "points.jsonl").write_text(json.dumps(point(777.0)) + "\n")
    assert 777.0 in [value.value for run in read_folders([results]).runs for value in run.loads[0].values]
    (cache,) = (tmp_path / "cache" / "assay").iterdir()
    assert cache.stat().st_mode & 0o777 == 0o600
    for damaged in ("", "[", json.dumps({"form": "0", "runs": {}}), "[" * 100_000):
        cache.write_text(damaged)
        assert len(read_folders([results]).runs) == 3


def test_a_copy_of_a_run_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for results in ("a", "b"):
        past_folder(tmp_path / results, 0, [point(1000.0)])
    assert len(read_folders([tmp_path / "a", tmp_path / "b"]).runs) == 1

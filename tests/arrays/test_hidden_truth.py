"""The benchmark of hidden truth in small: two made-up arrays of six disks, three predictions of each."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
from small_array import UNCERTAIN, small, small_text

BENCH = Path(__file__).parents[2] / "benches" / "hidden_truth.py"
LEVELS = {"cache.dirty_high": 0.1, "cache.dirty_most": 0.1}
"""Levels that the benchmark draws together with the lowest."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark with fewer volumes and shorter points."""
    spec = importlib.util.spec_from_file_location("hidden_truth", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    timing = {"warmup_s": 1, "duration_s": 4}
    activity = module.PROFILE["activity"][0] | {"queue_depth": 4}
    monkeypatch.setattr(module, "PROFILE", module.PROFILE | {"timing": timing, "activity": [activity]})
    monkeypatch.setattr(module, "ASKED", module.ASKED | {"timing": timing})
    monkeypatch.setattr(module, "MEASURED", module.MEASURED | {"volumes": "4"})
    volumes = {"12": "4", "6": "2"}
    questions = {name: {**asked, "volumes": volumes[asked["volumes"]]} for name, asked in module.QUESTIONS.items()}
    monkeypatch.setattr(module, "QUESTIONS", questions)
    return module


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(small_text(UNCERTAIN | LEVELS))
    return str(path)


@pytest.mark.slow(reason="calibrates whole arrays; tests/arrays/test_bands.py has the bands of small ones")
def test_the_truth_lies_in_the_bands_and_they_are_narrow(bench: Any, model: str) -> None:
    rows = [row for seed in (1, 2) for row in bench.one_seed((model, seed))]

    assert [row["question"] for row in rows] == list(bench.QUESTIONS) * 2
    for row in rows:
        assert 0 < row["low"] < row["predicted"] < row["high"] < math.inf
        assert row["half_width"] < 0.4
        assert row["inside"] == (row["low"] <= row["truth"] <= row["high"])
        assert row["error"] == pytest.approx(row["predicted"] / row["truth"] - 1)
        assert abs(row["error"]) < 0.25
    assert sum(row["inside"] for row in rows) >= 5
    # RAID 50 was not measured, and is asked of the same array.
    by_question = {row["question"]: row for row in rows[:3]}
    assert by_question["RAID 50"]["truth"] < by_question["half the fill"]["truth"]
    assert by_question["a second member"]["truth"] > by_question["half the fill"]["truth"]


def test_made_up_arrays_differ_by_their_seed_alone(bench: Any, model: str) -> None:
    first, again, other = (bench.made_up(model, seed) for seed in (3, 3, 4))

    assert first == again
    assert set(first) == set(UNCERTAIN | LEVELS)
    assert {name for name in first if first[name] != other[name]} >= set(UNCERTAIN)
    start = small().value("disk.command_overhead")
    for values in (first, other):
        assert 0.5 * start <= values["disk.command_overhead"] <= 2 * start
        assert values["cache.dirty_low"] < values["cache.dirty_high"] <= values["cache.dirty_most"]

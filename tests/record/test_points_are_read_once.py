"""A run of thousands of points: each line is parsed once, however often its points are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.record import run_folder
from assay.record.run_folder import RunFolder
from assay.record.source import clean

POINTS = 50


def point(number: int) -> dict[str, Any]:
    latency = dict.fromkeys(("mean", "p50", "max"), 1e5)
    side = {"count": 9, "iops": 9.0, "bytes_per_s": 1.0, "latency_ns": latency, "histogram": "HIST"}
    sides = {"read": side, "write": None, "total": side}
    return {
        "id": f"p{number:04d}", "key": f"{number:064x}", "part": "custom", "purpose": "grid", "ended_by": "time",
        "warmup_s": 0.0, "measured_s": 1.0, "workload": {"kind": "io", "block_bytes": 8192, "read_share": 1.0,
        "random_share": 1.0}, "load": {"queue_depth": number}, **sides, "roles": {"data": sides},
        "volumes": [{"name": "f", **sides}], "activities": [], "limits": [], "steady": {}, "engine": None,
        "errors": {"count": 0, "kinds": {}}, "generator": {"saturated": False},
    }  # fmt: skip


GOES_ON = {
    "request": {}, "parts": [{"name": "custom", "title": "Custom", "plan": {}, "planned_s": 1.0, "spent_s": 1.0}],
    "target": {"volumes": []}, "answers": [], "verdict": [], "notices": [], "started_utc_ns": 1,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunFolder.create(tmp_path, "profile", GOES_ON) as folder:
        for number in range(1, POINTS + 1):
            folder.append_point(point(number))
    return folder.path


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Lines of points that are parsed."""
    parsed, seen = run_folder.parsed, list[bytes]()

    def counted(line: bytes) -> Any:
        found = parsed(line)
        if "id" in found:
            seen.append(line)
        return found

    monkeypatch.setattr(run_folder, "parsed", counted)
    return seen


def test_a_run_that_goes_on_parses_each_line_once(run: Path, lines: list[bytes]) -> None:
    """What resuming asks of its folder: is it whole, what is finished, numbers, strangers, a place to append."""
    with RunFolder.open(run) as folder:
        lines.clear()
        folder.check_goes_on()
        for number in range(POINTS + 1, 2 * POINTS + 1):
            assert len(folder.points()) == number - 1
            folder.append_point(point(number))
        assert [one["id"] for one in folder.points()] == [f"p{number:04d}" for number in range(1, 2 * POINTS + 1)]
    assert len(lines) == POINTS


def test_what_another_process_appended_is_read(run: Path) -> None:
    with RunFolder.open(run) as reader:
        assert len(reader.points()) == POINTS
        with RunFolder.open(run) as writer:
            writer.append_point(point(POINTS + 1))
        assert len(reader.points()) == POINTS + 1


def test_what_is_kept_is_what_a_reader_of_the_file_gets(run: Path) -> None:
    with RunFolder.open(run) as folder:
        added = point(POINTS + 1)
        folder.points()
        folder.append_point(added)
        added["load"]["queue_depth"] = "changed"
        assert folder.points() == RunFolder.open(run).points()


def test_reports_keep_neither_histograms_nor_volumes(run: Path) -> None:
    for lean in RunFolder.open(run).points(lean=True):
        assert "histogram" not in json.dumps(lean)
        assert lean["volumes"] == []
        assert lean["total"] is not None
        assert lean["total"]["iops"] == 9.0


def test_what_is_clean_is_not_copied() -> None:
    plain, marked = {"a": [1.5, {"b": "text"}]}, {"a": ["\u202e", 1], "b\x00": {"c": float("nan")}}
    assert clean(plain) is plain
    assert clean(marked) == {"a": ["\\u202e", 1], "b\\x00": {"c": None}}
    assert marked == {"a": ["\u202e", 1], "b\x00": marked["b\x00"]}

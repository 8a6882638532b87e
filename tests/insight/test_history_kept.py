"""What is kept of runs between calls: each is read once, changed ones again, and nothing foreign is believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from past_runs import past_folder, point

from assay.apps.ui.histories import histories
from assay.insight.history import reading
from assay.insight.history.kept import read_folders, read_kept
from assay.insight.history.reading import PastRun, read_runs, run_paths


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for day in range(4):
        past_folder(tmp_path / "results", day, [point(1000.0 + day)])
    return tmp_path / "results"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs whose files were read."""
    names: list[str] = []
    own = reading.past_run

    def past_run(path: Path) -> PastRun:
        names.append(path.name)
        return own(path)

    monkeypatch.setattr(reading, "past_run", past_run)
    return names


def caches(results: Path) -> list[Path]:
    return [*(results.parent / "cache" / "assay").glob("history-*.json")]


def test_a_run_is_read_once_and_again_when_it_has_changed(results: Path, read: list[str]) -> None:
    first = read_folders([results])
    assert (len(first.runs), len(read)) == (4, 4)
    assert (read_folders([results]), len(read)) == (first, 4)
    changed = run_paths([results])[1]
    (changed / "points.jsonl").write_text("")
    past_folder(results, 9, [point(1.0)])
    told = read_folders([results])
    assert read[4:] == [changed.name, run_paths([results])[-1].name]
    assert told == read_runs(run_paths([results]))


def test_the_page_reads_from_the_same_file(results: Path, read: list[str]) -> None:
    read_folders([results])
    asked = {"paths": [str(path) for path in run_paths([results])]}
    assert len(histories(asked)["targets"]) == 1
    assert (len(read), len(caches(results))) == (4, 1)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"form": "1 0.0 x", "runs": {}}', '{"form": "1", "runs": {"a": 3}}']
)
def test_a_cache_that_is_none_is_written_anew(results: Path, read: list[str], content: str) -> None:
    told = read_folders([results])
    (cache,) = caches(results)
    cache.write_text(content)
    assert (read_folders([results]), len(read)) == (told, 8)
    assert (read_folders([results]), len(read)) == (told, 8)


def test_a_link_in_place_of_the_cache_is_not_followed(results: Path, read: list[str]) -> None:
    read_folders([results])
    (cache,) = caches(results)
    elsewhere = results.parent / "elsewhere.json"
    cache.rename(elsewhere)
    before = elsewhere.read_bytes()
    cache.symlink_to(elsewhere)
    read_folders([results])
    assert (len(read), elsewhere.read_bytes()) == (8, before)


def test_where_nothing_can_be_kept_all_is_read(results: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (results.parent / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(results.parent / "file"))
    for _ in range(2):
        assert len(read_kept(run_paths([results]), [results]).runs) == 4
    assert len(read) == 8

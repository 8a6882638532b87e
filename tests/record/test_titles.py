"""What runs are called: by their own title, else by target, host and load, and never two targets alike."""

from __future__ import annotations

from typing import Any

import pytest

from assay.base.errors import RunFolderError, UsageError
from assay.record.run_folder import RunFolder
from assay.record.titles import TITLE_MAX, parse_title, run_title, run_titles


def run_on(path: str, **fields: Any) -> dict[str, Any]:
    volume = {"name": "assay.dat", "path": path, "kind": "file"}
    line = {"question": "8 KiB random 70/30", "point_id": "p0001"}
    return {"target": {"volumes": [volume]}, "host": {"hostname": "db1.example"}, "verdict": [line], **fields}


@pytest.mark.parametrize(
    ("manifest", "title"),
    [
        (run_on("/srv/data/assay.dat"), "assay.dat in /srv/data on db1: 8 KiB random 70/30"),
        (run_on("/srv/data/assay.dat", title="Before the new firmware"), "Before the new firmware"),
        (run_on("/dev/sdb"), "/dev/sdb on db1: 8 KiB random 70/30"),
        (run_on("/srv/data/assay.dat", verb="assess"), "assay.dat in /srv/data on db1: whole examination"),
        (
            {"request": {"paths": ["embedded:/srv/pg?wal=/log"]}, "parts": [{"title": "TPC-C-like"}],
             "host": {"hostname": "db1"}},
            "pg in /srv on db1: TPC-C-like",
        ),
        ({"recording": {"hosts": ["web1"]}}, "web1: recording"),
        (
            {"study": {"title": "RAID policy", "target": "model:ps6100xv"}, "host": {"hostname": "db1"},
             "target": {"volumes": [{"kind": "model", "model": "ps6100xv, RAID 10"}]}},
            "model of ps6100xv: RAID policy",
        ),
        ({"verb": "size", "sizing": {"title": "Orders"}, "host": {"hostname": "db1"}}, "Sizing: Orders"),
        ({"reliability": {"array": {"title": "FAS2040"}}}, "Reliability of FAS2040"),
        (run_on("/srv/f", verb="check"), "f in /srv on db1: check of best practice"),
        ({"run_id": "20261120-101500-profile-a1b2c3"}, "20261120-101500-profile-a1b2c3"),
    ],
)  # fmt: skip
def test_a_run_is_called_by_target_host_and_load(manifest: dict[str, Any], title: str) -> None:
    assert run_title(manifest) == title


def test_two_folders_files_of_one_name_are_never_alike() -> None:
    deep = "a-folder-with-a-long-name/" * 4
    paths = ["/srv/a/assay.dat", "/srv/b/assay.dat", f"/one/{deep}assay.dat", f"/two/{deep}assay.dat"]

    titles = run_titles([run_on(path) for path in paths])

    assert len(set(titles)) == len(paths)
    assert "/one/" in titles[2]
    assert "/two/" in titles[3]


def test_targets_are_told_apart_under_one_given_title_and_among_several_files() -> None:
    titles = run_titles([run_on("/srv/a/f", title="New"), run_on("/srv/b/f", title="New"), run_on("/d/f")])
    assert [title[:13] for title in titles] == ["New, f in /sr", "New, f in /sr", "f in /d on db"]
    assert len(set(titles)) == 3

    both = [run_on("/srv/a/f"), run_on("/srv/a/f")]
    for one, path in zip(both, ("/srv/b/f", "/srv/c/f"), strict=True):
        one["target"]["volumes"].append({"name": "f", "path": path, "kind": "file"})
    assert [title.partition(" on ")[0] for title in run_titles(both)] == [
        "f in /srv/a and f in /srv/b", "f in /srv/a and f in /srv/c",
    ]  # fmt: skip


def test_runs_of_one_target_are_told_apart_by_their_time_then_by_their_ids() -> None:
    first, second = 1_700_000_000 * 10**9, 1_700_000_060 * 10**9
    titles = run_titles([run_on("/d/f", started_utc_ns=first), run_on("/d/f", started_utc_ns=second)])
    assert [title[-21:] for title in titles] == [", 2023-11-14 22:13:20", ", 2023-11-14 22:14:20"]

    titles = run_titles([run_on("/d/f", started_utc_ns=first, run_id=name) for name in ("run-a", "run-b")])
    assert [title[-7:] for title in titles] == [", run-a", ", run-b"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("model:ps6100xv?raid=10&volumes=12", "model of ps6100xv (raid 10, volumes 12): RAID policies"),
        ("model:./arrays/mine.toml", "model of mine: RAID policies"),
    ],
)
def test_a_study_of_a_model_names_it_in_words(asked: str, words: str) -> None:
    assert run_title({"study": {"target": asked, "title": "RAID policies"}, "host": {"hostname": "db1"}}) == words


def test_a_title_is_foreign_input(tmp_path: Any) -> None:
    assert run_title({"title": "two\nlines \x1b[31m"}) == "two lines \\x1b[31m"
    assert len(run_title(run_on("/srv/" + "x" * 500))) <= TITLE_MAX
    for bad in ("", "  ", "x" * (TITLE_MAX + 1), "two\nlines"):
        with pytest.raises(UsageError, match="--title"):
            parse_title(bad)
    for number, bad in enumerate([7, ["a"], "x" * (TITLE_MAX + 1)]):
        with RunFolder.create(tmp_path / str(number), "profile", {"title": bad}) as folder:
            path = folder.path
        with pytest.raises(RunFolderError, match="title"):
            RunFolder.open(path)

"""What the page asks other processes for, asked here in this one."""

from __future__ import annotations

import io
import json
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from assay.apps.ui import answers
from assay.base.errors import UsageError


@pytest.fixture
def profile(results: Path) -> dict[str, str]:
    return {"path": str(results / "profile")}


def test_the_view_has_points_in_rows_answers_and_the_verdict(profile: dict[str, str]) -> None:
    found = answers.view(profile)
    point = found["points"][0]
    assert set(point["figures"]) == {one["name"] for one in found["figures"][point["kind"]]}
    assert found["answers"][0]["text"].endswith("IOPS")
    assert found["verdict"][0]["standing"] == "met"
    assert found["run"]["status"] == "done"


def test_a_run_of_one_point_has_its_histograms_and_seconds(results: Path, profile: dict[str, str]) -> None:
    found = answers.view({"path": str(results / "oltp")})
    single = found["single"]
    assert single is not None
    assert [one["name"] for one in single["histograms"]][:2] == ["new_order", "payment"]
    point = json.loads((results / "oltp" / "points.jsonl").read_text().splitlines()[0])
    for one in single["histograms"]:
        told = point["oltp"]["by_transaction"][one["name"]]
        assert sum(one["counts"]) == told["count"] + told["rolled_back"]
        assert one["up_to_ns"] == sorted(one["up_to_ns"])
    assert single["seconds"][0]["metric"] == "nopm"
    assert answers.view(profile)["single"] is None


def test_the_answer_comes_first_and_is_that_of_the_terminal(profile: dict[str, str]) -> None:
    lead = answers.view(profile)["lead"]
    assert lead[0]["kind"] == "paragraph"
    assert "218 IOPS" in lead[0]["text"]


def test_a_run_whose_answer_cannot_be_told_shows_the_rest(
    profile: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("of before")

    monkeypatch.setattr("assay.report.answer.answer_of", fails)
    found = answers.view(profile)
    assert found["lead"] == []
    assert len(found["points"]) == 9


def test_histories_are_those_of_the_command(results: Path) -> None:
    manifest = json.loads((results / "profile" / "run.json").read_text())
    for number in range(1, 4):
        shutil.copytree(results / "profile", results / f"later-{number}")
        told = manifest | {"run_id": f"later-{number}", "started_utc_ns": manifest["started_utc_ns"] + number * 10**9}
        (results / f"later-{number}" / "run.json").write_text(json.dumps(told))
    (results / "later-3" / "run.json").write_text("{")
    found = answers.histories({"paths": [str(path) for path in sorted(results.iterdir())]})
    shown = next(one for one in found["targets"] if "later-1" in one["history"]["runs"])
    trend = shown["history"]["loads"][0]["trends"][0]
    assert len(trend["values"]) == len(trend["runs"]) == 3
    assert len({*trend["values"]}) == 1
    assert trend["changes"] == []
    assert found["skipped"][0].startswith("later-3: ")
    json.dumps(found, allow_nan=False)


def test_a_database_has_its_own_figures(results: Path) -> None:
    found = answers.view({"path": str(results / "oltp")})
    assert "nopm" in {one["name"] for one in found["figures"]["tpcc"]}


def test_points_that_are_damaged_leave_the_rest(results: Path, profile: dict[str, str]) -> None:
    path = results / "profile" / "points.jsonl"
    path.write_bytes(b"{\n" + path.read_bytes())
    found = answers.view(profile)
    assert found["points"] == []
    assert "damaged" in found["notices"][0]


def test_findings_are_those_of_the_report(profile: dict[str, str]) -> None:
    found = answers.findings(profile)
    headings = [block["text"] for block in found["sections"][0]["blocks"] if block["kind"] == "heading"]
    assert {"What it holds", "What was found"} & set(headings)
    json.dumps(found)


def test_series_are_catalogued_and_drawn(profile: dict[str, str]) -> None:
    there = answers.series(profile)
    group = next(one for one in there["groups"] if one["source"] == "assay")
    question = {
        "from_s": there["from_s"],
        "to_s": there["to_s"],
        "steps": 50,
        "queries": [{"host": group["host"], "source": "assay", "metric": "read_ios_count"}],
    }
    found = answers.series(profile | {"question": question})
    (line,) = found["panels"][0]["lines"]
    assert len(line["values"]) == len(found["t"]) == 50
    assert any(line["values"])
    unknown = question | {"queries": [{"host": group["host"], "source": "assay", "metric": "no such"}]}
    with pytest.raises(UsageError, match=r"q: queries\.0: no series no such of assay was recorded on"):
        answers.series(profile | {"question": unknown})


def test_the_matrix_is_that_of_the_diagnosis_and_moves_through_time(results: Path) -> None:
    found = answers.matrix({"path": str(results / "oltp")})
    assert found["resources"] == ["cpu", "memory", "network", "disk", "response"]
    assert found["verdict"]["what"]
    assert {cell["resource"] for cell in found["cells"]} == set(found["resources"])
    edges = [(one["from_s"], one["to_s"]) for one in found["windows"]]
    assert edges
    assert all(before[1] == pytest.approx(after[0]) for before, after in pairwise(edges))
    assert found["causes"][0]["advice"]


def test_a_run_is_the_same_as_itself(results: Path) -> None:
    path = str(results / "profile")
    found = answers.compare({"paths": [path, path]})
    assert found["sentence"].startswith("No difference of 5 % or more in")
    assert found["columns"][3:5] == ["A", "B"]


def test_points_go_out_as_csv(profile: dict[str, str]) -> None:
    head, *rows = answers.table(profile).splitlines()
    assert {"id", "part", "met"} <= {*head.split(",")}
    assert len(rows) == len(answers.view(profile)["points"])


@pytest.mark.slow(reason="the report's own tests draw its figures")
def test_the_report_is_made_of_a_run_that_goes_on(results: Path, profile: dict[str, str]) -> None:
    path = results / "profile" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "running"}))
    page = answers.report(profile)
    assert "was still going on" in page
    assert not (results / "profile" / "report.html").exists()


def answered(monkeypatch: pytest.MonkeyPatch, arguments: list[str], asked: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(asked))
    return answers.main(arguments)


@pytest.mark.parametrize("asked", ["{", "[]", "{}", '{"path": 1}', '{"path": "/nowhere"}', '{"path": "\\u0000"}'])
def test_what_cannot_be_answered_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    assert answered(monkeypatch, ["view"], asked) != 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1


def test_an_unknown_question_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(monkeypatch, ["everything"], "{}") == 2
    assert capsys.readouterr().err.startswith("accepted: view, findings")

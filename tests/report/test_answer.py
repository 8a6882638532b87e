"""The answer of a run on the terminal: two lines for a point, a line for a search, a matrix, a failure that is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.document.elements import Bullets, Paragraph, Table
from assay.report.answer import NOTHING, answer_of

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


def run_of(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    points = (RUNS / name / "points.jsonl").read_text().splitlines()
    return json.loads((RUNS / name / "run.json").read_text()), [json.loads(line) for line in points]


def texts(manifest: dict[str, Any], points: list[dict[str, Any]]) -> list[str]:
    return [block.text for block in answer_of(manifest, points) if isinstance(block, Paragraph)]


def test_a_run_of_one_point_is_two_lines_and_what_was_checked() -> None:
    measured, judged, checked = texts(*run_of("oltp"))

    assert measured.startswith("TPC-C-like, hammerdb: 9,940 NOPM")
    assert judged.startswith("4 of 5 limits met; missed: cpu<80% (cpu of the server is 98.8 %")
    assert checked.startswith("Consistency: all 11 conditions hold")


def test_a_limit_that_many_databases_miss_is_told_once_with_the_worst_and_their_number() -> None:
    manifest, points = run_of("oltp")
    (line,) = [line for line in manifest["verdict"] if line["limit"] == "cpu<80%"]
    manifest["verdict"] += [
        line | {"limit": limit, "value": value, "met": met, "meaning": f"peak of {name} is {value:g}"}
        for limit, name, value, met in (
            ("p<=9", "db1", 30.0, False), ("p<=9", "db2", 50.0, False), ("p<=9", "db3", 8.0, True),
            ("q>=9", "db1", 3.0, False), ("q>=9", "db2", 2.0, False),
        )
    ]  # fmt: skip

    judged = texts(manifest, points)[1]

    assert judged.count("p<=9") == judged.count("q>=9") == 1
    assert "p<=9 (peak of db2 is 50, the worst of 2 that miss it) and q>=9 (peak of db2 is 2, the worst of 2" in judged


def test_a_search_is_a_line_with_load_interval_and_what_limited_it() -> None:
    (line,) = texts(*run_of("profile"))

    assert line == (
        "8 KiB random 70/30: 218 IOPS (95 % interval 216 to 226) at 218.1 arrivals per s"
        " within read.mean<=20ms, write.mean<=50ms; the load generator itself was the bottleneck."
    )


def test_a_search_without_an_answer_says_what_ended_it() -> None:
    manifest, points = run_of("profile")
    manifest["answers"][0] |= {"max": None, "limited_by": "read.mean<=20ms"}

    assert texts(manifest, points)[0] == (
        "8 KiB random 70/30: no load that was tried is within read.mean<=20ms, write.mean<=50ms;"
        " limited by read.mean<=20ms."
    )


def test_what_failed_is_said_and_marked() -> None:
    (block,) = answer_of(*run_of("verify"))

    assert isinstance(block, Paragraph)
    assert (block.text.startswith("Integrity: FAILED: torn 5"), block.tone) == (True, "bad")


def test_of_very_many_loads_those_that_miss_a_limit_are_told() -> None:
    manifest, points = run_of("verify")
    line = {"limit": "read.mean<=2ms", "point_id": "p0001", "meaning": "reads take 5 ms", "value": 5e6, "unit": "ns"}
    manifest["verdict"] = [
        line | {"question": f"queue depth {number}", "point_id": f"p{number:04}", "met": number % 50 != 0}
        for number in range(1, 2001)
    ]

    first, *missed, rest = texts(manifest, points * 2)

    assert first == "1,960 of 2,000 limits met, 40 missed."
    assert [text.partition(":")[0] for text in missed] == [f"queue depth {number}" for number in range(50, 2001, 50)]
    assert rest == "1,960 more loads were measured: the report has each."


def test_searches_at_every_block_and_mix_are_a_matrix() -> None:
    manifest, points = run_of("profile")
    (answer,) = manifest["answers"]
    manifest["answers"] = [
        answer
        | {
            "workload": answer["workload"] | {"block_bytes": block, "read_share": share},
            "max": answer["max"] | {"iops": block / 8 * share},
        }
        for block in (8192, 65536)
        for share in (1.0, 0.7)
    ]
    manifest["verdict"] = []

    said, matrix = answer_of(manifest, points)

    assert isinstance(said, Paragraph)
    assert said.text.endswith("; the load generator itself was the bottleneck in 4 of 4.")
    assert isinstance(matrix, Table)
    assert [column.title for column in matrix.columns] == ["block", "100 % reads", "70 % reads"]
    assert [[cell.text for cell in row] for row in matrix.rows] == [
        ["8 KiB", "1,024", "717"], ["64 KiB", "8,192", "5,734"],
    ]  # fmt: skip


@pytest.mark.parametrize("verdict", [[], None])
def test_a_run_without_a_verdict_says_that_nothing_was_measured(verdict: Any) -> None:
    assert answer_of({"verdict": verdict, "answers": []}, []) == [Paragraph(NOTHING)]


def test_a_study_is_sentences_and_a_table_without_cells_of_verdicts() -> None:
    one = {"part": "a", "place": 0, "title": "A", "workload": "w", "load": "", "values": {}, "reason": "",
           "limited_by": "cpu<80%", "levels": {"f": "a"}}  # fmt: skip
    study = {"title": "T", "question": "Why?", "sentences": ["It is so."], "published": [], "factors": [],
             "results": [one], "comparisons": [], "comparison": None}  # fmt: skip
    asked = {"question": "A: w", "limit": "cpu<80%", "value": 0.9, "met": False, "meaning": "x", "point_id": "p1"}
    failed = {"question": "integrity", "limit": None, "value": 2, "met": False, "meaning": "FAILED", "point_id": None}

    title, said, levels, lost = answer_of({"study": study, "verdict": [asked, failed]}, [])

    assert (title, said) == (Paragraph("T: Why?", strong=True), Bullets(["It is so."]))
    assert isinstance(levels, Table)
    assert [cell.text for cell in levels.rows[0]][-1] == "cpu<80%"
    assert lost == Paragraph("Integrity: FAILED.", tone="bad")


def test_a_point_without_a_figure_of_its_own_is_no_limit() -> None:
    manifest, points = run_of("oltp")
    own = next(line for line in manifest["verdict"] if line["point_id"] and not line["limit"])
    own |= {"value": None, "met": None, "meaning": "3 of 22 queries in 0.29 s; no score"}

    told = " ".join(texts(manifest, points[:1]))

    assert "None" not in told
    assert "4 of 5 limits met" in told

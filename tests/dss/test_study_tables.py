"""Queries of a study side by side: a row each, a column a level, and their mean."""

from __future__ import annotations

from typing import Any

from assay.record.source import RunFacts
from assay.report.sections.study import study_shown
from assay.workloads.tpch.report.study import study_tables


def point(name: str, repeat: int, seconds: dict[int, float]) -> dict[str, Any]:
    queries = [{"query": number, "seconds": value, "ended_by": "done"} for number, value in seconds.items()]
    return {
        "id": f"{name}-{repeat}", "part": name, "clock": "wall", "load": {},
        "workload": {"kind": "tpch", "name": "tpch"},
        "dss": {"test": "power", "streams": 1, "run": 1, "queries": queries},
        "telemetry": {"cpu_share": 0.5 * repeat, "iowait_share": 0.1, "memory_available_bytes": 2.0**30},
    }  # fmt: skip


def facts(points: list[dict[str, Any]]) -> RunFacts:
    results = [
        {"part": name, "title": name, "levels": {"f": name}, "workload": "tpch", "load": None, "place": 0, "series": "",
         "values": {}, "limited_by": None, "reason": "",
         "point_ids": [one["id"] for one in points if one["part"] == name]}
        for name in dict.fromkeys(one["part"] for one in points)
    ]  # fmt: skip
    levels = [{"key": one["part"], "label": one["title"]} for one in results]
    factor = {"name": "f", "title": "level", "of": "plan", "ordered": False, "levels": levels}
    study = {
        "title": "S",
        "question": "?",
        "factors": [factor],
        "comparison": None,
        "results": results,
        "sentences": [],
    }
    return RunFacts(manifest={"study": study, "parts": []}, points=points)  # type: ignore[arg-type,typeddict-item]


POINTS = [
    point("rows", 1, {1: 2.0, 14: 4.0}), point("rows", 2, {1: 4.0, 14: 4.0}),
    point("columns", 1, {1: 1.0, 6: 9.0, 14: 3.0}),
]  # fmt: skip


def test_each_query_has_a_row_with_its_time_at_every_level_and_the_mean_is_of_those_all_have() -> None:
    (table,) = study_tables(facts(POINTS))

    assert [column.title for column in table.columns] == ["Query", "rows", "columns"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "3 s", "1 s"], ["6", "-", "9 s"], ["14", "4 s", "3 s"], ["mean", "3.5 s", "2 s"],
    ]  # fmt: skip
    assert "power; the last row is the mean of the 2 that ended at every level" in table.caption


def test_processors_and_memory_of_the_host_stand_beside_each_other_by_level() -> None:
    made = facts(POINTS)
    tables = {getattr(block, "name", ""): block for block in study_shown(made, made.manifest["study"], [])}  # type: ignore[arg-type,typeddict-item]

    rows = [[cell.text for cell in row] for row in tables["levels-host"].rows]  # type: ignore[union-attr]
    assert rows == [["rows", "75 %", "10 %", "1 GiB"], ["columns", "50 %", "10 %", "1 GiB"]]

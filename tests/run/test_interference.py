"""What is said of a load beside another, and of storage of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.insight.studies.interference import interference_findings, over_repeats, sentences_of
from assay.insight.studies.result import StudyResult
from assay.workloads.tpch.beside import slowdown

STUDY = {"comparison": {"by": "queries", "figure": "nopm"}, "factors": [{"name": "queries", "of": "beside"}]}


def result(part: str, nopm: float) -> StudyResult:
    return StudyResult(
        part=part, levels={"queries": part}, title=part, workload="hammerdb", load=None, place=0,
        point_ids=(f"p-{part}",), values={"nopm": (nopm, (nopm * 0.98, nopm * 1.02))},
    )  # fmt: skip


def point(part: str, told: dict[str, Any] | None, cpu: float) -> Any:
    return {"id": f"p-{part}", "telemetry": {"cpu_share": cpu}} | ({"beside": told} if told else {})


def told(factor: float | None, *, ends: list[float] | None = None) -> dict[str, Any]:
    return {
        "kind": "tpch", "title": "2 streams of queries", "target": ["embedded:/x"], "streams": 2, "scale": 1,
        "alone": {"queries": 44, "mean_s": 1.0}, "together": {"queries": 30, "mean_s": factor},
        "slowdown": factor, "slowdown_95": ends,
    }  # fmt: skip


def found(values: dict[str, float], cpu: float, *, apart: bool = True) -> list[str]:
    names = ["same", *(["apart"] if apart else [])]
    parts: list[Any] = [{"name": "none"}, *({"name": one, "beside": {"name": f"beside, {one}"}} for one in names)]
    points = [point("none", None, 0.3)] + [point(one, told(2.5, ends=[2.1, 3.0]), cpu) for one in names]
    results = [result(part["name"], values[part["name"]]) for part in parts]
    return sentences_of(interference_findings(STUDY, parts, points, results))


def test_what_separating_brings_is_the_levels_apart_and_the_processors_are_said_to_be_shared() -> None:
    sentences = found({"none": 10_000, "same": 4_000, "apart": 9_500}, 0.4)
    assert sentences == [
        "Same: a query takes 2.50 times as long as alone (95 % interval 2.10 to 3.00); 30 queries together, 44 alone.",
        "Apart: a query takes 2.50 times as long as alone (95 % interval 2.10 to 3.00); 30 queries together, 44 alone.",
        "Separating the storage brings 2.38 times (2.31 to 2.44) NOPM.",
    ]
    nothing = found({"none": 10_000, "same": 4_000, "apart": 4_010}, 0.98)[-1]
    assert nothing.startswith("Separating the storage brings nothing that was found: +0.2 % +- ")
    assert nothing.endswith("and a host of its own for one would bring what storage cannot.")


def test_nothing_is_said_of_levels_that_are_no_result() -> None:
    parts: list[Any] = [{"name": one, "beside": {"name": one}} for one in ("same", "apart")]
    points = [point(one, told(2.5, ends=[2.1, 3.0]), 0.3) for one in ("same", "apart")]
    results = [replace(result("same", 4_000), reason="the served array was overdriven"), result("apart", 9_500)]

    first, _, last = sentences_of(interference_findings(STUDY, parts, points, results))

    assert first == "Same: nothing can be said of what the queries lose: the served array was overdriven."
    assert last == "What other storage brings cannot be told: a level has no result."
    once = [replace(result(one, nopm), one_run=True) for one, nopm in (("same", 4_000), ("apart", 5_000))]
    assert sentences_of(interference_findings(STUDY, parts, points, once))[-1].startswith(
        "Whether separating the storage brings anything is not known (--repeats 3 tells): +25 % +- "
    )


def test_without_other_storage_that_is_said() -> None:
    sentences = found({"none": 10_000, "same": 4_000}, 0.4, apart=False)
    assert sentences[-1] == "What other storage would bring was not measured: at most what both lose together."


def test_every_repeat_counts() -> None:
    measured = [(2.0, [1.9, 2.1], 0.3), (4.0, [3.8, 4.2], 0.5)]
    repeats = [point("same", told(factor, ends=ends), cpu) | {"id": f"p{number}"}
               for number, (factor, ends, cpu) in enumerate(measured)]  # fmt: skip
    parts: list[Any] = [{"name": "none"}, {"name": "same", "beside": {"name": "beside, same"}}]
    pooled = replace(result("same", 4_000), point_ids=("p0", "p1"))
    (one,) = interference_findings(STUDY, parts, repeats, [result("none", 10_000), pooled])
    assert one["slowdown"] == pytest.approx(8**0.5)
    # It covers both repeats, which differ by more than either is unsure.
    assert one["slowdown_95"] == [2.0, 4.0]
    assert (one["alone"]["queries"], one["together"]["queries"]) == (88, 60)
    assert one["together"]["mean_s"] == 3.0
    assert one["cpu_share"] == pytest.approx(0.4)
    assert one["sentences"][0] == (
        "same: a query takes 2.83 times as long as alone (95 % interval 2.00 to 4.00); 60 queries together, 88 alone,"
        " in 2 repeats."
    )


def test_repeats_without_intervals_give_one_by_how_they_differ() -> None:
    told_of = over_repeats([told(2.0), told(2.2), told(None)])
    low, high = told_of["slowdown_95"]
    assert low < 2.0 < told_of["slowdown"] < 2.2 < high
    assert over_repeats([told(None), told(None)])["slowdown"] is None
    alone = told(2.0)
    assert over_repeats([alone]) is alone


def test_queries_are_compared_number_by_number() -> None:
    def query(number: int, seconds: float, ended_by: str = "done") -> dict[str, Any]:
        return {"query": number, "seconds": seconds, "ended_by": ended_by}

    alone = [query(1, 1.0), query(1, 3.0), query(6, 0.5), query(9, 8.0)]
    # Query 9 never ended beside the other load: its eight seconds count on neither side.
    together = [query(1, 8.0), query(6, 1.0), query(6, 3.0), query(9, 60.0, "timeout")]
    answer = slowdown(alone, together)
    assert answer["slowdown"] == 4.0
    assert answer["slowdown_95"] is None
    assert answer["alone"] == {"queries": 4, "mean_s": 1.25}
    assert answer["together"] == {"queries": 3, "mean_s": 5.0}
    assert slowdown(alone, [])["slowdown"] is None
    three = slowdown([*alone, query(10, 1.0)], [*together, query(10, 4.0)])
    assert three["slowdown_95"] == [4.0, 4.0]

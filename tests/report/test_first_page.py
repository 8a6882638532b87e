"""The first page: one sentence, one picture, what limits it, where to run it, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sample import Sample, io
from sample_oltp import run
from shown import facts_of, section, table, texts

from assay.document.elements import Document, FigureElement
from assay.record.limits import parse_limits
from assay.record.shapes.need import AskedNeed
from assay.record.source import RunFacts
from assay.report.assemble import assemble
from assay.report.figures_limits import BARS_MAX
from assay.report.sections.summary import NO_LIMIT, limits_met
from assay.report.standings import Standing, standings
from assay.run.needed import judged_need
from assay.workloads.registry import workloads

NEED: AskedNeed = {
    "source": "--need", "limits": ["read.p99<2ms"], "part": "need",
    "streams": [{"role": "data", "rate": 5000.0, "block_bytes": 8192, "read_share": 0.7, "random_share": 1.0}],
}  # fmt: skip
KNEE = {"outstanding": 8, "iops": 1500.0, "bytes_per_s": 12.3e6, "point_id": "p0004"}


def standing(met: bool | None, excuse: str = "") -> Standing:
    return Standing(question="log", met=met, limit=parse_limits(["log.write.p99<=2ms"])[0], value=3e6, excuse=excuse)


def searched(**answer: Any) -> tuple[Sample, dict[str, Any]]:
    sample = Sample(4)
    sample.search("oltp", io(8192, 0.7, "8 KiB random 70/30"))
    sample.answers[0].update(answer)
    return sample, {}


def page(made: tuple[Sample, dict[str, Any]]) -> list[str]:
    return texts(section(assemble(facts_of(made)), "summary"))


def picture(document: Document) -> list[dict[str, Any]]:
    figure = next(block for block in section(document, "summary").blocks if isinstance(block, FigureElement))
    chart = figure.chart.to_dict()
    values: list[dict[str, Any]] = chart["datasets"][chart["layer"][0]["data"]["name"]]
    return values


def stand(facts: RunFacts) -> list[Standing]:
    return standings(facts, {one: one.remarks(facts) for one in workloads() if facts.points_of(one.kind)})


@pytest.mark.parametrize(
    ("found", "first"),
    [
        ([standing(True)], "1 of 1 limit met."),
        ([standing(True), standing(False)], "1 of 2 limits met; missed: log (log write p99 3.00 ms, "),
        ([standing(True), standing(False, "shared")], "1 of 2 limits met; missed: log ("),
        ([standing(False), standing(False, "shared")], "0 of 2 limits met"),
        ([standing(True), Standing(question="net", met=None)], "1 of 2 limits met; unknown: net."),
        ([Standing(question="net", met=None)], "1 limit unknown: net."),
    ],
)
def test_the_first_sentence_says_how_the_limits_stand(found: list[Standing], first: str) -> None:
    assert limits_met(found).startswith(first)


def test_limits_that_are_met_do_not_hide_wrong_data() -> None:
    assert limits_met([standing(True)], wrong=True) == "1 of 1 limit met; but the data are wrong."


def test_good_enough_is_said_of_a_need_alone() -> None:
    sample, fields = searched()
    said = page((sample, fields | {"verb": "profile"}))
    assert "good enough" not in " ".join(said).lower()
    assert said[1].startswith("Whether that is enough is not said, for no need was stated: ")
    assert not any("--" in text or "`" in text for text in said)

    need = judged_need({**NEED, "part": sample.answers[0]["part"]}, [])
    said = page((sample, fields | {"verb": "profile", "need": need}))
    assert said[0] == (
        "Whether it is good enough for the need of 5,000 IOPS of 8 KiB, 70/30 random within read.p99<2ms is"
        " not known: it was not measured to its end."
    )
    assert said[said.index("What to do next") + 1 :].count("For the need: measure it to its end.") == 1
    assert not any("no need was stated" in text for text in said)


def test_many_missed_limits_are_counted_once_the_first_are_named() -> None:
    missed = [replace(standing(False), question=f"log {number}") for number in range(5)]
    assert limits_met(missed).endswith("and 2 more.")
    assert limits_met([Standing(question="mix", met=None)] * 5).endswith("unknown: mix.")


def test_the_page_answers_in_the_order_a_buyer_asks() -> None:
    found = page(searched())
    asked = ["What it holds", "What limits it", "Where to run it", "What to do next"]
    assert found[0] == "1 of 1 limit met."
    assert [text for text in found if text in asked] == asked
    assert table(assemble(facts_of(searched())), "verdict-table").rows


@pytest.mark.parametrize(("ratio", "what"), [(0.5, "met"), (1.5, "missed")])
def test_a_bar_is_the_share_of_its_limit(ratio: float, what: str) -> None:
    sample = Sample(4)
    sample.verdict.append({"question": "q", "limit": "write.mean<=4ms", "value": ratio * 4e6, "unit": "ns",
                           "met": ratio <= 1, "meaning": "", "point_id": None})  # fmt: skip
    (bar,) = picture(assemble(facts_of((sample, {}))))
    assert (bar["share"], bar["shown"], bar["state"]) == (ratio, 100 * ratio, what)
    assert ("✗" in bar["text"]) == (what == "missed")


def test_a_lower_bound_is_missed_beyond_the_line() -> None:
    limit = parse_limits(["read.iops>=1000"])[0]
    assert Standing(question="q", met=False, limit=limit, value=500.0).share == 2.0


def test_the_picture_has_the_worst_eight_and_equal_questions_once() -> None:
    sample = Sample(4)
    for number in (*range(12), 11):
        sample.verdict.append({"question": f"q{number}", "limit": "write.mean<=4ms", "value": number * 1e5,
                               "unit": "ns", "met": True, "meaning": "", "point_id": None})  # fmt: skip
    bars = picture(assemble(facts_of((sample, {}))))
    assert [bar["label"].split(":")[0] for bar in bars] == [f"q{number}" for number in range(11, 11 - BARS_MAX, -1)]


def test_the_bar_of_an_answer_is_the_worst_value_at_its_point() -> None:
    sample, fields = searched()
    (found,) = stand(facts_of((sample, fields)))
    best = next(point for point in sample.points if point["id"] == sample.answers[0]["max"]["point_id"])
    assert found.value == max(limit["value"] for limit in best["limits"])


def test_the_value_shown_of_a_search_is_the_one_by_which_it_was_judged() -> None:
    sample, fields = searched()
    best = sample.answers[0]["max"]
    # The first of its repeats was above the limit; all of them together are not.
    point = next(point for point in sample.points if point["id"] == best["point_id"])
    point["limits"] = [{"limit": "read.mean<=20ms", "scope": "data", "value": 20.4e6, "unit": "ns", "met": False}]
    best["limiting"] = {"limit": "read.mean<=20ms", "scope": "data", "share": 0.99, "interval_95": [0.95, 1.03]}
    (found,) = stand(facts_of((sample, fields)))
    assert (found.met, found.value) == (True, 0.99 * 20e6)


def test_a_search_that_ends_at_its_limit_has_no_bar_there() -> None:
    sample, fields = searched()
    assert not any(
        isinstance(one, FigureElement) for one in section(assemble(facts_of((sample, fields))), "summary").blocks
    )

    sample.verdict.append({"question": "q", "limit": "write.mean<=4ms", "value": 1e6, "unit": "ns", "met": True,
                           "meaning": "", "point_id": None})  # fmt: skip
    document = assemble(facts_of((sample, fields)))
    assert [bar["label"].partition(":")[0] for bar in picture(document)] == ["q"]
    (figure,) = [one for one in section(document, "summary").blocks if isinstance(one, FigureElement)]
    assert "1 search ends at its limit by design, and has no bar" in figure.caption


def test_a_limit_that_was_not_measured_takes_no_value_of_another() -> None:
    sample, fields = run()
    (point,) = sample.points
    missed = {"limit": "cpu<80%", "scope": "server", "value": 0.99, "unit": "share", "met": False}
    point["limits"] = [{"limit": "read.mean<=20ms", "scope": "data", "value": None, "unit": "ns", "met": None}, missed]
    sample.verdict = [
        {"question": "hammerdb", "meaning": "not measured", "point_id": point["id"], **limit}
        for limit in point["limits"]
    ]

    read, cpu = stand(facts_of((sample, fields)))

    assert (read.met, read.value) == (None, None)
    assert (cpu.met, cpu.value) == (False, 0.99)
    (bar,) = picture(assemble(facts_of((sample, fields))))
    assert (bar["text"][0], bar["state"]) == ("✗", "missed")


def test_a_search_that_only_the_load_generator_ended_was_not_measured() -> None:
    sample, fields = searched(max=None, limited_by="generator")
    sample.verdict[0].update(met=False, value=None, point_id=None)
    found = page((sample, fields))
    assert found[0] == "1 limit unknown: 8 KiB random 70/30."
    assert any("not measured, because the load generator" in text for text in found)
    assert any("measure again from a host" in text for text in found)


def cpu_missed(cpu_each_ns: float, *, is_local: bool) -> Any:
    """A run whose server misses the limit on its CPU, while the load used so much of the host for a transaction."""
    sample, fields = run()
    point = sample.points[-1]
    for found in (point["oltp"], fields["oltp"]):
        found["client_cpu_ns_per_transaction"] = cpu_each_ns
    missed = {"limit": "cpu<80%", "scope": "server", "value": 0.95, "unit": "share", "met": False}
    point["limits"] = [missed]
    sample.verdict[:] = [{"question": "tpcc", "meaning": "", "point_id": point["id"]} | missed]
    fields["target"]["databases"] = [one | {"is_local": is_local} for one in fields["target"]["databases"]]
    return assemble(facts_of((sample, fields)))


@pytest.mark.parametrize("is_local", [True, False])
def test_the_cpu_that_load_and_database_share_is_not_the_storages_fault(*, is_local: bool) -> None:
    document = cpu_missed(5e6, is_local=is_local)
    found = texts(section(document, "summary"))
    assert sum("share this host" in text for text in found) == is_local
    assert any(text.startswith("Run the load from another host") for text in found) == is_local
    assert found[0].endswith("; what is missed is not the storage's fault.") == is_local
    assert picture(document)[0]["state"] == ("missed, not by the storage" if is_local else "missed")


def test_a_load_that_takes_next_to_nothing_excuses_no_missed_cpu() -> None:
    document = cpu_missed(21_400.0, is_local=True)
    found = texts(section(document, "summary"))
    assert not any("share this host" in text or "from another host" in text for text in found)
    assert "not the storage's fault" not in found[0]
    assert picture(document)[0]["state"] == "missed"
    (said,) = [text for text in found if text.startswith("The processors of this host are busier")]
    assert "How much of that is the database's is not known" in said
    assert "what sessions waited for was not recorded" in said


def test_where_to_run_is_the_smallest_load_with_nearly_the_most() -> None:
    sample, fields = searched()
    said = next(text for text in page((sample, fields)) if "which gives" in text)
    most = sample.answers[0]["max"]["iops"]
    enough = [one for one in sample.points if one["total"]["iops"] >= 0.95 * most]
    assert f"[{enough[0]['id']}]" in said
    assert f"{enough[0]['load']['outstanding']} outstanding I/Os" in said


def test_a_load_that_another_search_tried_and_missed_is_no_advice() -> None:
    sample, fields = searched()
    sample.search("oltp", io(65536, 0.7, "64 KiB random 70/30"))
    sample.points[-1]["limits"] = [
        {"limit": "write.max<=1ms", "scope": "data", "value": 2e6, "unit": "ns", "met": False}
    ]
    assert not any("write.max" in text for text in page((sample, fields)))


def test_a_recorded_knee_is_taken_at_its_word() -> None:
    assert any("8 outstanding" in text and "[p0004]" in text for text in page(searched(knee=KNEE)))


@pytest.mark.parametrize(("point_id", "is_said"), [("p0005", True), ("p0004", False)])
def test_how_far_the_limits_are_met_is_said_beside_where_to_run(point_id: str, *, is_said: bool) -> None:
    found = page(searched(knee=KNEE, edge=KNEE | {"outstanding": 640, "point_id": point_id}))
    assert any("limits met up to 640 outstanding" in text for text in found) == is_said


@pytest.mark.parametrize(
    ("limited_by", "limiting", "next_step"),
    [
        ("read.mean<=20ms", "with more load it misses read.mean", "add devices or paths"),
        ("read.p99<=20ms", "with more load it misses read.p99", "add devices or paths"),
        ("log.write.mean<=5ms", "with more load it misses log.write.mean", "give it a device of its own"),
        ("saturation", "throughput stops rising", "add devices or paths"),
        ("axis end", "nothing was found that limits it", "with a higher largest load"),
        ("generator", "that makes the load), not the storage,", "from a host with more or idle processors"),
    ],
)
def test_what_ended_a_search_is_said_with_what_to_do(limited_by: str, limiting: str, next_step: str) -> None:
    found = page(searched(limited_by=limited_by))
    assert limiting in found[found.index("What limits it") + 1]
    assert next_step in found[found.index("What to do next") + 1]


@pytest.mark.parametrize(
    ("p50_ms", "p99_ms", "said"),
    [
        (6.4, 14.3, "read.p99 ≤ 2ms: half of all reads take over 6.40 ms; add devices or paths"),
        (0.2, 14.3, "read.p99 ≤ 2ms: a few I/Os wait far longer than the rest; find what stalls them"),
        (1.5, 3.0, "read.p99 ≤ 2ms: to hold more within it, add devices or paths"),
    ],
)
def test_a_few_waits_are_blamed_only_where_the_rest_is_fast(p50_ms: float, p99_ms: float, said: str) -> None:
    sample, fields = searched(limited_by="read.p99<=2ms")
    for point in sample.points[-2:]:
        point["limits"] = [
            {"limit": "read.p99<=2ms", "scope": "data", "value": p99_ms * 1e6, "unit": "ns", "met": False}
        ]
        point["read"]["latency_ns"] |= {"p50": p50_ms * 1e6, "p99": p99_ms * 1e6}
    told = [text.replace("\xa0", " ") for text in page((sample, fields))]
    assert sum(text.startswith(said) for text in told) == 1


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "assay.data in /srv/db on db07"),
        ({"kind": "device", "path": "/dev/vda"}, "/dev/vda on db07"),
        ({"kind": "null", "file_system": None, "device": None, "path": None}, "f on db07"),
        ({"kind": "model", "model": "ps6100xv"}, "ps6100xv"),
    ],
)
def test_the_heading_is_the_title_of_the_run(changes: dict[str, Any], name: str) -> None:
    sample, fields = searched()
    target = sample.manifest()["target"]
    fields["target"] = {**target, "volumes": [target["volumes"][0] | changes]}
    document = assemble(facts_of((sample, fields)))
    assert document.title == f"{name}: whole examination"
    assert ("/srv/db/assay.data" in document.facts_line) == ("path" not in changes)


def measured(*lines: dict[str, Any]) -> tuple[Sample, dict[str, Any]]:
    sample = Sample(4)
    sample.random_point("custom", io(8192, 0.7, "8 KiB random 70/30"), 8, 20.0)
    for line in lines:
        sample.verdict.append(
            {"question": "8 KiB random 70/30", "point_id": "p0001", "met": None, "limit": None, **line}
        )
    return sample, {"verb": "profile"}


def test_points_without_a_search_are_told_on_the_first_page() -> None:
    said = page(measured({"value": 1100.0, "unit": "iops", "meaning": "1,100 IOPS at a mean latency of 7.00 ms"}))

    assert said[0] == NO_LIMIT
    assert said[2:4] == ["What was found", "8 KiB random 70/30: 1,100 IOPS at a mean latency of 7.00 ms [p0001]."]


def test_points_that_were_judged_say_what_they_gave_as_well() -> None:
    limit = {"limit": "read.mean<=20ms", "value": 7e6, "unit": "ns", "met": True, "meaning": "read mean is 7.00 ms"}
    said = page(measured(limit))

    assert said[0] == "1 of 1 limit met."
    assert any(text.startswith("8 KiB random 70/30: ") and " IOPS, " in text and "p99" in text for text in said)


def test_limits_of_many_volumes_are_told_by_the_first_and_the_worst() -> None:
    lines = [
        {"limit": "read.mean<=20ms", "value": mean * 1e6, "unit": "ns", "met": mean <= 20, "meaning": f"v{mean}"}
        for mean in (12, *range(10, 22))
    ]
    rows = table(assemble(facts_of(measured(*lines))), "verdict-table").rows

    assert [row[-1].text for row in rows] == ["v12", "v21; the worst of 12, 1 of which is missed"]


def test_a_line_with_a_limit_of_its_own_is_no_line_of_a_search() -> None:
    sample, fields = searched()
    best = sample.answers[0]["max"] | {"limiting": {"limit": "read.mean<=20ms", "share": 0.99}}
    sample.answers[0]["max"] = best
    sample.verdict.append({"question": "response", "limit": "write.mean<=20ms", "value": 1e6, "unit": "ns", "met": True,
                           "meaning": "", "point_id": best["point_id"]})  # fmt: skip

    (own,) = [one for one in stand(facts_of((sample, fields))) if one.question == "response"]

    assert own.limit is not None
    assert (own.limit.text, own.value, own.searched) == ("write.mean<=20ms", 1e6, False)


def test_what_a_bar_bounds_is_never_cut() -> None:
    limit = {"question": "Transactions on PostgreSQL: TPC-C-like, hammerdb", "limit": "read.mean<=20ms",
             "value": 7e6, "unit": "ns", "met": True, "meaning": ""}  # fmt: skip
    (bar,) = picture(assemble(facts_of(measured(limit))))

    assert bar["label"].endswith(": read mean")
    assert len(bar["label"]) <= 50


def test_a_largest_value_alone_has_no_course_over_percentiles() -> None:
    made = measured()
    for side in ("read", "write"):
        latency = made[0].points[0][side]["latency_ns"]
        latency |= {name: None for name in latency if name not in ("mean", "max")}

    assert "percentiles" not in [part.name for part in assemble(facts_of(made)).sections]

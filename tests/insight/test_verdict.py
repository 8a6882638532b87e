"""The verdict: one line for what was asked, the limit, the value, met or not, and what it means."""

from __future__ import annotations

from typing import Any

import pytest

from assay.record.judgement import judge, verdict_of
from assay.record.limits import parse_limits
from assay.run.verdict import verdict_lines, with_parts
from assay.workloads.io.plan import IoPlan
from assay.workloads.plan import Part


def figures(iops: float = 5000.0, block_bytes: int = 8192, mean_ns: float = 400e3) -> dict[str, Any]:
    return {"iops": iops, "bytes_per_s": iops * block_bytes, "latency_ns": {"mean": mean_ns}}


def point(**change: Any) -> dict[str, Any]:
    return {
        "id": "p0001",
        "part": "oltp",
        "workload": {"name": "8 KiB random 70/30", "role": "data"},
        "load": {"queue_depth": 4, "workers": 1, "outstanding": 4},
        "limits": [],
        "total": figures(),
        "bursts": None,
        "ended_by": "time",
    } | change


def limit(met: bool | None, value: float | None = 400e3, scope: str = "data") -> dict[str, Any]:
    return {"limit": "read.mean<=20ms", "scope": scope, "value": value, "unit": "ns", "met": met}


def answer(**change: Any) -> dict[str, Any]:
    end = {"outstanding": 96, "iops": 21_300.0, "bytes_per_s": 21_300 * 8192.0, "point_id": "p0007"}
    return {
        "workload": {"name": "8 KiB random 70/30"}, "axis": "outstanding", "limits": ["read.mean<=20ms"], "max": end,
        "limited_by": "read.mean<=20ms", "point_ids": ["p0001", "p0007"], "part": "oltp",
    } | change  # fmt: skip


def parts(*titles: str) -> list[Part[IoPlan]]:
    return [Part(name=title[0], title=title, plan=IoPlan()) for title in titles]


class TestParts:
    """Two parts may ask the same of two databases: in a run of several the question names the part."""

    lines = verdict_lines([point(part="a"), point(part="b", id="p0002")], [])

    def test_a_question_begins_with_the_title_of_its_part(self) -> None:
        named = with_parts(self.lines, parts("a store", "b store"), always=False)

        assert [line["question"] for line in named] == [
            "a store: 8 KiB random 70/30, queue depth 4",
            "b store: 8 KiB random 70/30, queue depth 4",
        ]

    def test_a_run_of_one_part_needs_no_names(self) -> None:
        assert with_parts(self.lines, parts("a store"), always=False) == self.lines

    def test_a_study_names_its_levels(self) -> None:
        first, _ = with_parts(self.lines, parts("a store"), always=True)
        assert first["question"] == "a store: 8 KiB random 70/30, queue depth 4"

    def test_a_name_that_says_it_is_not_said_twice(self) -> None:
        (line,) = verdict_lines([point(workload={"name": "b store, mixed"}, part="b")], [])

        (named,) = with_parts([line], parts("a store", "b store"), always=False)
        assert named["question"] == "b store, mixed, queue depth 4"


class TestSearches:
    def test_one_line_says_how_much_is_held(self) -> None:
        (line,) = verdict_lines([], [answer()])

        assert {key: line[key] for key in ("question", "limit", "value", "unit", "met", "point_id")} == {
            "question": "8 KiB random 70/30", "limit": "read.mean<=20ms", "value": 21_300.0, "unit": "iops",
            "met": True, "point_id": "p0007",
        }  # fmt: skip
        for word in ("21,300 IOPS", "96 outstanding", "166 MiB/s"):
            assert word in line["meaning"]

    @pytest.mark.parametrize(
        ("limited_by", "met", "said"),
        [
            ("read.mean<=20ms", False, "no load tried met the limits (read.mean<=20ms)"),
            ("rate not sustained", False, "no load tried met the limits (rate not sustained)"),
            ("generator", None, "unknown: the load generator was the bottleneck; give the generator more processors"),
            ("hosts apart", None, "unknown: its hosts measured too far apart; measure longer points"),
            ("no I/O ended", None, "unknown: no I/O ended; measure longer points"),
        ],
    )
    def test_no_load_is_missed_or_unknown_with_its_reason(self, limited_by: str, met: bool | None, said: str) -> None:
        (line,) = verdict_lines([], [answer(max=None, limited_by=limited_by)])

        assert (line["met"], line["value"], line["point_id"], line["asked"]) == (met, None, None, True)
        assert said in line["meaning"]

    def test_a_rate_is_told_as_arrivals(self) -> None:
        end = {"rate": 4800.0, "iops": 4799.0, "bytes_per_s": 1e7, "point_id": "p0001"}
        (line,) = verdict_lines([], [answer(max=end, axis="rate")])

        assert "at 4,800 arrivals per s" in line["meaning"]

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            ("saturation", "more load brings no more"),
            ("axis end", "the largest load tried"),
            ("generator", "the load generator limits"),
        ],
    )
    def test_what_is_no_limit_of_the_storage_is_said(self, reason: str, said: str) -> None:
        (line,) = verdict_lines([], [answer(limited_by=reason)])

        assert said in line["meaning"]

    def test_their_points_have_no_lines_of_their_own(self) -> None:
        points = [point(), point(id="p0002")]

        assert [line["point_id"] for line in verdict_lines(points, [answer()])] == ["p0007", "p0002"]

    def test_a_search_without_limits_has_none(self) -> None:
        (line,) = verdict_lines([], [answer(limits=[])])

        assert line["limit"] is None


def end(outstanding: int, iops: float, **change: Any) -> dict[str, Any]:
    return {"outstanding": outstanding, "iops": iops, "bytes_per_s": iops * 8192.0, "point_id": "p0001",
            "read_latency_mean_ns": 6.4e6, "write_latency_mean_ns": None} | change  # fmt: skip


class TestKneeAndEdge:
    def test_the_sentence_says_where_to_run_and_how_far_the_limits_hold(self) -> None:
        (line,) = verdict_lines([], [answer(max=end(256, 39_761.0), knee=end(128, 38_000.0), edge=end(640, 37_556.0))])

        assert line["meaning"].startswith("holds 39,761 IOPS at 256 outstanding (")
        assert "; knee 38,000 IOPS at 128 outstanding (read mean 6.40 ms)" in line["meaning"]
        assert "; limits met up to 640 outstanding" in line["meaning"]

    def test_one_load_may_be_all_three(self) -> None:
        most = end(96, 21_300.0)
        (line,) = verdict_lines([], [answer(max=most, knee=most, edge=most)])

        assert line["meaning"].endswith("; the knee as well (read mean 6.40 ms)")

    @pytest.mark.parametrize(
        ("doubt", "words"),
        [
            ({"step_share": 0.25}, "; one step of load is 25 % at the edge; limit crossed at 3.5 outstanding"),
            ({"undecided": True}, "; repeats did not decide the edge; limit crossed at 3.5 outstanding"),
            ({}, ""),
        ],
    )
    def test_a_step_or_noise_wider_than_the_resolution_is_said(self, doubt: dict[str, Any], words: str) -> None:
        crossing = {"outstanding": 3.5, "interval_95": [3.2, 3.8]}
        (line,) = verdict_lines([], [answer(crossing=crossing, resolution_share=0.06, **doubt)])

        assert words in line["meaning"]
        assert ("(95 % interval 3.2 to 3.8)" in line["meaning"]) is bool(doubt)

    def test_repeats_that_disagree_with_the_answer_are_counted_in_its_sentence(self) -> None:
        most = end(43, 3251.0, repeats=6, repeats_met=2)
        failing = end(45, 3291.0, repeats=6, repeats_met=1)
        (line,) = verdict_lines([], [answer(max=most, edge=most, first_failing=failing)])

        assert line["met"] is True
        assert "; at 43 outstanding 2 of 6 repeats met every limit, the mean of all does;" in f"{line['meaning']};"
        assert "; at 45 outstanding 1 of 6 repeats met every limit, the mean of all does not;" in f"{line['meaning']};"

    @pytest.mark.parametrize(
        ("interval", "met"), [([0.0, 5204.0], None), ([1100.0, 5204.0], None), ([2000.0, 2700.0], True)]
    )
    def test_an_answer_that_may_be_less_than_half_of_itself_is_not_known(
        self, interval: list[float], met: bool | None
    ) -> None:
        vague = answer(max=end(1, 2352.0), interval_95=interval)
        (line,) = verdict_lines([], [vague])

        assert line["met"] is met
        assert line["meaning"].startswith("holds ") is (met is True)
        # A load met the limits: what is not known is how much more would.
        assert line["asked"] is (met is True)
        older = {"answers": [vague], "verdict": [line | {"met": True}]}
        assert [one["met"] for one in verdict_of(older)] == [met]


class TestPoints:
    def test_a_limit_is_unknown_where_the_generator_was_the_bottleneck(self) -> None:
        measured = point(generator={"saturated": True}, roles={"data": {"read": figures()}}, volumes=[])
        judged = judge(parse_limits(["read.mean<=20ms", "read.mean<=1us"]), measured)
        lines = [line for line in verdict_lines([{**measured, "limits": judged}], []) if line["limit"]]

        assert [(one["value"], one["met"]) for one in judged] == [(None, None)] * 2
        assert {line["meaning"] for line in lines} == {
            "unknown: the load generator was the bottleneck; give the generator more processors or hosts, or ask for"
            " less"
        }

    def test_a_line_for_every_limit_and_scope_that_was_judged(self) -> None:
        limits = [limit(True), limit(False, 30e6, "data/slow"), limit(None, None)]
        lines = verdict_lines([point(limits=limits)], [])

        assert [(line["met"], line["value"], line["unit"]) for line in lines] == [
            (True, 400e3, "ns"),
            (False, 30e6, "ns"),
        ]
        assert "data/slow" in lines[1]["meaning"]
        assert "30.0 ms" in lines[1]["meaning"]

    def test_throughput_where_no_limit_applies(self) -> None:
        (line,) = verdict_lines([point()], [])

        assert (line["limit"], line["met"], line["unit"], line["value"]) == (None, None, "iops", 5000.0)
        assert "5,000 IOPS" in line["meaning"]

    def test_large_blocks_count_in_bytes(self) -> None:
        (line,) = verdict_lines([point(total=figures(1000, 1 << 20))], [])

        assert (line["unit"], line["value"]) == ("bytes_per_s", 1000 * 2**20)
        assert "1,000 MiB/s (1,049 MB/s)" in line["meaning"]

    def test_a_point_in_which_nothing_ended_has_none(self) -> None:
        assert verdict_lines([point(total=None)], []) == []

    def test_an_interrupted_point_has_none(self) -> None:
        assert verdict_lines([point(ended_by="interrupted", limits=[limit(True)])], []) == []

    @pytest.mark.parametrize(
        ("load", "said"),
        [
            ({"queue_depth": 4, "workers": 2, "outstanding": 8}, "queue depth 4, 2 workers"),
            ({"queue_depth": 1, "workers": 1, "outstanding": 1}, "8 KiB random 70/30"),
            ({"rate": 5000.0, "arrivals": "constant", "workers": 1}, "at 5,000 per s"),
        ],
    )
    def test_the_question_names_the_load(self, load: dict[str, Any], said: str) -> None:
        (line,) = verdict_lines([point(load=load)], [])

        assert line["question"].endswith(said)

    def test_reads_during_and_between_bursts_are_set_against_each_other(self) -> None:
        bursts = {"count": 3, "read_during": figures(mean_ns=4e6), "read_between": figures(mean_ns=1e6)}
        line = verdict_lines([point(bursts=bursts)], [])[-1]

        assert (line["value"], line["met"]) == (4e6, None)
        for word in ("4.00 ms", "3 checkpoint bursts", "1.00 ms"):
            assert word in line["meaning"]

    def test_a_figure_of_a_saturated_point_is_the_least_that_the_storage_does(self) -> None:
        bursts = {"count": 3, "read_during": figures(mean_ns=4e6), "read_between": figures(mean_ns=1e6)}
        saturated = point(bursts=bursts, generator={"saturated": True, "reason": None})
        told, during = (line["meaning"] for line in verdict_lines([saturated], []))

        assert told.startswith("at least 5,000 IOPS")
        assert told.endswith("; the load had too little processor time, so the storage may do more")
        assert during.endswith("; the load had too little processor time, so the storage may do better")

    def test_bursts_without_reads_have_no_line(self) -> None:
        bursts = {"count": 3, "read_during": None, "read_between": figures()}

        assert len(verdict_lines([point(bursts=bursts)], [])) == 1

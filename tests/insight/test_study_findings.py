"""What a study finds, from answers and points with known figures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.studies.choice import choose_target
from assay.insight.studies.files import read_study
from assay.insight.studies.findings import compared_again, study_findings
from assay.insight.studies.follows import follows_of
from assay.insight.studies.grid import grids_of
from assay.insight.studies.parts import study_parts
from assay.insight.studies.result import ratio_95
from assay.insight.studies.words import (
    capacity_texts,
    change_text,
    comparison_rows,
    published_by_study,
    published_texts,
)

WOBBLE = (0.99, 1.01, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0)


def study(
    labels: Sequence[str], *, ordered: bool = False, baseline: str | None = None, figure: str = "iops", **more: Any
) -> dict[str, Any]:
    levels = [{"key": label, "label": label} for label in labels]
    factor = {"name": "f", "title": "the factor", "of": "target", "ordered": ordered, "levels": levels}
    comparison = {"figure": figure, "by": "f", "baseline": baseline or labels[0], "also": [], "verb": ""}
    return {
        "name": "s", "title": "S", "question": "?", "factors": [factor], "comparison": comparison, "orders": [],
        "levels": {label: {"f": label} for label in labels}, **more,
    }  # fmt: skip


def part(name: str, axis: str = "queue-depth", **more: Any) -> dict[str, Any]:
    return {"name": name, "title": name, "plan": {"search": {"axis": axis}}, **more}


def answer(name: str, iops: float | None, half: float | None = 0.02, **more: Any) -> dict[str, Any]:
    best = {"iops": iops, "bytes_per_s": (iops or 0) * 8192, "outstanding": 8, "point_id": "-"}
    return {
        "part": name, "workload": {"name": "8 KiB random 70/30"}, "max": best if iops else None,
        "interval_95": [iops * (1 - half), iops * (1 + half)] if iops and half is not None else None,
        "limited_by": "read.mean<=20ms", **more,
    }  # fmt: skip


def point(name: str, iops: float, *, read_ns: float = 1e6, **more: Any) -> dict[str, Any]:
    side = {"iops": iops, "bytes_per_s": iops * 65536, "latency_ns": {"mean": read_ns}}
    batches = {"iops": [iops * by for by in WOBBLE], "latency_mean_ns": [read_ns * by for by in WOBBLE]}
    return {
        "id": f"p-{name}", "part": name, "workload": {"name": "scan"}, "load": {"outstanding": 8}, "total": side,
        "read": side, "write": None, "batches": {"total": batches, "read": batches, "write": {}}, "ended_by": "time",
        "errors": {"count": 0}, "generator": {"saturated": False}, **more,
    }  # fmt: skip


def found(asked: dict[str, Any], answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return study_findings(asked, [part(name) for name in asked["levels"]], [], answers)


def test_a_level_is_compared_with_the_baseline() -> None:
    asked = study(["RAID 10", "RAID 50"], baseline="RAID 50")

    told = found(asked, [answer("RAID 10", 4180, 0.03), answer("RAID 50", 2960, 0.03)])

    (one,) = told["comparisons"]
    assert one["ratio"] == pytest.approx(4180 / 2960)
    # Two independent shares of 3 %, on a scale of logarithms: root 2 times 3 %, to first order.
    low, high = one["interval_95"]
    assert (high - low) / 2 / one["ratio"] == pytest.approx(0.03 * 2**0.5, rel=0.02)
    assert one["differs"] is True
    assert told["sentences"] == ["RAID 10 holds 41 % +- 6 % more IOPS than RAID 50 (4,180 against 2,960)."]


@pytest.mark.parametrize("name", ["fill", "raid-policy", "san-scaling"])
def test_capacity_and_iops_per_usable_terabyte_stand_beside_iops(name: str) -> None:
    known = read_study(name, None)
    parts, facts = study_parts(known, target=choose_target(known, None, {}))
    told = study_findings(facts, [part(one.name) for one in parts], [], [answer(one.name, 4000) for one in parts])

    for result in told["results"]:
        held = result["capacity"]
        members = int(result["levels"].get("members", 1))
        assert held["raw_bytes"] == members * 24 * 146e9 > held["usable_bytes"]
        assert held["iops_per_usable_tb"] == pytest.approx(4000 / held["usable_bytes"] * 1e12)
        assert capacity_texts(result)[2] == f"{held['iops_per_usable_tb']:,.0f}"
    assert told["sentences"][-1].startswith("IOPS per usable TB: ")


def test_the_comparison_has_a_row_for_each_level_beside_its_baseline() -> None:
    told = found(study(["RAID 10", "RAID 50"], baseline="RAID 50"), [answer("RAID 10", 4180), answer("RAID 50", 2960)])
    told |= {"comparison": {"by": "f"}}

    columns, rows = comparison_rows(told)

    assert columns == ["level", "IOPS", "95 % interval", "against baseline", "limited by"]
    assert [row[:2] for row in rows] == [["RAID 10", "4,180"], ["RAID 50", "2,960"]]
    assert rows[0][3].startswith("+41 %")
    assert rows[1][3] == "baseline"


def test_fewer_is_said_of_a_level_below_the_baseline() -> None:
    told = found(study(["40 %", "85 %"]), [answer("40 %", 5037), answer("85 %", 4175)])

    assert told["sentences"] == ["85 % holds 17 % +- 2.4 % fewer IOPS than 40 % (4,175 against 5,037)."]


def test_twice_as_much_is_said_as_a_factor() -> None:
    told = found(study(["1", "3"]), [answer("1", 1000, 0.01), answer("3", 2900, 0.01)])

    assert told["sentences"] == ["3 holds 2.90 times (2.86 to 2.94) the IOPS of 1 (2,900 against 1,000)."]


def test_no_difference_is_found_where_the_interval_holds_none() -> None:
    told = found(study(["a", "b"]), [answer("a", 1000, 0.03), answer("b", 1010, 0.03)])

    assert told["comparisons"][0]["differs"] is False
    assert told["sentences"] == [
        "No difference in IOPS was found between b and a: +1.0 % +- 4 % (1,010 against 1,000)."
    ]  # fmt: skip


def test_without_an_interval_nothing_is_called_different() -> None:
    told = found(study(["a", "b"]), [answer("a", 1000), answer("b", 1500, None)])

    assert (told["comparisons"][0]["differs"], told["comparisons"][0]["interval_95"]) == (None, None)
    assert told["sentences"] == [
        "Whether b and a differ in IOPS cannot be told, as there is no interval (--repeats 3 gives one):"
        " +50 % (1,500 against 1,000)."
    ]


def test_a_level_that_holds_nothing_is_not_compared() -> None:
    told = found(study(["a", "b"]), [answer("a", 1000), answer("b", None)])

    assert told["comparisons"][0]["ratio"] is None
    assert told["sentences"] == ["B cannot be compared with a: b: no load met the limits (read.mean<=20ms)."]


def test_a_band_of_the_model_is_said_beside_the_interval() -> None:
    banded = [answer("a", 1000, band_90=[900, 1150], band_basis="2 parameters"), answer("b", 1500)]

    told = found(study(["a", "b"]), banded)

    assert told["results"][0]["band_90"] == [900, 1150]
    assert told["sentences"][0].endswith("; the model may be off by -10 % to +15 % at a (90 % band; 2 parameters).")


def test_an_order_that_the_model_does_not_show_is_said_to_be_likely() -> None:
    basis = "calibrated to 4 points of published.toml"
    answers = [
        answer("RAID 50", 3251, band_90=[2799, 3777], band_basis=f"{basis}; none of them under RAID 50"),
        answer("RAID 6", 2481, band_90=[1874, 3284], band_basis=f"{basis}; none of them under RAID 6"),
        answer("RAID 10", 4194, band_90=[3800, 4600], band_basis=basis),
    ]
    asked = study(["RAID 50", "RAID 6", "RAID 10"])
    told = found(asked, answers)

    fewer, more = told["sentences"][:2]
    assert fewer.startswith(
        "RAID 6 likely holds 24 % +- 2.2 % fewer IOPS than RAID 50 (2,481 against 3,251), which is not shown: the"
        " model's bands overlap, and no point of its calibration is under RAID 6 or RAID 50; the model may be off by"
    )
    assert "RAID 10 likely holds" in more
    assert "bands overlap" not in more
    assert follows_of(asked | told) == [
        "Where IOPS decide, RAID 10 is likely the choice (4,194), which the model does not show: measure it first."
    ]


def test_the_failures_that_each_level_survives_stand_beside_the_advice_on_space() -> None:
    known = read_study("raid-policy", None)
    parts, facts = study_parts(known, target=choose_target(known, None, {}))
    told = study_findings(facts, [part(one.name) for one in parts], [], [answer(one.name, 4000) for one in parts])

    assert follows_of(facts | told)[-1] == (
        "Where space decides, choose RAID 50 (2.60 TB usable); disk failures in a group that lose no data:"
        " RAID 10 1, RAID 50 1 and RAID 6 2."
    )


def test_a_band_follows_the_figure_that_is_compared() -> None:
    banded = [answer("a", 1000, band_90=[900, 1150]), answer("b", 1500)]

    told = found(study(["a", "b"], figure="bytes_per_s"), banded)

    assert told["comparisons"][0]["baseline_band_90"] == pytest.approx((900 * 8192, 1150 * 8192))


@pytest.mark.parametrize(
    ("values", "direction", "sentence"),
    [
        ((3000, 2000, 1000), "fall", "IOPS fall at every step of the factor: x 3,000, y 2,000, z 1,000."),
        ((1000, 2000, 3000), "rise", "IOPS rise at every step of the factor: x 1,000, y 2,000, z 3,000."),
        (
            (1000, 1001, 3000),
            "rise",
            "IOPS rise from x to z, with 1 of 2 steps within its interval: x 1,000, y 1,001, z 3,000.",
        ),
        (
            (1000, 3000, 2000),
            None,
            "IOPS neither rise nor fall throughout and are largest at y: x 1,000, y 3,000, z 2,000.",
        ),
    ],
)
def test_a_trend_over_ordered_levels(values: Sequence[float], direction: str | None, sentence: str) -> None:
    answers = [answer(name, value) for name, value in zip("xyz", values, strict=True)]

    told = found(study(["x", "y", "z"], ordered=True), answers)

    assert told["trends"][0]["direction"] == direction
    assert told["sentences"][-1] == sentence


def test_without_an_order_the_best_level_is_named() -> None:
    answers = [answer("x", 1000), answer("y", 3000), answer("z", 2000)]

    told = found(study(["x", "y", "z"]), answers)

    assert told["sentences"][-1] == "IOPS are largest at y and least at x: x 1,000, y 3,000, z 2,000."


def test_levels_that_cannot_be_told_apart_share_their_place() -> None:
    def last(*answers: dict[str, Any]) -> str:
        return str(found(study(["x", "y", "z"]), list(answers))["sentences"][-1])

    near = last(answer("x", 1000), answer("y", 3000), answer("z", 3010))
    assert near == "IOPS are largest at y or z and least at x: x 1,000, y 3,000, z 3,010."
    alike = last(answer("x", 1000), answer("y", 1005), answer("z", 1010))
    assert alike == "No difference in IOPS was found between the levels: x 1,000, y 1,005, z 1,010."


def test_a_trend_that_the_model_does_not_show_is_said_to_be_likely() -> None:
    banded = [answer(name, iops, band_90=[0.5 * iops, 1.5 * iops], band_basis="not calibrated")
              for name, iops in (("x", 1000), ("y", 2000), ("z", 1500))]  # fmt: skip

    assert found(study(["x", "y", "z"]), banded)["sentences"][-1] == (
        "IOPS are likely largest at y and least at x, which is not shown: the model's bands overlap, and the model is"
        " not calibrated: x 1,000, y 2,000, z 1,500."
    )


class TestPoints:
    def found(self, asked: dict[str, Any], points: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return study_findings(asked, [part(name, "none") for name in asked["levels"]], points, [])

    def test_points_at_a_load_have_the_interval_of_their_batches(self) -> None:
        told = self.found(study(["1", "2"], figure="bytes_per_s"), [point("1", 1000), point("2", 1800)])

        low, high = told["results"][0]["values"]["iops"]["interval_95"]
        # Ten batches of sample variance 4 / 30,000: half = t(9) 2.262 x 1000 x sqrt(var / 10).
        assert (high - low) / 2 == pytest.approx(2.262 * 1000 * (0.0012 / 9 / 10) ** 0.5, rel=0.01)
        assert told["sentences"][0].startswith("2 reaches 80 % +- ")
        assert "(118 MB/s against 65.54 MB/s)" in told["sentences"][0]

    def test_latency_is_said_to_be_higher_or_lower(self) -> None:
        points = [point("1", 1000, read_ns=2e6), point("2", 1000, read_ns=1e6)]

        told = self.found(study(["1", "2"], figure="read_latency"), points)

        assert told["sentences"][0].startswith("2 has 50 % +- ")
        assert "lower read latency than 1 (1.00 ms against 2.00 ms)" in told["sentences"][0]

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ({"generator": {"saturated": True}}, "the load generator was the bottleneck"),
            ({"errors": {"count": 3}}, "3 I/O errors"),
            ({"ended_by": "interrupted"}, "cut short"),
            ({"total": None}, "no I/O ended"),
        ],
    )
    def test_nothing_rests_on_a_point_in_doubt(self, fault: dict[str, Any], words: str) -> None:
        told = self.found(study(["1", "2"]), [point("1", 1000), point("2", 1800) | fault])

        assert told["comparisons"][0]["differs"] is None
        assert words in told["sentences"][0]

    def test_workloads_of_a_part_are_compared_place_by_place(self) -> None:
        second = {"workload": {"name": "other"}}
        points = [point("1", 1000), point("1", 10) | second, point("2", 1500), point("2", 11) | second]

        told = self.found(study(["1", "2"]), points)

        assert [(one["series"], one["ratio"]) for one in told["comparisons"]] == [
            ("scan, 8 outstanding", 1.5), ("other, 8 outstanding", 1.1),
        ]  # fmt: skip

    def test_many_workloads_are_summed_up(self) -> None:
        points = []
        for name, gain in (("1", 1.0), ("2", 1.5)):
            for place in range(8):
                points.append(point(name, 1000 * gain**place) | {"workload": {"name": f"load {place}"}})

        told = self.found(study(["1", "2"]), points)

        assert len(told["comparisons"]) == 8
        assert told["sentences"][0].startswith("2 against 1: IOPS from +0.0 % +- ")
        assert "7 of 8 workloads differ beyond their interval." in told["sentences"][0]


class TestTransactions:
    """Points of transactions are compared by NOPM, and their storage stands beside it."""

    def point(self, name: str, nopm: float, **more: Any) -> dict[str, Any]:
        write = {"iops": 100.0, "bytes_per_s": 8e5, "latency_ns": {"mean": 4e5}}
        roles = {"data": {"read": None, "write": write, "total": write}, "log": {"write": write}}
        oltp = {"nopm": nopm, "tpm_client": nopm * 2.3, "by_transaction": {"new_order": {"latency_ns": {"p90": 5e6}}}}
        return {
            "id": f"p-{name}", "part": name, "workload": {"name": "hammerdb", "kind": "tpcc"}, "load": {"users": 8},
            "total": None, "batches": {"total": {"nopm": [nopm * by for by in WOBBLE]}}, "ended_by": "time",
            "roles": roles, "oltp": oltp, "errors": {"count": 0}, "generator": {"saturated": False}, **more,
        }  # fmt: skip

    def told(self, *points: dict[str, Any], fall: str = "") -> dict[str, Any]:
        asked = study(["nothing", "backups"], figure="nopm")
        asked["comparison"] |= {"fall": fall}
        return study_findings(asked, [part(name, "none") for name in asked["levels"]], points, [])

    def test_levels_are_compared_by_new_orders_per_minute(self) -> None:
        told = self.told(self.point("nothing", 10_000), self.point("backups", 12_000))

        assert told["sentences"] == ["Backups holds 20 % +- 1.4 % more NOPM than nothing (12,000 against 10,000)."]
        values = {name: figure["value"] for name, figure in told["results"][1]["values"].items()}
        assert values == pytest.approx({
            "nopm": 12_000, "tpm": 27_600, "nopm_lowest": 11_760, "response_p90": 5e6, "iops": 100, "bytes_per_s": 8e5,
            "write_latency": 4e5, "data_write_latency": 4e5, "log_write_latency": 4e5,
        })  # fmt: skip
        assert (told["results"][1]["load"], told["comparisons"][0]["unit"]) == ("8 users", "nopm")

    def test_a_fall_is_said_in_the_word_of_the_study(self) -> None:
        told = self.told(self.point("nothing", 10_000), self.point("backups", 8_000), fall="dip")

        assert told["sentences"] == ["NOPM dip by 20 % +- 0.9 % with backups (8,000 against 10,000)."]

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ({"errors": {"count": 3}}, "3 transactions failed"),
            ({"generator": {"saturated": True}}, "bottleneck"),
            ({"ended_by": "failed"}, "cut short"),
        ],
    )
    def test_nothing_rests_on_a_point_in_doubt(self, fault: dict[str, Any], words: str) -> None:
        told = self.told(self.point("nothing", 10_000), self.point("backups", 8_000, **fault))

        assert words in told["sentences"][0]
        assert told["comparisons"][0]["differs"] is None

    def test_the_hottest_table_is_named_once(self) -> None:
        layout = {"hottest": {"sentence": "the hottest table is stock."}}
        points = [self.point("nothing", 10_000), self.point("backups", 12_000)]
        for one in points:
            one["oltp"] |= {"layout": layout}

        assert self.told(*points)["sentences"][0] == "The hottest table is stock."
        assert len(self.told(*points)["sentences"]) == 2


def test_repeats_make_one_result_whose_interval_covers_them() -> None:
    asked = study(["a", "b"])
    asked["levels"] |= {"a #2": {"f": "a"}, "b #2": {"f": "b"}}

    told = found(asked, [answer("a", 1000), answer("b", 1500), answer("a #2", 1100), answer("b #2", 1500)])

    first = told["results"][0]
    assert len(told["results"]) == 2
    assert first["values"]["iops"]["value"] == 1050
    low, high = first["values"]["iops"]["interval_95"]
    assert low <= 1000
    assert high >= 1100


def test_over_repeats_a_ratio_is_judged_by_what_varies_within_blocks() -> None:
    """Each block is half as fast as the one before: levels differ within every block, and hardly beside that."""
    asked = study(["a", "b"])
    drift = {"": 1.0, " #2": 0.5, " #3": 0.25}
    asked["levels"] |= {f"{level}{name}": {"f": level} for level in ("a", "b") for name in drift}
    answers = [
        answer(f"{level}{name}", 1000 * factor * (1.2 + 0.01 * at if level == "b" else 1.0))
        for at, (name, factor) in enumerate(drift.items())
        for level in ("a", "b")
    ]

    (one,) = found(asked, answers)["comparisons"]
    assert one["differs"]
    assert one["ratio"] == pytest.approx(1.2, rel=0.02)
    assert 1.15 < one["interval_95"][0] < one["ratio"] < one["interval_95"][1] < 1.25


def test_three_repeats_that_vary_alike_show_no_difference() -> None:
    asked = study(["a", "b"])
    asked["levels"] |= {f"{level} #{number}": {"f": level} for level in ("a", "b") for number in (2, 3)}
    held = {"a": 1000, "b": 1150, "a #2": 1180, "b #2": 1010, "a #3": 1020, "b #3": 1190}

    (one,) = found(asked, [answer(name, iops) for name, iops in held.items()])["comparisons"]
    assert one["differs"] is False


def test_a_level_that_the_generator_limited_is_no_result_and_the_first_sentence_says_so() -> None:
    answers = [answer("a", 1000), answer("b", 1500) | {"limited_by": "generator"}, answer("c", 900)]
    told = found(study(["a", "b", "c"]), answers)

    assert told["sentences"][0] == "No result for 1 of 2 comparisons: b: the load generator was the bottleneck."
    assert [one["differs"] for one in told["comparisons"]] == [None, True]


def test_a_level_whose_served_array_was_overdriven_is_no_result() -> None:
    late = {"overdriven": True, "overdriven_s": 43, "busy_s": 43}
    points = [point("a", 1000), point("b", 1000) | {"served": [{"lateness": late}]}]
    told = study_findings(study(["a", "b"]), [part("a", "none"), part("b", "none")], points, [])

    assert told["sentences"][0] == (
        "No result: b: the served array was overdriven in 43 of 43 seconds: this host cannot serve such load in time."
    )
    assert told["comparisons"][0]["differs"] is None


def test_an_interrupted_study_says_what_it_can() -> None:
    told = found(study(["a", "b", "c"]), [answer("a", 1000)])

    assert (told["comparisons"], told["sentences"]) == ([], [])
    assert len(told["results"]) == 1


def test_a_ratio_has_no_interval_without_those_of_both_figures() -> None:
    assert ratio_95((1.0, None), (1.0, (0.9, 1.1))) is None
    assert ratio_95((1.0, (0.0, 1.1)), (1.0, (0.9, 1.1))) is None


@pytest.mark.parametrize(("ratio", "text"), [(1.0, "+0.0 %"), (0.5, "-50 %"), (2.0, "2.00 times")])
def test_changes_without_intervals(ratio: float, text: str) -> None:
    assert change_text(ratio, None) == text


ORDER = {"id": "o", "title": "It falls", "source": "S", "points": ["a", "b"], "note": ""}


class TestPublished:
    def findings(self, a: float, b: float | None, *, ratio: bool = False) -> dict[str, Any]:
        asked = study(["a", "b"], orders=[ORDER]) | {"comparison": None, "factors": [], "levels": {}}
        common = {"source": "S", "figure": "iops", "note": ""}
        parts = [
            part("a", published={**common, "id": "a", "value": 1000.0, "ratio_of": None, "fit": True}),
            part("b", published={**common, "id": "b", "value": 1.5 if ratio else 800.0, "fit": False,
                                 "ratio_of": "a" if ratio else None}),
        ]  # fmt: skip
        return study_findings(asked, parts, [], [answer("a", a), answer("b", b)])

    def test_errors_are_shares_of_the_published_figure(self) -> None:
        rows = {row["id"]: row for row in self.findings(1100, 720)["published"]}

        assert rows["a"]["error_share"] == pytest.approx(0.10)
        assert rows["b"]["error_share"] == pytest.approx(-0.10)
        assert (rows["a"]["fit"], rows["b"]["fit"]) == (True, False)
        assert rows["o"]["holds"] is True

    def test_a_ratio_is_of_the_model_over_the_model(self) -> None:
        row = self.findings(1200, 800, ratio=True)["published"][1]

        assert (row["model"], row["error_share"]) == (pytest.approx(1.5), pytest.approx(0.0))
        assert row["interval_95"][0] < 1.5 < row["interval_95"][1]

    def test_a_run_stands_beside_several_figures_and_a_range_leaves_no_error_within_it(self) -> None:
        common = {"source": "S", "figure": "iops", "note": "why", "ratio_of": None, "fit": False}
        also = [{**common, "id": "range", "title": "R", "value": 1000.0, "within": [900.0, 1100.0]},
                {**common, "id": "above", "title": "A", "value": 1000.0, "within": [980.0, 1000.0]}]  # fmt: skip
        parts = [part("a", published={**common, "id": "a", "value": 500.0, "also": also})]
        asked = study(["a"], orders=[]) | {"comparison": None, "factors": [], "levels": {}}
        rows = {row["id"]: row for row in study_findings(asked, parts, [], [answer("a", 1050)])["published"]}

        assert [row["model"] for row in rows.values()] == [1050, 1050, 1050]
        assert [row["error_share"] for row in rows.values()] == pytest.approx([1.1, 0.0, 0.05])
        assert published_texts(rows["range"]) == (
            "R", "900 IOPS to 1,100 IOPS", "1,050 IOPS", "+0.0 %", "predicted", "why"
        )  # fmt: skip
        assert list(published_by_study(list(rows.values()))) == ["S"]

    def test_an_order_that_is_not_kept_is_said(self) -> None:
        told = self.findings(700, 800)

        assert told["published"][-1]["holds"] is False
        assert "It falls: the model disagrees (700, 800)." in told["sentences"]

    def test_a_point_without_an_answer_has_no_error(self) -> None:
        told = self.findings(1000, None)

        assert told["published"][1]["error_share"] is None
        assert told["published"][-1]["holds"] is None

    def test_fitted_and_predicted_figures_are_summed_up_apart(self) -> None:
        told = self.findings(1020, 600)["sentences"]

        assert told[0] == "Of 1 published figure fitted to, 1 lies within 10 % (mean error 2.0 %, largest 2.0 %)."
        assert told[1] == "Of 1 published figure predicted, 0 lie within 10 % (mean error 25 %, largest 25 %)."


class TestAnswer:
    """The first sentence answers the question, and what was published follows it."""

    def found(self, *answers: dict[str, Any], **more: Any) -> list[str]:
        asked = study([one["part"] for one in answers], **more)
        asked["comparison"]["answer"] = "Within 20 ms the volumes hold {values}"
        return list(study_findings(asked, [part(name) for name in asked["levels"]], [], answers)["sentences"])

    def test_the_first_sentence_has_the_figure_of_each_level(self) -> None:
        said = [{"source": "EQL-OLTP", "text": "RAID 10 gave 41 % more."}]

        first, second, third, *_ = self.found(answer("RAID 10", 4200), answer("RAID 50", 3000), said=said)

        assert first == "Within 20 ms the volumes hold 4,200 IOPS (RAID 10) and 3,000 (RAID 50)."
        assert second == "Published (EQL-OLTP): RAID 10 gave 41 % more."
        assert third.startswith("RAID 50 holds 29 %")

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (answer("b", 1010), "1,000 IOPS (a) and 1,010 (b); no difference was found."),
            (answer("b", 1500, None), "(b); whether they differ is not known (--repeats 3 tells)."),
            (answer("b", 1100, band_90=[900, 1300]), "that order is likely, and not shown: the model's bands overlap."),
        ],
    )  # fmt: skip
    def test_an_order_that_is_not_known_is_not_stated(self, other: dict[str, Any], words: str) -> None:
        assert self.found(answer("a", 1000, band_90=[900, 1100]), other)[0].endswith(words)

    def test_a_level_without_a_result_is_left_out_of_the_answer(self) -> None:
        told = self.found(answer("a", 1000), answer("b", 1500) | {"limited_by": "generator"}, answer("c", 2000))

        assert told[0].startswith("No result for 1 of 2 comparisons: b")
        assert told[1] == "Within 20 ms the volumes hold 1,000 IOPS (a) and 2,000 (c)."

    def test_over_many_series_each_level_has_one_sentence(self) -> None:
        asked = study(["1", "2"])
        asked["comparison"]["answer"] = "{values}"
        gains = {"read": 2.0, "write": 1.5, "scan": 1.001, "log": 1.0}
        points = [point(name, 1000 * (gain if name == "2" else 1)) | {"workload": {"name": load}}
                  for name in ("1", "2") for load, gain in gains.items()]  # fmt: skip

        told = study_findings(asked, [part(name, "none") for name in ("1", "2")], points, [])

        assert told["sentences"][0] == (
            "2 against 1: more IOPS in read, 8 outstanding (2.00 times) and write, 8 outstanding (+50 %);"
            " no difference in scan, 8 outstanding and log, 8 outstanding."
        )


def test_one_run_of_each_level_tells_no_difference_that_other_runs_may_make() -> None:
    asked = study(["a", "b", "c"])
    points = [point(name, iops) | {"clock": "wall"} for name, iops in (("a", 1000), ("b", 1200), ("c", 9000))]

    told = study_findings(asked, [part(name, "none") for name in "abc"], points, [])

    assert [one["differs"] for one in told["comparisons"]] == [None, True]
    assert told["sentences"][0].startswith(
        "One run of each cannot tell whether b and a differ in IOPS (--repeats 3 tells)"
    )
    # Three repeats of each level show the difference.
    parts = [part(f"{name}{times}", "none") for times in ("", " #2", " #3") for name in "abc"]
    runs = [one | {"part": f"{one['part']}{times}"} for times in ("", " #2", " #3") for one in points]
    asked["levels"] = {one["name"]: {"f": one["name"][0]} for one in parts}
    assert study_findings(asked, parts, runs, [])["comparisons"][0]["differs"] is True


def test_figures_beside_an_answer_are_those_of_all_its_repeats() -> None:
    held = answer("a", 1000)
    held["max"] |= {"point_id": "p-a", "read_latency_mean_ns": 19.8e6}
    one_repeat = point("a", 1000, read_ns=20.4e6, workload={"name": "w", "kind": "io"})

    told = study_findings(study(["a", "b"]), [part("a"), part("b")], [one_repeat], [held])

    assert told["results"][0]["values"]["read_latency"]["value"] == pytest.approx(19.8e6)


def test_best_levels_that_cannot_be_told_apart_are_advised_together() -> None:
    asked = study(["x", "y", "z"])
    told = asked | dict(found(asked, [answer("x", 1000), answer("y", 3000), answer("z", 3010)]))

    assert "Where IOPS decide, choose y or z (3,010)." in follows_of(told)
    rival = asked | dict(found(asked, [answer("x", 1000, None), answer("y", 3000, None), answer("z", 9000, None)]))
    assert rival["sentences"][-1] == (
        "Whether IOPS differ between the levels is not known (--repeats 3 tells): x 1,000, y 3,000, z 9,000."
    )


def test_levels_of_a_finished_run_are_compared_with_another_baseline() -> None:
    asked = study(["RAID 10", "RAID 50", "RAID 6"], baseline="RAID 50")
    manifest = {"study": asked, "parts": [part(name) for name in asked["levels"]],
                "answers": [answer("RAID 10", 4200), answer("RAID 50", 3000), answer("RAID 6", 2500)]}  # fmt: skip

    again = compared_again(manifest, [], "RAID 6")

    assert [(one["level"], one["baseline"]) for one in again["comparisons"]] == [
        ("RAID 10", "RAID 6"),
        ("RAID 50", "RAID 6"),
    ]
    with pytest.raises(UsageError, match=r"RAID 7: .* levels: RAID 10, RAID 50, RAID 6"):
        compared_again(manifest, [], "RAID 7")


def test_levels_of_two_factors_are_a_matrix_and_of_three_one_for_each_level_of_the_third() -> None:
    labels = {"block": ("8K", "64K"), "reads": ("80%", "70%"), "fill": ("40", "85")}
    asked = study(["8K"]) | {
        "factors": [
            {"name": name, "title": name, "of": "activity", "ordered": True,
             "levels": [{"key": key, "label": f"{key} of {name}"} for key in keys]}
            for name, keys in labels.items()
        ],
    }  # fmt: skip
    whole = [dict(zip(labels, keys, strict=True)) for keys in itertools.product(*labels.values())]
    results = [
        {"levels": levels, "title": "", "reason": "late" if number == 3 else "", "place": 0,
         "values": {"iops": {"value": 1000.0 + number, "unit": "iops", "interval_95": None}}}
        for number, levels in enumerate(whole)
    ]  # fmt: skip

    first, second = grids_of(asked | {"results": results})

    assert (first.caption, second.caption) == ("I/Os per second, 40 of fill", "I/Os per second, 85 of fill")
    assert first.columns == ["block", "80% of reads", "70% of reads"]
    assert first.rows == [["8K of block", "1,000", "1,002"], ["64K of block", "1,004", "1,006"]]
    assert second.rows[0] == ["8K of block", "1,001", "-"]
    assert grids_of(asked | {"results": results[:-1]}) == []
    # What the study compares is in the matrix, where every level has it.
    for one in results:
        one["values"]["total_latency"] = {"value": 75_700.0, "unit": "ns", "interval_95": None}
    compared = grids_of(asked | {"results": results, "comparison": asked["comparison"] | {"figure": "total_latency"}})
    assert compared[0].rows[0] == ["8K of block", "75.7 us", "75.7 us"]

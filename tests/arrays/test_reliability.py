"""What is asked about reliability, and what is made of the answers; the compiled assessment is imitated here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.document.elements import FigureElement, Table
from assay.insight.calibration.rebuild import rebuild_hours
from assay.report.render import render
from assay.report.sections.reliability import TOGETHER, reliability_document
from assay.report.write import write_document
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.model_file import catalogue_names, load_model
from assay.targets.arrays.model.reliability import (
    HOURS_A_YEAR,
    Input,
    PolicyLayout,
    ReliabilityQuestion,
    assess_question,
    groups_text,
    ratio_bases,
    refuse_unknown_policy,
    steps,
)
from assay.targets.arrays.model.reliability_question import ReliabilityOptions, least_rebuild_h, question_of
from assay.targets.arrays.model.reliability_text import inputs_sentence, policy_rows, ratio_sentence, show_probability

PARITY = {"0": 0, "1": 0, "10": 0, "5": 1, "50": 1, "6": 2, "60": 2, "dp": 2}


def loss_rate(disks: int, tolerates: int, mtbf_h: float, rebuild_h: float, unreadable: float) -> float:
    """The formulas of docs/reliability.md, written a second time."""
    rate, share = 1 / mtbf_h, rebuild_h / mtbf_h
    if tolerates == 0:
        return disks * rate
    if tolerates == 1:
        return disks * rate * ((disks - 1) * share + unreadable)
    return disks * rate * (disks - 1) * share * ((disks - 2) * share + unreadable)


def fake_assess(request_json: str) -> str:
    """The closed forms; the simulation is off by half a percent."""
    request = json.loads(request_json)
    inputs, layouts = request["inputs"], []
    for layout in request["layouts"]:
        policy, disks, in_set = layout["policy"], layout["disks"], layout["set_disks"] or layout["disks"]
        parity, mirrored = PARITY[policy], policy in ("1", "10")
        group_disks = 2 if mirrored else in_set if parity else disks
        tolerates = 1 if mirrored else parity
        groups = disks // group_disks
        left, unreadable = group_disks - tolerates, inputs["unreadable"]
        if unreadable["kind"] == "bit-errors":
            lost = -math.expm1(8 * left * inputs["disk_bytes"] * math.log1p(-unreadable["rate"]))
        else:
            lost = -math.expm1(-left * unreadable["rate_per_h"] * unreadable["scrub_h"] / 2)
        rate = loss_rate(group_disks, tolerates, inputs["mtbf_h"], layout["rebuild_h"], lost)
        mttdl_h = 1 / rate / groups
        loss = -math.expm1(-inputs["service_h"] / mttdl_h)
        simulated = {
            "mttdl_h": mttdl_h * 1.005,
            "mttdl_interval_95_h": [mttdl_h * 0.99, mttdl_h * 1.02],
            "loss_probability": loss / 1.005,
            "loss_interval_95": [loss / 1.02, loss / 0.99],
            "agrees": True,
        }
        layouts.append(
            {
                "policy": policy,
                "groups": groups,
                "group_disks": group_disks,
                "tolerates": tolerates,
                "data_disks": groups * left,
                "unreadable": lost if tolerates else 0.0,
                "closed": {"group_mttdl_h": 1 / rate, "mttdl_h": mttdl_h, "loss_probability": loss},
                "simulated": simulated if request["trials"] else None,
                "aged": {key: simulated[key] for key in ("loss_probability", "loss_interval_95")}
                if request["ageing"]
                else None,
            }
        )
    return json.dumps({"layouts": layouts})


def number(key: str, value: float, low: float, high: float) -> Input:
    unit = "per bit" if key == "ber" else "h"
    return Input(
        key=key, title=key, value=value, unit=unit, from_="assumed", source="a test", low=low, high=high, why="a test"
    )


def wide_question() -> ReliabilityQuestion:
    """Groups of 16 disks of 300 GB, whose ratios are known."""
    bases = ratio_bases(16, 16, {"dp": 8.3, "10": 8.3, "5": 8.3})
    return ReliabilityQuestion(
        array={"name": "wide", "title": "Sixteen disks", "target": "model:wide", "disks": 16},
        disk_bytes=300_000_000_000,
        years=5.0,
        inputs=[
            number("mtbf", 5e5, 2.5e5, 1e6), number("rebuild", 8.3, 4.15, 33.2), number("ber", 1e-15, 1e-16, 1e-14)
        ],
        layouts=bases["same disks"],
        bases=bases,
    )  # fmt: skip


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    return assess_question(question_of(ReliabilityOptions(array="ps6100xv", failure_shape=1.12)), fake_assess)


def test_the_known_ratios_come_out_on_both_bases() -> None:
    disks, data = assess_question(wide_question(), fake_assess)["ratios"]
    assert (disks["basis"], data["basis"]) == ("same disks", "same data")
    assert disks["five"] == pytest.approx(4298, rel=1e-3)
    assert disks["ten"] == pytest.approx(291, rel=2e-3)
    assert data["five"] == pytest.approx(3765, rel=1e-3)
    assert data["ten"] == pytest.approx(510, rel=1e-3)


def test_ranges_hold_what_they_are_the_range_of() -> None:
    for ratio in assess_question(wide_question(), fake_assess)["ratios"]:
        for key in ("ten", "five"):
            low, high = ratio[f"{key}_range"]
            assert low < ratio[key] < high
            for one in ratio["by_input"]:
                assert low <= one[key][0] <= ratio[key] <= one[key][1] <= high
        # Rebuilds of half and of four times the time move losses of RAID-DP in about that proportion.
        span = next(one for one in ratio["by_input"] if one["input"] == "rebuild")["five"]
        assert span[1] / span[0] == pytest.approx(8, rel=0.05)


def test_a_ratio_is_never_bare(answer: dict[str, Any]) -> None:
    for ratio in answer["ratios"]:
        sentence = ratio_sentence(ratio, answer)
        for part in ("MTBF 1,600,000 h", "rebuild", "bit error rate 1e-16 per bit", "over the plausible ranges"):
            assert part in sentence
        assert ratio["basis"] in sentence
        assert all(one["groups_text"] in sentence for one in ratio["layouts"])
    assert "(assumed)" in inputs_sentence(answer)


def test_an_array_of_the_catalogue_becomes_its_own_policies_and_those_to_compare() -> None:
    question = question_of(ReliabilityOptions(array="ps6100xv"))
    layouts = {(one.policy, one.disks, one.set_disks, one.offered) for one in question.layouts}
    assert ("10", 22, 22, True) in layouts
    assert ("50", 22, 11, True) in layouts
    assert ("60", 22, 11, True) in layouts
    assert ("dp", 22, 11, False) in layouts
    assert question.disk_bytes == 146_000_000_000
    for one in question.inputs:
        assert one.low <= one.value <= one.high
        assert one.from_
        assert one.source
        assert one.why


def test_the_rebuild_comes_from_the_model_when_there_is_one() -> None:
    def hours(configuration: Configuration) -> float:
        return {"10": 1.5, "50": 4.0, "6": 6.0, "5": 8.0}[configuration.raid]

    question = question_of(ReliabilityOptions(array="ps6100xv"), hours)
    own = {one.policy: one.rebuild_h for one in question.layouts if one.offered}
    assert own == {"10": 1.5, "50": 4.0, "60": 6.0, "5": 8.0}
    rebuild = next(one for one in question.inputs if one.key == "rebuild")
    assert (rebuild.value, rebuild.from_) == (8.0, "model")
    given_by_hand = question_of(ReliabilityOptions(array="ps6100xv", rebuild_h=18.0), hours)
    assert {one.rebuild_h for one in given_by_hand.layouts} == {18.0}


def test_without_a_model_the_rebuild_is_the_least_a_disk_needs() -> None:
    disk = {"kind": "mechanical", "capacity_bytes": 3.6e11, "rate_outer_bytes_per_s": 1.2e8,
            "rate_inner_bytes_per_s": 8e7, "interface_bytes_per_s": 6e8}  # fmt: skip
    assert least_rebuild_h(disk) == pytest.approx(1.0)
    cells = {"dies": 8, "planes": 4, "cell_bits": 3, "page_bytes": 16384, "program_ns": 16384}
    flash = {"kind": "solid-state", "capacity_bytes": 3.6e12, "flash": cells, "interface_bytes_per_s": 1e9}
    assert least_rebuild_h(flash) == pytest.approx(1.0)
    rebuild = next(one for one in question_of(ReliabilityOptions(array="fas2040")).inputs if one.key == "rebuild")
    assert rebuild.from_ == "assumed"
    assert "no rebuild is faster" in rebuild.source
    assert rebuild.low == rebuild.value


def test_a_disk_is_written_at_the_mean_rate_of_its_tracks() -> None:
    # Each track takes one revolution, and holds less the further in it is.
    tracks, revolution_s, outer, inner = 1000, 0.008, 1.2e8, 6e7
    held = [revolution_s * (outer - (outer - inner) * (at + 0.5) / tracks) for at in range(tracks)]
    disk = {"kind": "mechanical", "capacity_bytes": sum(held), "rate_outer_bytes_per_s": outer,
            "rate_inner_bytes_per_s": inner, "interface_bytes_per_s": 6e8}  # fmt: skip
    assert least_rebuild_h(disk) == pytest.approx(tracks * revolution_s / 3600)


@pytest.mark.parametrize(
    "name", [name for name in catalogue_names() if load_model(name).structure == "group" and name != "black-box"]
)
def test_every_array_of_the_catalogue_is_rebuilt_by_its_model(name: str) -> None:
    question = question_of(ReliabilityOptions(array=name), rebuild_hours)
    for one in question.layouts:
        assert 0.1 < one.rebuild_h < 100
    if any(one.policy == "0" for one in question.layouts):
        assert all(one.rebuild_h >= question.layouts[0].rebuild_h for one in question.layouts if one.policy == "5")


def test_nothing_is_rebuilt_under_raid_0() -> None:
    def hours(configuration: Configuration) -> float:
        assert configuration.raid != "0"
        return 30.0

    question = question_of(ReliabilityOptions(array="sata-jbod?raid=0"), hours)
    found = {one.policy: one.rebuild_h for one in question.layouts}
    assert found.pop("0") < 10
    assert set(found.values()) == {30.0}


def test_of_a_black_box_nothing_is_known() -> None:
    with pytest.raises(UsageError, match=r"black-box is a black box.*--structure"):
        question_of(ReliabilityOptions(array="black-box", rebuild_h=5.0))


def test_volumes_and_state_do_not_matter() -> None:
    plain = question_of(ReliabilityOptions(array="ps6100xv?raid=5"))
    assert question_of(ReliabilityOptions(array="ps6100xv?raid=5&volumes=24&state=degraded")).layouts == plain.layouts
    with pytest.raises(UsageError, match="option 'volumes'"):
        question_of(ReliabilityOptions(array="ps6100xv?volumes=x"))


def test_policies_that_the_disks_do_not_carry_are_left_out_unless_asked_for() -> None:
    small = "ps6100xv?disks.count=2&disks.spares=0"
    question = question_of(ReliabilityOptions(array=small))
    assert [one.policy for one in question.layouts] == ["10"]
    assert [notice.partition(" is left out")[0] for notice in question.notices[:3]] == ["RAID 50", "RAID 6", "RAID 5"]
    with pytest.raises(UsageError, match="RAID 5 of 2 disks"):
        question_of(ReliabilityOptions(array=small, policies=("5",)))
    with pytest.raises(UsageError, match="RAID 5 of 2 disks"):
        question_of(ReliabilityOptions(array=f"{small}&raid=5"))


def test_latent_defects_replace_bit_errors() -> None:
    keys = [
        one.key for one in question_of(ReliabilityOptions(array="fas2040", latent_rate=1.08e-4, scrub_h=336.0)).inputs
    ]
    assert keys == ["mtbf", "rebuild", "latent_rate", "scrub"]
    assumed = question_of(ReliabilityOptions(array="fas2040", latent_rate=1.08e-4)).inputs[-1]
    assert (assumed.value, assumed.from_) == (168.0, "assumed")


def test_arrays_too_small_for_parity_sets_are_compared_by_usual_ones() -> None:
    question = question_of(ReliabilityOptions(array="nvme-mirror"))
    assert [one.policy for one in question.layouts] == ["1", "0"]
    assert [one.disks for one in question.bases["same disks"]] == [16, 16, 16]
    assert "2 disks make no double-parity set" in question.notices[0]


def test_policies_can_be_chosen_offered_or_not() -> None:
    question = question_of(ReliabilityOptions(array="ps6100xv", policies=("dp", "6", "0")))
    assert [(one.policy, one.offered) for one in question.layouts] == [("dp", False), ("60", True), ("0", False)]


@pytest.mark.parametrize("text", ["10", "RAID10", "raid-10", " RAID 10 "])
def test_policies_are_read_as_people_write_them(text: str) -> None:
    assert refuse_unknown_policy(text) == "10"


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ({"ber": 1e-15, "latent_rate": 1e-4}, ["--ber", "--latent-rate", "exclude"]),
        ({"scrub_h": 168.0}, ["--scrub", "--latent-rate"]),
        ({"years": 0.0}, ["--years", "0"]),
        ({"years": math.nan}, ["--years", "nan"]),
        ({"trials": 10}, ["--trials", "10", "1,000"]),
        ({"seed": -1}, ["--seed", "-1"]),
        ({"failure_shape": -1.0}, ["--failure-shape", "-1"]),
    ],
)
def test_contradictions_are_refused(asked: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        ReliabilityOptions(array="ps6100xv", **asked)
    assert all(part in str(caught.value) for part in parts)


def test_a_rebuild_longer_than_a_disk_lives_is_refused() -> None:
    with pytest.raises(UsageError, match="not shorter than the MTBF"):
        question_of(ReliabilityOptions(array="ps6100xv", rebuild_h=1e6))
    near = question_of(ReliabilityOptions(array="ps6100xv", rebuild_h=2e5))
    assert next(one for one in near.inputs if one.key == "rebuild").high == 2e5


def test_curves_are_monotone_and_mark_the_stated_value(answer: dict[str, Any]) -> None:
    policies = [one["policy"] for one in answer["policies"]]
    for one in answer["inputs"]:
        for policy in policies:
            rows = [row for row in answer["curves"] if (row["input"], row["policy"]) == (one["key"], policy)]
            losses = [row["loss_probability"] for row in rows]
            assert [row["value"] for row in rows if row["stated"]] == [one["value"]]
            assert losses == sorted(losses, reverse=one["key"] == "mtbf")


@given(low=st.floats(1e-18, 1e6), span=st.floats(1.0, 1e6), share=st.floats(0, 1))
def test_steps_keep_the_ends_and_the_value(low: float, span: float, share: float) -> None:
    high = low * span
    value = min(max(low * span**share, low), high)
    found = steps(low, value, high)
    assert value in found
    assert found == sorted(found)
    assert found[0] == pytest.approx(low)
    assert found[-1] == pytest.approx(high)


@given(disks=st.integers(3, 60), set_disks=st.integers(3, 24))
def test_bases_compare_equal_disks_and_equal_data(disks: int, set_disks: int) -> None:
    bases = ratio_bases(disks, set_disks, {"dp": 1.0, "10": 1.0, "5": 1.0})
    dp, ten, five = bases["same disks"]
    assert dp.disks == five.disks
    assert 0 <= dp.disks - ten.disks <= 1
    assert dp.disks % dp.set_disks == 0
    assert five.disks % five.set_disks == 0
    if set_disks >= 4:
        found = json.loads(fake_assess(ReliabilityQuestion(
            array={}, disk_bytes=1, years=1.0, inputs=[number("mtbf", 1e6, 1e6, 1e6), number("rebuild", 1, 1, 1),
                                                      number("ber", 1e-15, 1e-15, 1e-15)],
            layouts=[], bases={},
        ).request(bases["same data"], {})))["layouts"]  # fmt: skip
        assert len({one["data_disks"] for one in found}) == 1


def test_groups_read_as_sets() -> None:
    assert groups_text({"groups": 1, "group_disks": 16, "tolerates": 2}) == "1 set of 14+2"
    assert groups_text({"groups": 1, "group_disks": 22, "tolerates": 0}) == "22 disks"


@given(st.floats(1e-15, 1.0))
def test_probabilities_read_back(share: float) -> None:
    shown = show_probability(share)
    if shown.endswith("%"):
        read = float(shown.removesuffix(" %")) / 100
    else:
        text = shown.removeprefix("1 in ").replace(",", "")
        words = {"million": 1e6, "billion": 1e9, "trillion": 1e12}
        read = 1 / math.prod(words[word] if word in words else float(word) for word in text.split())
    assert read == pytest.approx(share, rel=6e-3)


def test_the_table_says_how_much_the_simulation_scatters(answer: dict[str, Any]) -> None:
    rows = policy_rows(answer)
    assert len(rows) == len(answer["policies"])
    assert all("±" in row[5] and row[6] == "yes" and "±" in row[7] for row in rows)
    disagreeing = {**answer, "policies": [{**one, "simulated": {**one["simulated"], "agrees": False}}
                                          for one in answer["policies"]]}  # fmt: skip
    assert all(row[6] == "NO" for row in policy_rows(disagreeing))


def manifest(answer: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": "20261120-101500-model-reliability-a1b2c3", "started_utc_ns": 0, "reliability": answer}


def test_the_report_shows_every_ratio_with_its_inputs(answer: dict[str, Any]) -> None:
    document = reliability_document(manifest(answer))
    assert [figure.name for figure in document.figures] == ["sensitivity", "losses-1"]
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    ratios = next(table for table in tables if table.name == "ratios")
    assert "MTBF" in ratios.caption
    assert len(ratios.rows) == 6
    for table in tables:
        table.placed()


def test_it_is_said_when_closed_forms_and_simulation_disagree(answer: dict[str, Any]) -> None:
    def disagreeing(request_json: str) -> str:
        outcome = json.loads(fake_assess(request_json))
        if outcome["layouts"][0]["simulated"]:
            outcome["layouts"][0]["simulated"]["agrees"] = False
        return json.dumps(outcome)

    found = assess_question(question_of(ReliabilityOptions(array="ps6100xv")), disagreeing)
    (notice,) = found["notices"]
    assert notice.startswith("RAID 10: the closed form is not in the interval")
    assert notice in str(reliability_document(manifest(found)).sections[0])
    assert not answer["notices"]


def test_layouts_that_are_the_same_share_a_curve(answer: dict[str, Any]) -> None:
    figure = next(one for one in reliability_document(manifest(answer)).figures if one.name == "losses-1")
    assert "RAID 60 and RAID-DP, 2 sets of 9+2" in figure.alternative


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_figures_are_drawn(answer: dict[str, Any]) -> None:
    def texts(figure: FigureElement) -> str:
        return render(figure)

    sensitivity, losses = reliability_document(manifest(answer)).figures
    for part in ("RAID 5 : RAID-DP", "RAID 10 : RAID-DP", TOGETHER, "same disks", "same data", "MTBF 220,000 h"):
        assert part in texts(sensitivity)
    for part in ("RAID 10, 11 mirrored pairs", "bit error rate, per bit", "loss in 5 years"):
        assert part in texts(losses)


def test_both_reports_are_written(answer: dict[str, Any], tmp_path: Path) -> None:
    hostile = {**answer, "array": {**answer["array"], "title": "<script>x</script>\u202e"}}
    html, pdf = write_document(tmp_path, reliability_document(manifest(hostile)))
    page = html.read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page
    assert pdf.read_bytes().startswith(b"%PDF")


def test_an_answer_is_plain_json(answer: dict[str, Any]) -> None:
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert answer["service_years"] * HOURS_A_YEAR == 43_800


def test_ratios_of_three_disks_have_no_equal_data() -> None:
    assert list(ratio_bases(3, 3, {"dp": 1.0, "10": 1.0, "5": 1.0})) == ["same disks"]
    assert isinstance(ratio_bases(6, 3, {"dp": 1.0, "10": 1.0, "5": 1.0})["same disks"][0], PolicyLayout)

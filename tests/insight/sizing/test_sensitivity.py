"""What would change the purchase, how sure it is, and how long it lasts."""

from __future__ import annotations

import pytest

from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.certainty import Certainty, certainty_of
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.growth import growth_of, runs_out
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.ladder import Ladder, LadderStep, RejectionReason
from assay.insight.sizing.search import search
from assay.insight.sizing.sensitivity import changes, purchase_of
from assay.insight.sizing.servers import servers_of
from sizing_needs import need

OFFERS = [
    {"array": "ps6100xv", "raid": ["10", "50"], "members": [1, 5], "cost": 30000},
    {"array": "ps6110x", "raid": ["10"], "members": [1, 4], "cost": 42000},
]


@pytest.mark.slow(reason="whole searches of each change")
def test_the_shortened_search_finds_what_the_whole_one_finds() -> None:
    asked = need({"iops": 3300, "growth": "20%"}, years=1, candidate=OFFERS)
    judge = Judge()
    outcome = search(asked, judge)
    assert outcome.purchase is not None
    told = list(changes(asked))
    assert {one.harder for one in told} == {True, False, None}
    chosen = [one for one in told if one.assumption in ("demand", "fill") or one.to == "no"]
    for change in chosen:
        found = purchase_of(change, outcome, judge)
        whole = search(change.need, judge).purchase
        assert found is not None
        assert whole is not None
        assert found == (whole.ladder, whole.step), change.assumption


def test_what_holds_the_need_is_not_asked_for_an_easier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = need({"iops": 3300, "growth": "20%"}, years=1, candidate=OFFERS)
    wanted: list[tuple[str, LadderStep]] = []

    def reasons(_judge: Judge, _need: object, ladder: Ladder, step: LadderStep, _demand: object) -> list[object]:
        wanted.append((ladder.name, step))
        return [] if step.members >= 3 else [RejectionReason("IOPS", "too few", 2.0)]

    monkeypatch.setattr(Judge, "reasons", reasons)
    monkeypatch.setattr("assay.insight.sizing.search._latency_s", lambda *_: 0.001)
    judge = Judge()
    outcome = search(asked, judge)
    assert outcome.purchase is not None
    held = (outcome.purchase.ladder.name, outcome.purchase.step)
    easier = [one for one in changes(asked) if one.harder is False]
    assert len(easier) > 4
    for change in easier:
        wanted.clear()
        assert purchase_of(change, outcome, judge) == (outcome.purchase.ladder, outcome.purchase.step)
        assert held not in wanted
        assert wanted, "smaller sizes are asked"


def test_every_change_is_of_one_assumption_and_says_its_direction() -> None:
    asked = need({"growth": "20%", "iops": 1000}, years=2)
    for change in changes(asked):
        before, after = demand_of(asked, asked.years), demand_of(change.need, change.need.years)
        if change.assumption in ("growth a year", "years it must hold"):
            assert (after.iops > before.iops, after.total_bytes > before.total_bytes) == (change.harder,) * 2
        if change.assumption in ("demand", "derating from raw profile to database"):
            assert (after.iops > before.iops) == change.harder
            assert after.total_bytes == before.total_bytes
        if change.assumption in ("head-room", "fill", "share of reads", "holds with a disk lost"):
            assert after.iops == pytest.approx(before.iops)


def test_probability_is_a_half_at_the_prediction_and_rises_with_the_margin() -> None:
    sure = Certainty(0.10, "")
    assert sure.probability(1.0, 0.10) == pytest.approx(0.5)
    assert 0.5 < sure.probability(1.1, 0.10) < sure.probability(1.2, 0.10) < 1
    # A wider spread of demand or model brings it nearer to a half.
    assert sure.probability(1.2, 0.30) < sure.probability(1.2, 0.10)


@pytest.mark.slow(reason="whole searches of two models")
def test_a_calibrated_model_is_surer_than_one_from_data_sheets() -> None:
    asked = need({"iops": 1500}, candidate=[{"array": "ps6100xv", "raid": ["10"]}, {"array": "ps3800xv"}],
                 rules={"raid_by_role": False})  # fmt: skip
    by_name = {one.name: one for one in ladders(asked)[0]}
    demand = demand_of(asked, 0)
    calibrated = certainty_of(asked, by_name["ps6100xv, RAID 10"], LadderStep(2, 0), demand)
    assumed = certainty_of(asked, by_name["ps3800xv, RAID 10"], LadderStep(2, 0), demand)
    assert 0.03 < calibrated.model_share < assumed.model_share
    assert "calibrated to 4 points" in calibrated.basis
    assert "none of them with 2 members" in calibrated.basis
    assert "not calibrated" in assumed.basis


def test_resources_run_out_when_growth_says_so() -> None:
    asked = need({"growth": "20%", "size": "500GB", "transactions": 400, "iops": None},
                 server={"cpu_per_transaction": "10ms", "cores": 4})  # fmt: skip
    ladder = ladders(asked)[0][0]
    servers = servers_of(asked)
    assert servers is not None
    # 400 transactions of 10 ms keep 4 cores busy: two servers of four at 80 % have room for 6.4.
    assert (servers.count, servers.cores) == (2, pytest.approx(4.0))
    told = growth_of(asked, ladder, LadderStep(2, 0), 1.5, servers)
    out = {one["resource"]: one["year"] for one in told["runs_out"]}
    # 1.2 ** 2.2 = 1.49; 1.2 ** 2.5 = 1.58 < 1.6.
    assert (out["I/O within the limits"], out["CPU of the servers"]) == (2.2, 2.5)
    assert out["space, 70 % full"] < out["space, 85 % full: add an array"]
    assert told["years"][0]["used"]["I/O within the limits"] == pytest.approx(1 / 1.5)
    assert runs_out(lambda _: 0.2) is None

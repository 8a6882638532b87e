"""The search: what it finds holds, what is smaller does not, bounds refuse nothing that a model holds, reasons."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.group_ladder import GroupLadder, grid_fill
from assay.insight.sizing.judge import Judge, Seen, StreamSeen
from assay.insight.sizing.ladder import LadderStep
from assay.insight.sizing.need import Need
from assay.insight.sizing.search import _bracket, _first, capacity_factor, least, search
from sizing_needs import need


def groups(asked: Need) -> list[GroupLadder]:
    return [one for one in ladders(asked)[0] if isinstance(one, GroupLadder)]


def ladder_of(asked: Need, raid: str = "10") -> GroupLadder:
    return next(one for one in groups(asked) if one.raid == raid and one.log_raid is None)


@pytest.mark.parametrize("first", [*range(12), None])
@pytest.mark.parametrize("start", [0, 3, 11])
def test_the_bracket_finds_the_first_that_holds_from_anywhere(first: int | None, start: int) -> None:
    asked: list[int] = []

    def holds(place: int) -> bool:
        asked.append(place)
        return first is not None and place >= first

    assert _bracket(0, start, 12, holds) == first
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("start", [0, 3, 11])
def test_the_bracket_asks_no_place_that_is_known_to_hold(first: int, start: int) -> None:
    asked: list[int] = []

    def holds(place: int) -> bool:
        asked.append(place)
        return place >= first

    assert _bracket(0, start, 12, holds, 7) == first
    assert len(asked) == len(set(asked))
    assert max(asked, default=0) < 7


def test_a_question_that_two_searches_ask_at_once_is_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = need({"iops": 500})
    ladder, demand = ladder_of(asked), demand_of(asked, 0)
    begun, let_go, simulated = threading.Event(), threading.Event(), []

    def simulate(*_: object) -> Seen:
        simulated.append(1)
        begun.set()
        assert let_go.wait(60)
        return Seen(streams=(StreamSeen(0.001, 0.001, 1.0), StreamSeen(0.001, 0.001, 1.0)))

    monkeypatch.setattr(Judge, "_simulate", simulate)
    judge = Judge()
    ask = partial(judge.state_reasons, asked, ladder, ladder.steps[0], demand)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask)
        assert begun.wait(60)
        second = pool.submit(ask)
        let_go.set()
        assert first.result(60) == second.result(60) == []
    assert len(simulated) == 1


def test_the_first_place_by_halves() -> None:
    assert [_first(5, lambda place, least=least: place >= least) for least in range(6)] == [0, 1, 2, 3, 4, 5]


def test_the_smallest_size_holds_and_the_next_smaller_does_not() -> None:
    asked = need({"iops": 5000, "log": "5%"})
    judge, demand = Judge(), demand_of(asked, 0)
    found = least(asked, ladder_of(asked), demand, judge)
    assert found.step is not None
    assert found.step.members > 1
    assert judge.reasons(asked, found.ladder, found.step, demand) == []
    smaller = LadderStep(found.step.members - 1, 0)
    assert judge.reasons(asked, found.ladder, smaller, demand)
    assert found.rejected
    assert all(reasons for _, reasons in found.rejected)
    # It holds more than the need with its head-room, and not without end.
    factor = capacity_factor(asked, found.ladder, found.step, demand, judge, known=1.2).times
    assert 1.2 <= factor < 3


def test_what_is_hopeless_is_broken_off() -> None:
    """Of an array under three times what its disks do only the first seconds are simulated."""
    asked = need({"iops": 12_000, "log": "5%"})
    ladder, demand = ladder_of(asked), demand_of(asked, 0)
    (reason,) = Judge().state_reasons(asked, ladder, ladder.steps[0], demand)
    assert reason.kind == "IOPS"
    assert reason.text.endswith("and ever longer; 20 ms are allowed")
    assert reason.share > 1.25


def test_space_alone_decides_where_little_is_asked() -> None:
    asked = need({"iops": 50, "size": "2TB", "log_size": "10GB"})
    ladder, demand = ladder_of(asked), demand_of(asked, 0)
    found = least(asked, ladder, demand, Judge())
    assert found.step is not None
    fills = {step.members: ladder.pools(step, demand)[0].fill for step in ladder.steps}
    assert fills[found.step.members] <= asked.rules.fill < fills[found.step.members - 1]
    (_, reasons) = found.rejected[-1]
    assert [reason.kind for reason in reasons] == ["fill"]


@pytest.mark.parametrize(("iops", "block"), [(1500, "8KiB"), (4500, "8KiB"), (1000, "64KiB")])
@pytest.mark.parametrize("raid", ["10", "50"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_arithmetic_refuses_nothing_that_a_model_holds(iops: int, block: str, raid: str) -> None:
    asked = need(
        {"iops": iops, "block": block, "log": "0%"},
        candidate=[{"array": "ps6100xv", "raid": [raid], "members": [1, 6]}],
        rules={"degraded": False, "rebuilding": False},
    )
    ladder, demand = ladder_of(asked, raid), demand_of(asked, 0)
    loaded = demand.times(1.2)
    for step in ladder.steps[:2]:
        refused = [one for one in ladder.static_reasons(asked, step, demand, loaded) if one.kind == "IOPS"]
        if refused:
            assert Judge().state_reasons(asked, ladder, step, loaded)


def test_an_empty_array_is_simulated_as_full_as_the_method_sizes() -> None:
    asked = need({"size": "10GB"})
    ladder, demand = ladder_of(asked), demand_of(asked, 0)
    pool = ladder.pools(LadderStep(2, 0), demand)[0]
    assert pool.fill < 0.05
    assert ladder.configuration(asked, LadderStep(2, 0), demand, pool).fill == pytest.approx(0.6, abs=0.01)
    assert [round(grid_fill(asked, fill), 2) for fill in (0.1, 0.61, 0.65, 0.66, 0.9)] == [0.6, 0.65, 0.65, 0.7, 0.7]


def test_a_log_stays_off_parity_and_may_have_a_member_of_its_own() -> None:
    everything = [{"array": "ps6100xv", "members": [1, 4]}]
    asked = need(candidate=everything)
    found, refused = groups(asked), ladders(asked)[1]
    assert {(one.raid, one.log_raid) for one in found} == {("10", None), ("50", "10"), ("6", "10"), ("5", "10")}
    assert all("logs take RAID 10" in one.reason.text for one in refused)
    assert len(refused) == 3
    pools = next(one for one in found if one.raid == "50").pools(LadderStep(3, 0), demand_of(asked, 0))
    assert [(pool.role, pool.members, pool.member.policy) for pool in pools] == [("data", 2, "50"), ("log", 1, "10")]
    free = groups(need(candidate=everything, rules={"raid_by_role": False}))
    assert ("50", None) in {(one.raid, one.log_raid) for one in free}


def test_large_nearline_disks_take_double_parity() -> None:
    asked = need({"log": "0%"}, candidate=[{"array": "sata-jbod"}])
    assert {one.raid for one in groups(asked)} == {"10", "6", "60"}
    assert sorted(one.name for one in ladders(asked)[1]) == ["sata-jbod, RAID 5", "sata-jbod, RAID 50"]


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        ({"array": "ps6100x"}, "unknown array 'ps6100x'"),
        ({"array": "ps6100xv", "raid": ["7"]}, "does not offer RAID 7"),
        ({"array": "ps6100xv", "members": [1, 99]}, "99 are more than the 16 a group has"),
        ({"array": "ps6100xv", "paths": [9]}, "9 are more than the 4 ports"),
        ({"array": "black-box"}, "is a black box"),
        ({"array": "ps6100xv", "raid": ["50"], "disks": [2]}, "candidate ps6100xv, RAID 50"),
    ],
)
def test_impossible_candidates_are_named(offer: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ladders(need({"log": "0%"}, candidate=[offer]))


def test_disks_of_a_member_make_a_ladder_by_their_number() -> None:
    asked = need({"log": "0%"}, candidate=[{"array": "sata-jbod", "raid": ["6"], "disks": [12, 6, 8]}])
    ladder = ladder_of(asked, "6")
    assert [step.disks for step in ladder.steps] == [6, 8, 12]
    assert ladder.label(ladder.steps[0]) == "sata-jbod, RAID 6, 1 member of 6 disks"


def test_cost_decides_the_cheapest_and_height_the_smallest() -> None:
    offers = [
        {"array": "ps6100xv", "raid": ["10"], "members": [1, 3], "cost": 50000, "rack_units": 2},
        {"array": "nvme-mirror", "raid": ["1"], "cost": 60000, "rack_units": 1},
    ]
    outcome = search(need({"iops": 500, "size": "300GB"}, candidate=offers), Judge())
    assert outcome.purchase is not None
    assert outcome.smallest is not None
    assert outcome.fastest is not None
    assert (outcome.purchase.ladder.array, outcome.smallest.ladder.array) == ("ps6100xv", "nvme-mirror")
    assert outcome.fastest.ladder.array == "nvme-mirror"


def test_what_comes_nearest_misses_least() -> None:
    outcome = search(need({"iops": 100, "size": "7TB"}), Judge())
    assert outcome.purchase is None
    assert outcome.nearest is not None
    ladder, step, reasons = outcome.nearest
    assert (ladder.array, step.members) == ("ps6100xv", 6)
    assert reasons[0].kind == "fill"


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_rebuild_that_takes_too_long_and_a_loss_that_is_too_likely_refuse() -> None:
    few = {"iops": 300, "size": "100GB"}
    for limits, kind in (({"rebuild": "1min"}, "rebuild window"), ({"loss": "0.0001%"}, "loss")):
        asked = need(few, limits=limits)
        ladder = ladder_of(asked)
        reasons = Judge().reasons(asked, ladder, ladder.steps[-1], demand_of(asked, 0))
        assert [reason.kind for reason in reasons] == [kind]


def test_a_slow_log_is_told_from_slow_data() -> None:
    asked = need({"iops": 300}, limits={"log": "0.1ms"})
    ladder = ladder_of(asked)
    (reason,) = Judge().reasons(asked, ladder, ladder.steps[0], demand_of(asked, 0))
    assert (reason.kind, "log writes take" in reason.text, reason.share > 1) == ("log latency", True, True)


def test_what_ports_do_not_carry_is_refused_by_arithmetic() -> None:
    offer = [{"array": "ps6100xv", "raid": ["10"], "members": [1, 4], "paths": [1, 4]}]
    asked = need({"iops": None, "scan": "250MB/s", "log": "0%"}, candidate=offer)
    judge, demand = Judge(), demand_of(asked, 0)
    by_paths = {ladder.paths: least(asked, ladder, demand, judge) for ladder in groups(asked)}
    # 250 MB/s, derated by 14 % and with 20 % of head-room, are 349 MB/s: three ports of 117 MB/s.
    assert {paths: found.step and found.step.members for paths, found in by_paths.items()} == {1: 3, 4: 1}
    (_, (reason, *_)) = by_paths[1].rejected[-1]
    assert reason.kind == "port rate"


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_lost_disk_may_decide() -> None:
    # Between what a healthy array holds and what one that rebuilds does.
    asked = need({"iops": 3000, "log": "0%"}, head_room="0%",
                 candidate=[{"array": "ps6100xv", "raid": ["5"], "members": [1, 6]}])  # fmt: skip
    judge, ladder, demand = Judge(), ladder_of(asked, "5"), demand_of(asked, 0)
    step = least(asked.model_copy(update={"rules": asked.rules.model_copy(update={"degraded": False,
                 "rebuilding": False})}), ladder, demand, judge).step  # fmt: skip
    assert step is not None
    factor = capacity_factor(asked, ladder, step, demand, judge).times
    edge = demand.times(factor * 0.99)
    assert not judge.state_reasons(asked, ladder, step, edge)
    (reason, *_) = judge.state_reasons(asked, ladder, step, edge, "rebuilding")
    assert reason.kind == "rebuilding"

"""What is sold today: drives in software RAID and cloud volumes, as ladders whose sizes follow from a need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.candidates import book_for, ladders, offers_of
from assay.insight.sizing.cloud_ladder import (
    CloudLadder,
    CloudStep,
    WantedVolume,
    counted_load,
    step_for,
    volume_for,
    with_queue,
)
from assay.insight.sizing.demand import demand_of
from assay.insight.sizing.group_ladder import GroupLadder
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.ladder import LadderStep, model_of
from assay.insight.sizing.need import Need, need_of
from assay.insight.sizing.search import least, search
from assay.targets.arrays.model.cloud import Cloud
from assay.targets.arrays.model.parameters import GIB, MIB


def need(array: str | None = None, database: dict[str, Any] | None = None, **others: Any) -> Need:
    """A need of some thousand IOPS, without the method's deratings."""
    table: dict[str, Any] = {
        "years": 0,
        "head_room": "0%",
        "rules": {"derating_transactions": "0%"},
        "database": [{"name": "orders", "size": "200GB", "iops": 5000, "log": "0%", **(database or {})}],
        **({"candidate": [{"array": array}]} if array else {}),
        **others,
    }
    return need_of(table, "test")


def cloud_of(asked: Need) -> CloudLadder:
    (found,) = ladders(asked, book_for(asked, None))[0]
    assert isinstance(found, CloudLadder)
    return found


def exact(ladder: CloudLadder, asked: Need) -> CloudStep:
    demand = demand_of(asked, asked.years)
    return next(one for one in ladder.steps if isinstance(one, CloudStep)
                and not any(ladder.static_reasons(asked, one, demand, demand)))  # fmt: skip


def test_the_catalogue_of_today_is_asked_and_that_of_the_studies_on_request() -> None:
    classes = {name: {model_of(one.array).model_class for one in offers_of(need(classes=[name]))}
               for name in ("drive", "cloud", "study")}  # fmt: skip
    assert classes == {"drive": {"drive"}, "cloud": {"cloud"}, "study": {"study"}}
    today = offers_of(need())
    assert not any(model_of(one.array).model_class == "study" for one in today)
    assert {one.drive for one in today if one.array == "nvme-md"} >= {"cm7-r-3840", "d7-p5520-1920"}
    # Client drives lose what was acknowledged, or wait for flash: nobody should buy them for a log.
    assert not any(one.drive in ("sn850x-2tb", "p41-plus-1tb") for one in today)


@pytest.mark.parametrize(
    ("name", "iops", "moved", "burst_s", "size_gib", "asked"),
    [
        # 3,000 IOPS come with any gp3; more are asked for, and 0.25 MiB/s need one.
        ("aws-gp3", 2000, 10 * MIB, 0, 100, (100, 3000, 125 * MIB)),
        ("aws-gp3", 6010, 10 * MIB, 0, 100, (100, 6010, 125 * MIB)),
        ("aws-gp3", 2000, 1000 * MIB, 0, 100, (100, 4000, 1000 * MIB)),
        # 3 IOPS per GiB; for ten minutes 100 GiB burst to 3,000.
        ("aws-gp2", 2000, 10 * MIB, 0, 100, (667, None, None)),
        ("aws-gp2", 2000, 10 * MIB, 600, 100, (100, None, None)),
        ("aws-gp2", 2000, 10 * MIB, 7200, 100, (417, None, None)),
        # The P30 has 5,000 IOPS, the P20 2,300; the whole tier is billed.
        ("azure-premium", 2400, 10 * MIB, 0, 100, (1024, None, None)),
        ("aws-io2", 6000, 10 * MIB, 0, 1, (6, 6000, None)),
    ],
)
def test_a_volume_is_as_small_as_its_providers_formulas_let_it(
    name: str, iops: float, moved: float, burst_s: float, size_gib: int, asked: tuple[int, int | None, int | None]
) -> None:
    found = volume_for(model_of(name), WantedVolume(size_gib * GIB, iops, moved, burst_s))
    assert found is not None
    assert (found.size_bytes // GIB, found.iops, found.throughput) == asked


def test_what_no_volume_gives_takes_several_or_is_refused() -> None:
    assert volume_for(model_of("aws-gp2"), WantedVolume(GIB, 20_000, 0, 0)) is None
    asked = need("aws-gp2", {"iops": 20_000})
    assert exact(cloud_of(asked), asked).members == 2
    refused = ladders(need("aws-sc1", {"iops": 90_000}))[1]
    assert "32 volumes do not hold" in refused[0].reason.text


def test_three_thousand_iops_that_come_with_each_volume_are_cheaper_than_those_that_are_paid_for() -> None:
    asked = need("aws-gp3", {"iops": 11_500})
    step = exact(cloud_of(asked), asked)
    assert (step.members, step.data.iops) == (4, 3000)


def test_ios_count_as_the_provider_counts_them() -> None:
    (phase,) = demand_of(need(database={"block": "512KiB", "iops": 100}), 0).phases
    assert counted_load(model_of("aws-gp3"), phase) == (200, 100 * 512 * 1024)
    (small,) = demand_of(need(database={"block": "8KiB", "iops": 100}), 0).phases
    assert counted_load(model_of("aws-st1"), small)[1] == 100 * MIB
    in_order = [replace(one, random_share=0.0) for one in small]
    assert counted_load(model_of("aws-gp3"), in_order)[0] == pytest.approx(100 / 32)


@pytest.mark.parametrize("iops", [300, 3000, 30_000])
def test_random_arrivals_take_as_much_more_as_keeps_their_wait_within_the_limit(iops: float) -> None:
    (phase,) = demand_of(need(), 0).phases
    served = with_queue(model_of("aws-io2"), phase, iops)
    wait_s = iops / (2 * served * (served - iops))
    latency_s = model_of("aws-io2").parameters["latency.write"].value / 1e9
    assert wait_s == pytest.approx(phase[0].write_limit_s - latency_s, rel=0.01)  # type: ignore[operator]
    assert with_queue(model_of("aws-io2"), [replace(one, random_share=0.0) for one in phase], iops) == iops


def test_a_log_has_a_volume_of_its_own_with_its_own_iops() -> None:
    asked = need("aws-io2", {"log": "20%", "log_size": "20GB"})
    ladder = cloud_of(asked)
    step = exact(ladder, asked)
    assert step.log is not None
    # What arrives at random waits, and takes a little more; the log's writes follow each other.
    assert (step.data.iops, step.log.iops) == (4030, 1000)
    cloud = ladder.pools(step, demand_of(asked, 0))[0].member
    assert isinstance(cloud, Cloud)
    assert [one.iops.per_s for one in cloud.limits] == [4030, 1000]
    assert ladder.label(step) == "aws-io2: 267 GiB, 4,030 IOPS; log 27 GiB, 1,000 IOPS"


def test_growth_is_in_the_size_and_the_need_is_not_more_than_seventy_percent_of_it() -> None:
    asked = need("aws-gp3", {"growth": "100%"}, years=2)
    step = exact(cloud_of(asked), asked)
    assert step.data.size_bytes * (step.members) == pytest.approx(800e9 / 0.7, rel=0.01)


def test_the_next_smaller_size_fails_and_a_size_that_arithmetic_allows_holds() -> None:
    asked = need("aws-gp3", {"iops": 7000}, candidate=[{"array": "aws-gp3", "volumes": [1]}], head_room="5%")
    ladder, demand, judge = cloud_of(asked), demand_of(asked, 0), Judge()
    found = least(asked, ladder, demand, judge)
    assert found.step is not None
    assert found.step in ladder.steps[1:3]
    assert judge.rebuild_h(asked, ladder, found.step, demand) is None
    smaller = ladder.steps[ladder.steps.index(found.step) - 1]
    assert judge.state_reasons(asked, ladder, smaller, demand.times(1.05))


def test_credits_hold_a_peak_that_ends_and_no_other() -> None:
    database = {"iops": 2500, "size": "100GB"}
    lasting = cloud_of(need("aws-gp2", database))
    short = cloud_of(need("aws-gp2", database, burst="15min"))
    asked = need("aws-gp2", database)
    small = step_for(need("aws-gp2", database, burst="15min"), model_of("aws-gp2"), demand_of(asked, 0), 1, 1.0)
    assert small is not None
    (reason,) = lasting.static_reasons(asked, small, demand_of(asked, 0), demand_of(asked, 0))
    assert (reason.kind, "credits pay for" in reason.text) == ("credits", True)
    assert not any(short.static_reasons(asked, small, demand_of(asked, 0), demand_of(asked, 0)))
    assert not Judge().state_reasons(asked, short, small, demand_of(asked, 0))
    assert Judge().state_reasons(asked, lasting, small, demand_of(asked, 0))


def test_a_machine_limits_its_volumes_and_has_none_of_other_providers() -> None:
    asked = need("aws-gp3", {"iops": 9000}, instance="m6i.xlarge")
    ladder, demand = cloud_of(asked), demand_of(asked, 0)
    kinds = {one.kind for one in ladder.static_reasons(asked, ladder.steps[-1], demand, demand)}
    assert kinds == {"instance"}
    found, refused = ladders(need(classes=["cloud"], instance="m6i.xlarge"))
    assert {model_of(one.array).family for one in found} == {"Amazon EBS"}
    assert any(one.name == "azure-ultra" and "is no machine" in one.reason.text for one in refused)
    with pytest.raises(UsageError, match=r"instance: no machine 'm6i.xlarg' is known; did you mean 'm6i.xlarge'"):
        ladders(need(instance="m6i.xlarg"))


def test_what_only_arrays_have_is_refused_of_a_cloud() -> None:
    with pytest.raises(UsageError, match="candidate aws-gp3: raid is of arrays"):
        ladders(need(candidate=[{"array": "aws-gp3", "raid": ["10"]}]))


def test_drives_of_a_server_make_a_ladder_by_their_number() -> None:
    asked = need(candidate=[{"array": "nvme-md-parity", "drive": "cm7-r-3840", "raid": ["6"]}])
    (ladder,) = ladders(asked)[0]
    assert isinstance(ladder, GroupLadder)
    assert [step.disks for step in ladder.steps] == [4, 5, 6, 8, 10, 12, 16, 20, 24]
    assert ladder.label(ladder.steps[0]) == "4 x cm7-r-3840, md RAID 6"
    assert "two lost drives lose nothing (RPO 0)" in ladder.lost_drive


def test_published_rates_of_flash_refuse_what_a_model_does_not_hold() -> None:
    asked = need(database={"iops": 400_000, "read": "0%", "size": "1TB"},
                 candidate=[{"array": "nvme-md", "drive": "pm9a3-960", "disks": [4]}])  # fmt: skip
    (ladder,), demand = ladders(asked)[0], demand_of(asked, 0)
    reasons = list(ladder.static_reasons(asked, LadderStep(1, 4), demand, demand))
    assert [one.kind for one in reasons] == ["IOPS"]


def test_what_cannot_win_is_not_asked() -> None:
    asked = need(classes=["cloud"])
    outcome = search(asked, Judge(), book=book_for(asked, None))
    assert outcome.purchase is not None
    assert outcome.purchase.ladder.array == "aws-gp3"
    unneeded = [one for one in outcome.found if one.unneeded is not None]
    assert len(unneeded) > 5
    best = outcome.cost_key(outcome.purchase.ladder, outcome.purchase.step)  # type: ignore[arg-type]
    for one in unneeded:
        assert one.unneeded is not None
        assert outcome.cost_key(one.ladder, one.unneeded) >= best

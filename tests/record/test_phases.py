"""What faults made of a load: phases, the dip and its end, from rates of equal intervals."""

from __future__ import annotations

from typing import Any

import pytest

from assay.record.phases import Rates, dip_of, phases_of

S = 10**9


def served(*events: tuple[float, str, str], to_s: float = 60) -> dict[str, Any]:
    return {
        "state": "healthy",
        "from_utc_ns": 0,
        "to_utc_ns": round(to_s * S),
        "events": [{"t_ns": round(at * S), "what": what, "state": state} for at, what, state in events],
    }


def rates(*parts: tuple[int, float], counted_from: int = 0) -> Rates:
    counts = [value for seconds, value in parts for _ in range(seconds)]
    return Rates(started_ns=0, interval_s=1.0, counts=counts, counted_from=counted_from)


PULL = (20.0, "member0/disk3: pulled", "degraded")


def test_each_state_has_the_rate_of_its_time_and_the_warm_up_counts_for_none() -> None:
    load = rates((10, 10.0), (10, 100.0), (20, 40.0), (20, 90.0), counted_from=10)

    found = phases_of(served(PULL, (40.0, "member0/disk3: rebuilt", "healthy")), load)

    assert [(phase["state"], phase["per_s"]) for phase in found] == [
        ("healthy", 100.0), ("degraded", 40.0), ("healthy", 90.0),
    ]  # fmt: skip


def test_a_spare_that_comes_at_once_leaves_no_time_without_it() -> None:
    found = phases_of(served(PULL, (20.1, "rebuild begins", "rebuilding")), rates((60, 100.0)))

    assert [phase["state"] for phase in found] == ["healthy", "rebuilding"]


def test_a_dip_has_a_depth_and_lasts_from_the_event_to_the_recovery() -> None:
    dip = dip_of(served(PULL), rates((20, 100.0), (10, 40.0), (30, 100.0)))

    assert dip is not None
    assert dip["depth_share"] == pytest.approx(0.6)
    assert (dip["before_per_s"], dip["least_per_s"]) == (100.0, 40.0)
    # The mean over three seconds is whole again where it begins after the last low one.
    assert dip["length_s"] == pytest.approx(10.0)


def test_one_slow_second_is_no_dip_and_one_without_end_has_no_length() -> None:
    even = dip_of(served(PULL), rates((20, 100.0), (40, 99.0)))
    lasting = dip_of(served(PULL), rates((20, 100.0), (40, 50.0)))

    assert even is not None
    assert (even["depth_share"], even["length_s"]) == (0.0, 0.0)
    assert lasting is not None
    assert (lasting["depth_share"], lasting["length_s"]) == (pytest.approx(0.5), None)


def test_less_than_half_of_an_uneven_load_is_a_dip() -> None:
    uneven = [(1, rate) for _ in range(6) for rate in (20.0, 180.0, 500.0)]
    dip = dip_of(served((18.0, "pulled", "degraded")), rates(*uneven, (20, 30.0), (22, 230.0)))

    assert dip is not None
    assert dip["depth_share"] > 0.8


def test_without_a_time_before_the_event_there_is_nothing_to_judge_by() -> None:
    early = (2.0, "member0/disk3: pulled", "degraded")

    assert dip_of(served(early), rates((60, 100.0))) is None
    assert dip_of(served(), rates((60, 100.0))) is None

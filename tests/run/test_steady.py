"""When a series of ticks counts as steady, and how sure its mean is."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.document.point_cells import steady_cell
from assay.record.steady import (
    HALF_WIDTH_SHARE,
    SLOPE_SHARE,
    TICKS_MIN,
    half_width_95,
    judged_steady,
    steady_state,
    student_t_975,
    unsteady_words,
)
from assay.run.notices import notices_of

levels = st.floats(min_value=1, max_value=1e7)


@given(level=levels, count=st.integers(TICKS_MIN, 60))
def test_a_flat_series_is_steady(level: float, count: int) -> None:
    steady = steady_state([level] * count)

    assert steady.reached
    assert steady.slope_share == pytest.approx(0, abs=1e-9)
    assert steady.half_width_share == pytest.approx(0, abs=1e-6)


@given(level=levels, count=st.integers(0, TICKS_MIN - 1))
def test_too_few_ticks_say_nothing(level: float, count: int) -> None:
    steady = steady_state([level] * count)

    assert (steady.reached, steady.slope_share, steady.half_width_share) == (False, None, None)


def test_no_throughput_is_no_steady_state() -> None:
    assert not steady_state([0.0] * 20).reached


@given(level=levels, count=st.integers(TICKS_MIN, 60), rise=st.floats(-0.9, 0.9))
def test_the_slope_is_the_change_over_the_window_as_a_share_of_the_mean(level: float, count: int, rise: float) -> None:
    values = [level * (1 + rise * (tick / (count - 1) - 0.5)) for tick in range(count)]
    steady = steady_state(values)

    assert steady.slope_share == pytest.approx(rise, abs=1e-9)
    if abs(rise) > SLOPE_SHARE + 1e-9:
        assert not steady.reached


@given(level=levels, seed=st.integers(0, 2**32))
def test_steady_means_level_and_certain(level: float, seed: int) -> None:
    chance = random.Random(seed)
    steady = steady_state([level * chance.choice([0.2, 1.8]) for _ in range(20)])

    assert steady.half_width_share is not None
    assert steady.reached == (
        abs(steady.slope_share or 0) <= SLOPE_SHARE and steady.half_width_share <= HALF_WIDTH_SHARE
    )


def test_heavy_noise_is_not_steady() -> None:
    # Ticks that happen to alternate cancel out exactly: once in 2**10 windows every batch of two has the same mean.
    chance = random.Random(1)
    windows = [[chance.choice([0.2, 1.8]) for _ in range(20)] for _ in range(1000)]

    assert sum(steady_state(window).reached for window in windows) <= 10


@given(values=st.lists(levels, min_size=TICKS_MIN, max_size=40), factor=st.floats(0.01, 100))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    one, other = steady_state(values), steady_state([value * factor for value in values])

    assert one.slope_share == pytest.approx(other.slope_share, rel=1e-6, abs=1e-9)
    assert one.half_width_share == pytest.approx(other.half_width_share, rel=1e-6, abs=1e-9)


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    chance = random.Random(1)
    rounds = 1000
    held = 0
    for _ in range(rounds):
        values = [chance.gauss(100, 10) for _ in range(30)]
        held += abs(sum(values) / 30 - 100) <= half_width_95(values)

    assert 0.92 <= held / rounds <= 0.99


def test_correlated_ticks_widen_the_interval() -> None:
    chance = random.Random(2)
    noise = [chance.gauss(0, 1) for _ in range(200)]
    drifting = [sum(noise[max(0, tick - 10) : tick + 1]) for tick in range(200)]
    shuffled = chance.sample(drifting, len(drifting))

    assert half_width_95(drifting) > 2 * half_width_95(shuffled)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_below_three_values_nothing_is_known(values: list[float]) -> None:
    assert half_width_95(values) == math.inf


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.706), (4, 2.776), (29, 2.045), (1e9, 1.960)])
def test_quantiles_of_student(degrees: float, quantile: float) -> None:
    assert student_t_975(degrees) == pytest.approx(quantile, abs=1e-3)


SPREAD = "mean ±7 % (max. 5 %)"


@pytest.mark.parametrize(
    ("steady", "ended_by", "found", "cell"),
    [
        ({"reached": True, "slope_share": 0.01, "half_width_share": 0.02}, "steady", (True, ""), "yes"),
        ({"slope_share": 0.14, "half_width_share": 0.02}, "time", (False, "drift +14 % (max. 10 %)"), "no: drift"),
        ({"slope_share": 0.01, "half_width_share": 0.07}, "time", (False, SPREAD), "no: mean"),
        (
            {"slope_share": -0.3, "half_width_share": 0.07},
            "time",
            (False, f"drift -30 % (max. 10 %), {SPREAD}"),
            "no",
        ),
        ({"slope_share": None}, "time", (None, "too short or idle"), "not judged: too short"),
        ({"slope_share": 0.3, "half_width_share": 0.3}, "failed", (None, "cut off"), "not judged: cut off"),
        ({"slope_share": None, "judged_by": "fio"}, "time", (False, "by the test of fio"), "no: by the test of fio"),
        ({"reached": None}, "time", (None, ""), "-"),
        ({"window_s": None}, "time", (None, ""), "-"),
    ],
)
def test_one_judgement_says_whether_a_point_was_steady_and_why_not(
    steady: dict[str, object], ended_by: str, found: tuple[bool | None, str], cell: str
) -> None:
    point = {"id": "p0001", "ended_by": ended_by, "steady": {"reached": False, "window_s": 5.0, **steady}}
    assert judged_steady(point) == found
    assert steady_cell(point).text.startswith(cell)
    assert (found[1] in unsteady_words(point)) is True
    assert [note.text for note in notices_of([point], {})] == (
        [f"1 of 1 points reached no steady state before their time was up: p0001; {found[1]}"]
        if found[0] is False
        else []
    )

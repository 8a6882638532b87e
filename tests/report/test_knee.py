"""The knee of a curve: where latency begins to rise faster than throughput, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.workloads.io.report.knee import MIN_POINTS, find_knee, kneedle

IOPS = [1000.0, 1900.0, 3500.0, 4600.0, 4900.0, 5000.0]
LATENCY = [1.0e6, 1.1e6, 1.2e6, 1.8e6, 6.0e6, 13.0e6]


def test_the_knee_is_where_the_curve_is_farthest_from_the_diagonal() -> None:
    # y = 5 - 1/x over x = 0.1 .. 1, the curve Satopaa et al. 2011 explain their method on. On the unit square the
    # distance to the diagonal is largest where 0.1/x^2 = 1, so at x = 0.316, which is 0.240 of the way. Turned by half
    # a circle it is the convex curve this function takes.
    x = [index / 100 for index in range(101)]
    turned = [-(5 - 1 / (at * 0.9 + 0.1)) for at in reversed(x)]
    found = kneedle(x, turned)
    assert found is not None
    assert 1 - x[found] == pytest.approx(0.240, abs=0.011)


def test_a_curve_that_bends_has_its_knee_before_the_wall() -> None:
    knee = find_knee(IOPS, LATENCY)
    assert knee is not None
    assert (knee.position, knee.iops, knee.latency_ns) == (3, 4600.0, 1.8e6)


def test_a_straight_curve_has_no_knee() -> None:
    assert find_knee([1000.0 * n for n in range(1, 9)], [1e6 * n for n in range(1, 9)]) is None


def test_a_flat_curve_has_no_knee_however_noisy() -> None:
    assert (
        find_knee([1000.0 * n for n in range(1, 9)], [1e6, 1.02e6, 0.99e6, 1.0e6, 1.01e6, 1.0e6, 1.2e6, 1.3e6]) is None
    )


@pytest.mark.parametrize("count", range(MIN_POINTS))
def test_too_few_points_have_no_knee(count: int) -> None:
    assert find_knee(IOPS[:count], LATENCY[:count]) is None


def test_points_past_saturation_do_not_move_the_knee() -> None:
    knee = find_knee([*IOPS, 4950.0, 4800.0], [*LATENCY, 26e6, 52e6])
    assert knee is not None
    assert knee.position == 3


def test_the_position_counts_points_that_took_no_part() -> None:
    knee = find_knee([1000.0, 900.0, *IOPS[1:]], [1.0e6, 1.0e6, *LATENCY[1:]])
    assert knee is not None
    assert (knee.position, knee.iops) == (4, 4600.0)


def test_a_stricter_sensitivity_rejects_a_gentle_bend() -> None:
    gentle = [1.0e6, 1.2e6, 1.5e6, 1.9e6, 2.6e6, 3.5e6]
    even = [1000.0 * n for n in range(1, 7)]
    assert find_knee(even, gentle, sensitivity=0.5) is not None
    assert find_knee(even, gentle, sensitivity=3.0) is None


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        find_knee([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="strictly"):
        kneedle([1.0, 1.0, 2.0], [1.0, 2.0, 3.0])


@given(
    curve=st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e10)), max_size=20),
    stretch=st.sampled_from([2.0**power for power in range(-8, 9)]),
)
def test_a_knee_is_a_point_of_the_curve_and_units_do_not_matter(
    curve: list[tuple[float, float]], stretch: float
) -> None:
    iops, latency = [point[0] for point in curve], [point[1] for point in curve]
    knee = find_knee(iops, latency)
    stretched = find_knee([value * stretch for value in iops], [value * stretch for value in latency])
    assert (knee and knee.position) == (stretched and stretched.position)
    if knee is not None:
        assert (iops[knee.position], latency[knee.position]) == (knee.iops, knee.latency_ns)

"""Changes of level: false alarms over a year of unchanged runs, and after how many runs steps are found."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from noises import DAYS, NOISES

from assay.insight.history.change_points import (
    CHANCE,
    FALSE_ALARMS_A_YEAR,
    AskedSeries,
    ChangePoint,
    cautious_correlation,
    find_all,
    find_changes,
    first_changes,
)
from assay.insight.history.rank_sums import critical
from assay.insight.history.trends import runs_to_find


def false_alarms(histories: int, seed: int) -> dict[str, int]:
    """In how many histories of a year without any change one was found, by noise."""
    random = np.random.default_rng(seed)
    return {name: int((first_changes(noise(random, histories, DAYS))[0] >= 0).sum()) for name, noise in NOISES.items()}


@pytest.mark.slow  # 10,000 histories of a year; the test after it tries 300
def test_a_year_without_change_raises_a_false_alarm_in_at_most_one_history_of_a_hundred() -> None:
    alarms = false_alarms(10_000 // len(NOISES), seed=20261129)
    assert sum(alarms.values()) <= FALSE_ALARMS_A_YEAR * 10_000
    # The share of each noise is held, too: 3 standard deviations above 1 % of a thousand are 19.
    assert all(count <= 19 for count in alarms.values()), alarms


def test_hardly_any_false_alarm_in_300_histories() -> None:
    # Of 300 with a share of 1 % each, more than 12 alarms are seen once in 20,000 times.
    assert sum(false_alarms(30, seed=7).values()) <= 12


def test_the_smallest_samples_are_counted() -> None:
    """The critical value of each pair of sizes, against a count of all choices."""
    for one, other in itertools.product(range(1, 5), range(1, 7)):
        count = one + other
        sums = sorted(sum(places) - one * (one - 1) // 2 for places in itertools.combinations(range(count), one))
        for chance in (0.05, 0.3):
            allowed = [u for u in range(one * other // 2 + 1) if 2 * sum(x <= u for x in sums) <= chance * len(sums)]
            assert critical(one, other, chance) == max(allowed, default=-1)


@pytest.mark.parametrize(("known", "step", "most"), [(24, 8.0, 9), (40, 5.0, 12), (90, 3.0, 20)])
def test_a_step_is_found_after_few_runs(known: int, step: float, most: int) -> None:
    """Nine of ten steps, in deviations of the noise, after so many runs at the most."""
    random = np.random.default_rng(3)
    series = random.standard_normal((100, known + 40))
    series[:, known:] -= step
    found_at, at = first_changes(series)
    assert (found_at >= known).mean() > 0.9
    assert np.quantile(found_at - known + 1, 0.9) <= most
    assert (np.abs(at - known) <= 1).mean() > 0.7


def test_one_disturbed_run_is_no_change() -> None:
    random = np.random.default_rng(5)
    values = list(np.exp(0.02 * random.standard_normal(60)))
    for place in (20, 21, 40, 59):
        values[place] *= 0.3
    assert find_changes(values) == []


def test_several_changes_are_found_in_order_and_stay_when_more_runs_come() -> None:
    random = np.random.default_rng(11)
    levels = [100.0] * 40 + [80.0] * 40 + [90.0] * 40
    values = [level * math.exp(0.01 * random.standard_normal()) for level in levels]
    assert [change.at for change in find_changes(values)] == [40, 80]
    assert [change.at for change in find_changes(values[:60])] == [40]


def test_judging_many_figures_together_needs_more_evidence() -> None:
    random = np.random.default_rng(2)
    noise = np.exp(0.01 * random.standard_normal(80))
    values = [*noise[:40], *(0.8 * noise[40:])]
    alone, together = (find_changes(values, figures=figures)[0] for figures in (1, 500))
    assert alone.found_at < together.found_at
    assert runs_to_find(0, 500) > runs_to_find(0, 1) == 23


def test_on_a_virtual_clock_the_first_other_value_is_a_change() -> None:
    assert find_changes([5.0, 5.0, 5.0, 4.9, 4.9], exact=True) == [ChangePoint(3, 3)]
    assert find_changes([5.0, 5.0, 5.0, 4.9, 4.9]) == []
    assert find_changes([5.0, 4.9], exact=True) == []


def test_correlation_of_neighbours_is_not_that_of_a_step() -> None:
    random = np.random.default_rng(9)
    step = np.concatenate([random.standard_normal(200), random.standard_normal(200) + 20])
    assert cautious_correlation(step, 200, caution=0.0) < 0.2
    assert cautious_correlation(step, 0, caution=0.0) > 0.7
    assert cautious_correlation(step[:5], 2) == 0.9


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [3.0] * 100])
def test_short_and_constant_series_have_no_change(values: list[float]) -> None:
    assert find_changes(values) == []
    assert CHANCE < FALSE_ALARMS_A_YEAR


def test_series_that_are_judged_together_are_judged_as_each_alone() -> None:
    draws = np.random.default_rng(11)
    asked = []
    for number in range(24):
        length = (40, 60, 3)[number % 3]
        values = np.exp(draws.normal(0, 0.01, length) + 0.2 * (np.arange(length) >= length // 2) * (number % 2))
        asked.append(AskedSeries(values.tolist(), 1 + number % 4))
    asked.append(AskedSeries([1.0] * 20 + [2.0] * 20, exact=True))
    found = find_all(asked)
    assert found == [find_changes(one.values, figures=one.figures, exact=one.exact) for one in asked]
    assert found[-1] == [ChangePoint(20, 20)]
    assert any(found[:-1])
    assert find_all([]) == []

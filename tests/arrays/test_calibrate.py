"""Fitting parameters: by hand on a toy whose logarithms are linear, and on an array with one value hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from small_array import UNCERTAIN, small, small_text

from assay.base.errors import UsageError
from assay.insight.calibration.calibrate import FACTOR_MAX, MODEL_SHARE, _ridge, calibrate, uncertain
from assay.insight.calibration.observations import observations_of_points
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.model_file import read_model
from assay.workloads.io.plan import load_plan

OVERHEAD, SEEK, LEVEL = "disk.command_overhead", "disk.seek_full", "cache.dirty_low"
NOISE = 0.01
SD = math.hypot(NOISE, MODEL_SHARE)


class Toy:
    """An observation of an imaginary model: logarithm of IOPS = `off` + sum of slope x logarithm of the parameter."""

    noise_share = NOISE
    judged = "iops"

    def __init__(
        self, configuration: Configuration, slopes: Mapping[str, float], off: float = 0.0, label: str = "toy"
    ) -> None:
        self.configuration, self.slopes, self.off, self.label = configuration, slopes, off, label
        self.figures = {"iops": 1000.0}

    def predicted(self, values: Mapping[str, float]) -> dict[str, float]:
        moved = sum(
            slope * math.log(values[name] / self.configuration.value(name))
            for name, slope in self.slopes.items()
            if name in values
        )
        return {"iops": 1000.0 * math.exp(self.off + moved)}


def toys(*rows: tuple[Mapping[str, float], float], uncertain: dict[str, float] = UNCERTAIN) -> Any:
    """Toys of one array, each with its slopes and by how much the start is off."""
    array = Configuration(model=read_model(small_text(uncertain).encode(), origin="small.toml"))
    return [Toy(array, slopes, off, f"toy {number}") for number, (slopes, off) in enumerate(rows, 1)]


def complaint(observations: Sequence[Any], free: Sequence[str] | None = None) -> str:
    with pytest.raises(UsageError) as error:
        calibrate(observations, free=free)
    assert "\n" not in str(error.value)
    return str(error.value)


class TestByHand:
    def test_leave_one_out_of_a_mean(self) -> None:
        # With equal slopes the fit takes the mean of the errors away, and a point left out sees that of the others.
        fit = calibrate(toys(*(({OVERHEAD: -0.5}, off) for off in (0.1, 0, 0, 0))), free=[OVERHEAD])

        assert fit.errors == pytest.approx([math.expm1(0.075), *[math.expm1(-0.025)] * 3], abs=2e-3)
        assert fit.left_out == pytest.approx([math.expm1(0.1), *[math.expm1(-0.1 / 3)] * 3], abs=5e-4)
        assert fit.error_share == pytest.approx(math.sqrt((0.10517**2 + 3 * 0.03278**2) / 4), rel=0.01)

    def test_leave_one_out_of_unequal_slopes(self) -> None:
        slopes, offs = np.array([-0.2, -0.4, -0.6, -0.8]), np.array([0.05, -0.02, 0.03, 0.01])
        rows = zip(slopes, offs, strict=True)
        fit = calibrate(toys(*(({OVERHEAD: slope}, off) for slope, off in rows)), free=[OVERHEAD])

        for place in range(4):
            kept = np.arange(4) != place
            step = -(slopes[kept] @ offs[kept]) / (slopes[kept] @ slopes[kept])
            assert fit.left_out[place] == pytest.approx(math.expm1(offs[place] + slopes[place] * step), abs=5e-4)

    def test_the_value_and_its_covariance(self) -> None:
        factor = 1.5
        offs = [0.5 * math.log(factor)] * 4
        fit = calibrate(toys(*(({OVERHEAD: -0.5}, off) for off in offs)), free=[OVERHEAD])

        start = small().value(OVERHEAD)
        assert fit.values[OVERHEAD] == pytest.approx(start * factor, rel=0.01)
        # Four points of one slope: variance of a mean, over the slope squared.
        assert fit.covariance == [[pytest.approx(SD**2 / 4 / 0.5**2, rel=0.02)]]

    def test_scatter_beyond_the_noise_widens_the_covariance(self) -> None:
        offs = [0.2, -0.2, 0.2, -0.2]
        fit = calibrate(toys(*(({OVERHEAD: -0.5}, off) for off in offs)), free=[OVERHEAD])

        assert fit.covariance == [[pytest.approx((4 * 0.2**2 / 3) / 4 / 0.5**2, rel=0.02)]]

    def test_a_shift_has_the_sign_that_makes_up_for_the_other(self) -> None:
        # If seeks are longer than thought, the model is slower by them, and the overhead must be less.
        fit = calibrate(toys(*[({OVERHEAD: -0.5, SEEK: -0.2}, 0.0)] * 4), free=[OVERHEAD])

        assert fit.shifts == {SEEK: [pytest.approx(-0.2 / 0.5 * UNCERTAIN[SEEK], rel=0.01)]}

    def test_an_opposite_slope_turns_the_shift(self) -> None:
        fit = calibrate(toys(*[({OVERHEAD: -0.5, LEVEL: 0.3}, 0.0)] * 4), free=[OVERHEAD])

        assert fit.shifts == {LEVEL: [pytest.approx(0.3 / 0.5 * UNCERTAIN[LEVEL], rel=0.01)]}

    def test_two_parameters_are_told_apart(self) -> None:
        rows = [({OVERHEAD: -0.5, SEEK: -0.1}, 0.3), ({OVERHEAD: -0.1, SEEK: -0.5}, -0.1)] * 2
        fit = calibrate(toys(*rows), free=[OVERHEAD, SEEK])

        moved = np.linalg.solve([[0.5, 0.1], [0.1, 0.5]], [0.3, -0.1])
        found = [math.log(fit.values[name] / small().value(name)) for name in (OVERHEAD, SEEK)]
        assert found == pytest.approx(moved, abs=0.02)
        assert fit.covariance[0][1] == pytest.approx(fit.covariance[1][0])
        assert fit.covariance[0][1] < 0

    def test_ridge_is_least_squares_with_the_spread_as_further_rows(self) -> None:
        jacobian = np.array([[1.0, 0.4], [0.2, -0.7], [0.5, 0.5]])
        residuals, spread = np.array([0.3, -1.0, 2.0]), np.array([0.5, 2.0])
        augmented = np.vstack([jacobian, np.diag(1 / spread)])
        expected = np.linalg.lstsq(augmented, -np.concatenate([residuals, [0, 0]]), rcond=None)[0]

        assert _ridge(jacobian, residuals, spread) == pytest.approx(expected)
        assert np.abs(_ridge(jacobian, residuals, spread / 1e3)).max() < 1e-5

    def test_no_value_is_further_than_the_bounds(self) -> None:
        fit = calibrate(toys(*[({OVERHEAD: -0.1}, 0.3)] * 4), free=[OVERHEAD])

        assert fit.values[OVERHEAD] <= small().value(OVERHEAD) * FACTOR_MAX + 1


class TestChoice:
    @pytest.mark.parametrize("sure", [OVERHEAD, SEEK])
    def test_a_data_sheet_is_not_fitted_where_something_assumed_does(self, sure: str) -> None:
        # The value of the data sheet would need the smaller change.
        slopes = dict.fromkeys((OVERHEAD, SEEK), -0.5) | {sure: -1.0}
        known = dict.fromkeys((OVERHEAD, SEEK), 0.5) | {sure: 0.02}
        text = small_text(known)
        assert 'from = "fitted"' in text
        text = text.replace('from = "fitted"', 'from = "assumed"')
        array = Configuration(model=read_model(text.encode(), origin="small.toml"))

        fit = calibrate([Toy(array, slopes, 0.15) for _ in range(4)])  # type: ignore[misc]

        assert fit.free == (({OVERHEAD, SEEK} - {sure}).pop(),)

    def test_what_was_fitted_to_another_array_is_an_assumption(self) -> None:
        known = {OVERHEAD: 0.02, SEEK: 0.02}
        rows = [({OVERHEAD: -0.5, SEEK: -0.5}, 0.15)] * 4

        assert small().parameters[OVERHEAD].from_ == "fitted"
        assert calibrate(toys(*rows, uncertain=known)).free == (OVERHEAD,)

    def test_a_second_one_only_where_it_explains_more(self) -> None:
        both = [({OVERHEAD: -0.5, SEEK: 0.0}, 0.3), ({OVERHEAD: 0.0, SEEK: -0.5}, 0.2)] * 2
        same = [({OVERHEAD: -0.5, SEEK: -0.1}, 0.3)] * 4

        assert set(calibrate(toys(*both)).free) == {OVERHEAD, SEEK}
        assert calibrate(toys(*same)).free == (OVERHEAD,)

    def test_no_more_than_the_points_bear(self) -> None:
        both = [({OVERHEAD: -0.5, SEEK: -0.1}, 0.3), ({OVERHEAD: -0.1, SEEK: -0.5}, 0.2), ({OVERHEAD: -0.5}, 0.3)]

        assert len(calibrate(toys(*both)).free) == 1

    def test_where_nothing_is_left_to_explain_the_most_telling_one(self) -> None:
        fit = calibrate(toys(*[({OVERHEAD: -0.2, SEEK: -0.4, LEVEL: -0.1}, 0.0)] * 2))

        # By slope times uncertainty: 0.2 x 0.5 is more than 0.4 x 0.2.
        assert fit.free == (OVERHEAD,)

    def test_uncertain_are_numbers_above_0_that_a_healthy_array_shows(self) -> None:
        assert uncertain(small()) == UNCERTAIN
        more = UNCERTAIN | {"rebuild.depth": 0.5, "disk.usable": 0.1, "disks.count": 0.1, "cache.read_preference": 0.3}
        array = Configuration(model=read_model(small_text(more).encode(), origin="small.toml"))
        assert array.value("cache.read_preference") == 0
        assert uncertain(array) == UNCERTAIN


class TestRefused:
    def test_too_few_points(self) -> None:
        assert "1 point is too few; one parameter needs at least 2" in complaint(toys(({OVERHEAD: -0.5}, 0.0)))

    def test_more_parameters_than_the_points_bear(self) -> None:
        points = toys(*[({OVERHEAD: -0.5, SEEK: -0.1}, 0.0)] * 3)
        assert "2 parameters need at least 4 points, and there are 3" in complaint(points, [OVERHEAD, SEEK])

    @pytest.mark.parametrize(
        ("free", "words"),
        [
            (["disk.command_overhed"], "unknown parameter 'disk.command_overhed'; did you mean 'disk.command_"),
            (["zzz"], "unknown parameter 'zzz'; `assay model show small.toml` lists them"),
            (["disk.channels"], "unknown parameter 'disk.channels'"),
            (["cache.write_back"], "cache.write_back is no number above 0"),
            (["links.protocol"], "links.protocol is no number above 0"),
            (["cache.read_preference"], "cache.read_preference is no number above 0"),
            ([OVERHEAD, OVERHEAD], "named twice"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_fitted(self, free: list[str], words: str) -> None:
        assert words in complaint(toys(*[({OVERHEAD: -0.5}, 0.0)] * 4), free)

    def test_figures_no_value_explains(self) -> None:
        points = toys(*[({OVERHEAD: -0.5}, off) for off in (0.8, -0.8, 0.8, -0.9)])
        message = complaint(points, [OVERHEAD])

        assert f"no value of {OVERHEAD} explains the points (off by 8" in message
        assert "most at 'toy 4'" in message

    def test_a_load_that_the_model_never_meets_is_far_off_and_no_crash(self) -> None:
        points = toys(*[({OVERHEAD: -0.5}, 0.0)] * 4)
        for point in points[:3]:
            point.predicted = lambda _values: {"iops": 0.0}

        assert "explains the points" in complaint(points, [OVERHEAD])

    def test_parameters_the_points_say_nothing_about(self) -> None:
        points = toys(*[({OVERHEAD: -0.5, SEEK: 0.0}, 0.0)] * 4)
        assert f"the points say nothing about {SEEK};" in complaint(points, [OVERHEAD, SEEK])

    @pytest.mark.parametrize("known", [{}, {SEEK: 0.2}])
    def test_nothing_that_could_be_fitted(self, known: dict[str, float]) -> None:
        points = toys(*[({OVERHEAD: -0.5}, 0.0)] * 4, uncertain=known)
        assert "say nothing about any uncertain parameter" in complaint(points)


def test_a_parameter_chosen_for_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.insight.calibration.calibrate._choose", lambda *_asked: (OVERHEAD, SEEK))
    points = toys(*[({OVERHEAD: -0.5, SEEK: 0.0}, 0.05)] * 4, uncertain={OVERHEAD: 0.3, SEEK: 0.3})

    assert calibrate(points).free == (OVERHEAD,)


@pytest.mark.slow(reason="the quick tests above calibrate the same way, with toys for arrays")
class TestHiddenValue:
    """An array of which one parameter has another value than its file says."""

    @pytest.mark.parametrize("factor", [0.6, 1.6])
    def test_is_found_within_its_uncertainty(self, factor: float) -> None:
        start = small()
        true_value = start.value(OVERHEAD) * factor
        truth = start.with_values({OVERHEAD: true_value}).with_options({"seed": "77"})
        plan = {"timing": {"warmup_s": 1, "duration_s": 4}, "seed": 5}
        activity = {"block_bytes": [8192, 65536], "read_share": [0.7, 1.0], "queue_depth": 4}
        points, _ = simulate(truth, load_plan({**plan, "activity": [activity]}, source="test"))

        fit = calibrate(observations_of_points(points, start, "test"), free=[OVERHEAD])

        off = math.log(fit.values[OVERHEAD] / true_value)
        assert abs(off) < 2 * math.sqrt(fit.covariance[0][0])
        assert abs(off) < abs(math.log(factor)) / 3
        assert max(map(abs, fit.errors)) < 0.05

    def test_its_shift_is_what_another_fit_finds_when_the_other_parameter_is_higher(self) -> None:
        start = small()
        activity = {"block_bytes": [8192, 65536], "read_share": [0.7, 1.0], "queue_depth": 4}
        plan = load_plan({"timing": {"warmup_s": 1, "duration_s": 4}, "activity": [activity]}, source="test")
        points, _ = simulate(start.with_values({OVERHEAD: 900_000.0}), plan)

        fit = calibrate(observations_of_points(points, start, "test"), free=[OVERHEAD])
        higher = start.with_values({SEEK: start.value(SEEK) * math.exp(UNCERTAIN[SEEK])})
        again = calibrate(observations_of_points(points, higher, "test"), free=[OVERHEAD])

        # With the mean seek as it was, a longer full seek makes the short ones of a nearly empty array shorter.
        moved = math.log(again.values[OVERHEAD] / fit.values[OVERHEAD])
        assert moved > 0.1
        assert fit.shifts[SEEK][0] == pytest.approx(moved, abs=0.1)

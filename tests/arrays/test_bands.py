"""Error bands: what widens them, and that they hold what they were fitted to."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from small_array import UNCERTAIN, small, small_text

from assay.base.errors import Interrupted
from assay.insight.calibration.bands import (
    DOUBLE_PARITY_SHARE,
    MORE_MEMBERS_SHARE,
    NORMAL_95,
    OTHER_POLICY_SHARE,
    UNCALIBRATED_SHARE,
    Band,
    _of_the_model,
    band_of_answer,
    band_of_point,
)
from assay.insight.calibration.calibrate import MODEL_SHARE, Fit
from assay.insight.calibration.calibrated_file import calibrated_text, calibration_table
from assay.insight.calibration.observations import Observation, observations_of_published
from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration, configure
from assay.targets.arrays.model.model_file import read_model
from assay.workloads.io.plan import load_plan

OVERHEAD, SEEK = "disk.command_overhead", "disk.seek_full"
ACTIVITY = {"block_bytes": 8192, "read_share": 0.7, "queue_depth": 4}


def calibrated(
    uncertain: dict[str, float], *, sd: float = 0.05, left_out: float = 0.0, shifts: Mapping[str, float] | None = None
) -> Any:
    """A function from options to the small array, calibrated under RAID 10 and one member by decree."""
    structure = Configuration(model=read_model(small_text(uncertain).encode(), origin="s"), options={"volumes": "2"})
    fit = Fit(
        free=(OVERHEAD,),
        values={OVERHEAD: structure.value(OVERHEAD)},
        covariance=[[sd**2]],
        shifts={name: [shift] for name, shift in (shifts or {}).items()},
        labels=("one",),
        errors=(0.0,),
        left_out=(left_out,),
    )
    plan = load_plan({"activity": [ACTIVITY]}, source="t")
    seen = Observation(label="one", configuration=structure, plan=plan, figures={"iops": 1.0}, noise_share=0.01)
    text = calibrated_text(structure, "fitted", fit, calibration_table(fit, [seen], "a run"))
    model = read_model(text.encode(), origin="fitted")
    return lambda **options: Configuration(model=model, options={"volumes": "2", **options})


def point_on(configuration: Configuration) -> dict[str, Any]:
    plan = load_plan({"timing": {"warmup_s": 1, "duration_s": 1}, "activity": [ACTIVITY]}, source="t")
    return simulate(configuration, plan)[0][0]


def band_on(configuration: Configuration) -> Band:
    return band_of_point(configuration, point_on(configuration))


def spread(band: Band) -> float:
    """Standard deviation of the logarithm; a band is as wide upwards as downwards."""
    assert math.log(band.high) == pytest.approx(-math.log(band.low))
    return math.log(band.high) / NORMAL_95


class TestOfTheModel:
    """With every parameter known for sure, what is left is the model's own error."""

    @pytest.mark.parametrize(
        ("options", "shares", "words"),
        [
            ({}, [MODEL_SHARE], ""),
            ({"raid": "50"}, [MODEL_SHARE, OTHER_POLICY_SHARE], "; none of them under RAID 50"),
            ({"raid": "6"}, [MODEL_SHARE, DOUBLE_PARITY_SHARE], "; none of them under RAID 6"),
            ({"members": "2"}, [MODEL_SHARE, MORE_MEMBERS_SHARE], "; none of them with 2 members"),
        ],
    )
    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_is_wider_where_nothing_was_measured(
        self, options: dict[str, str], shares: list[float], words: str
    ) -> None:
        band = band_on(calibrated({}, sd=1e-9)(**options))

        assert spread(band) == pytest.approx(math.hypot(*shares), rel=1e-3)
        assert band.basis == f"calibrated to 1 points of a run{words}"

    def test_is_at_least_what_cross_validation_found(self) -> None:
        assert spread(band_on(calibrated({}, sd=1e-9, left_out=0.08)())) == pytest.approx(0.08, rel=1e-3)

    def test_of_an_array_nobody_calibrated(self) -> None:
        band = band_on(Configuration(model=read_model(small_text({}).encode(), origin="s"), options={"volumes": "2"}))

        assert spread(band) == pytest.approx(UNCALIBRATED_SHARE)
        assert band.basis == "not calibrated: data sheets and assumptions"


class TestOfParameters:
    def test_what_the_fit_left_open_counts_by_the_slope(self) -> None:
        array = calibrated({}, sd=0.2)
        start = array().value(OVERHEAD)

        def iops(factor: float) -> float:
            plan = load_plan({"timing": {"warmup_s": 2, "duration_s": 6}, "activity": [ACTIVITY]}, source="t")
            return float(simulate(array().with_values({OVERHEAD: start * factor}), plan)[0][0]["total"]["iops"])

        slope = math.log(iops(math.exp(0.2)) / iops(1.0)) / 0.2

        assert slope < -0.05
        assert spread(band_on(array())) == pytest.approx(math.hypot(MODEL_SHARE, 0.2 * slope), rel=0.05)

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_a_shift_of_the_fit_takes_back_what_another_parameter_does(self) -> None:
        known = {SEEK: 0.25}
        makes_up = -self._slope(SEEK, 0.25) * 0.25 / self._slope(OVERHEAD, 0.2)

        alone = spread(band_on(calibrated(known, sd=1e-9, shifts={SEEK: 0.0})()))
        together = spread(band_on(calibrated(known, sd=1e-9, shifts={SEEK: makes_up})()))

        assert alone > 1.2 * MODEL_SHARE
        assert together == pytest.approx(MODEL_SHARE, rel=0.05)

    def _slope(self, name: str, step: float) -> float:
        array = small()
        plan = load_plan({"timing": {"warmup_s": 2, "duration_s": 6}, "activity": [ACTIVITY]}, source="t")
        values = [{}, {name: array.value(name) * math.exp(step)}]
        low, high = (simulate(array.with_values(each), plan)[0][0]["total"]["iops"] for each in values)
        return math.log(high / low) / step

    def test_parameters_without_effect_when_it_was_calibrated_are_left_out(self) -> None:
        known = {SEEK: 0.25}

        assert spread(band_on(calibrated(known, sd=1e-9)())) == pytest.approx(MODEL_SHARE, rel=1e-3)

    def test_but_not_those_that_parity_makes_matter(self) -> None:
        known = {"disk.write_settle": 2.0}
        busy = {"raid": "50", "write_back": "no"}

        wide = spread(band_on(calibrated(known, sd=1e-9)(**busy)))

        assert wide > 1.1 * math.hypot(MODEL_SHARE, OTHER_POLICY_SHARE)

    @pytest.mark.slow(reason="whole bands of three policies; each part of a band has a quick test")
    def test_the_order_of_policies_with_all_of_it(self) -> None:
        array = calibrated(UNCERTAIN, shifts={SEEK: 0.2})
        widths = [spread(band_on(array(raid=raid))) for raid in ("10", "50", "6")]
        bare = spread(band_on(small()))

        assert widths == sorted(widths)
        assert widths[0] < 0.8 * widths[2]
        assert bare > UNCALIBRATED_SHARE

    def test_an_interrupt_is_heard(self) -> None:
        interrupt = threading.Event()
        interrupt.set()
        array = small()

        with pytest.raises(Interrupted):
            band_of_point(array, point_on(array), interrupt=interrupt)


class TestOfAnAnswer:
    def ends(self, outstanding: tuple[int, int], iops: tuple[float, float] | None) -> dict[str, Any]:
        """An answer of a search with made-up figures at both ends."""
        best = {"point_id": "p0001", "outstanding": outstanding[0], "iops": (iops or (1000.0,))[0]}
        failing = {"point_id": "p0002", "outstanding": outstanding[1], "iops": iops[1]} if iops else None
        return {"max": best, "first_failing": failing, "axis": "outstanding"}

    def test_near_saturation_speed_is_throughput_and_below_it_the_limit_moves(self) -> None:
        array = calibrated({}, sd=0.3)()
        point = point_on(array)

        def with_load(name: str, outstanding: float, iops: float) -> dict[str, Any]:
            total = {"iops": iops, "latency_ns": {"mean": outstanding / iops * 1e9}}
            return point | {"id": name, "total": total}

        def of(iops: tuple[float, float] | None) -> float:
            first, second = iops or (1000.0, 1000.0)
            points = [with_load("p0001", 10, first), with_load("p0002", 20, second)]
            band = band_of_answer(array, self.ends((10, 20), iops), points)
            assert band is not None
            return spread(band) ** 2 - MODEL_SHARE**2

        given, saturated, half, light = of(None), of((1000.0, 1000.0)), of((1000.0, 1000 * 2**0.5)), of((1e3, 1.99e3))

        assert saturated == pytest.approx(given)
        assert half == pytest.approx(given / 0.5**2)
        assert light == pytest.approx(given / 0.25**2)
        # A curve that falls counts as flat.
        assert of((1000.0, 900.0)) == pytest.approx(given)

    def test_none_without_an_answer_or_with_several_activities(self) -> None:
        array = small()
        point = point_on(array)
        mixed = point | {"workload": {**point["workload"], "activities": []}}

        assert band_of_answer(array, {"max": None, "first_failing": None, "axis": "outstanding"}, [point]) is None
        assert band_of_answer(array, self.ends((1, 2), None), [mixed]) is None

    def test_around_a_figure(self) -> None:
        band = Band(low=0.8, high=1.25, basis="why")

        assert band.around(1000.0) == {"band_90": [800.0, 1250.0], "band_basis": "why"}


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_band_of_the_worst_published_point_holds_it() -> None:
    fitted, _ = observations_of_published(configure("ps6100xv"), None)
    worst = next(each for each in fitted if "40 % full, 64 KiB" in each.label)
    predicted = worst.predicted({})["iops"]
    depth = worst.near["depth"]
    plan = load_plan(
        {"timing": {"warmup_s": 1, "duration_s": 1}, "activity": [{**worst.plan.activity[0], "queue_depth": depth}]},
        source="t",
    )
    point = simulate(worst.configuration, plan)[0][0]

    band = band_of_point(worst.configuration, point)

    assert predicted * band.low <= worst.figures["iops"] <= predicted * band.high
    assert band.high < 1.3


class TestOutsideWhatWasMeasured:
    """Calibrated at random 8 and 64 KiB with 70 % reads only: what lies beyond says so and is wider."""

    @pytest.mark.parametrize(
        ("activity", "words"),
        [
            ({"random_share": 0.0, "block_bytes": 65536}, "none of them sequential"),
            ({"block_bytes": 1 << 20}, "none of them with blocks of 1 MiB"),
            ({"read_share": 0.0}, "none of them with 0% reads"),
        ],
    )
    def test_it_is_wider_and_said(self, activity: dict[str, Any], words: str) -> None:
        array = configure("ps6100xv", {"volumes": "6", "fill": "0.4"})
        usual, usual_words = _of_the_model(array, {"block_bytes": 8192, "read_share": 0.7})
        wider, told = _of_the_model(array, {"block_bytes": 8192, "read_share": 0.7, **activity})

        assert wider > 1.2 * usual
        assert words in told
        assert "none of them" not in usual_words

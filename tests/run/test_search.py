"""The search on simulated devices, whose answer is known."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.run.bracket import Distance, LoadReading, SearchCurve
from assay.run.search import search
from assay.workloads.io.workload import IoWorkload
from assay.workloads.steps import REPEATS_FACTOR, Axis

LIMIT = "read.mean<=20ms"
FIGURES = IoWorkload.figures
FAR = 0.5


class Device:
    """Points of a simulated device: how far each misses its limit, and the throughput at its load.

    `missed_by` gives the logarithm of the metric over its limit; one value a volume.
    """

    def __init__(
        self,
        missed_by: Callable[[float], float | Sequence[float]],
        iops: Callable[[float], float] = lambda load: load * 100,
        fault: str | None = None,
    ) -> None:
        self.missed_by, self.iops, self.fault = missed_by, iops, fault
        self.asked: list[tuple[float, str, int]] = []
        self.ids = (f"p{number:04d}" for number in itertools.count(1))

    @classmethod
    def passing(cls, passes: Callable[[float], bool], **options: Any) -> Device:
        """A device that clearly passes or clearly fails."""
        return cls(lambda load: -FAR if passes(load) else FAR, **options)

    def measure(self, load: float, purpose: str, repeat: int) -> dict[str, Any]:
        self.asked.append((load, purpose, repeat))
        iops, missed_by = self.iops(load), self.missed_by(load)
        return {
            "id": next(self.ids),
            "missed_by": [missed_by] if isinstance(missed_by, float) else missed_by,
            "total": {"iops": iops, "bytes_per_s": iops * 8192, "latency_ns": {"mean": load / iops * 1e9}},
            "read": {"count": 1, "iops": iops, "bytes_per_s": iops * 8192, "latency_ns": {"mean": load / iops * 1e9}},
            "write": None,
            "batches": {"total": {"iops": [iops * factor for factor in (0.99, 1.0, 1.01, 1.0)]}},
        }

    def read(self, point: Any) -> LoadReading:
        if self.fault is not None and max(point["missed_by"]) > 0:
            return LoadReading(fault=self.fault)
        return LoadReading(
            distances=[
                Distance(limit=LIMIT, scope=f"data/v{volume}", missed_by=missed_by)
                for volume, missed_by in enumerate(point["missed_by"])
            ]
        )

    @property
    def loads(self) -> list[float]:
        return [load for load, purpose, _ in self.asked if purpose == "search"]

    def search(self, axis: Axis, repeats: int = 1) -> dict[str, Any]:
        return search(axis, self.measure, self.read, figures=FIGURES, repeats=repeats)


def depths(start: float = 1, end: float = 1024, resolution_share: float = 0.06) -> Axis:
    return Axis(name="outstanding", start=start, end=end, whole=True, resolution_share=resolution_share)


def rates(start: float = 100, end: float = 1e6, resolution_share: float = 0.06) -> Axis:
    return Axis(name="rate", start=start, end=end, whole=False, resolution_share=resolution_share)


@given(largest=st.integers(1, 1023), share=st.floats(0.005, 0.3))
def test_it_finds_the_largest_passing_depth_within_the_resolution(largest: int, share: float) -> None:
    answer = Device.passing(lambda load: load <= largest).search(depths(resolution_share=share))

    edge, failing = answer["edge"]["outstanding"], answer["first_failing"]["outstanding"]
    assert edge <= largest < failing
    assert failing - edge <= max(1, share * failing)
    assert answer["step_share"] == (failing - edge) / failing
    assert (answer["limited_by"], answer["non_monotone"], answer["undecided"]) == (LIMIT, False, False)
    assert answer["max"] == answer["edge"]


@given(largest=st.floats(100, 9e5), share=st.floats(0.01, 0.3))
def test_it_finds_the_largest_passing_rate_within_the_resolution(largest: float, share: float) -> None:
    answer = Device.passing(lambda load: load <= largest).search(rates(resolution_share=share))

    edge, failing = answer["edge"]["rate"], answer["first_failing"]["rate"]
    assert edge <= largest < failing
    assert failing - edge <= share * failing


@given(largest=st.integers(0, 2000), start=st.integers(1, 50), end=st.integers(50, 1024))
def test_it_goes_upward_and_never_beyond_the_axis(largest: int, start: int, end: int) -> None:
    device = Device.passing(lambda load: load <= largest)
    device.search(depths(start, end))

    assert device.loads[0] == start
    assert all(start <= load <= end for load, _, _ in device.asked)
    assert len(set(device.loads)) == len(device.loads)
    # No load is tried that is more than twice one that passed, so a slow device is never flooded.
    for position, load in enumerate(device.loads[1:], start=1):
        assert load <= 2 * max([start, *(tried for tried in device.loads[:position] if tried <= largest)])


@given(largest=st.integers(1, 1023), repeats=st.integers(0, 3))
def test_both_ends_are_measured_again_and_all_points_kept(largest: int, repeats: int) -> None:
    device = Device.passing(lambda load: load <= largest)
    answer = device.search(depths(), repeats=repeats)

    again = [(load, repeat) for load, purpose, repeat in device.asked if purpose == "repeat"]
    ends = [answer["edge"]["outstanding"], answer["first_failing"]["outstanding"]]
    assert again == [(end, repeat) for repeat in range(1, repeats + 1) for end in ends]
    assert len(answer["point_ids"]) == len(set(answer["point_ids"])) == len(device.asked)


def test_it_says_when_no_load_passes() -> None:
    answer = Device.passing(lambda _: False).search(depths())

    ends = ("max", "knee", "edge", "interval_95", "crossing", "step_share")
    assert [answer[name] for name in ends] == [None] * len(ends)
    assert answer["first_failing"]["outstanding"] == 1
    assert answer["limited_by"] == LIMIT


def test_it_says_when_the_axis_ends_first() -> None:
    answer = Device.passing(lambda _: True).search(depths(end=100))

    assert (answer["edge"]["outstanding"], answer["first_failing"], answer["limited_by"]) == (100, None, "axis end")


def test_it_stops_where_more_load_brings_no_more_and_answers_with_the_most() -> None:
    device = Device.passing(lambda _: True, iops=lambda load: min(load, 10) * 100 - load / 1000)
    answer = device.search(depths())

    assert answer["limited_by"] == "saturation"
    assert answer["max"]["iops"] == pytest.approx(1000, rel=0.01)
    assert max(device.loads) <= 64


def test_a_plateau_does_not_stop_a_search_that_asks_for_the_limit_alone() -> None:
    axis = Axis(name="outstanding", start=1, end=256, whole=True, stops_at_plateau=False)
    answer = Device.passing(lambda load: load <= 100, iops=lambda _: 1000).search(axis)

    assert 94 <= answer["edge"]["outstanding"] <= 100


@pytest.mark.parametrize(("largest", "found"), [(7, 6), (6, 6), (100, 8), (0, None)])
def test_a_search_with_steps_tries_no_loads_between_them(largest: int, found: int | None) -> None:
    axis = Axis(name="outstanding", start=1, end=256, whole=True, steps=(1, 2, 4, 6, 8))
    device = Device.passing(lambda load: load <= largest)
    answer = device.search(axis)

    assert device.loads == [load for load in axis.steps if load <= max(largest, 1) or load == 8][: len(device.loads)]
    assert (answer["edge"] or {}).get("outstanding") == found


@pytest.mark.parametrize(("least", "found", "failing"), [(64, 64, 32), (16, 16, None), (512, None, 256)])
def test_of_an_axis_that_falls_the_least_is_found_from_the_most_down(
    least: int, found: int | None, failing: int | None
) -> None:
    steps = (256, 128, 64, 32, 16)
    axis = Axis(name="memory_bytes", start=256, end=16, whole=True, stops_at_plateau=False, steps=steps, falls=True)
    device = Device.passing(lambda load: load >= least)

    answer = device.search(axis, repeats=0)

    assert device.loads == [step for step in steps if step >= (failing or 0)]
    ends = [answer[end] and answer[end]["memory_bytes"] for end in ("max", "edge", "first_failing")]
    assert ends == [found, found, failing]
    assert answer["knee"] is None
    assert answer["limited_by"] == ("axis end" if failing is None else LIMIT)


@pytest.mark.parametrize("reason", ["generator", "errors", "rate not sustained"])
def test_what_is_no_limit_stops_it_too_and_is_named(reason: str) -> None:
    answer = Device.passing(lambda load: load <= 20, fault=reason).search(depths())

    assert answer["limited_by"] == reason
    assert 18 <= answer["edge"]["outstanding"] <= 20
    assert answer["crossing"] is None


def test_the_most_the_knee_and_the_edge_are_told_apart() -> None:
    """39,761 IOPS at 256 outstanding and 37,556 at 640, both within limits: the answer was the latter."""
    peak = {1: 2000, 2: 4000, 4: 8000, 8: 15_000, 16: 25_000, 32: 33_000, 64: 37_000, 128: 39_000, 256: 39_761}
    device = Device.passing(lambda load: load <= 640, iops=lambda load: peak.get(int(load), 37_556))
    answer = device.search(Axis(name="outstanding", start=1, end=1024, whole=True, stops_at_plateau=False))

    assert (answer["max"]["outstanding"], answer["max"]["iops"]) == (256, 39_761)
    # 95 % of it is 37,773.
    assert (answer["knee"]["outstanding"], answer["knee"]["iops"]) == (128, 39_000)
    assert answer["knee"]["read_latency_mean_ns"] == pytest.approx(128 / 39_000 * 1e9)
    assert 600 < answer["edge"]["outstanding"] <= 640
    assert answer["limited_by"] == "saturation"
    low, high = answer["interval_95"]
    assert low < 39_761 < high


@pytest.mark.parametrize(
    ("missed_by", "flagged"),
    [
        ({1.0: -FAR, 2.0: -FAR, 4.0: FAR}, False),
        ({1.0: -FAR, 2.0: FAR, 4.0: -FAR}, True),
        ({1.0: FAR, 2.0: -FAR, 4.0: FAR}, True),
        ({1.0: FAR, 2.0: FAR}, False),
        # Missed by too little to tell.
        ({1.0: -FAR, 2.0: 0.001, 4.0: -FAR}, False),
    ],
)
def test_a_curve_that_fails_below_a_load_that_passes_is_flagged(missed_by: dict[float, float], flagged: bool) -> None:
    device = Device(lambda load: missed_by[load])
    curve = SearchCurve(axis=depths(), figures=FIGURES)
    for load in missed_by:
        point: Any = device.measure(load, "search", 0)
        curve.add(load, point, device.read(point))

    assert curve.is_non_monotone is flagged


def test_one_unlucky_repeat_does_not_undo_a_load() -> None:
    """One of six volumes read 20.03 ms in one repeat: its mean over repeats meets the limit."""
    unlucky = iter([math.log(20.03 / 20)])

    def volumes(load: float) -> list[float]:
        away = math.log(load / 75)
        return [next(unlucky, away) if load == 72 and repeated[-1] else away] + [away] * 5

    repeated: list[int] = []
    device = Device(volumes)
    found = search(
        depths(6, 6144),
        lambda load, purpose, repeat: repeated.append(repeat) or device.measure(load, purpose, repeat),  # type: ignore[func-returns-value,return-value]
        device.read,
        figures=FIGURES,
    )

    assert 72 <= found["edge"]["outstanding"] <= 75
    assert found["edge"]["outstanding"] < found["first_failing"]["outstanding"] <= 80


def test_a_load_that_failed_once_by_bad_luck_lets_the_search_go_on_above_it() -> None:
    """The bracket is found again after each repeat, and the climb goes on where all loads pass."""
    bad = iter([0.05])
    device = Device(lambda load: next(bad) if load == 16 and not any(at == 16 for at, *_ in device.asked[:-1]) else
                    -FAR if load <= 100 else FAR)  # fmt: skip
    answer = device.search(depths())

    assert 94 <= answer["edge"]["outstanding"] <= 100


def test_a_limit_too_near_to_tell_is_undecided() -> None:
    chance = random.Random(1)
    device = Device(lambda load: (0.0 if load == 64 else -FAR if load < 64 else FAR) + chance.uniform(-0.1, 0.1))
    answer = device.search(depths())

    assert answer["undecided"] is True
    assert sum(load == 64 for load, *_ in device.asked) == 1 + REPEATS_FACTOR
    judged = next(end for end in (answer["edge"], answer["first_failing"]) if end["outstanding"] == 64)["limiting"]
    assert (judged["limit"], judged["scope"]) == (LIMIT, "data/v0")
    low, high = judged["interval_95"]
    assert low < 1 < high


def test_the_point_of_an_answer_shows_what_is_said_of_its_load_and_the_others_are_counted() -> None:
    """Each repeat misses by a volume of its own, while the mean of each volume meets the limit."""
    unlucky = iter([(0.01, -0.05), (-0.02, -0.02), (-0.05, 0.01), (0.01, -0.05), (-0.05, 0.01), (-0.05, 0.01)])
    device = Device(lambda load: next(unlucky) if load == 64 else (-FAR, -FAR) if load < 64 else (FAR, FAR))
    read, points = device.read, []
    answer = search(depths(), device.measure, lambda point: points.append(point) or read(point), figures=FIGURES)

    edge, failing = answer["edge"], answer["first_failing"]
    assert (edge["outstanding"], edge["repeats"], edge["repeats_met"]) == (64, 6, 1)
    assert failing["repeats_met"] == 0
    shown = {point["id"]: point["missed_by"] for point in points}
    assert max(shown[edge["point_id"]]) <= 0 < max(shown[failing["point_id"]])


def test_a_step_wider_than_the_resolution_is_said_and_the_crossing_interpolated() -> None:
    """One I/O more or less is 25 % of the load."""
    answer = Device(lambda load: math.log(load / 3.5)).search(depths())

    assert (answer["edge"]["outstanding"], answer["first_failing"]["outstanding"]) == (3, 4)
    assert answer["step_share"] == 0.25 > answer["resolution_share"]
    assert answer["crossing"]["outstanding"] == pytest.approx(3.5, rel=0.02)
    low, high = answer["crossing"]["interval_95"]
    assert 3 <= low < 3.5 < high <= 4


LESS = pytest.mark.slow(reason="the curve with most noise is tried")


@pytest.mark.parametrize(
    ("noise", "volumes"), [pytest.param(0.01, 1, marks=LESS), (0.04, 1), pytest.param(0.03, 6, marks=LESS)]
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_interval_of_the_crossing_covers_it(noise: float, volumes: int) -> None:
    """On 1,000 noisy curves; the interval of the most throughput covers that at the crossing."""
    seeds, covered, covers_throughput = 1000, 0, 0
    for seed in range(seeds):
        chance = random.Random(seed)
        crossing = chance.uniform(20, 600)

        def away(load: float, crossing: float = crossing) -> float:
            """Latency is flat at low load and rises with it in the end, as in a closed loop."""
            return math.log((10 + load) / (10 + crossing))

        def throughput(load: float) -> float:
            return load / (10 + load) * 1e4

        device = Device(
            lambda load, chance=chance, away=away: [away(load) + chance.gauss(0, noise) for _ in range(volumes)],
            iops=throughput,
        )
        answer = device.search(depths(6, 4096))
        low, high = (answer["crossing"] or {}).get("interval_95") or (math.inf, -math.inf)
        covered += low <= crossing <= high
        low, high = answer["edge"]["interval_95"]
        covers_throughput += low <= throughput(crossing) <= high

    assert covered >= 0.9 * seeds
    assert covers_throughput >= 0.9 * seeds


@given(largest=st.integers(2, 1000))
def test_the_interval_holds_the_answer_and_reaches_to_the_crossing(largest: int) -> None:
    answer = Device.passing(lambda load: load <= largest).search(depths())

    low, high = answer["interval_95"]
    assert low <= answer["max"]["iops"] <= high
    assert low <= answer["crossing"]["outstanding"] * 100 <= high
    assert low > answer["max"]["iops"] * 0.9


def test_a_point_with_a_fault_has_no_share_in_the_figures_of_its_load() -> None:
    curve = SearchCurve(axis=depths(), figures=FIGURES, repeats=1)
    device = Device.passing(lambda _: True)
    for fault, share in (("generator", 0.5), (None, 1.0), (None, 1.0)):
        point = device.measure(4, "search", 0)
        point["total"]["iops"] *= share
        curve.add(4, point, LoadReading(fault=fault) if fault else device.read(point))
    assert curve.throughput(4) == 400
    assert curve.answer()["max"]["point_id"] == "p0002"
    assert curve.answer()["max"]["iops"] == 400

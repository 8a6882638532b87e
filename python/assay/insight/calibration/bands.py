"""Error bands: how far a model's prediction may be off, from what its file says is uncertain.

Three things add up, as independent errors of the logarithm: what the fit left open of the fitted parameters; every
other uncertain parameter, moved by its stated uncertainty with the fit repeated (linearly) around it; and the model
itself, at least the error of leave-one-out cross-validation, more under conditions at which nothing was measured.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np

from assay import _core
from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.insight.calibration.calibrate import MODEL_SHARE, uncertain
from assay.insight.calibration.observations import AskedActivity, activity_of, mean_block_bytes
from assay.record.shapes.point import Answer, Direction, Point
from assay.run.simulate import simulate_bytes_per_s
from assay.targets.arrays.model.configuration import Configuration
from assay.workloads.io.plan import IoPlan

NORMAL_95 = 1.645
"""A band of 90 % reaches so many standard deviations to either side."""
UNCALIBRATED_SHARE = 0.15
"""Without a calibration: mean error of published models of real arrays (HP analytic model, 2001)."""
OTHER_POLICY_SHARE = 0.05
"""Under a RAID policy at which nothing was measured: how an array writes parity is its maker's choice."""
DOUBLE_PARITY_SHARE = 0.14
"""The same for double parity, whose write path differs most: about +-25 %, as the method's reference advises."""
MORE_MEMBERS_SHARE = 0.03
"""With more members than were measured."""
OTHER_BLOCK_SHARE = 0.07
OTHER_FILL_SHARE = 0.03
OTHER_MIX_SHARE = 0.05
"""With blocks beyond half and twice those measured, or a fill or share of reads off by more than `NEAR_SHARE`."""
OTHER_ORDER_SHARE = UNCALIBRATED_SHARE
"""Sequential I/O where only random was measured, or the reverse: other parts of the array decide."""
NEAR_SHARE = 0.15
SIMULATED_IOS = 25_000
"""I/Os in the window of each simulation, of half a second to six: throughput is then known to about 0.3 %."""
FAST_IOPS = 50_000
"""Arrays that are as fast fill their buffers within a second, so that a shorter warm-up will do."""
IOPS_MAX = 200_000
"""Faster arrays have no band: each of the simulations would take a second and more."""
STEP_MIN = 0.1
"""Parameters are moved by no less than this share, against the noise of a simulation."""
MIN_LATENCY_RISE = 0.25
"""At a latency limit a change of the array's speed counts by the inverse of how steeply latency rises with load; near
saturation that is about 1, at light load the limit is hardly felt, and the ratio is bounded."""


class FigureBand(TypedDict):
    """What an answer or a point says of how far its model may be off: I/Os per second, and what that rests on."""

    band_90: list[float]
    band_basis: str


class RateEnd(TypedDict):
    """A load of a search of I/O, and the I/Os per second that it gave."""

    iops: float
    point_id: str


@dataclass(frozen=True, kw_only=True)
class Band:
    """A band of 90 %: factors of the predicted figure, and what it rests on."""

    low: float
    high: float
    basis: str

    def around(self, iops: float) -> FigureBand:
        """The 90 % error band around a rate, as answers and points have it."""
        return {"band_90": [iops * self.low, iops * self.high], "band_basis": self.basis}


def band_of_answer(
    configuration: Configuration,
    answer: Answer,
    points: Sequence[Point],
    *,
    interrupt: threading.Event | None = None,
) -> Band | None:
    """The band of a search's answer; None where it has none, or its workload has several activities.

    Raises
    ------
    UsageError
        The activity does not fit the array's volumes.
    """
    by_id = {point["id"]: point for point in points}
    # A search of I/O keeps throughput and point with each of its loads.
    best, failing, edge = (
        cast(RateEnd | None, end) for end in (answer["max"], answer["first_failing"], answer.get("edge"))
    )
    if best is None or "activities" in by_id[best["point_id"]]["workload"] or best["iops"] > IOPS_MAX:
        return None
    activity = activity_of(by_id[best["point_id"]], len(configuration.volumes))
    slope = None
    # Below the edge it is no limit that cuts the curve off.
    if failing is not None and (edge or best)["point_id"] == best["point_id"]:
        under_way, further = (_under_way(by_id[end["point_id"]]) for end in (best, failing))
        rise = math.log(failing["iops"] / best["iops"]) / math.log(further / under_way) if further > under_way else 0.0
        slope = min(max(rise, 0.0), 1.0)
    closed = _closed(activity, by_id[best["point_id"]], len(configuration.volumes))
    return _band_at_load(configuration, closed, best["iops"], slope, interrupt)


def _under_way(point: Point) -> float:
    """Mean number of I/Os under way: throughput times latency (Little's law)."""
    total = _total(point)
    return total["iops"] * (total["latency_ns"]["mean"] or 0.0) / 1e9


def _total(point: Point) -> Direction:
    total = point["total"]
    assert total is not None
    return total


def _closed(activity: AskedActivity, point: Point, volumes: int) -> AskedActivity:
    """The activity as a closed loop with as many I/Os under way: at a given rate, speed shows in latency alone."""
    if "rate" not in activity:
        return activity.copy()
    closed = activity.copy()
    for key in ("rate", "arrivals", "wave_period_s", "wave_share", "wave_peak"):
        closed.pop(key, None)  # type: ignore[misc]
    closed["workers"] = 1
    closed["queue_depth"] = max(round(_under_way(point) / volumes), 1)
    return closed


def band_of_point(
    configuration: Configuration, point: Point, *, interrupt: threading.Event | None = None
) -> Band | None:
    """The band of a point of one activity, at the load that was given; None where it has none.

    Raises
    ------
    UsageError
        The activity does not fit the array's volumes.
    """
    iops = _total(point)["iops"]
    if iops > IOPS_MAX:
        return None
    volumes = len(configuration.volumes)
    closed = _closed(activity_of(point, volumes), point, volumes)
    return _band_at_load(configuration, closed, iops, None, interrupt)


def _band_at_load(
    configuration: Configuration,
    activity: AskedActivity,
    iops: float,
    curve_slope: float | None,
    interrupt: threading.Event | None,
) -> Band:
    """The band of a throughput at an activity with its load, at which there were so many IOPS.

    `curve_slope` is the slope of the logarithm of throughput over that of load where a latency limit cut the curve off;
    None for a figure at a load that was given.
    """
    calibration = configuration.model.calibration
    timing = {
        "warmup_s": 1 if iops > FAST_IOPS else 2,
        "duration_s": min(max(SIMULATED_IOS / max(iops, 1.0), 0.5), 6.0),
    }
    plan = IoPlan.model_validate({"name": "band", "timing": timing, "activity": (dict(activity),)})
    warm = _core.WarmCaches()

    def log_throughput(values: Mapping[str, float]) -> float:
        asked = configuration.with_values(values)
        return math.log(simulate_bytes_per_s(asked, plan, interrupt=interrupt, warm=warm))

    start = log_throughput({})

    def slope(name: str, sd: float) -> float:
        value = float(configuration.value(name))
        step = max(sd, STEP_MIN)
        for factor in (math.exp(step), math.exp(-step)):
            moved = _within(name, value * factor)
            if moved > 0 and moved != value:
                try:
                    return (log_throughput({name: moved}) - start) / math.log(moved / value)
                except UsageError:
                    # It would contradict another parameter.
                    continue
        return 0.0

    free = list(calibration["free"] or ()) if calibration else []
    shifts = calibration["shifts"] if calibration else {}
    others = {
        name: sd
        for name, sd in uncertain(configuration).items()
        if name not in free and (not calibration or name in shifts or _new_here(name, configuration))
    }
    asked = {**dict.fromkeys(free, 0.2), **others}
    slopes = dict(zip(asked, _simulations().map(slope, asked.keys(), asked.values()), strict=True))
    by_free = np.array([slopes[name] for name in free])
    variance = float(by_free @ np.array(calibration["covariance"]) @ by_free) if calibration else 0.0
    for name, sd in others.items():
        moved = slopes[name] * sd
        if name in shifts:
            moved += float(by_free @ np.array(shifts[name]))
        variance += moved**2
    if curve_slope is not None:
        variance /= max(1 - curve_slope, MIN_LATENCY_RISE) ** 2
    model_share, basis = _of_the_model(configuration, activity)
    spread = NORMAL_95 * math.sqrt(variance + model_share**2)
    return Band(low=math.exp(-spread), high=math.exp(spread), basis=basis)


@functools.cache
def _simulations() -> ThreadPoolExecutor:
    """Threads that all bands of the process share: no more models are in memory at once than there are cores."""
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="assay-band")


def _within(name: str, value: float) -> float:
    from assay.targets.arrays.model.parameters import PARAMETERS

    known = PARAMETERS[name]
    bounded = min(max(value, known.low), known.high)
    return float(round(bounded)) if known.kind.whole else bounded


def _new_here(name: str, configuration: Configuration) -> bool:
    """Whether a parameter may matter where it did not in the calibration: with parity, destaging costs more."""
    calibration = configuration.model.calibration or {}
    return bool(set(configuration.policies) - {*calibration.get("raid", ())}) and name in (
        "cache.destage_depth",
        "disk.write_settle",
        "disk.reorder_weight",
    )


def _of_the_model(configuration: Configuration, activity: AskedActivity) -> tuple[float, str]:
    """What the model itself leaves open, and in words what it rests on."""
    calibration = configuration.model.calibration
    if not calibration:
        return UNCALIBRATED_SHARE, "not calibrated: data sheets and assumptions"
    shares = [max(MODEL_SHARE, calibration["error_share"] or 0.0)]
    words = [f"calibrated to {calibration['points']} points of {calibration['from']}"]
    if others := [policy for policy in configuration.policies if policy not in calibration["raid"]]:
        double = not {*others}.isdisjoint(("6", "60", "dp"))
        shares.append(DOUBLE_PARITY_SHARE if double else OTHER_POLICY_SHARE)
        words.append(f"none of them under RAID {' or '.join(others).upper()}")
    if configuration.members > max(calibration["members"]):
        shares.append(MORE_MEMBERS_SHARE)
        words.append(f"none of them with {configuration.members} members")
    block_bytes = mean_block_bytes(activity)
    if not calibration["block_bytes"][0] / 2 <= block_bytes <= calibration["block_bytes"][1] * 2:
        shares.append(OTHER_BLOCK_SHARE)
        words.append(f"none of them with blocks of {format_bytes(block_bytes)}")
    if _is_far(activity.get("random_share", 1.0), calibration["random_share"]):
        shares.append(OTHER_ORDER_SHARE)
        words.append("none of them " + ("sequential" if activity.get("random_share", 1.0) < 0.5 else "random"))
    if _is_far(activity.get("read_share", 1.0), calibration["read_share"]):
        shares.append(OTHER_MIX_SHARE)
        words.append(f"none of them with {activity.get('read_share', 1.0):.0%} reads")
    if _is_far(configuration.fill, calibration["fill"]):
        shares.append(OTHER_FILL_SHARE)
        words.append(f"none of them {configuration.fill:.0%} full")
    return math.hypot(*shares), "; ".join(words)


def _is_far(value: float, measured: Sequence[float]) -> bool:
    """Whether a share lies well outside the range that was measured."""
    low, high = measured
    return not low - NEAR_SHARE <= value <= high + NEAR_SHARE

"""How sure a purchase is: from the error band of its model and from the spread of the demand."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, cast

from assay import _core
from assay.base.errors import Interrupted, UsageError
from assay.base.progress import Silent
from assay.insight.calibration.bands import MORE_MEMBERS_SHARE, NORMAL_95, UNCALIBRATED_SHARE, RateEnd, band_of_answer
from assay.insight.calibration.calibrate import uncertain
from assay.insight.sizing.allowance import WARM_IOS, Allowance, GaveUp, counted
from assay.insight.sizing.demand import DATA, PeakDemand, PeakStream, activities_of
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need
from assay.run.simulate import search_rate
from assay.targets.arrays.model.configuration import Configuration

SEARCHED = (0.5, 16.0)
"""Where the search for the limits of one member begins and ends, as shares of what the need asks of it."""
POINT_S, BAND_S = 8.0, 4.0
"""The longest that a point of this search takes, and the usual time of one for its band."""
NOT_CALIBRATED = "the model's mean error where nothing was calibrated"
CLOUD_SHARE = 0.10 / 2.326
PROVIDERS = "made of the provider's own limits"
"""EBS promises gp2 and gp3 within 10 % of what is provisioned for 99 % of the time (EBS user guide): a one-sided
quantile of 2.326 standard deviations."""
FLASH_SHARE = 1.25 * 0.084
FLASH = "not calibrated: its mean error of 24 published figures of drives is 8 %"
"""Random reads and writes that the models of drives predict (benches/results/flash.md, without percentiles); the
standard deviation of a normal error is 1.25 times its mean."""
GAVE_UP = f"{NOT_CALIBRATED}, taken because the search for this model's own gave up"


@dataclass(frozen=True)
class Certainty:
    """How far a model's capacity may be off (one standard deviation of its logarithm), and what that rests on."""

    model_share: float
    basis: str
    gave_up: GaveUp | None = None

    def probability(self, factor: float, spread: float) -> float:
        """Probability that an array that is predicted to hold so many times the demand holds it.

        Examples
        --------
        >>> round(Certainty(0.15, "").probability(1.3, 0.10), 2), Certainty(0.0, "").probability(1.1, 0.0)
        (0.93, 1.0)
        """
        sd = math.hypot(self.model_share, spread)
        if sd == 0:
            return 1.0 if factor >= 1 else 0.0
        return NormalDist().cdf(math.log(factor) / sd)


class _Counted(Silent):
    """Counts what the points of a search simulate, and ends it when the allowance does not reach."""

    def __init__(
        self, array: Configuration, block_bytes: int, allowance: Allowance, interrupt: threading.Event
    ) -> None:
        self.interrupt = threading.Event()
        self.gave_up: GaveUp | None = None
        self._array, self._block_bytes, self._allowance, self._of_caller = array, block_bytes, allowance, interrupt

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Count a point that ended."""
        iops = (point["total"] or {}).get("iops") or 0.0
        try:
            seconds = point["warmup_s"] + point["measured_s"]
            self._allowance.take(counted(self._array, iops * seconds, self._block_bytes))
        except GaveUp as error:
            self.gave_up = error
        if self.gave_up is not None or self._of_caller.is_set():
            self.interrupt.set()


def certainty_of(
    need: Need,
    ladder: Ladder,
    step: LadderStep,
    demand: PeakDemand,
    allowance: Allowance | None = None,
    interrupt: threading.Event | None = None,
) -> Certainty:
    """The error of the model of a size, from the band of one member under its share of the largest random stream.

    What calibration left open, and conditions that nothing was measured at, widen it (docs/calibration.md). Where the
    search for the band gives up, the error is that of a model which was not calibrated.

    Parameters
    ----------
    allowance
        Simulated I/Os that the search may ask for; None for any number.
    interrupt
        Ends it when it is set.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    """
    model = ladder.pools(step, demand)[0].member.model
    if ladder.side == "cloud":
        return Certainty(CLOUD_SHARE, PROVIDERS)
    if model.disk_kind == "solid-state" and not model.calibration:
        return Certainty(FLASH_SHARE, FLASH)
    return _of_band(need, ladder, step, demand, allowance or Allowance(ios=math.inf), interrupt or threading.Event())


def _of_band(
    need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, allowance: Allowance, interrupt: threading.Event
) -> Certainty:
    """The error from the band of one member at its limits."""
    pool = ladder.pools(step, demand)[0]
    stream = _largest(demand)
    if stream is None:
        return Certainty(UNCALIBRATED_SHARE, f"{NOT_CALIBRATED}: no random I/O is asked for")
    rate = max(stream.rate / pool.members, 1.0)
    alone = replace(pool, members=1, asked_bytes=demand.data_bytes // pool.members)
    without_log = replace(demand, log_bytes=0, data_bytes=alone.asked_bytes)
    array = ladder.configuration(need, step, without_log, alone)
    limits = [
        f"{side}.mean<={limit * 1e3:g}ms"
        for side, limit, share in (
            ("read", stream.read_limit_s, stream.read_share),
            ("write", stream.write_limit_s, 1 - stream.read_share),
        )
        if limit is not None and share > 0
    ]
    activity = activities_of([replace(stream, rate=rate)])[0]
    del activity["rate"], activity["name"]
    warm, display = _core.WarmCaches(), _Counted(array, stream.block_bytes, allowance, interrupt)
    start, end = rate * SEARCHED[0], rate * SEARCHED[1]
    try:
        allowance.take(WARM_IOS)
        first = counted(array, start * POINT_S, stream.block_bytes)
        if first > allowance.ios:
            raise GaveUp(first, allowance.ios)
        answer, points = search_rate(
            array, activity, limits, start=start, end=end, warm=warm, interrupt=display.interrupt, display=display
        )
        if answer["max"] is not None:
            # The band asks again at this load, once for each parameter that is not sure.
            ios = cast(RateEnd, answer["max"])["iops"] * BAND_S * (1 + len(uncertain(array)))
            allowance.take(counted(array, ios, stream.block_bytes))
        band = band_of_answer(array, answer, points)
    except UsageError:
        band = None
    except GaveUp as error:
        return Certainty(UNCALIBRATED_SHARE, GAVE_UP, error)
    except Interrupted:
        if display.gave_up is None:
            raise
        return Certainty(UNCALIBRATED_SHARE, GAVE_UP, display.gave_up)
    if band is None:
        return Certainty(UNCALIBRATED_SHARE, NOT_CALIBRATED)
    share = math.log(band.high / band.low) / (2 * NORMAL_95)
    basis = band.basis
    if pool.members > 1 and array.model.calibration and pool.members > max(array.model.calibration["members"]):
        share = math.hypot(share, MORE_MEMBERS_SHARE)
        basis += f"; none of them with {pool.members} members"
    return Certainty(share, basis)


def _largest(demand: PeakDemand) -> PeakStream | None:
    """The random stream of data that asks for most."""
    random = [one for phase in demand.phases for one in phase if one.role == DATA and one.random_share > 0.5]
    return max(random, key=lambda one: one.rate, default=None)

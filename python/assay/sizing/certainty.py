"""How sure a purchase is: from the error band of its model and from the spread of the demand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from assay import _core
from assay.calibration.bands import MORE_MEMBERS_SHARE, NORMAL_95, UNCALIBRATED_SHARE, band_of_answer
from assay.errors import UsageError
from assay.run.simulate import search_rate
from assay.sizing.candidates import Ladder, Step, pool_configuration, pools_of
from assay.sizing.demand import DATA, Demand, Stream, activities_of
from assay.sizing.need import Need

SEARCHED = (0.5, 16.0)
"""Where the search for the limits of one member begins and ends, as shares of what the need asks of it."""


@dataclass(frozen=True)
class Certainty:
    """How far a model's capacity may be off (one standard deviation of its logarithm), and what that rests on."""

    model_share: float
    basis: str

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


def certainty_of(need: Need, ladder: Ladder, step: Step, demand: Demand) -> Certainty:
    """The error of the model of a size, from the band of one member under its share of the largest random stream.

    What calibration left open, and conditions that nothing was measured at, widen it (docs/calibration.md).
    """
    pool = pools_of(ladder, step, demand)[0]
    stream = _largest(demand)
    basis = "the model's mean error where nothing was calibrated: no random I/O is asked for"
    if stream is None:
        return Certainty(UNCALIBRATED_SHARE, basis)
    rate = max(stream.rate / pool.members, 1.0)
    alone = replace(pool, members=1, asked_bytes=demand.data_bytes // pool.members)
    without_log = replace(demand, log_bytes=0, data_bytes=alone.asked_bytes)
    array = pool_configuration(need, ladder, step, without_log, alone)
    limits = [
        f"{side}.mean<={limit * 1e3:g}ms"
        for side, limit, share in (
            ("read", stream.read_limit_s, stream.read_share),
            ("write", stream.write_limit_s, 1 - stream.read_share),
        )
        if limit is not None and share > 0
    ]
    activity = activities_of([replace(stream, rate=rate)])[0]
    activity = {key: value for key, value in activity.items() if key not in ("rate", "name")}
    warm = _core.WarmCaches()
    try:
        answer, points = search_rate(
            array, activity, limits, start=rate * SEARCHED[0], end=rate * SEARCHED[1], warm=warm
        )
        band = band_of_answer(array, answer, points)
    except UsageError:
        band = None
    if band is None:
        return Certainty(UNCALIBRATED_SHARE, "the model's mean error where nothing was calibrated")
    share = math.log(band.high / band.low) / (2 * NORMAL_95)
    basis = band.basis
    if pool.members > 1 and array.model.calibration and pool.members > max(array.model.calibration["members"]):
        share = math.hypot(share, MORE_MEMBERS_SHARE)
        basis += f"; none of them with {pool.members} members"
    return Certainty(share, basis)


def _largest(demand: Demand) -> Stream | None:
    """The random stream of data that asks for most."""
    random = [one for phase in demand.phases for one in phase if one.role == DATA and one.random_share > 0.5]
    return max(random, key=lambda one: one.rate, default=None)

"""When the drives of a purchase are worn out: what the need writes, times what the model's flash programs for it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from assay.insight.sizing.demand import PeakDemand, written_bytes_a_day
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need
from assay.record.shapes.sizing import Endurance

DAYS_A_YEAR = 365
STEPS_A_YEAR = 10
WARRANTY_YEARS = 5
"""Drive writes a day are told over so many years, as vendors' warranties are."""


@dataclass(frozen=True, kw_only=True)
class DriveWear:
    """What wears the drives of a size.

    Attributes
    ----------
    amplification
        Bytes programmed for each byte that hosts write, copies and parity included.
    budget_bytes
        What all drives may program.
    """

    need: Need
    disks: int
    disk_bytes: int
    amplification: float
    rated_amplification: float
    budget_bytes: float

    def used_share(self, year: float) -> float:
        """Share of the endurance that is used up after so many years.

        The need's peak is taken to last for its hours of every day, so that the true year comes later.
        """
        whole = int(year * STEPS_A_YEAR + 1e-9)
        programmed = sum(self._of_step(step) for step in range(whole))
        return programmed / self.budget_bytes

    @functools.cached_property
    def _of_step(self) -> Callable[[int], float]:
        @functools.cache
        def programmed(step: int) -> float:
            written = written_bytes_a_day(self.need, (step + 0.5) / STEPS_A_YEAR)
            return written * self.amplification * DAYS_A_YEAR / STEPS_A_YEAR

        return programmed

    def facts(self, worn_out_year: float | None) -> Endurance:
        """The wear as documents carry it."""
        written = written_bytes_a_day(self.need, self.need.years)
        # As the vendor counts them: host writes at the amplification that the rating assumes.
        of_drive = written * self.amplification / self.rated_amplification / self.disks
        return {
            "written_bytes_a_day": written,
            "write_amplification": self.amplification,
            "drive_writes_a_day": of_drive / self.disk_bytes,
            "rated_writes_a_day": self.budget_bytes / self.rated_amplification / self.disks
            / (self.disk_bytes * WARRANTY_YEARS * DAYS_A_YEAR),
            "worn_out_year": worn_out_year,
        }  # fmt: skip


def wear_of(
    need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, amplification: float | None
) -> DriveWear | None:
    """The wear of a size; None where its drives do not wear, or their endurance is not known.

    Parameters
    ----------
    amplification
        What its model programmed for each byte written, at the demand; None where nothing was written.
    """
    member = ladder.pools(step, demand)[0].member
    parameters = member.parameters
    rated = parameters.get("disk.endurance")
    if rated is None or not amplification:
        return None
    rated_amplification = random_write_amplification(
        float(parameters["disk.over_provisioning"].value), float(parameters["disk.metadata"].value)
    )
    disks = ladder.disks(step)
    return DriveWear(
        need=need,
        disks=disks,
        disk_bytes=int(parameters["disk.capacity"].value),
        amplification=amplification,
        rated_amplification=rated_amplification,
        budget_bytes=float(rated.value) * rated_amplification * disks,
    )


def random_write_amplification(over_provisioning: float, metadata: float) -> float:
    """Bytes that a full drive programs for each byte that is written at random (Desnoyers, TOS 2014), and its tables.

    alpha / (alpha + W(-alpha e^-alpha)), with alpha = 1 + over-provisioning and W the principal branch of Lambert's
    function.

    Examples
    --------
    >>> [round(random_write_amplification(share, 0.0), 2) for share in (0.07, 0.15, 0.28, 0.50)]
    [7.82, 4.02, 2.48, 1.72]
    """
    alpha = 1 + over_provisioning
    target = -alpha * math.exp(-alpha)
    low, high = -1.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.exp(middle) < target else (low, middle)
    return alpha / (alpha + low) * (1 + metadata)

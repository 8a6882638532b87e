"""Limits of a cloud's volume from what its provider states: formulas of size, tiers, and what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.targets.arrays.model.cloud_offer import Tier
from assay.targets.arrays.model.parameters import GIB, MIB

Value = Callable[[str], float]
"""A parameter in force by its dotted name; 0 where the provider states none."""


@dataclass(frozen=True, kw_only=True)
class BurstLimit:
    """A baseline a second, a burst, and the credits of a full bucket."""

    per_s: int
    burst_per_s: int
    credits: int

    def burst_s(self, share: float = 1.0) -> float:
        """How long credits last while as much is asked for as the burst allows; 0 where nothing bursts."""
        return self.credits * share / (self.burst_per_s - self.per_s) if self.burst_per_s > self.per_s else 0.0


@dataclass(frozen=True, kw_only=True)
class VolumeLimits:
    """The limits of one volume."""

    iops: BurstLimit
    throughput: BurstLimit


def limit_of(per_s: float, burst_per_s: float, credits: float, burst_s: float) -> BurstLimit:
    """A limit whose credits are stated, or are those of a burst that lasts so long."""
    burst_per_s = max(burst_per_s, per_s)
    credits = credits or (burst_per_s - per_s) * burst_s
    return BurstLimit(per_s=max(int(per_s), 1), burst_per_s=max(int(burst_per_s), 1), credits=int(credits))


def volume_limits(
    value: Value, size_bytes: int, tier: Tier | None, iops: float | None, throughput: float | None
) -> VolumeLimits:
    """The limits of a volume of a size, with IOPS and throughput as asked for or as they come with it.

    Raises
    ------
    UsageError
        The size, IOPS or throughput is outside what the provider offers.
    """
    _refuse_size(value, size_bytes)
    gib = size_bytes / GIB
    burst_s = value("volume.burst_time") / 1e9
    by_throughput = value("iops.per_mib")
    if not by_throughput:
        iops = _asked_iops(value, gib, iops) if iops is not None else _own_iops(value, gib, tier)
    throughput = (
        _asked_throughput(value, gib, iops, throughput)
        if throughput is not None
        else _own_throughput(value, gib, iops or 0.0, tier)
    )
    if by_throughput:
        if iops is not None:
            raise UsageError("model: option 'iops': come with the throughput of this volume and cannot be asked for")
        iops = by_throughput * throughput / MIB
    assert iops is not None
    return VolumeLimits(
        iops=limit_of(iops, (tier.burst_iops if tier else None) or value("iops.burst"), value("iops.credits"), burst_s),
        throughput=limit_of(
            throughput,
            (tier.burst_throughput if tier else None)
            or min(value("throughput.burst_per_gib") * gib, value("throughput.most") or 1e18),
            value("throughput.credits_of_size") * size_bytes,
            burst_s,
        ),
    )


def _refuse_size(value: Value, size_bytes: int) -> None:
    least, most = int(value("volume.least")), int(value("volume.most"))
    if not least <= size_bytes <= most:
        raise UsageError(
            f"model: option 'size': {format_bytes(size_bytes)} is outside {format_bytes(least)} to"
            f" {format_bytes(most)}, which the provider offers"
        )


def _own_iops(value: Value, gib: float, tier: Tier | None) -> float:
    if tier is not None and tier.iops is not None:
        return tier.iops
    found = max(value("iops.base") + value("iops.per_gib") * gib, value("iops.least"))
    if value("iops.most"):
        found = min(found, value("iops.most"))
    # Where IOPS have to be asked for and are not: as few as there can be.
    return found or _iops_bounds(value, gib)[0]


def _iops_bounds(value: Value, gib: float) -> tuple[int, int]:
    least = max(value("iops.asked_least"), value("iops.asked_least_per_gib") * gib)
    most = min(value("iops.asked_most"), max(value("iops.asked_least"), value("iops.asked_most_per_gib") * gib))
    return int(least), int(most)


def _asked_iops(value: Value, gib: float, iops: float) -> float:
    if not value("iops.asked_most"):
        raise UsageError("model: option 'iops': follow from the size of this volume and cannot be asked for")
    least, most = _iops_bounds(value, gib)
    if not least <= iops <= most:
        raise UsageError(
            f"model: option 'iops': {iops:,.0f} is outside {least:,} to {most:,}, which the provider offers for"
            f" {gib:,.6g} GiB"
        )
    return iops


def _own_throughput(value: Value, gib: float, iops: float, tier: Tier | None) -> float:
    if tier is not None and tier.throughput is not None:
        return tier.throughput
    found = value("throughput.base") + value("throughput.per_gib") * gib + value("throughput.per_iops") * iops
    found = max(found, value("throughput.asked_least_per_gib") * gib)
    most = value("throughput.most")
    return min(found, max(most, value("throughput.more_per_iops") * iops)) if most else found


def _asked_throughput(value: Value, gib: float, iops: float | None, throughput: float) -> float:
    most = value("throughput.asked_most")
    if not most:
        raise UsageError("model: option 'throughput': comes with this volume and cannot be asked for")
    least = max(value("throughput.asked_least"), value("throughput.asked_least_per_gib") * gib)
    because = f"for {gib:,.6g} GiB"
    if value("throughput.asked_most_per_gib"):
        most = min(most, value("throughput.asked_most_per_gib") * gib)
    if iops is not None and (ratio := value("throughput.asked_most_per_iops")):
        most, because = min(most, max(least, ratio * iops)), f"with {iops:,.0f} IOPS"
    # Half a byte a second for numbers that are no whole ones in binary.
    if not least - 0.5 <= throughput <= most + 0.5:
        raise UsageError(
            f"model: option 'throughput': {throughput / MIB:,.6g} MiB/s is outside {least / MIB:,.6g} to"
            f" {most / MIB:,.6g} MiB/s, which the provider offers {because}"
        )
    return throughput

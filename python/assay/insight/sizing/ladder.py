"""Ladders of what may be bought: one product under one choice, in all sizes, each larger than the one before."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

from assay.base.errors import UsageError
from assay.base.units import format_share
from assay.insight.sizing.demand import PeakDemand, PeakStream
from assay.insight.sizing.need import Need, Offer
from assay.insight.sizing.price_book import PriceBook
from assay.insight.sizing.prices import AmountPrice, age_words
from assay.record.shapes.sizing import PriceUsed, Size
from assay.targets.arrays.model.configuration import Configuration, size_text
from assay.targets.arrays.model.model_file import ModelFile, load_model

Side = Literal["on-premises", "cloud"]


@dataclass(frozen=True, order=True)
class LadderStep:
    """A size of a ladder: members (of a cloud: volumes), and disks of each; 0 for those of the model file."""

    members: int
    disks: int


@dataclass(frozen=True)
class RejectionReason:
    """Why a candidate does not hold a need.

    Attributes
    ----------
    kind
        `capacity`, `fill`, `IOPS`, `throughput`, `credits`, `instance`, `log latency`, `port rate`, `degraded`,
        `rebuilding`, `rebuild window`, `loss` or `rule`.
    share
        What is asked as a share of what it has; the least above 1 is the nearest miss.
    """

    kind: str
    text: str
    share: float = math.inf


@dataclass(frozen=True)
class RefusedLadder:
    """A ladder that a rule leaves out before anything is asked."""

    name: str
    reason: RejectionReason


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Members of one RAID policy, or volumes of a cloud: what they hold, and what is asked of them."""

    role: str
    member: Configuration
    members: int
    asked_bytes: int

    @property
    def usable_bytes(self) -> int:
        """Bytes that the members can hold, what is kept free included."""
        return self.member.usable_bytes * self.members

    @property
    def free_bytes(self) -> int:
        """Bytes that stay free."""
        return self.member.kept_bytes * self.members

    @property
    def fill(self) -> float:
        """Share of the usable bytes that is asked for."""
        return self.asked_bytes / self.usable_bytes

    def own(self, phase: Sequence[PeakStream], pools: Sequence[Pool]) -> tuple[PeakStream, ...]:
        """The streams of a phase that this pool has."""
        return tuple(one for one in phase if len(pools) == 1 or one.role == self.role)


@cache
def model_of(name: str) -> ModelFile:
    """A model of the catalogue or a file, read once."""
    return load_model(name)


@dataclass(frozen=True, kw_only=True)
class Ladder(ABC):
    """One product under one choice of what it leaves open, in all sizes that may be bought, the smallest first."""

    offer: Offer
    array: str
    steps: tuple[LadderStep, ...]
    book: PriceBook

    side: ClassVar[Side]
    states: ClassVar[tuple[str, ...]] = ("healthy",)
    """States that must hold the need."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The ladder in a few words."""

    @property
    def title(self) -> str:
        """The product, as its model file names it."""
        return model_of(self.array).title

    @abstractmethod
    def label(self, step: LadderStep) -> str:
        """Short name of one size of the ladder."""

    def bought(self, step: LadderStep) -> str:
        """What has to be another for a purchase to be another one."""
        return self.label(step)

    def rank(self, step: LadderStep) -> tuple[float, ...]:
        """Sort key of sizes whose costs are not known: disks, and what tells sizes of as many apart."""
        return (self.disks(step), step.members)

    @abstractmethod
    def disks(self, step: LadderStep) -> int:
        """All its disks, spares included; 0 of a cloud."""

    @abstractmethod
    def price(self, step: LadderStep) -> AmountPrice:
        """What one size costs; nothing known where there is no price."""

    def cost(self, step: LadderStep) -> float | None:
        """All that one size costs over the service years; None where that is not known."""
        return self.price(step).over(self.book.service_years)

    def rack_units(self, step: LadderStep) -> float | None:
        """Its height, where that is stated."""
        return None if self.offer.rack_units is None else self.offer.rack_units * step.members

    def power_w(self, step: LadderStep) -> float | None:
        """What it takes, where that is stated."""
        return None if self.offer.power is None else self.offer.power * step.members

    @abstractmethod
    def pools(self, step: LadderStep, demand: PeakDemand) -> list[Pool]:
        """The pools of a size; the first has the data."""

    @abstractmethod
    def configuration(
        self, need: Need, step: LadderStep, demand: PeakDemand, pool: Pool, *, state: str = "healthy"
    ) -> Configuration:
        """The model of a pool with its volumes of a demand."""

    def static_reasons(
        self, need: Need, step: LadderStep, demand: PeakDemand, loaded: PeakDemand
    ) -> Iterator[RejectionReason]:
        """Why a size cannot hold a demand, by arithmetic alone; nothing where only a simulation can tell.

        Parameters
        ----------
        loaded
            The demand with its head-room.
        """
        pools = self.pools(step, demand)
        for pool in pools:
            yield from space_reasons(need, pool)
        yield from self.load_reasons(pools, loaded)

    @abstractmethod
    def load_reasons(self, pools: Sequence[Pool], loaded: PeakDemand) -> Iterator[RejectionReason]:
        """Why pools cannot do a demand's I/O, by arithmetic alone."""

    @abstractmethod
    def busy_share(self, step: LadderStep, demand: PeakDemand) -> float:
        """The least share of its time that a demand takes, by which a search begins; 0 where nothing is known."""

    @abstractmethod
    def least_latency_s(self, reads: float) -> float:
        """A mean latency of random I/O that no size goes below, with such a share of reads."""

    @abstractmethod
    def port_shares(self, step: LadderStep, demand: PeakDemand) -> float | None:
        """Share of its ports' payload that a demand takes; None where ports are not among its limits."""

    @property
    @abstractmethod
    def lost_drive(self) -> str:
        """What the loss of a drive, or a volume, takes of the data: the recovery point."""

    @property
    def price_used(self) -> PriceUsed | None:
        """The list price that its cost rests on; None where there is none."""
        entry = self.book.entry_of(self.priced_name)
        if entry is None:
            return None
        return {
            "name": entry.name, "region": entry.region, "currency": entry.currency, "dated": f"{entry.dated}",
            "age": age_words(entry, self.book.today), "source": entry.source,
        }  # fmt: skip

    @property
    def priced_name(self) -> str:
        """Name under which price lists have it."""
        return self.array

    def facts(self, step: LadderStep, demand: PeakDemand) -> Size:
        """A candidate as documents carry it."""
        pools = self.pools(step, demand)
        price = self.price(step)
        return {
            "label": self.label(step),
            "array": self.array,
            "title": self.title,
            "side": self.side,
            "raid": "",
            "log_raid": None,
            "members": step.members,
            "disks": self.disks(step),
            "disks_of_member": step.disks or None,
            "paths": None,
            "volumes": step.members,
            "cost": self.cost(step),
            "once": price.once,
            "by_month": price.by_month,
            "no_price": price.why or None,
            "rack_units": self.rack_units(step),
            "power_w": self.power_w(step),
            "usable_bytes": sum(pool.usable_bytes for pool in pools),
            "free_bytes": sum(pool.free_bytes for pool in pools),
            "fill": max(pool.fill for pool in pools),
        }


def space_reasons(need: Need, pool: Pool) -> Iterator[RejectionReason]:
    """Why a pool has no room for what is asked of it."""
    room = pool.usable_bytes - pool.free_bytes
    asked = size_text(pool.asked_bytes)
    if pool.asked_bytes > room:
        yield RejectionReason(
            "capacity",
            f"{asked} of {pool.role} and {size_text(room)} of room: {size_text(pool.free_bytes)} of"
            f" {size_text(pool.usable_bytes)} stay free",
            pool.asked_bytes / room,
        )
    elif pool.fill > need.rules.fill:
        # So close that whole percents would read alike.
        decimals = 1 if format_share(pool.fill) == format_share(need.rules.fill) else 0
        yield RejectionReason(
            "fill",
            f"{asked} fill {format_share(pool.fill, decimals)} of {size_text(pool.usable_bytes)}, above"
            f" {format_share(need.rules.fill, decimals)}",
            pool.fill / need.rules.fill,
        )


def refuse_keys(offer: Offer, keys: Sequence[str], why: str) -> None:
    """Refuse keys that a candidate of another kind has.

    Raises
    ------
    UsageError
        One of them is stated.
    """
    stated = [key for key in keys if getattr(offer, key) not in (None, (), 0.0)]
    if stated:
        raise UsageError(f"candidate {offer.array}: {stated[0]} {why}")

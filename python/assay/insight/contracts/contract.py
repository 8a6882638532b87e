"""A contract of storage as `contract.toml` states it: clauses, what they hold for, and what does not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.fields import FieldValueError, Strict
from assay.base.reading import read_table, validated
from assay.base.tables import TableValue
from assay.insight.contracts.quantities import MomentNs, PromisedShare, TimeNs, Weekday
from assay.insight.sizing.quantities import Block, Hours, Latency, Power, Size, Throughput

Direction = Literal["read", "write"]
Statistic = Literal["mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"]
Over = Literal["interval", "hour", "day", "month", "all"]
"""The time over which I/Os are put together before a limit is asked of them."""
Iops = Annotated[float, Field(gt=0, lt=1e12)]
Name = Annotated[str, Field(min_length=1, max_length=80)]
Text = Annotated[str, Field(max_length=400)]
CLAUSES_MAX = 40
WINDOWS_MAX = 2000


class PromisedMix(Strict):
    """The I/O that a clause is promised for; a recording is not judged by it."""

    block: Block = 8192
    read: PromisedShare = 0.7
    random: PromisedShare = 1.0


class LatencyClause(Strict):
    """A latency that is not exceeded.

    Attributes
    ----------
    most
        Nanoseconds.
    over
        Time whose I/Os are put together.
    allowed
        Share of the time that counts in which the limit may be exceeded.
    iops_per_tb, iops
        The load up to which it is promised; more load does not count.
    blocks, reads
        Mean size of I/Os and share of reads of the time that counts.
    """

    name: Name
    direction: Direction = "read"
    statistic: Statistic = "p99"
    most: TimeNs
    over: Over = "interval"
    allowed: PromisedShare = 0.0
    iops_per_tb: Iops | None = None
    iops: Iops | None = None
    blocks: tuple[Block, Block] | None = None
    reads: tuple[PromisedShare, PromisedShare] | None = None
    mix: PromisedMix = PromisedMix()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.iops is not None and self.iops_per_tb is not None:
            raise ValueError("iops and iops_per_tb contradict each other; give one of them")
        for field, pair in (("blocks", self.blocks), ("reads", self.reads)):
            if pair is not None and pair[0] > pair[1]:
                raise FieldValueError(field, "give the smaller value first")
        return self


class IopsClause(Strict):
    """I/Os a second that the storage serves, in all or for each TB."""

    name: Name
    least: Iops | None = None
    least_per_tb: Iops | None = None
    mix: PromisedMix = PromisedMix()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.least is None) == (self.least_per_tb is None):
            raise ValueError("give least or least_per_tb, one of them")
        return self


class ThroughputClause(Strict):
    """Bytes a second that the storage serves."""

    name: Name
    direction: Direction = "read"
    least: Throughput
    block: Block = 1 << 20


class CapacityClause(Strict):
    """Bytes that can be used; promises for each TB count by it."""

    least: Size
    mounts: Annotated[tuple[Text, ...], Field(max_length=100)] = ()


class RebuildClause(Strict):
    """How long a rebuild after the loss of a drive takes at most, in seconds."""

    most: Latency


class AvailabilityClause(Strict):
    """Share of the time in which the storage answers."""

    least: PromisedShare


class PowerClause(Strict):
    """Watts for each TB of capacity; `measured` is what a meter showed."""

    most_per_tb: Power
    measured: Power | None = None


class LossClause(Strict):
    """No acknowledged write is lost or altered."""

    none: Literal[True] = True


class MaintenanceWindow(Strict):
    """Maintenance at a time that was agreed."""

    begin: MomentNs
    end: MomentNs
    why: Text = "maintenance"

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end <= self.begin:
            raise FieldValueError("end", "is not after begin; give a later moment")
        return self


class WeeklyWindow(Strict):
    """Maintenance at hours of a day of each week, in UTC."""

    day: Weekday
    hours: Hours
    why: Text = "weekly maintenance"


class Exclusions(Strict):
    """What does not count.

    Attributes
    ----------
    below_iops
        Time with fewer I/Os a second.
    below_random_reads
        Time in which fewer of the I/Os are random reads.
    above_block
        Time in which I/Os are larger, on average.
    """

    below_iops: Iops | None = None
    below_random_reads: PromisedShare | None = None
    above_block: Block | None = None
    maintenance: Annotated[tuple[MaintenanceWindow, ...], Field(max_length=WINDOWS_MAX)] = ()
    weekly: Annotated[tuple[WeeklyWindow, ...], Field(max_length=100)] = ()


class Assumptions(Strict):
    """What both sides accept without a measurement.

    Attributes
    ----------
    random_reads
        Share of the reads that are random, which a recording does not hold.
    unrecorded
        Whether the storage was available where nothing was recorded.
    """

    random_reads: PromisedShare | None = None
    unrecorded: Literal["unknown", "available"] = "unknown"


class AcceptanceTerms(Strict):
    """How `assay contract test` judges.

    Attributes
    ----------
    degraded
        Whether latencies hold with a disk lost as well: `counts`; `told` measures it and decides nothing; or `no`.
    """

    degraded: Literal["counts", "told", "no"] = "counts"


class PromisedStorage(Strict):
    """The devices of a recording that the contract is about."""

    host: Text | None = None
    role: Text | None = None
    devices: Annotated[tuple[Text, ...], Field(max_length=256)] = ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.role is not None and self.devices:
            raise ValueError("role and devices contradict each other; give one of them")
        return self


class StorageContract(Strict):
    """All of a contract."""

    title: Text = "Storage contract"
    vendor: Text = ""
    reference: Text = ""
    interval: Literal["1min", "15min"] = "15min"
    storage: PromisedStorage = PromisedStorage()
    latency: Annotated[tuple[LatencyClause, ...], Field(max_length=CLAUSES_MAX)] = ()
    iops: Annotated[tuple[IopsClause, ...], Field(max_length=CLAUSES_MAX)] = ()
    throughput: Annotated[tuple[ThroughputClause, ...], Field(max_length=CLAUSES_MAX)] = ()
    capacity: CapacityClause | None = None
    rebuild: RebuildClause | None = None
    availability: AvailabilityClause | None = None
    power: PowerClause | None = None
    loss: LossClause | None = None
    exclude: Exclusions = Exclusions()
    assumed: Assumptions = Assumptions()
    test: AcceptanceTerms = AcceptanceTerms()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        single = (self.capacity, self.rebuild, self.availability, self.power, self.loss)
        if not any((self.latency, self.iops, self.throughput, *single)):
            raise ValueError("promises nothing; give a clause such as [[latency]]")
        names = [*(one.name for one in self.latency), *(one.name for one in self.iops)]
        names += [one.name for one in self.throughput]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the name {twice!r} is given twice; give each clause its own")
        if self.capacity is None and (per_tb := next(self._per_tb(), None)):
            raise ValueError(f"{per_tb} counts by the TB; give [capacity] least")
        return self

    def _per_tb(self) -> Iterator[str]:
        yield from (one.name for one in self.latency if one.iops_per_tb is not None)
        yield from (one.name for one in self.iops if one.least_per_tb is not None)
        yield from ("power" for _ in (self.power,) if self.power is not None)

    @property
    def interval_ns(self) -> int:
        """Length of an interval, which is judged as a whole."""
        return (1 if self.interval == "1min" else 15) * 60 * 10**9

    @property
    def capacity_tb(self) -> float | None:
        """Promised capacity in TB, of 10^12 bytes."""
        return None if self.capacity is None else self.capacity.least / 1e12


def template() -> str:
    """A commented contract to fill in."""
    return (resources.files(__package__) / "template.toml").read_text(encoding="utf-8")


def read_contract(path: Path) -> StorageContract:
    """A contract from a TOML file.

    Raises
    ------
    UsageError
        The file cannot be read, or is no contract; the message names line or key.
    """
    return contract_of(read_table(path, option="contract"), str(path))


def contract_of(table: Mapping[str, TableValue], source: str) -> StorageContract:
    """A contract from its table.

    Raises
    ------
    UsageError
        A key is unknown, a quantity has no unit, or two contradict each other; the message names the key.
    """
    return validated(StorageContract, table, source)

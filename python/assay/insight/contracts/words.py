"""Clauses of a contract in words."""

from __future__ import annotations

from assay.base.units import (
    count_of,
    format_bytes,
    format_decimal,
    format_duration,
    format_iops,
    format_latency,
    format_share,
    format_throughput,
)  # fmt: skip
from assay.insight.contracts.contract import IopsClause, LatencyClause, PromisedMix, StorageContract, ThroughputClause

OVERS = {
    "interval": "in each interval of {interval}", "hour": "in each hour", "day": "on each day",
    "month": "in each month", "all": "over all of the time",
}  # fmt: skip
STATES = {True: "met", False: "breached", None: "unknown"}


def percent_words(share: float) -> str:
    """A share in percent with as many nines as it has.

    Examples
    --------
    >>> percent_words(0.99999), percent_words(1.0), percent_words(0.5), percent_words(0.001)
    ('99.999 %', '100 %', '50 %', '0.1 %')
    """
    return f"{share * 100:.8g} %" if share < 1 else "100 %"


def latency_words(contract: StorageContract, clause: LatencyClause) -> str:
    """What a clause of latency promises."""
    text = f"{clause.statistic} of {clause.direction}s at most {format_latency(clause.most)}"
    text += f" {OVERS[clause.over].format(interval=contract.interval.replace('min', ' min'))}"
    if clause.allowed:
        text += f", but for {percent_words(clause.allowed)} of the time"
    if clause.iops_per_tb is not None:
        text += f", up to {format_iops(clause.iops_per_tb)} IOPS a TB"
    elif clause.iops is not None:
        text += f", up to {format_iops(clause.iops)} IOPS"
    if clause.blocks is not None:
        text += f", I/Os of {format_bytes(clause.blocks[0])} to {format_bytes(clause.blocks[1])}"
    if clause.reads is not None:
        text += f", {format_share(clause.reads[0])} to {format_share(clause.reads[1])} reads"
    return text


def mix_words(mix: PromisedMix) -> str:
    """A mix of I/Os."""
    return f"{format_bytes(mix.block)}, {format_share(mix.read)} reads, {format_share(mix.random)} random"


def iops_least(contract: StorageContract, clause: IopsClause) -> float:
    """I/Os a second that a clause promises."""
    if clause.least is not None:
        return clause.least
    assert clause.least_per_tb is not None
    assert contract.capacity_tb is not None
    return clause.least_per_tb * contract.capacity_tb


def iops_words(contract: StorageContract, clause: IopsClause) -> str:
    """What a clause of I/Os a second promises."""
    text = f"at least {format_iops(iops_least(contract, clause))} IOPS"
    if clause.least_per_tb is not None:
        text += f" ({format_iops(clause.least_per_tb)} a TB)"
    return f"{text} of {mix_words(clause.mix)}"


def throughput_words(clause: ThroughputClause) -> str:
    """What a clause of throughput promises."""
    return (
        f"{clause.direction}s of at least {format_throughput(clause.least)} in blocks of {format_bytes(clause.block)}"
    )


def single_words(contract: StorageContract, kind: str) -> str:
    """What a clause promises that a contract has at most once."""
    match kind:
        case "capacity":
            assert contract.capacity is not None
            return f"at least {format_decimal(contract.capacity.least)}"
        case "rebuild":
            assert contract.rebuild is not None
            return f"a rebuild takes at most {format_duration(contract.rebuild.most)}"
        case "availability":
            assert contract.availability is not None
            return f"available for at least {percent_words(contract.availability.least)} of the time"
        case "power":
            assert contract.power is not None
            return f"at most {contract.power.most_per_tb:g} W a TB"
        case _:
            return "no acknowledged write is lost or altered"


def exclusion_words(contract: StorageContract) -> list[str]:
    """What does not count, a sentence each."""
    exclude, found = contract.exclude, list[str]()
    if exclude.below_iops is not None:
        found.append(f"Intervals with fewer than {format_iops(exclude.below_iops)} IOPS do not count.")
    if exclude.below_random_reads is not None:
        found.append(f"Intervals with less than {format_share(exclude.below_random_reads)} random reads do not count.")
    if exclude.above_block is not None:
        found.append(f"Intervals with a mean I/O above {format_bytes(exclude.above_block)} do not count.")
    if exclude.maintenance or exclude.weekly:
        count = len(exclude.maintenance) + len(exclude.weekly)
        found.append(f"Intervals that maintenance touches do not count ({count_of(count, 'window')}).")
    return found


def assumption_words(contract: StorageContract) -> list[str]:
    """What both sides accept without a measurement, a sentence each."""
    found = []
    if contract.assumed.random_reads is not None:
        found.append(f"{format_share(contract.assumed.random_reads)} of the reads are random, as the contract states.")
    if contract.assumed.unrecorded == "available":
        found.append("The storage was available where nothing was recorded, as the contract states.")
    return found

"""A contract judged over a recording: each clause kept, broken or unknown, of months in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_duration, format_latency
from assay.document.text import percent
from assay.insight.contracts.contract import StorageContract
from assay.insight.contracts.intervals import intervals_of
from assay.insight.contracts.latency import IN_BUCKET, LatencyJudge
from assay.insight.contracts.others import ClauseFinding, RecordedFacts
from assay.insight.contracts.recorded import JudgedDevices, RecordedSteps, judged_devices
from assay.insight.contracts.times import STATISTICS
from assay.insight.contracts.words import (
    iops_least,
    iops_words,
    latency_words,
    single_words,
    throughput_words,
)  # fmt: skip
from assay.record.flight import told_of
from assay.record.latency_buckets import bounds_ns

NOTHING_COUNTS = "no recorded minute counts"


@dataclass(frozen=True)
class JudgedClause:
    """A clause and what it came to.

    Attributes
    ----------
    kind
        Its table in the contract.
    promise, found, why
        In words: what was promised, what was found, why it is unknown.
    latency
        Of a clause of latency its minutes, days, months and worst hours.
    """

    kind: str
    name: str
    promise: str
    met: bool | None
    found: str
    why: str = ""
    latency: LatencyJudge | None = None


@dataclass(frozen=True)
class JudgedContract:
    """What a contract came to.

    Attributes
    ----------
    begin_ns, end_ns
        When the recording begins and ends, UTC.
    total_ns, unrecorded_ns, excluded_ns
        Time without maintenance; of it what was not recorded; maintenance.
    """

    contract: StorageContract
    source: str
    judged: JudgedDevices
    begin_ns: int
    end_ns: int
    total_ns: int
    unrecorded_ns: int
    excluded_ns: int
    clauses: list[JudgedClause]
    notices: list[str] = field(default_factory=list)

    @property
    def met(self) -> bool | None:
        """Whether all clauses are kept: False where one is broken, else None where one is unknown."""
        found = {one.met for one in self.clauses}
        return False if False in found else None if None in found else True


def judge_recording(contract: StorageContract, folder: Path) -> JudgedContract:
    """Judge a contract over all of a flight recording.

    Raises
    ------
    UsageError
        The recording has no device of the contract, or holds no values.
    RunFolderError
        No file can be read.
    """
    judged = judged_devices(folder, contract.storage)
    mounts = contract.capacity.mounts if contract.capacity is not None else ()
    steps = RecordedSteps(folder, judged, mounts)
    facts = RecordedFacts(contract)
    judges = [LatencyJudge(contract, clause) for clause in contract.latency]
    for one in intervals_of(steps, contract.interval_ns):
        facts.take(one)
        for judge in judges:
            judge.take(one)
    facts.end()
    for judge in judges:
        judge.end()
    if not facts.end_ns:
        raise UsageError(f"{printable(folder)}: nothing was recorded of {', '.join(judged.devices[:8])}")
    told = told_of(folder)
    notices = [str(text) for text in (*steps.unread, *told["notices"])]
    return JudgedContract(
        contract, str(folder), judged, facts.begin_ns, facts.end_ns, facts.total_ns, facts.unrecorded_ns,
        facts.excluded_ns, [*map(_latency, judges), *_others(contract, facts, steps)], notices,
    )  # fmt: skip


def _latency(judge: LatencyJudge) -> JudgedClause:
    clause, minutes = judge.clause, judge.minutes
    met = judge.met()
    found = f"{clause.statistic} {judge.value_words()} over all counted I/Os; " if judge.times.timed else ""
    share = minutes.missed / minutes.counted if minutes.counted else None
    found += f"in breach {format_duration(minutes.missed * 60)} of {format_duration(minutes.counted * 60)} counted"
    found += f" ({percent(share)})" if minutes.missed else ""
    return JudgedClause(
        "latency", clause.name, latency_words(judge.contract, clause), met, found,
        _why_unknown(judge) if met is None else "", judge,
    )  # fmt: skip


def _why_unknown(judge: LatencyJudge) -> str:
    minutes = judge.minutes
    if not minutes.counted:
        most = max(minutes.excluded, key=lambda why: minutes.excluded[why], default="")
        return f"{NOTHING_COUNTS}: {most}" if most else NOTHING_COUNTS
    why = max(minutes.unknown, key=lambda why: minutes.unknown[why], default=NOTHING_COUNTS)
    text = f"cannot be judged from what was recorded for {format_duration(minutes.unknown_sum * 60)}: {why}"
    return f"{text}; {_edges(judge)}" if why == IN_BUCKET else text


def _edges(judge: LatencyJudge) -> str:
    """The limits around a clause's that the buckets tell exactly."""
    for bucket in range(1, 61):
        begin_ns, end_ns = bounds_ns(bucket)
        if begin_ns < judge.clause.most < end_ns and judge.clause.statistic in STATISTICS:
            return f"a limit of {format_latency(begin_ns)} or {format_latency(end_ns)} is told exactly"
    return "judge a longer time"


def _others(contract: StorageContract, facts: RecordedFacts, steps: RecordedSteps) -> Iterator[JudgedClause]:
    for iops in contract.iops:
        found = facts.iops_finding(iops_least(contract, iops))
        yield _clause("iops", iops.name, iops_words(contract, iops), found)
    for moved in contract.throughput:
        found = facts.throughput_finding(moved.direction, moved.least)
        yield _clause("throughput", moved.name, throughput_words(moved), found)
    singles: list[tuple[str, ClauseFinding]] = []
    if contract.capacity is not None:
        singles.append(("capacity", facts.capacity_finding(steps.sizes)))
    if contract.rebuild is not None:
        singles.append(("rebuild", facts.rebuild_finding(contract.rebuild.most)))
    if contract.availability is not None:
        singles.append(("availability", facts.availability_finding(contract.availability.least)))
    if contract.power is not None:
        singles.append(("power", facts.power_finding()))
    if contract.loss is not None:
        singles.append(("loss", facts.loss_finding()))
    for kind, found in singles:
        yield _clause(kind, kind, single_words(contract, kind), found)


def _clause(kind: str, name: str, promise: str, found: ClauseFinding) -> JudgedClause:
    return JudgedClause(kind, name, promise, found.met, found.found, found.why)

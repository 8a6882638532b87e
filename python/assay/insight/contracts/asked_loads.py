"""The loads that an acceptance test asks of a target: parts of a run, each for a clause of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.base.errors import UsageError
from assay.base.tables import Record
from assay.base.units import format_bytes, format_iops, format_share
from assay.insight.contracts.contract import (
    Direction,
    IopsClause,
    LatencyClause,
    PromisedMix,
    StorageContract,
    ThroughputClause,
)  # fmt: skip
from assay.insight.studies.targets import is_on_array, with_options
from assay.record.judgement import samples_needed
from assay.record.shapes.acceptance import AcceptanceLoad, StorageState
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.options import parse_model_target
from assay.targets.files.spec import is_model
from assay.workloads.capabilities import Examining, Verifying
from assay.workloads.examination import FULL_FROM_S, Examination
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.registry import DEFAULT_KIND, workload_named, workloads
from assay.workloads.workload import Workload

LOSS, REBUILD = "loss", "rebuild"
"""Names of clauses that a contract has at most once."""
DEGRADED = "with a disk lost"
"""What stands in `lacking` for all clauses of latency."""
SAMPLES_FACTOR = 3.0
"""How many times the least number of I/Os of a percentile a point is long enough for."""
REBUILT_S = 30.0
"""Measured time of a rebuild; a whole disk follows from its rate."""
STRESS_SHARE = 0.7
"""Share of the time of a check in which the target is under stress."""
PULLED = "member0/disk0"
"""The disk that a served array loses."""


@dataclass(frozen=True, kw_only=True)
class AskedTiming:
    """How long loads are measured.

    Attributes
    ----------
    warmup_s, min_s, max_s
        Of each point.
    longest_s
        What a point is prolonged to at most where a percentile needs more I/Os.
    verify_s
        Of the check of the data.
    """

    warmup_s: float = 5.0
    min_s: float = 20.0
    max_s: float = 60.0
    longest_s: float = 900.0
    verify_s: float = 60.0


QUICK = AskedTiming(warmup_s=0.5, min_s=1.5, max_s=4.0, longest_s=10.0, verify_s=5.0)


@dataclass(kw_only=True)
class AskedLoads:
    """What a test asks.

    Attributes
    ----------
    parts
        In the order in which they run: all disks there, the check of the data, then with a disk lost and rebuilt.
    loads
        Which clause each part is for.
    lacking
        Clauses that this target cannot be asked for, or not in every state, and why.
    """

    parts: list[Part[Any]] = field(default_factory=list)
    loads: list[AcceptanceLoad] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)

    def add(self, part: Part[Any], clause: str, state: StorageState) -> None:
        """Add a part."""
        self.parts.append(part)
        self.loads.append({"clause": clause, "part": part.name, "state": state})


def asked_loads(contract: StorageContract, target: str, timing: AskedTiming, given: Record | None = None) -> AskedLoads:
    """The loads of a contract for a target.

    Parameters
    ----------
    target
        As on the command line; of several volumes the first.
    given
        Other fields of plans of I/O that the user gave.

    Raises
    ------
    UsageError
        The contract promises nothing that a test can ask for.
    """
    found = AskedLoads()
    asked = _Asked(contract, target, timing, given or {})
    for name, title, data in asked.of_speed():
        found.add(asked.part(name, title, data), title, "whole")
    if contract.loss is not None:
        if _holds_bytes(target):
            found.add(asked.verified(), LOSS, "whole")
        else:
            found.lacking[LOSS] = "this target holds no bytes; test the storage itself, or a served array (array:NAME)"
    asked.add_degraded(found)
    if not found.parts:
        raise UsageError("contract: promises nothing that a test measures; give it [[latency]], [[iops]] or [loss]")
    return found


def _parts_of(workload: Workload[Any]) -> tuple[ExaminationPart, ...]:
    return tuple(workload.examination) if isinstance(workload, Examining) else ()


def _holds_bytes(target: str) -> bool:
    return not is_model(target) and not target.lower().startswith("null:")


@dataclass(frozen=True)
class _Asked:
    """A contract on its way to parts for a target."""

    contract: StorageContract
    target: str
    timing: AskedTiming
    given: Record

    def of_speed(self) -> Iterator[tuple[str, str, Record]]:
        """Name of the part, name of the clause, and plan for each clause of latency, IOPS and throughput."""
        for number, latency in enumerate(self.contract.latency, 1):
            if not does_not_count(self.contract, latency):
                yield f"latency-{number}", latency.name, self._latency(latency)
        for number, iops in enumerate(self.contract.iops, 1):
            if not does_not_count(self.contract, iops):
                yield f"iops-{number}", iops.name, self._most(_access(iops.mix))
        for number, moved in enumerate(self.contract.throughput, 1):
            yield f"throughput-{number}", moved.name, self._most(_sequential(moved))

    def part(self, name: str, title: str, data: Record) -> Part[Any]:
        """A part of I/O with what the user gave."""
        plan = {"name": name, "title": title, **data, **self.given}
        plan["timing"] = {**data["timing"], **self.given.get("timing", {})}
        made = workload_named(DEFAULT_KIND).load_plan(plan, source=f"clause {title!r}")
        return Part(name=name, title=title, plan=made)

    def verified(self) -> Part[Any]:
        """The check that data are kept, as an examination has it."""
        timing = self.given.get("timing", {})
        stress_s = timing.get("duration_s", self.timing.verify_s)
        asked = Examination(
            directory=self.target, budget_s=FULL_FROM_S, planned_s=stress_s / STRESS_SHARE,
            timeout_s=timing.get("io_timeout_s"),
            given={key: self.given[key] for key in ("seed", "backend") if key in self.given},
        )  # fmt: skip
        part = next(part for one in workloads() if isinstance(one, Verifying) for part in _parts_of(one))
        return replace(part.part(asked), title="Data are kept")

    def _timing(self, least_s: float = 0.0) -> Record:
        timing = self.timing
        min_s = max(timing.min_s, min(least_s, timing.longest_s))
        return {"warmup_s": timing.warmup_s, "min_s": min_s, "max_s": max(timing.max_s, min_s)}

    def _latency(self, clause: LatencyClause) -> Record:
        rate = promised_rate(self.contract, clause)
        load = {"queue_depth": 1} if rate is None else {"rate": rate, "arrivals": "poisson"}
        own = clause.mix.read if clause.direction == "read" else 1 - clause.mix.read
        needed_s = SAMPLES_FACTOR * samples_needed(clause.statistic) / (rate * own) if rate and own else 0.0
        return {
            "timing": self._timing(needed_s),
            "activity": [{"name": clause.name, **_access(clause.mix), **load}],
            "case": list(_cases(self.contract, clause)),
        }

    def _most(self, access: Record) -> Record:
        return {"timing": self._timing(), "activity": [access], "search": {"axis": "queue-depth"}}

    # With a disk lost

    def add_degraded(self, found: AskedLoads) -> None:
        """Add clauses of latency with a disk lost, and a rebuild, where the target can lose one."""
        reason = self._cannot_lose()
        if reason:
            if self.contract.rebuild is not None:
                found.lacking[REBUILD] = reason
            if self.contract.latency:
                found.lacking[DEGRADED] = reason
            return
        latencies = self.contract.latency if self.contract.test.degraded != "no" else ()
        for number, clause in enumerate(latencies, 1):
            if does_not_count(self.contract, clause):
                continue
            data = {**self._latency(clause), "case": [{}]}
            found.add(
                self._in_state(f"latency-{number}-degraded", clause.name, data, "degraded"), clause.name, "degraded"
            )
        if self.contract.rebuild is not None:
            for name, load in self._beside_rebuild():
                timing = {"warmup_s": 2.0, "duration_s": REBUILT_S}
                data = {"timing": timing, "activity": [{"name": name, **load}]}
                found.add(self._in_state(name, name.replace("-", " "), data, "rebuilding"), REBUILD, "rebuilding")

    def _beside_rebuild(self) -> Iterator[tuple[str, Record]]:
        """Loads beside a rebuild: next to nothing, and the largest load that a latency is promised for."""
        yield "rebuild-at-rest", {"rate": 10.0}
        rates = [(rate, one) for one in self.contract.latency if (rate := promised_rate(self.contract, one))]
        if rates:
            rate, clause = max(rates, key=lambda one: one[0])
            yield "rebuild-under-load", {**_access(clause.mix), "rate": rate, "arrivals": "poisson"}

    def _in_state(self, name: str, title: str, data: Record, state: StorageState) -> Part[Any]:
        """A part with a disk lost: a model begins so, a served array loses one as the load begins."""
        if not is_model(self.target):
            events = [{"at": "0s", "do": f"pull {PULLED} keep-spare"}]
            if state == "rebuilding":
                events.append({"at": "1s", "do": f"insert {PULLED}"})
            data = {**data, "events": events}
        part = self.part(name, f"{title}, {STATE_WORDS[state]}", data)
        if not is_model(self.target):
            return part
        return Part(name=part.name, title=part.title, plan=part.plan, target_text=self._text(state))

    def _text(self, state: str) -> str:
        _, options = parse_model_target(self.target)
        own = [word for word in options.get("state", "").split("+") if word and word not in ("healthy", *STATE_WORDS)]
        return with_options(self.target, {"state": "+".join([*own, state])})

    def _cannot_lose(self) -> str:
        """Why the target cannot lose a disk; an empty text where it can."""
        if is_on_array(self.target):
            return ""
        if not is_model(self.target):
            return "only models and served arrays can fail a disk by themselves; pull one and judge a recording"
        if any(word in self.target for word in ("degraded", "rebuilding")):
            return "the target states that a disk is lost"
        try:
            configure(*parse_model_target(self._text("degraded")))
        except UsageError as error:
            return str(error)
        return ""


STATE_WORDS: Mapping[str, str] = {
    "whole": "all disks there", "degraded": "a disk lost", "rebuilding": "a disk rebuilt",
}  # fmt: skip


def promised_rate(contract: StorageContract, clause: LatencyClause) -> float | None:
    """I/Os a second up to which a latency is promised; None where it is promised for any load."""
    if clause.iops_per_tb is None:
        return clause.iops
    assert contract.capacity_tb is not None
    return clause.iops_per_tb * contract.capacity_tb


def _access(mix: PromisedMix) -> Record:
    return {"block_bytes": mix.block, "read_share": mix.read, "random_share": mix.random}


def _sequential(clause: ThroughputClause) -> Record:
    return {"block_bytes": clause.block, "read_share": 1.0 if clause.direction == "read" else 0.0, "random_share": 0.0}


def _cases(contract: StorageContract, clause: LatencyClause) -> Iterator[Record]:
    """The mix, and each end of the sizes and shares that the clause holds for, as far as such I/O counts."""
    yield {}
    ends: list[tuple[str, str, float]] = [("block", "block_bytes", end) for end in clause.blocks or ()]
    ends += [("read", "read_share", end) for end in clause.reads or ()]
    for name, key, end in dict.fromkeys(ends):
        mix = clause.mix.model_copy(update={name: end})
        if mix != clause.mix and not does_not_count(contract, clause.model_copy(update={"mix": mix})):
            yield {key: end}


def has_direction(direction: Direction, read_share: float) -> bool:
    """Whether I/O with such a share of reads has any of a direction.

    Examples
    --------
    >>> has_direction("read", 0.0), has_direction("write", 0.7)
    (False, True)
    """
    return read_share > 0 if direction == "read" else read_share < 1


def load_words(rate: float | None, outstanding: int | None, block: float, read: float, random: float) -> str:
    """A load of a test in words.

    Examples
    --------
    >>> load_words(5000.0, None, 8192, 0.7, 1.0), load_words(None, 12, 4096, 1.0, 1.0)
    ('5,000 IOPS of 8 KiB, 70 % reads, 100 % random', '12 outstanding of 4 KiB, 100 % reads, 100 % random')
    """
    load = f"{outstanding or 1:,} outstanding" if rate is None else f"{format_iops(rate)} IOPS"
    return f"{load} of {format_bytes(block)}, {format_share(read)} reads, {format_share(random)} random"


def does_not_count(contract: StorageContract, clause: LatencyClause | IopsClause) -> str:
    """Why the I/O of a clause's own mix does not count by the contract's exclusions; an empty text where it does."""
    exclude, mix = contract.exclude, clause.mix
    rate = promised_rate(contract, clause) if isinstance(clause, LatencyClause) else None
    if exclude.above_block is not None and mix.block > exclude.above_block:
        return f"its block of {format_bytes(mix.block)} is above [exclude] above_block"
    if exclude.below_random_reads is not None and mix.read * mix.random < exclude.below_random_reads:
        return f"its {format_share(mix.read * mix.random)} random reads are below [exclude] below_random_reads"
    if exclude.below_iops is not None and rate is not None and rate < exclude.below_iops:
        return f"its {format_iops(rate)} IOPS are below [exclude] below_iops"
    if not isinstance(clause, LatencyClause):
        return ""
    if not has_direction(clause.direction, mix.read):
        return f"its mix has no {clause.direction}s"
    if clause.blocks is not None and not clause.blocks[0] <= mix.block <= clause.blocks[1]:
        return "the block of its mix is outside of its blocks"
    if clause.reads is not None and not clause.reads[0] <= mix.read <= clause.reads[1]:
        return "the reads of its mix are outside of its reads"
    return ""

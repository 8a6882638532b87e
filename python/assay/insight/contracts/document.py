"""What a contract came to as JSON, and in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from assay.document.text import joined
from assay.insight.contracts.judge import JudgedClause, JudgedContract
from assay.insight.contracts.latency import JudgedHour, JudgedSpan, LatencyJudge, Minutes
from assay.insight.contracts.words import STATES


class MinutesRecord(TypedDict):
    """Minutes of a clause, those that are unknown or do not count by reason."""

    counted: float
    met: float
    breached: float
    unknown: dict[str, float]
    excluded: dict[str, float]


class SpanRecord(TypedDict):
    """A month or day of a clause; the statistic is that of all counted I/Os, of months alone."""

    from_utc_ns: int
    minutes: MinutesRecord
    value_ns: NotRequired[float | None]


class HourRecord(TypedDict):
    """An hour above the limit, with its evidence."""

    from_utc_ns: int
    breached_minutes: float
    value_ns: float | None
    iops: float
    read_share: float | None
    block_bytes: float | None
    bytes_per_s: float


class LatencyRecord(TypedDict):
    """A clause of latency over a recording."""

    statistic: str
    most_ns: float
    value_ns: float | None
    max_ns: float | None
    allowed_share: float
    left_minutes: float
    minutes: MinutesRecord
    months: list[SpanRecord]
    days: list[SpanRecord]
    worst_hours: list[HourRecord]


class ClauseRecord(TypedDict):
    """A clause; `met` is null where it is unknown."""

    kind: str
    name: str
    promise: str
    met: bool | None
    found: str
    why: str
    latency: NotRequired[LatencyRecord]


class ContractRecord(TypedDict):
    """What a contract came to."""

    title: str
    vendor: str
    reference: str
    source: str
    host: str
    devices: list[str]
    interval: str
    from_utc_ns: int
    to_utc_ns: int
    counted_s: float
    unrecorded_s: float
    maintenance_s: float
    met: bool | None
    sentence: str
    clauses: list[ClauseRecord]
    notices: list[str]


def record_of(judged: JudgedContract) -> ContractRecord:
    """A judged contract as JSON."""
    contract = judged.contract
    return {
        "title": contract.title,
        "vendor": contract.vendor,
        "reference": contract.reference,
        "source": judged.source,
        "host": judged.judged.host,
        "devices": list(judged.judged.devices),
        "interval": contract.interval,
        "from_utc_ns": judged.begin_ns,
        "to_utc_ns": judged.end_ns,
        "counted_s": judged.total_ns / 1e9,
        "unrecorded_s": judged.unrecorded_ns / 1e9,
        "maintenance_s": judged.excluded_ns / 1e9,
        "met": judged.met,
        "sentence": verdict_sentence(judged.clauses),
        "clauses": [_clause(one) for one in judged.clauses],
        "notices": judged.notices,
    }


def verdict_sentence(clauses: Sequence[JudgedClause], breached: str = STATES[False]) -> str:
    """The verdict of all clauses in a sentence; `breached` is the word for those that are not met."""
    names: Mapping[bool | None, list[str]] = {
        state: [one.name for one in clauses if one.met is state] for state in (False, None, True)
    }
    said = []
    if names[False]:
        said.append(f"{len(names[False])} of {len(clauses)} clauses {breached}: {joined(names[False])}")
    if names[None]:
        said.append(f"{len(names[None])} cannot be judged: {joined(names[None])}")
    if names[True]:
        said.append(f"{'all' if len(names[True]) == len(clauses) else len(names[True])} met: {joined(names[True])}")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


def _clause(one: JudgedClause) -> ClauseRecord:
    found: ClauseRecord = {
        "kind": one.kind, "name": one.name, "promise": one.promise, "met": one.met, "found": one.found, "why": one.why,
    }  # fmt: skip
    if one.latency is not None:
        found["latency"] = _latency(one.latency)
    return found


def _latency(judge: LatencyJudge) -> LatencyRecord:
    clause = judge.clause
    return {
        "statistic": clause.statistic,
        "most_ns": clause.most,
        "value_ns": judge.times.value_ns(clause.statistic),
        "max_ns": judge.times.max_ns or None,
        "allowed_share": clause.allowed,
        "left_minutes": judge.left_minutes(),
        "minutes": _minutes(judge.minutes),
        "months": [{**_span(one), "value_ns": one.times.value_ns(clause.statistic)} for one in judge.months.values()],
        "days": [_span(one) for one in judge.days.values()],
        "worst_hours": [hour_record(one) for one in judge.worst()],
    }


def _minutes(minutes: Minutes) -> MinutesRecord:
    return {
        "counted": minutes.counted, "met": minutes.met, "breached": minutes.missed, "unknown": {**minutes.unknown},
        "excluded": {**minutes.excluded},
    }  # fmt: skip


def _span(one: JudgedSpan) -> SpanRecord:
    return {"from_utc_ns": one.begin_ns, "minutes": _minutes(one.minutes)}


def hour_record(hour: JudgedHour) -> HourRecord:
    """An hour with its evidence."""
    seconds = hour.covered_ns / 1e9 or 1.0
    return {
        "from_utc_ns": hour.begin_ns,
        "breached_minutes": hour.missed,
        "value_ns": hour.value_ns,
        "iops": hour.ios / seconds,
        "read_share": hour.reads / hour.ios if hour.ios else None,
        "block_bytes": hour.moved / hour.ios if hour.ios else None,
        "bytes_per_s": hour.moved / seconds,
    }

"""The four verdicts: cause found; bad, cause not found; judged fine; not judged. Silence is never health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypedDict

import numpy as np

from assay.base.units import count_of, format_duration
from assay.document.text import joined
from assay.insight.diagnosis.matrix import COOL, FEW, NONE, CellOf, Judged
from assay.insight.diagnosis.observed import DATABASES, SAMPLES_MIN, SECOND_NS, Observations
from assay.insight.diagnosis.recurrence import Recurrence, recurrence_of
from assay.insight.diagnosis.signals import Suspicion

FOUND: Literal["cause found"] = "cause found"
BAD: Literal["bad, cause not found"] = "bad, cause not found"
FINE: Literal["judged fine"] = "judged fine"
UNJUDGED: Literal["not judged"] = "not judged"
VerdictState = Literal["cause found", "bad, cause not found", "judged fine", "not judged"]

WHOLE_TIME = 0.95
"""Share of the time that a measure must be known to be judged over all of it; counters lose a sample now and then."""

NAMED_MAX = 4
"""Measures that an answer names."""


class CellVerdictRecord(TypedDict):
    """The verdict of a cell for scripts: its causes by name, and why."""

    verdict: VerdictState
    causes: list[str]
    why: str


class DiagnosisVerdictRecord(TypedDict):
    """The verdict of a diagnosis for scripts; `what`, `since` and `do` are its first three lines."""

    state: VerdictState
    what: str
    since: str
    do: str
    judged: list[str]
    not_judged: list[str]


@dataclass(frozen=True, kw_only=True)
class CellVerdict:
    """What is said of a cell."""

    state: VerdictState
    causes: Sequence[str]
    why: str

    def record(self) -> CellVerdictRecord:
        """For scripts."""
        return {"verdict": self.state, "causes": list(self.causes), "why": self.why}


def cell_verdict(cell: CellOf, causes: Sequence[Suspicion]) -> CellVerdict:
    """What is said of a cell: a cause explains it where its signals hold in half of the cell's bad time."""
    if cell.state == NONE:
        return CellVerdict(state=UNJUDGED, causes=(), why="nothing was recorded of it")
    one = cell.leading
    assert one is not None
    if cell.state == FEW:
        return CellVerdict(state=UNJUDGED, causes=(), why=f"{one.samples} samples; {SAMPLES_MIN} are the least")
    if not cell.is_bad:
        return CellVerdict(state=FINE, causes=(), why="; ".join(own.bound_words for own in cell.judged))
    explained = tuple(cause.cause for cause in causes if _explains(cause, cell, one))
    assert one.recurrence is not None
    why = f"{one.bound_words}, {one.recurrence.words}"
    return CellVerdict(state=FOUND if explained else BAD, causes=explained, why=why)


def _explains(cause: Suspicion, cell: CellOf, one: Judged) -> bool:
    """Whether a cause is about a cell: of the same resource or measure, and at the same time."""
    hosts = {signal.host for signal in cause.signals if signal.host}
    is_about = any(signal.threshold is one.measure.threshold for signal in cause.signals)
    # A stall of the application is explained by whatever is wrong meanwhile.
    is_alike = cell.resource in (cause.resource, "response") and (not hosts or cell.host in hosts or not cell.host)
    is_alike = is_alike or cell.resource == "response"
    overlap = int((one.beyond & cause.together).sum())
    return (is_about or is_alike) and overlap * 2 >= int(one.beyond.sum())


def moment(t_ns: int) -> str:
    """A time for people, UTC."""
    return datetime.fromtimestamp(t_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def since_words(observed: Observations, told: Recurrence | None) -> str:
    """Since when, for how long of the recorded time, and how it comes back."""
    if told is None:
        return "at no time"
    steps = sum(end - begin for begin, end in told.stretches)
    bad_s, whole_s = steps * observed.step_s, observed.steps * observed.step_s
    if steps >= WHOLE_TIME * observed.steps:
        return f"since {moment(told.since_ns)}, all of the recorded {format_duration(whole_s)}"
    many = f"; {told.words}" if len(told.stretches) > 1 else ""
    share = f"{format_duration(bad_s)} of {format_duration(whole_s)}"
    return f"since {moment(told.since_ns)}, until {moment(told.until_ns)}, {share}{many}"


def record_next(observed: Observations, cell: CellOf | None) -> list[str]:
    """What to record to find a cause: what is missing beside a bad cell, the nearest to it first."""
    sources = {track.source for track in observed.tracks}
    users = cell is None or cell.resource == "response" or cell.tier in ("application", "database")
    found = []
    if not sources & set(DATABASES):
        words = "the server's checkpoints, waits and locks (assay record --database URL)"
        found.append((0 if users else 2, words))
    if not sources & {"block", "nfs"}:
        found.append((1, "devices and network file systems (assay record, iostat -x 1, nfsiostat)"))
    if "host" not in sources:
        found.append((1, "processors and memory of the hosts (assay record, sar)"))
    if "process" not in sources:
        found.append((2, "programs by their I/O and processors (assay record as root, pidstat -d -u 1)"))
    if not any(track.tier == "application" for track in observed.tracks):
        found.append((3, "response times of the application"))
    return [words for _, words in sorted(found, key=lambda one: one[0])]


def essentials(observed: Observations, cells: Sequence[CellOf]) -> tuple[list[str], list[str]]:
    """Essential measures that were judged fine over all time, the nearest to its threshold first, and what is missing.

    Processors of each host, latency of its storage, and of databases and applications that were recorded what they
    wait for and how long they take. A modelled array has no processors of a host.
    """
    fine, missing = list[Judged](), list[str]()
    wanted = [("cpu", "processors", not observed.is_model), ("disk", "storage", True)]
    for resource, named, is_wanted in wanted:
        own = [cell for cell in cells if cell.resource == resource and cell.state not in (NONE, FEW)]
        told = [one for cell in own for one in cell.judged if one.state != FEW and _is_essential(one)]
        if is_wanted and not told:
            missing.append(f"{named}: {_why_missing(cells, resource)}")
        fine += _told_of([one for one in told if one.state == COOL], missing)
    for tier, named in (("database", "the database"), ("application", "the application")):
        own = [cell for cell in cells if cell.tier == tier and cell.resource in ("response", "memory", "network")]
        told = [one for cell in own for one in cell.judged if one.state == COOL]
        fine += _told_of(told, missing)
        if not any(cell.state != NONE for cell in cells if cell.tier == tier):
            missing.append(f"{named}: nothing was recorded of it")
    return [one.bound_words for one in sorted(fine, key=lambda one: -one.distance)], missing


def _is_essential(one: Judged) -> bool:
    """Whether a measure alone says how a resource is: its use, or the time of an I/O."""
    unit = one.measure.threshold.unit
    return unit == "ns" or (one.measure.aspect == "utilisation" and unit == "share")


def _told_of(told: Sequence[Judged], missing: list[str]) -> list[Judged]:
    """Measures that are known over all of the time; the others are missing."""
    for one in told:
        if one.known_share < WHOLE_TIME:
            missing.append(f"{one.measure.text}: known for {one.known_share:.0%} of the time")
    return [one for one in told if one.known_share >= WHOLE_TIME]


def _why_missing(cells: Sequence[CellOf], resource: str) -> str:
    few = [cell for cell in cells if cell.resource == resource and cell.state == FEW]
    return f"fewer than {SAMPLES_MIN} samples" if few else "nothing that tells it was recorded"


def is_fine(missing: Sequence[str]) -> bool:
    """Whether processors and storage were judged over all time: without these nothing is called fine."""
    return not any(not one.startswith(("the database", "the application")) for one in missing)


def verdict_of(
    observed: Observations, cells: Sequence[CellOf], causes: Sequence[Suspicion], *, is_enough: bool
) -> DiagnosisVerdictRecord:
    """The verdict of a diagnosis, and its three lines: what hurts, since when, what to do."""
    fine, missing = essentials(observed, cells)
    whole = format_duration(observed.steps * observed.step_s)
    bad = bad_cells(cells)
    record: DiagnosisVerdictRecord = {
        "state": UNJUDGED, "what": "", "since": "", "do": "", "judged": fine, "not_judged": missing,
    }  # fmt: skip
    if causes:
        first = causes[0]
        signal = next((one for one in first.signals if one.threshold is not None), first.signals[0])
        record["state"] = FOUND
        record["what"] = signal.words
        record["since"] = since_words(observed, recurrence_of(observed, first.together))
        record["do"] = first.advice + (f" To confirm: {first.confirm}." if first.confirm else "")
    elif bad:
        cell, one = bad[0], bad[0].leading
        assert one is not None
        record["state"] = BAD
        record["what"] = f"{cell.place} {cell.resource}: {one.bound_words}"
        record["since"] = since_words(observed, one.recurrence)
        record["do"] = f"Record while it is bad: {joined(record_next(observed, cell)) or 'every tier'}."
    elif not is_enough:
        record["what"] = f"too little was recorded: {SAMPLES_MIN} samples are the least"
        record["since"] = f"{count_of(int(observed.counted.sum()), 'sample')} in {whole}"
        record["do"] = f"Record for longer, and {joined(record_next(observed, None)) or 'every tier'}."
    elif is_fine(missing):
        record["state"] = FINE
        record["what"] = few_words(fine)
        record["since"] = f"from {moment(observed.begin_ns)} on, all of {whole}" + _reach(missing)
        record["do"] = "Leave it as it is. If users complain all the same, record while they do, and every tier."
    else:
        record["what"] = "; ".join(missing)
        record["since"] = f"from {moment(observed.begin_ns)} on, for {whole}" + _reach(
            [few_words(fine)] if fine else [], "judged fine: "
        )
        record["do"] = f"Record {joined(record_next(observed, None)) or 'every tier'}."
    return record


def few_words(judged: Sequence[str]) -> str:
    """Measures for an answer: those that come nearest to their thresholds, and how many others."""
    more = len(judged) - NAMED_MAX
    return "; ".join(judged[:NAMED_MAX]) + (
        f"; and {count_of(more, 'measure')} farther from theirs" if more > 0 else ""
    )


def _reach(texts: Sequence[str], before: str = "not judged: ") -> str:
    return f"; {before}{'; '.join(texts)}" if texts else ""


def bad_cells(cells: Sequence[CellOf]) -> list[CellOf]:
    """Hot and warm cells, the worst first."""
    bad = [cell for cell in cells if cell.is_bad]
    return sorted(bad, key=lambda cell: -float(np.max([one.share for one in cell.judged])))

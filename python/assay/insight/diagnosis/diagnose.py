"""From what was observed to what hurts: the matrix, then the causes, most likely first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NotRequired, TypedDict

import numpy as np

from assay.document.text import percent
from assay.insight.diagnosis.causes.registry import CAUSES
from assay.insight.diagnosis.matrix import NONE, CellOf, CellRecord, matrix_of
from assay.insight.diagnosis.observed import SAMPLES_MIN, Observations, ObservedSource, observe, unrecorded
from assay.insight.diagnosis.recurrence import RecurrenceRecord, recurrence_of
from assay.insight.diagnosis.rising import RisingLoad, first_to_saturate
from assay.insight.diagnosis.signals import MOST_LIKELY, Signal, Suspicion
from assay.insight.diagnosis.verdict import (
    BAD,
    FINE,
    UNJUDGED,
    CellVerdict,
    CellVerdictRecord,
    DiagnosisVerdictRecord,
    VerdictState,
    bad_cells,
    cell_verdict,
    record_next,
    verdict_of,
)
from assay.insight.recording import gaps_told

NAMES: dict[VerdictState, str] = {BAD: "cause-not-found", FINE: "none", UNJUDGED: "not-judged"}
"""What stands for a cause where none was found, by the verdict."""

TITLES = {cause.name: cause.title for cause in CAUSES} | {
    "cause-not-found": "It is bad, and the cause is not found",
    "none": "What was recorded is fine",
    "not-judged": "Too little was recorded for a verdict",
}

NOTHING_WRONG = "Nothing is wrong"
"""Title where all tiers were judged fine, database and application too."""


class EvidenceRecord(TypedDict):
    """A signal of a cause for scripts: its value and threshold in `unit`; a note has its text alone."""

    text: str
    of: NotRequired[str]
    entity: NotRequired[str]
    host: NotRequired[str]
    value: NotRequired[float | None]
    unit: NotRequired[str | None]
    threshold: NotRequired[float | None]
    source: NotRequired[str | None]
    minutes: NotRequired[float]


class CauseRecord(TypedDict):
    """A cause for scripts, when its signals held together and how they come back; what stands for none has no times."""

    cause: str
    title: str
    confidence: float
    resource: str | None
    minutes: float
    from_utc_ns: NotRequired[int]
    to_utc_ns: NotRequired[int]
    recurs: NotRequired[RecurrenceRecord]
    confirm: NotRequired[str]
    evidence: list[EvidenceRecord]
    against: list[str]
    advice: str


class UnseenCause(TypedDict):
    """A cause for which nothing was recorded, and what it needs."""

    cause: str
    needs: str


class JudgedCellRecord(CellRecord, CellVerdictRecord):
    """A cell and its verdict."""


class DiagnosisRecord(TypedDict):
    """A diagnosis for scripts: steps in seconds, causes with the most likely first."""

    verdict: DiagnosisVerdictRecord
    begin_utc_ns: int | None
    step_s: float
    samples: int
    hosts: list[str]
    matrix: list[JudgedCellRecord]
    causes: list[CauseRecord]
    load: RisingLoad | None
    not_looked_for: list[UnseenCause]
    notices: list[str]
    assumed: list[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """The matrix and the causes of what was observed.

    Attributes
    ----------
    causes
        Most likely first; a cause that another explains stands after it. Empty where none was found.
    not_looked_for
        Causes for which nothing was recorded, and what they need.
    """

    observed: Observations
    cells: Sequence[CellOf]
    causes: Sequence[Suspicion]
    not_looked_for: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()

    @property
    def first(self) -> str:
        """Name of the most likely cause, or what stands for it: `cause-not-found`, `none` (fine), `not-judged`."""
        return self.causes[0].cause if self.causes else NAMES[self.verdict["state"]]

    @cached_property
    def verdict(self) -> DiagnosisVerdictRecord:
        """The verdict, in three lines."""
        return verdict_of(self.observed, self.cells, self.causes, is_enough=self.is_enough)

    @property
    def title(self) -> str:
        """The verdict in a few words."""
        if self.verdict["state"] == FINE and not self.verdict["not_judged"]:
            return NOTHING_WRONG
        return TITLES[self.first]

    @property
    def answer(self) -> list[str]:
        """The answer in three lines: what hurts, since when, what to do."""
        verdict = self.verdict
        head = verdict["state"].capitalize()
        if self.causes:
            first = self.causes[0]
            how = "".join(f"{word}, " for word in [first.likelihood.lower()] if word != MOST_LIKELY.lower())
            head += f" ({how}confidence {percent(first.confidence)}): {first.cause}: {self.title}"
        elif verdict["state"] == FINE:
            head += f": {self.title}"
        return [f"{head}: {verdict['what']}", f"When: {verdict['since']}", f"Do: {verdict['do']}"]

    @property
    def not_judged(self) -> list[str]:
        """What was not judged and the answer does not say."""
        return [text for text in self.verdict["not_judged"] if not any(text in line for line in self.answer)]

    def of_cell(self, cell: CellOf) -> CellVerdict:
        """The verdict of a cell."""
        return cell_verdict(cell, self.causes)

    @property
    def is_enough(self) -> bool:
        """Whether enough was recorded for any verdict."""
        return int(self.observed.counted.sum()) >= SAMPLES_MIN and bool(self.observed.tracks)

    def record(self) -> DiagnosisRecord:
        """For scripts."""
        observed = self.observed
        with unrecorded():
            load = first_to_saturate(observed, list(self.cells))
        return {
            "verdict": self.verdict,
            "begin_utc_ns": observed.begin_ns if observed.tracks else None,
            "step_s": observed.step_s,
            "samples": int(observed.counted.sum()),
            "hosts": observed.hosts,
            "matrix": [{**cell.record(), **self.of_cell(cell).record()} for cell in self.cells],
            "causes": self.cause_records() or [self._stand_in()],
            "load": load,
            "not_looked_for": [{"cause": name, "needs": needs} for name, needs in self.not_looked_for],
            "notices": list(self.notices),
            "assumed": [],
        }

    def cause_records(self) -> list[CauseRecord]:
        """The causes for scripts; empty where none was found."""
        return [_cause(one, self.observed) for one in self.causes]

    def _stand_in(self) -> CauseRecord:
        """What stands for a cause where none was found: what is bad, what was judged, or what is missing."""
        verdict = self.verdict
        bad = [f"{cell.place} {cell.resource}: {self.of_cell(cell).why}" for cell in bad_cells(self.cells)]
        cells = [cell for cell in self.cells if cell.state != NONE]
        record: CauseRecord = {
            "cause": self.first,
            "title": self.title,
            "confidence": len(cells) / max(len(self.cells), 1) if verdict["state"] == FINE else 0.0,
            "resource": bad_cells(self.cells)[0].resource if bad else None,
            "minutes": max((cell.minutes for cell in self.cells), default=0.0) if bad else 0.0,
            "evidence": [{"text": text} for text in (bad or verdict["judged"])],
            "against": [],
            "advice": verdict["do"],
        }
        if bad:
            worst = bad_cells(self.cells)[0]
            told = worst.leading.recurrence if worst.leading is not None else None
            record["confirm"] = "; ".join(record_next(self.observed, worst))
            if told is not None:
                record |= {"from_utc_ns": told.since_ns, "to_utc_ns": told.until_ns, "recurs": told.record()}
        return record


def _cause(one: Suspicion, observed: Observations) -> CauseRecord:
    when, told = np.flatnonzero(one.together), recurrence_of(observed, one.together)
    record: CauseRecord = {
        "cause": one.cause,
        "title": TITLES[one.cause],
        "confidence": one.confidence,
        "resource": one.resource,
        "minutes": round(observed.minutes(one.together), 3),
        "from_utc_ns": int(observed.begin_ns + when[0] * observed.step_ns),
        "to_utc_ns": int(observed.begin_ns + (when[-1] + 1) * observed.step_ns),
        "evidence": [_evidence(signal, observed) for signal in one.signals] + [{"text": note} for note in one.notes],
        "against": list(one.against),
        "advice": one.advice,
    }
    if told is not None:
        record["recurs"] = told.record()
    if one.confirm:
        record["confirm"] = one.confirm
    return record


def _evidence(signal: Signal, observed: Observations) -> EvidenceRecord:
    bound = signal.threshold
    return {
        "text": signal.words,
        "of": signal.of,
        "entity": signal.entity,
        "host": signal.host,
        "value": signal.value,
        "unit": bound.unit if bound else None,
        "threshold": bound.value if bound else None,
        "source": bound.source if bound else None,
        "minutes": round(observed.minutes(signal.holds), 3),
    }


def diagnose(sources: Sequence[ObservedSource], tiers: Mapping[str, str] | None = None) -> Diagnosis:
    """Find what hurts in runs and recordings, merged on one clock.

    Parameters
    ----------
    sources
        What was recorded.
    tiers
        Tier of a host, such as `{"web1": "web"}`.
    """
    with unrecorded():
        return _diagnose(observe(sources, tiers))


def _diagnose(observed: Observations) -> Diagnosis:
    found: list[Suspicion] = []
    if observed.tracks:
        found = [one for cause in CAUSES for one in cause.find(observed)]
    recorded = {track.source for track in observed.tracks}
    seen = {one.cause for one in found}
    silent = [
        (cause.name, cause.needs) for cause in CAUSES if cause.name not in seen and not recorded & set(cause.sources)
    ]
    return Diagnosis(
        observed=observed,
        cells=matrix_of(observed),
        causes=_ordered(found),
        not_looked_for=silent,
        notices=_notices(observed),
    )


def _ordered(found: Sequence[Suspicion]) -> list[Suspicion]:
    """One of each cause, the strongest; what another explains after it; else by confidence."""
    best: dict[str, Suspicion] = {}
    for one in found:
        if one.cause not in best or one.confidence > best[one.cause].confidence:
            best[one.cause] = one
    explained = {name for one in best.values() for name in one.explains if name in best and _overlap(one, best[name])}
    return sorted(best.values(), key=lambda one: (one.cause in explained, -one.confidence, one.cause))


def _overlap(one: Suspicion, other: Suspicion) -> bool:
    """Whether one holds during at least half of the other, and so may explain it."""
    return bool((one.together & other.together).sum() * 2 >= other.together.sum())


def _notices(observed: Observations) -> list[str]:
    """What a reader must know of the material."""
    notices = []
    for source in observed.sources:
        if source.series is None or not len(source.series):
            notices.append(f"{source.name}: holds no series; nothing of it is in the matrix")
        if source.manifest.get("verb") == "record":
            told = source.manifest.get("recording") or {}
            notices += [f"{source.name}: {text}" for text in (*gaps_told(told), *(told.get("notices") or ()))]
    spans = {
        source.name: (int(source.series.t_ns.min()), int(source.series.t_ns.max()))
        for source in observed.sources
        if source.series is not None and len(source.series)
    }
    names = list(spans)
    for place, name in enumerate(names):
        for other in names[place + 1 :]:
            if spans[name][1] <= spans[other][0] or spans[other][1] <= spans[name][0]:
                notices.append(
                    f"{name} and {other} share no time: nothing of one explains the other; look at their zones (--zone)"
                )
    return notices

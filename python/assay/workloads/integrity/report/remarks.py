"""What verifying says in the sections that all kinds share."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import count_of, format_duration
from assay.document.elements import Notice, Paragraph
from assay.document.remarks import BYTES, LATENCY, OUTSTANDING, PERCENTILE, POINT, PRESSURE, QUEUE, Remarks, Word
from assay.document.text import joined, shorten
from assay.record.source import RunFacts
from assay.workloads.integrity.report.faults import caveat, gravest_text, headline, uncut_power, verified_text
from assay.workloads.integrity.report.told import KIND, integrity_of
from assay.workloads.integrity.shapes import Phase

NOTHING_VERIFIED = "The run left no result of its checks: nothing here says whether the data came back right."

OWN_WORDS: tuple[Word, ...] = (
    ("page, unit", "a page of a data file has 8 KiB, a block of the log one sector; units of both have 512 bytes"),
    ("generation", "how often a page was written: 1 for the first write, one more with each write after it"),
    ("persistent", "a wrong page stayed wrong in every one of 15 reads; transient: one of them was right"),
    ("observable", "an injected fault whose bytes reached a read before they were overwritten; others are masked"),
)
WORDS = (POINT, OUTSTANDING, LATENCY, PERCENTILE, BYTES, QUEUE, PRESSURE)


def integrity_remarks(facts: RunFacts) -> Remarks:
    """Build the remarks."""
    found = integrity_of(facts)
    if found is None:
        return Remarks(without_verdict=NOTHING_VERIFIED if facts.kind == KIND else None, words=WORDS)
    text, tone = headline(found, caveat(facts))
    checked = " ".join(text for text in (gravest_text(found), verified_text(found)) if text)
    return Remarks(
        # Speed is worth nothing if data come back wrong; that they come back right is one fact among others.
        headlines=[Paragraph(text, strong=True, tone=tone)],
        without_verdict=checked if facts.kind == KIND else None,
        notices=[Notice(text, "plain") for text in uncut_power(facts)],
        timing=[_phase_timing(phases)] if (phases := found["phases"]) else [],
        words=(*WORDS, *OWN_WORDS),
    )


def _phase_timing(phases: Sequence[Phase]) -> str:
    spent: dict[str, float] = {}
    for phase in phases:
        name = str(phase.get("name") or "unnamed")
        spent[name] = spent.get(name, 0.0) + float(phase.get("seconds") or 0)
    cycles = len({phase.get("cycle") for phase in phases})
    times = joined(f"{shorten(name, 30)} {format_duration(seconds)}" for name, seconds in spent.items())
    return f"The phases of the integrity run took, in {count_of(cycles, 'cycle')}: {times}."

"""What comes before the measurements: summary, objectives and audience, terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.document.elements import FactList
from assay.document.references import see
from assay.document.remarks import WORDS, Word
from assay.document.text import joined, moment
from assay.insight.sizing.text import headline
from assay.report.assemble import target_names
from assay.report.paper.measured import counted, findings_of, follows_from, question_of
from assay.report.paper.parts import Draft, traced
from assay.report.paper.sources import PaperSource
from assay.report.paper.words import Words, paragraphs

SENTENCES_MAX = 2
"""Sentences of the summary on each run; its section has all."""

ADVICE_MAX = 8

_BASIS = re.compile(r" \(90 % band; [^()]*\)")
"""What a band rests on, which the section of a study says in full."""

OWN_WORDS: tuple[Word, ...] = (
    ("R1.p0007", "point 7 of run 1: every figure names where it is from"),
    ("knee, edge", "the smallest load with 95 % of the most, and the largest load within the limits"),
    ("model", "an array that is simulated in virtual time: its figures are predictions"),
    ("band", "how far a model may be off, as far as its calibration tells; 90 % of errors lie within it"),
    ("published.toml", "figures of published studies, which models are fitted to and held against"),
    ("role", "what a volume is for: data, log or tempdb"),
)


def summary(sources: Sequence[PaperSource], sections: Mapping[str, str], target: str) -> Draft:
    """The executive summary; `sections` gives the section of each run by its number."""
    findings = []
    advice: list[str] = []
    for source in sources:
        if source.kind == "sizing":
            sentences: list[str] = []
            verdict = traced(headline(source.manifest["sizing"]), [], source.number)
        else:
            verdict, sentences = findings_of(source)
        more = len(sentences) - SENTENCES_MAX
        shown = [_BASIS.sub(" (90 % band)", text) for text in sentences[:SENTENCES_MAX]]
        if more > 0:
            shown = [*shown[:-1], f"{shown[-1]} See {see(sections[source.number])} for more."]
        findings.append({"title": source.title, "run": source.number, "verdict": verdict, "sentences": shown})
        advice += follows_from(source)[:2]
    opening = f"This paper examines {target}. It rests on {counted(sources)}, made {when(sources)}."
    opening = f"{predicted}. {opening}" if (predicted := prediction(sources)) else opening
    fields = {
        "opening": opening,
        "findings": [one for one in findings if one["verdict"] or one["sentences"]],
        "advice": list(dict.fromkeys(advice))[:ADVICE_MAX],
    }
    return Draft("summary", "Executive summary", "summary", fields)


def when(sources: Sequence[PaperSource]) -> str:
    """When the runs were made, to the day."""
    starts = sorted(started for source in sources if (started := source.manifest.get("started_utc_ns")))
    days = list(dict.fromkeys(moment(start)[:10] for start in (starts[:1] + starts[-1:])))
    if not days:
        return "at a time that is not known"
    return f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[1]}"


def objectives(sources: Sequence[PaperSource], sections: Mapping[str, str], words: Words, target: str) -> Draft:
    """What the paper shall decide, and for whom."""
    asked = [{"question": question_of(source), "section": sections[source.number]} for source in sources]
    distinct = {str(one["question"]): one for one in reversed(asked)}
    fields: dict[str, object] = {
        "objectives": paragraphs(words.objectives)
        or [
            f"To say what {target} can hold within limits that databases need, on figures that anyone can measure"
            " again, and what follows for configuration and purchase."
        ],
        "audience": paragraphs(words.audience)
        or ["Database administrators, storage engineers and solution architects who choose, size or defend storage."],
        "questions": list(distinct.values())[::-1],
        "customer": words.customer,
    }
    return Draft("objectives", "Objectives and audience", "objectives", fields)


def terms(sources: Sequence[PaperSource]) -> Draft:
    """Words that the paper uses."""
    found: dict[str, str] = {}
    for source in sources:
        told = list(source.made.remarks.values()) if source.kind in ("run", "study") else []
        for word, meaning in (pair for one in told for pair in one.words):
            found.setdefault(word, meaning)
    for word, meaning in (*WORDS, *OWN_WORDS):
        found.setdefault(word, meaning)
    return Draft("terms", "Terms", "terms", {}, {"terms": [FactList("words", list(found.items()))]})


def prediction(sources: Sequence[PaperSource]) -> str:
    """That figures are predictions of models, and which; empty where all were measured."""
    simulated = [source.number for source in sources if source.measured is False]
    if not simulated:
        return ""
    if any(source.measured for source in sources):
        return (
            f"Predictions beside measurements: nothing was measured in [{', '.join(simulated)}], a model was simulated"
        )
    were = "was" if len(_targets(sources)) == 1 else "were"
    return f"A prediction: {target_words(sources)} {were} simulated; no array was measured"


def target_words(sources: Sequence[PaperSource]) -> str:
    """What the paper is about, in words."""
    distinct = _targets(sources)
    # Of many the first few: the configuration has all.
    return (
        joined(distinct[:3] + ([f"{len(distinct) - 3} more"] if len(distinct) > 3 else [])) or "arrays of the catalogue"
    )


def _targets(sources: Sequence[PaperSource]) -> list[str]:
    names: list[str] = []
    for source in sources:
        array = (source.manifest.get("target") or {}).get("array")
        if array:
            names.append(str(array.get("title") or array.get("name")).partition(",")[0])
        elif source.kind in ("run", "study"):
            names.append(target_names(source.facts))
        elif source.kind == "recording":
            names.append(
                f"the storage of {joined(str(host) for host in source.manifest['recording'].get('hosts') or [])}"
            )
        elif source.kind == "reliability":
            names.append(str(source.manifest["reliability"]["array"]["title"]).partition(",")[0])
    return list(dict.fromkeys(name for name in names if name))

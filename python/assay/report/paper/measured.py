"""Sections of what was measured: each study, run, recording and computation of reliability with what it found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assay.base.errors import UsageError
from assay.base.tables import Record
from assay.base.units import count_of, format_duration
from assay.document.elements import Block, Cell, Column, FigureElement, Paragraph, Table
from assay.document.limits import limit_text
from assay.document.references import see
from assay.document.text import DASH, joined, shorten
from assay.insight.studies.answer import published_words
from assay.insight.studies.files import read_study
from assay.insight.studies.follows import follows_of
from assay.record.shapes.need import AskedNeed
from assay.record.source import records
from assay.report.assemble import placed
from assay.report.paper.parts import Draft, flat, own_names, slug, traced
from assay.report.paper.sources import PaperSource, covered_s
from assay.report.sections.recording import recording_document
from assay.report.sections.reliability import reliability_document
from assay.report.sections.study import UNFINISHED, study_method, study_of, study_shown
from assay.report.sections.summary import limits_met
from assay.report.sections.verdict import verdict_section
from assay.report.standings import standings
from assay.targets.arrays.model.reliability_text import ratio_sentence

VALUE_LETTERS = 300
FOLLOWS_MAX = 4


def question_of(source: PaperSource) -> str:
    """The question that a run answers."""
    if source.study is not None:
        return str(source.study.get("question") or "What does what is varied change?")
    match source.kind:
        case "recording":
            return "What do the applications ask of the storage, and when?"
        case "reliability":
            return "How likely is a loss of data under each RAID policy?"
        case "sizing":
            return "What has to be bought for the need?"
        case "check":
            return "Which settings differ from best practice?"
        case _:
            return "What does the storage hold within the limits?"


def name_of_source(source: PaperSource, taken: set[str]) -> str:
    """Name of its section: the study's, else the verb's; with its number where another has it."""
    name = (
        slug(str(source.study["name"])) if source.study is not None else slug(str(source.manifest.get("verb") or "run"))
    )
    return f"{name}-{source.number.lower()}" if name in taken else name


def findings_of(source: PaperSource) -> tuple[str, list[str]]:
    """The verdict, and what was found, in sentences with their points."""
    if source.study is not None:
        return "", _study_sentences(source, source.study)
    if source.kind == "reliability":
        answer = source.manifest["reliability"]
        return "", [traced(ratio_sentence(ratio, answer), [], source.number) for ratio in answer["ratios"]]
    if source.kind == "check":
        check = source.manifest["check"]
        broken, kept = len(check["findings"] or []), len(check["passed"] or [])
        unknown = len(check["not_checked"] or [])
        told_of = f"{count_of(broken, 'rule')} of best practice broken, {kept} kept, {unknown} not checked."
        return "", [traced(told_of, [], source.number)]
    if source.kind == "recording":
        return "", _texts(recording_document(source.facts).sections[0].blocks, source)[:2]
    made = source.made
    found = standings(made.facts, made.remarks)
    told = [line for one in made.remarks.values() for line in one.headlines]
    verdict = limits_met(found, wrong=any(line.tone == "bad" for line in told)) if found else ""
    need: AskedNeed | None = made.facts.manifest.get("need")
    verdict = " ".join(filter(None, [need and need.get("sentence"), verdict]))
    return traced(verdict, [], source.number) if verdict else "", [
        traced(line.text, [], source.number) for line in told
    ]


def _texts(blocks: Iterable[Block], source: PaperSource) -> list[str]:
    return [traced(block.text, [], source.number) for block in blocks if isinstance(block, Paragraph)]


def _study_sentences(source: PaperSource, study: Record) -> list[str]:
    """Sentences of a study, each with the points of the levels that it compares."""
    points = {
        (result.get("part"), result.get("place")): result.get("point_ids") or []
        for result in records(study.get("results"))
    }
    by_sentence: dict[str, list[str]] = {}
    others = {*published_words(study)}
    for one in records(study.get("comparisons")):
        base = next(
            (result.get("point_ids") or [] for result in records(study.get("results"))
             if result.get("title") == one.get("baseline") and result.get("place") == one.get("place")), [],
        )  # fmt: skip
        by_sentence[str(one.get("sentence"))] = [*points.get((one.get("part"), one.get("place")), []), *base]
    whole = [point_id for ids in points.values() for point_id in ids]
    return [
        str(text) if text in others else traced(str(text), by_sentence.get(str(text), whole), source.number)
        for text in study.get("sentences") or []
    ]


def follows_from(source: PaperSource) -> list[str]:
    """What follows from a run."""
    if source.study is not None:
        return [traced(text, [], source.number) for text in follows_of(source.study)]
    if source.kind != "run":
        return []
    told = [text for one in source.made.remarks.values() for text in (*one.next_steps, *one.running)]
    return [traced(text, [], source.number) for text in dict.fromkeys(told)][:FOLLOWS_MAX]


def section_of(source: PaperSource, name: str, taken: set[str]) -> Draft:
    """The section of a run; sizings have theirs in the guideline."""
    title = source.title
    match source.kind:
        case "study":
            return _study(source, name, title, taken)
        case "recording":
            return _recording(source, name, title, taken)
        case "reliability":
            shown = own_names(flat(reliability_document(source.manifest).sections), source.number, taken)
            return Draft(name, title, "reliability", {"question": question_of(source)}, {"shown": shown})
        case _:
            return _run(source, name, title, taken)


def _study(source: PaperSource, name: str, title: str, taken: set[str]) -> Draft:
    study = study_of(source.facts)
    assert study is not None
    made = source.made
    told = list(made.remarks.values())
    shown = study_shown(made.facts, study, told)
    blocks = {
        "asked": own_names([_asked_table(source, study)], source.number, taken),
        "shown": own_names(shown, source.number, taken),
    }
    fields = {
        "question": question_of(source),
        "run": source.number,
        "missing": "" if shown else UNFINISHED,
        "sentences": findings_of(source)[1],
        "where": _where(blocks["shown"]),
        "method": study_method(made.facts, study, told),
        "follows": follows_from(source),
    }
    return Draft(name, title, "study", fields, blocks)


def _where(blocks: Sequence[Block]) -> str:
    """Which figure shows what was found, and which table has the values."""
    figure = next((block.name for block in blocks if isinstance(block, FigureElement)), None)
    table = next((block.name for block in reversed(blocks) if isinstance(block, Table)), None)
    words = [f"{see(figure)} shows it" if figure else "", f"{see(table)} has the values" if table else ""]
    told = joined(word for word in words if word)
    return f"{told}." if told else ""


def _asked_table(source: PaperSource, study: Record) -> Table:
    """What was varied, and what was held."""
    parts = records(source.manifest.get("parts"))
    plans = [part.get("plan") or {} for part in parts]
    own = dict.fromkeys(str(part.get("target")) for part in parts if part.get("target"))
    results = records(study.get("results"))
    rows: list[tuple[str, str]] = [
        (
            f"{factor.get('title')} (varied)",
            "; ".join(str(level.get("label")) for level in records(factor.get("levels"))),
        )
        for factor in records(study.get("factors"))
    ]
    if not rows:
        rows.append(("Cases", "; ".join(str(part.get("title")) for part in parts)))
    wanted = study.get("comparison") or {}
    if wanted.get("baseline"):
        rows.append(("Baseline", _label(study, wanted)))
    rows += [
        ("Target", str(study.get("target") or "; ".join(own))),
        ("Workload", joined(dict.fromkeys(str(one.get("workload")) for one in results if one.get("workload")))),
        ("Limits", joined(dict.fromkeys(limit_text(text) for plan in plans for text in plan.get("limits") or []))),
        ("Load", joined(dict.fromkeys(_load_words(plan) for plan in plans))),
        ("Warm-up and window", joined(dict.fromkeys(filter(None, (_timing_words(plan) for plan in plans))))),
        ("Repeats", str(study.get("repeats") or 1)),
        ("Seed", str(study.get("seed"))),
    ]
    columns = [Column("Parameter", weight=1.0), Column("Value", weight=3.4)]
    caption = f"What was asked in run {source.number}; all else is the same at every level."
    cells = [[Cell(name), Cell(shorten(value, VALUE_LETTERS))] for name, value in rows if value and value != DASH]
    return Table("asked", caption, columns, cells)


def _label(study: Record, wanted: Record) -> str:
    factor: Record = next((one for one in records(study.get("factors")) if one.get("name") == wanted.get("by")), {})
    levels = records(factor.get("levels"))
    return next((str(one["label"]) for one in levels if wanted["baseline"] in (one.get("key"), one.get("label"))),
                str(wanted["baseline"]))  # fmt: skip


def _load_words(plan: Record) -> str:
    search = plan.get("search") or {}
    axis = str(search.get("axis") or "none")
    if axis != "none":
        return f"searched over {axis.replace('-', ' ')}: the most within the limits"
    loads = [f"{_listed(plan[key])} {key}" for key in ("users", "rate", "streams", "mailboxes") if plan.get(key)]
    loads += [f"queue depth {_listed(one['queue_depth'])}" for one in records(plan.get("activity"))
              if one.get("queue_depth")]  # fmt: skip
    return joined(dict.fromkeys(loads)) or "as given"


def _listed(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)


def _timing_words(plan: Record) -> str:
    timing = plan.get("timing") or {}
    warm, fixed = timing.get("warmup_s"), timing.get("duration_s")
    words = [f"{format_duration(warm)} of warm-up" if warm else ""]
    if fixed:
        words.append(f"{format_duration(fixed)} measured")
    elif timing.get("min_s") and timing.get("max_s"):
        words.append(f"{format_duration(timing['min_s'])} to {format_duration(timing['max_s'])} measured, until steady")
    return ", ".join(word for word in words if word)


def _run(source: PaperSource, name: str, title: str, taken: set[str]) -> Draft:
    made = source.made
    verdict, sentences = findings_of(source)
    judged = verdict_section(made.facts)
    sections = [*placed(made.own, "answer"), *placed(made.own, "detail"), *placed(made.own, "appendix")]
    shown = flat([one for one in sections if one.blocks])
    fields = {
        "question": question_of(source),
        "run": source.number,
        "verdict": verdict,
        "sentences": sentences if sentences or source.facts.points else [_nothing(source.number)],
        "follows": follows_from(source),
    }
    blocks = {
        "verdict": own_names(judged.blocks if judged else [], source.number, taken),
        "shown": own_names(shown, source.number, taken),
    }
    return Draft(name, title, "run", fields, blocks, listed=True)


def _nothing(number: str) -> str:
    return f"No point of run {number} was measured: there is nothing to say of it [{number}]."


def _recording(source: PaperSource, name: str, title: str, taken: set[str]) -> Draft:
    whole = recording_document(source.facts)
    covered = covered_s(source.facts)
    fields = {
        "question": question_of(source),
        "run": source.number,
        "coverage": f"The recording covers {format_duration(covered)} of the 168 hours of a week"
        f" [{source.number}]: what the other hours ask for is not known.",
    }
    first, *others = whole.sections
    shown = own_names([*first.blocks, *flat(others)], source.number, taken)
    return Draft(name, title, "recording", fields, {"shown": shown})


def absent_study(name: str) -> Draft:
    """The section of a study that the paper shall have and no run holds.

    Raises
    ------
    UsageError
        There is no such study.
    """
    try:
        study: Any = read_study(name)
    except UsageError as error:
        raise UsageError(f"paper.toml: studies: {error}") from error
    fields = {
        "missing": f"None of the runs holds the study {name}: this paper has no finding on it.",
        "question": study.question,
    }
    return Draft(slug(name), study.title, "absent", fields)


def counted(sources: Sequence[PaperSource]) -> str:
    """The number of runs of each kind."""
    words = {"study": "study", "run": "run", "sizing": "sizing", "recording": "recording", "reliability": "computation",
             "check": "check"}  # fmt: skip
    kinds = [source.kind for source in sources]
    told = []
    for kind in dict.fromkeys(kinds):
        number, noun = kinds.count(kind), words[kind]
        told.append(f"{number} studies" if kind == "study" and number > 1 else count_of(number, noun))
    return joined(told)

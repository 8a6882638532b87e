"""What follows for the reader: best practices, the sizing guideline, and the limits of what was said."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from assay.base.tables import Record
from assay.base.units import count_of
from assay.document.elements import Block, Cell, Column, Heading, Paragraph, Table
from assay.document.text import joined, percent, sentence, shorten
from assay.insight.rules.registry import RULES
from assay.insight.studies.raw_gap import gap_shares
from assay.record.source import clean, records
from assay.report.paper.parts import Draft, flat, own_names
from assay.report.paper.sources import PaperSource
from assay.report.sections.best_practice import findings_table, gaps_table
from assay.report.sections.method import gap_texts
from assay.report.sections.sizing import REFUSED, sizing_sections
from assay.report.sections.summary import run_notices
from assay.targets.files.target import MODEL_NOTICE

NAMES_LETTERS = 300

GENERAL = (
    "Figures hold for the configuration, the load and the span that they were measured with, and for no other.",
    "Interference of other hosts on the same storage, the loss of power and the age of the media were not looked at,"
    " except where a section says so.",
)


def best_practices(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """What `assay check` found in the runs: what does not hold here, what holds, and what is not known."""
    told = [(source, checked) for source in sources if (checked := source.facts.told("check"))]
    # The same host and storage may have been checked by several runs: each finding stands once.
    findings = list({_key(one): one for _, checked in told for one in records(checked.get("findings"))}.values())
    passed = [one for _, checked in told for one in records(checked.get("passed"))]
    unknown = list({(one.get("rule"), one.get("subject")): one for _, checked in told
                    for one in records(checked.get("not_checked"))}.values())  # fmt: skip
    runs = ", ".join(source.number for source, _ in told)
    table = _passed_table(passed)
    fields = {
        "checked": f"{count_of(len(findings), 'rule')} of best practice broken, {len(table.rows)} kept,"
        f" {len(unknown)} not checked [{runs}]. What is not known never passes."
        if told
        else "",
        "missing": "None of the runs holds a check of best practice.",
        "findings": bool(findings),
        "passed": bool(table.rows),
        "unknown": bool(unknown),
    }
    shown: dict[str, Sequence[Block]] = {
        "findings": own_names([findings_table(findings)], "", taken) if findings else [],
        "passed": own_names([table], "", taken) if table.rows else [],
        "unknown": own_names([gaps_table(unknown)], "", taken) if unknown else [],
    }
    return Draft("best-practices", "Best practices", "best-practices", fields, shown)


def _key(one: Record) -> tuple[object, ...]:
    return one.get("rule"), one.get("subject"), one.get("found")


def _passed_table(passed: Sequence[Record]) -> Table:
    rules = {rule.id: rule for rule in RULES}
    subjects: dict[str, dict[str, None]] = {}
    for one in passed:
        subjects.setdefault(str(one.get("rule")), {})[str(one.get("subject"))] = None
    rows = [
        [
            Cell(name),
            Cell(rules[name].wanted if name in rules else "a rule of another version of Assay"),
            Cell(shorten(joined(found), NAMES_LETTERS)),
            Cell(rules[name].source if name in rules else ""),
        ]
        for name, found in subjects.items()
    ]
    columns = [Column("Rule", weight=1.3), Column("Wanted", weight=1.8), Column("Holds for", weight=1.0),
               Column("Source", weight=1.3)]  # fmt: skip
    return Table("passed", "Best practice that holds here.", columns, rows, dense=True)


def sizing(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """The sizing guideline: what a sizing answered, and what the studies say to size with."""
    answers = [source for source in sources if source.kind == "sizing"]
    blocks: list[Block] = []
    for source in answers:
        answer = clean(source.manifest["sizing"])
        own = flat([section for section in sizing_sections(answer) if section.name != REFUSED])
        if len(answers) > 1:
            blocks.append(Heading(f"{shorten(str(answer['title']), 60)} ({source.number})"))
        blocks += own_names([_marked(block, source.number) for block in own], source.number, taken)
    fields = {
        "missing": "" if answers else "None of the runs holds a sizing.",
        "guidance": _guidance(sources),
    }
    return Draft("sizing", "Sizing guideline", "sizing", fields, {"shown": blocks}, listed=True)


def _marked(block: Block, number: str) -> Block:
    """A sentence of a sizing with its run."""
    if isinstance(block, Paragraph):
        text = block.text
        return Paragraph(
            f"{text[:-1]} [{number}]." if text.endswith(".") else f"{text} [{number}]", block.strong, block.tone
        )
    return block


def _guidance(sources: Sequence[PaperSource]) -> list[str]:
    """What the studies of the paper say to size with."""
    texts = []
    for source in sources:
        for in_order, each in gap_shares((source.study or {}).get("gaps") or []).items():
            share, what = fmean(each), " in order" if in_order else ""
            texts.append(
                f"A database reaches {percent(abs(share))} {'less' if share >= 0 else 'more'} than the raw profile of"
                f" this storage{what} [{source.number}]."
            )
        for trend in records((source.study or {}).get("trends")):
            if trend.get("ordered") and trend.get("direction") == "fall" and trend.get("sentence"):
                text = str(trend["sentence"])
                texts.append(f"{text[:-1]} [{source.number}].")
    return texts


def limitations(sources: Sequence[PaperSource], taken: set[str]) -> Draft:
    """What qualifies the figures, worst first, and what was not measured."""
    general = list(GENERAL)
    notices: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        if source.kind in ("run", "study"):
            made = source.made
            told = [(notice.text, notice.tone) for notice in run_notices(made.facts, made.remarks.values())]
            told += [(text, "plain") for text in gap_texts(made.facts, made.remarks)]
        else:
            answer = source.facts.told(source.kind) or {}
            told = [(str(text), "warn") for text in answer.get("notices") or []]
            told += [(MODEL_NOTICE, "warn")] if source.kind == "sizing" else []
        for pair in told:
            runs = notices.setdefault(pair, [])
            if source.number not in runs:
                runs.append(source.number)
    order = ("bad", "warn", "plain")
    ranked = sorted(notices.items(), key=lambda item: order.index(item[0][1]) if item[0][1] in order else 2)
    columns = [
        Column("", weight=0.6),
        Column("What to know before relying on the figures", weight=6.0),
        Column("Runs", weight=1.0),
    ]
    words = {"bad": "Problem", "warn": "Note"}
    rows = [
        [Cell(words.get(tone, ""), tone if tone in ("bad", "warn") else "quiet"),  # type: ignore[arg-type]
         Cell(sentence(text)), Cell(f"[{', '.join(runs)}]")]
        for (text, tone), runs in ranked
    ]  # fmt: skip
    table = Table("notices", "What qualifies the figures of each run, worst first.", columns, rows)
    shown = own_names([table], "", taken) if rows else []
    return Draft("limitations", "Limitations", "limitations", {"general": general}, {"notices": shown})

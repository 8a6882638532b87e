"""Summary: the verdict, the headline sentences, and what must be known before believing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from assay.document.elements import Block, Cell, Column, Notice, Notices, Paragraph, Section, Table, Tone
from assay.document.limits import limit_text
from assay.document.remarks import Remarks
from assay.document.text import BASE_UNITS, DASH, NOT_MEASURED, sentence, shorten, value_text
from assay.report.facts import measured_points
from assay.results.source import Record, RunFacts
from assay.run.notices import notices_of
from assay.units import count_of
from assay.workloads.registry import workloads
from assay.workloads.workload import Workload

NO_VERDICT = "The run holds no verdict: nothing here says whether a limit was met or missed."


def verdict_word(line: Record) -> tuple[str, Tone]:
    """Word and tone of a verdict line: a value without a limit was measured, but nothing was asked of it."""
    if line.get("met") is True:
        return "✓ met", "good"
    if line.get("met") is False:
        return "✗ missed", "bad"
    return ("no limit" if line.get("value") is not None and not line.get("limit") else NOT_MEASURED), "quiet"


def judged_lines(facts: RunFacts) -> list[Record]:
    """Lines of the verdict; what was moved during a check is no answer to a question."""
    measured = {point.get("id") for point in measured_points(facts)}
    checks = {point.get("id") for point in facts.points} - measured
    lines = facts.manifest.get("verdict") or []
    return [line for line in lines if line.get("limit") or line.get("point_id") not in checks]


def summary_section(facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> Section:
    """Build the summary; `remarks` are those of each workload of the run."""
    blocks: list[Block] = [*_headlines(facts, remarks)]
    for told in (line for found in remarks.values() for line in found.headlines if line.tone != "plain"):
        blocks.insert(0 if told.tone == "bad" else len(blocks), told)
    verdict = judged_lines(facts)
    without = [found.without_verdict for found in remarks.values() if found.without_verdict]
    if verdict:
        blocks.append(_verdict_table(verdict))
    else:
        blocks.append(Paragraph(without[0] if without else NO_VERDICT))
    notices = run_notices(facts, remarks.values())
    if notices:
        blocks.append(Notices(notices))
    return Section("summary", "Summary", blocks)


def _verdict_table(verdict: list[Record]) -> Table:
    columns = [
        Column("Question", weight=2.1),
        Column("Limit", weight=1.8),
        Column("Value", number=True, weight=2.0),
        Column("Verdict", weight=1.2),
        Column("Meaning", weight=3.2),
    ]
    rows = []
    for line in verdict:
        word, tone = verdict_word(line)
        rows.append(
            [
                Cell(shorten(str(line.get("question") or DASH), 160)),
                Cell(limit_text(line.get("limit"))),
                Cell(_value_text(line), "quiet" if line.get("value") is None else "plain"),
                Cell(word, tone),
                Cell(str(line.get("meaning") or "")),
            ]
        )
    return Table("verdict", "Verdict: what was asked, its limit, and what was found.", columns, rows)


def _value_text(line: Record) -> str:
    """The value of a line in the words of the figure that has its unit."""
    value, unit = line.get("value"), line.get("unit")
    figure = next((one for workload in workloads() for one in workload.figures if one.unit == unit), None)
    if figure is None or value is None or unit in BASE_UNITS:
        return value_text(value, unit)
    return figure.words(value)


def _headlines(facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> list[Paragraph]:
    verdict = judged_lines(facts)
    words = Counter(verdict_word(line)[0] for line in verdict)
    asked = len(verdict) - words["no limit"]
    limits = []
    if asked:
        counted = [f"{words['✓ met']} of {count_of(asked, 'limit')} met"]
        counted += [f"{words['✗ missed']} missed"] if words["✗ missed"] else []
        counted += [f"{words[NOT_MEASURED]} not measured"] if words[NOT_MEASURED] else []
        limits.append(Paragraph(", ".join(counted) + ".", strong=True))
    of_storage, of_databases = (
        [line for workload, found in remarks.items() if (workload.runs_on == "databases") is databases
         for line in found.headlines if line.tone == "plain"]
        for databases in (False, True)
    )  # fmt: skip
    if of_storage:
        # What a database makes of storage comes after what storage can do.
        return [*limits, *of_storage, *of_databases]
    # What a database did is asked first, and whether it kept to limits second.
    return [*of_databases, *limits]


def run_notices(facts: RunFacts, remarks: Iterable[Remarks] = ()) -> list[Notice]:
    """Everything that qualifies the figures, worst first."""
    found = [*_status_notices(facts), *_figure_notices(facts), *(one for told in remarks for one in told.notices)]
    return sorted(found, key=lambda notice: ("bad", "warn", "plain").index(notice.tone))


def _status_notices(facts: RunFacts) -> list[Notice]:
    run, notices = facts.manifest, []
    count = len(facts.points)
    texts = {
        "running": f"The run was still going on when this was written: it covers the {count} points that had ended.",
        "interrupted": f"The run was interrupted: it covers the {count} points that had ended, not the whole plan.",
        "failed": f"The run failed: this report covers the {count} points that ended before.",
    }
    status = str(run.get("status") or "unknown")
    if status != "done":
        text = texts.get(status, f"The run's status is {status!r}; it may be incomplete.")
        notices.append(Notice(text, "bad" if status == "failed" else "warn"))
    if run.get("error"):
        notices.append(Notice(f"Error of the run: {run['error']}", "bad"))
    if not facts.points and not any(facts.told(workload.document_key) for workload in workloads()):
        notices.append(Notice("No point has been measured: there are no figures to show.", "warn"))
    notices += [Notice(f"Left out: {text}.", "bad") for text in facts.unreadable]
    return notices


def _figure_notices(facts: RunFacts) -> list[Notice]:
    """What follows from the figures, and what the run itself had to say; a text that is both appears once."""
    derived = notices_of(facts.points, facts.manifest.get("target") or {})
    tones = {note.text: note.tone for note in derived}
    error = str(facts.manifest.get("error") or "")
    given = [str(text) for text in facts.manifest.get("notices") or [] if text and str(text) != error]
    return [Notice(sentence(text), tones.get(text, "warn")) for text in dict.fromkeys([*tones, *given])]

"""The first page: whether a need is held, what storage holds, what limits it, where to run it, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.base.units import count_of
from assay.document.elements import Block, FigureElement, Heading, Notice, Notices, Paragraph, Section
from assay.document.remarks import Remarks
from assay.document.text import joined, sentence, shorten
from assay.insight.studies.follows import follows_of
from assay.record.judgement import WORDS, counts_words
from assay.record.limits import show_value
from assay.record.shapes.need import AskedNeed
from assay.record.source import RunFacts
from assay.report.figures_limits import BARS_MAX, EXCUSED, MET, MISSED, UNKNOWN, LimitBar, limit_bars
from assay.report.sections import best_practice
from assay.report.sections.diagnosis import limiting_words, next_words
from assay.report.sections.verdict import judged_lines
from assay.report.standings import Standing, standings
from assay.run.needed import need_tone
from assay.run.notices import notices_of
from assay.workloads.capabilities import OnDatabases, Telling
from assay.workloads.registry import workloads
from assay.workloads.workload import Workload

if TYPE_CHECKING:
    from assay.insight.diagnosis.diagnose import Diagnosis

NO_VERDICT = "The run holds no verdict: nothing here says whether a limit was met or missed."
NO_LIMIT = "No limit was set: nothing here is met or missed."

NO_NEED = (
    "Whether that is enough is not said, for no need was stated: I/Os a second, their size and mix, and limits on their"
    " latency. Nor is where the storage stands in its class: no published figures of classes come with Assay."
)
NEED_OPEN = "Whether the need is held is not known: it was not measured to its end."
TAKE_NEEDS = ("assess", "profile")
"""Verbs that take a need."""

AT_LIMIT_SHARE = 0.9
"""Where a search ends by design: a bar of such a share says nothing of the storage."""
LABEL_LETTERS = 46
"""Letters of a bar's label that the figure has room for."""
NAMED_MAX = 3
"""Limits that the first sentence names; the verdict lists all."""


def summary_section(
    facts: RunFacts, remarks: Mapping[Workload[Any], Remarks], hurts: Diagnosis | None = None
) -> Section:
    """Build the first page; `remarks` are those of each workload of the run, `hurts` its diagnosis."""
    found = standings(facts, remarks)
    told = [line for one in remarks.values() for line in one.headlines]
    bad, good = ([line for line in told if line.tone == tone] for tone in ("bad", "good"))
    need: AskedNeed | None = facts.manifest.get("need")
    blocks: list[Block] = [*bad]
    if need is not None:
        blocks.append(Paragraph(str(need.get("sentence") or NEED_OPEN), strong=True, tone=need_tone(need)))
    if found:
        blocks.append(Paragraph(limits_met(found, wrong=bool(bad)), strong=need is None))
        blocks += _without_need(facts)
        blocks += _picture(found)
    else:
        without = [one.without_verdict for one in remarks.values() if one.without_verdict]
        measured = judged_lines(facts)
        none = NO_LIMIT if measured else NO_VERDICT
        blocks += [*good, Paragraph(without[0] if without else none), *(_without_need(facts) if measured else [])]
        good = []
    held = "What it holds" if facts.manifest.get("answers") else "What was found"
    blocks += _answering(held, [*_headlines(remarks), *good])
    reasons = [Paragraph(text) for text in _excuses(found)]
    likely = [Paragraph(limiting_words(hurts))] if hurts is not None and hurts.causes else []
    blocks += _answering("What limits it", list(dict.fromkeys([*reasons, *_said(remarks, "limiting"), *likely])))
    blocks += _answering("Where to run it", _said(remarks, "running"))
    needed = [f"For the need: {need['next_step']}."] if need is not None and need.get("next_step") else []
    steps = [*needed, *(next_words(hurts) if hurts is not None else ()), *best_practice.next_words(facts)]
    choices = follows_of(facts.told("study") or {})
    # A step that is the same for every level does not answer what the study asks.
    own = [] if choices else _said(remarks, "next_steps")
    blocks += _answering("What to do next", [*map(Paragraph, choices), *own, *map(Paragraph, steps)])
    notices = run_notices(facts, remarks.values())
    if notices:
        blocks.append(Notices(notices))
    return Section("summary", "Summary", blocks)


def _without_need(facts: RunFacts) -> list[Block]:
    """That nothing is called good enough, where a need could have been stated and none was."""
    is_open = facts.manifest.get("need") is None and facts.manifest.get("verb") in TAKE_NEEDS
    return [Paragraph(NO_NEED, tone="quiet")] if is_open else []


def _answering(question: str, answers: Sequence[Paragraph]) -> list[Block]:
    return [Heading(question), *answers] if answers else []


def _said(remarks: Mapping[Workload[Any], Remarks], what: str) -> list[Paragraph]:
    return [Paragraph(text) for one in remarks.values() for text in dict.fromkeys(getattr(one, what))]


def limits_met(found: Sequence[Standing], *, wrong: bool = False) -> str:
    """How the limits stand, in one sentence that names what is missed; whether that is enough depends on a need.

    Parameters
    ----------
    found
        What was asked, and how it stands.
    wrong
        Whether the data themselves are wrong: then no speed helps.
    """
    missed = [one for one in found if one.met is False]
    blamed = [one for one in missed if not one.excuse]
    unknown = [one for one in found if one.met is None]
    counts = Counter((one.kind, WORDS[one.met]) for one in found)
    counted = counts_words(counts)
    counted += f"; missed: {_listed(missed)}" if missed else ""
    # A value that is no answer is not told as one.
    again = ":" if counted.endswith("unknown") else "; unknown:"
    counted += f"{again} {_listed([replace(one, value=None) for one in unknown])}" if unknown else ""
    tail = ""
    if wrong and not blamed:
        tail = "; but the data are wrong"
    elif missed and not blamed:
        tail = "; what is missed is not the storage's fault"
    return f"{counted}{tail}."


def _listed(found: Sequence[Standing]) -> str:
    """The first few by name, the others by their number; each name once."""
    names = list(dict.fromkeys(map(_named, found)))
    more = len(names) - NAMED_MAX
    return joined([*names[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])])


def _named(one: Standing) -> str:
    if one.value is None or one.limit is None:
        return one.question
    against = f"{one.what} {show_value(one.value, one.unit)}, limit {one.bound}"
    return f"{one.question} ({against})"


def _excuses(found: Sequence[Standing]) -> list[str]:
    return list(dict.fromkeys(one.excuse for one in found if one.met is False and one.excuse))


def _picture(found: Sequence[Standing]) -> list[Block]:
    """Measured values as bars against their limits, the worst first; a search that came to its limit has none."""
    asked = [one for one in found if not (one.searched and one.met and (one.share or 0.0) >= AT_LIMIT_SHARE)]
    known = [(one, one.share) for one in asked if one.share is not None]
    ranked = sorted(known, key=lambda pair: -pair[1])
    rows = [_bar(one, share) for one, share in ranked[:BARS_MAX]]
    chart = limit_bars(rows)
    if chart is None:
        return []
    which = f"the worst {len(rows)} of {len(ranked)}, worst first" if len(rows) < len(ranked) else "worst first"
    if without := sum(one.kind == "limit" for one in asked) - len(ranked):
        which += f"; {count_of(without, 'limit')} without a value {'has' if without == 1 else 'have'} no bar"
    if searched := len(found) - len(asked):
        ended = (
            "1 search ends at its limit by design, and has"
            if searched == 1
            else (f"{searched} searches end at their limits by design, and have")
        )
        which += f"; {ended} no bar"
    caption = f"Measured values as shares of their limits, {which}. A bar beyond the line at 100 % misses its limit."
    if any(row["state"] == EXCUSED for row in rows):
        caption += " Grey bars miss theirs for a reason other than the storage."
    told = joined(f"{row['label']} {row['text'][2:]} ({row['state']})" for row in rows)
    return [FigureElement("limits", caption, f"Measured values against their limits: {told}.", chart)]


def _bar(one: Standing, share: float) -> LimitBar:
    mark, state = {True: ("✓", MET), False: ("✗", MISSED), None: ("?", UNKNOWN)}[one.met]
    # What is bounded tells bars of one question apart: the question gives way where both do not fit.
    question = shorten(one.question, max(LABEL_LETTERS - len(one.what), LABEL_LETTERS // 3))
    return {
        "label": f"{question}: {one.what}",
        "share": share,
        "text": f"{mark} {show_value(one.value, one.unit)}, limit {one.bound}",
        "state": EXCUSED if one.excuse else state,
    }


def _headlines(remarks: Mapping[Workload[Any], Remarks]) -> list[Paragraph]:
    """What was found: what a database makes of storage comes after what storage can do."""
    ordered = sorted(remarks.items(), key=lambda item: isinstance(item[0], OnDatabases))
    return [line for _, one in ordered for line in one.headlines if line.tone == "plain"]


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
    if not facts.points and not any(facts.told(one.document_key) for one in workloads() if isinstance(one, Telling)):
        notices.append(Notice("No point has been measured: there are no figures to show.", "warn"))
    notices += [Notice(f"Left out: {text}.", "bad") for text in facts.unreadable]
    return notices


def _figure_notices(facts: RunFacts) -> list[Notice]:
    """What follows from the figures, and what the run itself had to say; a text that is both appears once."""
    answers = facts.manifest.get("answers") or []
    derived = notices_of(facts.points, facts.manifest.get("target") or {}, answers)
    tones = {note.text: note.tone for note in derived}
    error = str(facts.manifest.get("error") or "")
    given = [str(text) for text in facts.manifest.get("notices") or [] if text and str(text) != error]
    return [Notice(sentence(text), tones.get(text, "warn")) for text in dict.fromkeys([*tones, *given])]

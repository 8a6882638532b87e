"""Summary: the verdict, the headline sentences, and what must be known before believing them."""

from __future__ import annotations

from collections import Counter

from assay.document.elements import Block, Cell, Column, Notice, Notices, Paragraph, Section, Table, Tone
from assay.document.text import DASH, NOT_MEASURED, block_bytes_of, latency_of, shorten, value_text, workload_label
from assay.report.faults import gravest_text, headline, uncut_power, verified_text
from assay.report.transactions import answer_sentence, consistency_sentence, throughput_sentence
from assay.results.source import Record, RunFacts, is_phase
from assay.run.notices import notices_of
from assay.units import count_of, format_bytes, format_iops, format_latency, format_throughput


def verdict_word(line: Record) -> tuple[str, Tone]:
    """Word and tone of a verdict line: a value without a limit was measured, but nothing was asked of it."""
    if line.get("met") is True:
        return "✓ met", "good"
    if line.get("met") is False:
        return "✗ missed", "bad"
    return ("no limit" if line.get("value") is not None and not line.get("limit") else NOT_MEASURED), "quiet"


NOTHING_VERIFIED = "The run left no result of its checks: nothing here says whether the data came back right."


def _checked(found: Record | None) -> str:
    """The gravest finding in words, or how much was verified; section Integrity says the rest."""
    if found is None:
        return NOTHING_VERIFIED
    return " ".join(text for text in (gravest_text(found), verified_text(found)) if text)


def judged_lines(facts: RunFacts) -> list[Record]:
    """Lines of the verdict; what the phases of an integrity run moved is no answer to a question."""
    phases = {point.get("id") for point in facts.points if is_phase(point)}
    lines = facts.manifest.get("verdict") or []
    return [line for line in lines if line.get("limit") or line.get("point_id") not in phases]


def summary_section(facts: RunFacts) -> Section:
    """Build the summary."""
    blocks: list[Block] = [Paragraph(sentence, strong=True) for sentence in _headlines(facts)]
    verdict = judged_lines(facts)
    if facts.integrity is not None:
        text, tone = headline(facts.integrity)
        # Speed is worth nothing if data come back wrong; that they come back right is one fact among others.
        blocks.insert(0 if tone == "bad" else len(blocks), Paragraph(text, strong=True, tone=tone))
    conditions = (facts.oltp or {}).get("conditions")
    if conditions:
        text, tone = consistency_sentence(conditions)
        blocks.insert(0 if tone == "bad" else len(blocks), Paragraph(text, strong=True, tone=tone))
    if verdict:
        blocks.append(_verdict_table(verdict))
    elif facts.verifies:
        blocks.append(Paragraph(_checked(facts.integrity)))
    else:
        blocks.append(Paragraph("The run holds no verdict: nothing here says whether a limit was met or missed."))
    notices = run_notices(facts)
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
                Cell(
                    value_text(line.get("value"), line.get("unit")), "quiet" if line.get("value") is None else "plain"
                ),
                Cell(word, tone),
                Cell(str(line.get("meaning") or "")),
            ]
        )
    return Table("verdict", "Verdict: what was asked, its limit, and what was found.", columns, rows)


def limit_text(limit: object) -> str:
    """Limits as written in plans, with spaces around the comparison at which no line breaks."""
    return "; ".join(_one_limit(text) for text in str(limit).split("; ")) if limit else DASH


def _one_limit(text: str) -> str:
    for sign in ("<=", ">=", "<", ">"):
        if sign in text:
            shown = {"<=": "≤", ">=": "≥"}.get(sign, sign)
            return f"\N{NO-BREAK SPACE}{shown}\N{NO-BREAK SPACE}".join(text.split(sign, 1))
    return text


def _headlines(facts: RunFacts) -> list[str]:
    verdict = judged_lines(facts)
    words = Counter(verdict_word(line)[0] for line in verdict)
    asked = len(verdict) - words["no limit"]
    sentences = []
    if asked:
        counted = [f"{words['✓ met']} of {count_of(asked, 'limit')} met"]
        counted += [f"{words['✗ missed']} missed"] if words["✗ missed"] else []
        counted += [f"{words[NOT_MEASURED]} not measured"] if words[NOT_MEASURED] else []
        sentences.append(", ".join(counted) + ".")
    found = [_largest_answer(facts), _log_write(facts), _best_scan(facts)]
    transactions = [answer_sentence(answer, stopped_text(answer)) for answer in facts.oltp_answers]
    held = throughput_sentence(facts) if facts.oltp_points else None
    of_databases = [*transactions, *([held] if held else [])]
    of_storage = [sentence for sentence in found if sentence]
    if of_storage:
        # What a database makes of storage comes after what storage can do.
        return [*sentences, *of_storage, *of_databases]
    # What a database did is asked first, and whether it kept to limits second.
    return [*of_databases, *sentences]


def _largest_answer(facts: RunFacts) -> str | None:
    """One sentence on the answer that stands for most OLTP databases: 8 KiB at 70/30, or else the first."""
    answers = [answer for answer in facts.answers if answer.get("part") in (None, "", "oltp", "custom", "profile")]
    answers = answers or facts.answers

    def distance(answer: Record) -> float:
        workload = answer["workload"]
        return abs(block_bytes_of(workload) - 8192) / 8192 + abs(float(workload.get("read_share") or 0) - 0.7)

    answer = min(answers, key=distance, default=None)
    if answer is None:
        return None
    name, most = shorten(workload_label(answer["workload"]), 60), answer.get("max")
    if not most:
        return f"{name}: no load was found that meets the limits ({limited_text(answer.get('limited_by'))})."
    interval = answer.get("interval_95")
    span = f" (95 % interval {format_iops(interval[0])} to {format_iops(interval[1])})" if interval else ""
    stopped = limited_text(answer.get("limited_by"))
    return f"Holds {format_iops(most['iops'])} IOPS of {name}{span}; {stopped} [{most.get('point_id') or DASH}]."


def limited_text(limited_by: object, *, by: str = "stopped by ") -> str:
    """Words for what ended a search.

    Examples
    --------
    >>> limited_text("axis end")
    'the largest load of the plan still passed'
    """
    if not limited_by:
        return "what limited it is not recorded"
    known = {
        "saturation": "throughput stopped rising before any limit was reached",
        "axis end": "the largest load of the plan still passed",
        "generator": "the load generator itself was the bottleneck",
        "rate not sustained": "stopped because the rate was not sustained",
        "errors": "stopped by I/O errors",
    }
    return known.get(str(limited_by), f"{by}{limit_text(limited_by)}")


def stopped_text(answer: Record) -> str:
    """Words for what ended a search for transactions."""
    limited_by = answer.get("limited_by")
    return "stopped because transactions failed" if limited_by == "errors" else limited_text(limited_by)


def _log_write(facts: RunFacts) -> str | None:
    points = [point for point in facts.points_of("log") if latency_of(point.get("write"), "mean") is not None]
    if not points:
        return None
    point = min(points, key=lambda point: abs(block_bytes_of(point["workload"]) - 8192))
    mean, tail = (latency_of(point["write"], statistic) for statistic in ("mean", "p99"))
    size = format_bytes(block_bytes_of(point["workload"]))
    far = f", p99 {format_latency(tail)}" if tail is not None else ""
    return f"Log writes of {size} take {format_latency(mean)} on average{far} [{point.get('id')}]."


def _best_scan(facts: RunFacts) -> str | None:
    scans = [
        point
        for point in facts.points_of("dss")
        if point["workload"].get("random_share") == 0 and point["workload"].get("read_share") == 1 and point.get("read")
    ]
    if not scans:
        return None
    best = max(scans, key=lambda point: float(point["read"]["bytes_per_s"]))
    throughput = format_throughput(best["read"]["bytes_per_s"])
    size = format_bytes(block_bytes_of(best["workload"]))
    return f"Sequential scans read {throughput} in blocks of {size} [{best.get('id')}]."


def run_notices(facts: RunFacts) -> list[Notice]:
    """Everything that qualifies the figures, worst first."""
    found = [*_status_notices(facts), *_figure_notices(facts)]
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
    if not facts.points and facts.integrity is None and not facts.oltp:
        notices.append(Notice("No point has been measured: there are no figures to show.", "warn"))
    notices += [Notice(f"Left out: {text}.", "bad") for text in facts.unreadable]
    return notices


def _figure_notices(facts: RunFacts) -> list[Notice]:
    """What follows from the figures, and what the run itself had to say; a text that is both is said once."""
    derived = notices_of(facts.points, facts.manifest.get("target") or {})
    tones = {note.text: note.tone for note in derived}
    error = str(facts.manifest.get("error") or "")
    given = [str(text) for text in facts.manifest.get("notices") or [] if text and str(text) != error]
    notices = [Notice(sentence(text), tones.get(text, "warn")) for text in dict.fromkeys([*tones, *given])]
    if facts.integrity is not None:
        notices += [Notice(text, "plain") for text in uncut_power(facts)]
    return notices


def sentence(text: str) -> str:
    """Text with a capital letter and a full stop, as a notice of its own needs."""
    first = text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else first + "."

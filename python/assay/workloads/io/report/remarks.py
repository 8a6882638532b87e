"""What I/O says in the sections that all kinds share."""

from __future__ import annotations

from typing import cast

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes, format_iops, format_latency, format_throughput
from assay.document.advice import held_text, limiting_text, next_texts, running_text
from assay.document.elements import Paragraph
from assay.document.limits import limited_text, nothing_held_text
from assay.document.remarks import (
    BYTES,
    INTERVAL,
    LATENCY,
    OUTSTANDING,
    PERCENTILE,
    POINT,
    PRESSURE,
    QUEUE,
    Remarks,
    Word,
)
from assay.document.text import DASH, joined, latency_of, shorten
from assay.record.answers import repeats_words
from assay.record.common_figures import COMMON_FIGURES
from assay.record.judgement import verdict_of
from assay.record.shapes.access import Accesses
from assay.record.shapes.point import Answer, VerdictLine
from assay.record.source import RunFacts
from assay.record.standstill import HOSTS_APART, bounded_words
from assay.workloads.io.report.labels import block_bytes_of, workload_label
from assay.workloads.io.report.points import KIND, io_answers, io_points, points_of_part
from assay.workloads.io.shapes import asked_of, found_at
from assay.workloads.workload import io_words

IOPS = COMMON_FIGURES["iops"]
"""What searches of I/O maximise."""

PARTS = {
    "oltp": "random I/O of transactions",
    "dss": "sequential and random scans of decision support",
    "log": "log writes",
    "database": "the database mix: reads, checkpoints, log and tempdb at once",
}
"""Parts of a whole examination; a report of one says which of them it lacks."""

MIX: Word = ("70/30", "70 % reads and 30 % writes")
WORDS = (POINT, OUTSTANDING, LATENCY, PERCENTILE, BYTES, MIX, INTERVAL, QUEUE, PRESSURE)


def io_remarks(facts: RunFacts) -> Remarks:
    """Build the remarks."""
    answer = _representative(facts)
    found = [answer and _held(answer), _log_write(facts), _best_scan(facts)]
    told = [sentence for sentence in found if sentence] or _points_measured(facts)
    return Remarks(
        headlines=[Paragraph(sentence, strong=True) for sentence in told],
        limiting=[text for text in [answer and limiting_text(answer, _name(answer))] if text],
        running=[text for text in [answer and running_text(facts, answer, IOPS, _name(answer), _latency)] if text],
        next_steps=next_texts(facts, KIND, [answer] if answer else [], _name),
        gaps=_gaps(facts),
        words=WORDS,
    )


POINTS_SAID = 8
"""Points without a search that the first page tells one by one."""


def _points_measured(facts: RunFacts) -> list[str]:
    """Points at given loads, a sentence each; of very many those with the least and the most I/Os a second."""
    points = {point.get("id"): point for point in io_points(facts) if point.get("total")}
    lines: dict[str, VerdictLine] = {}
    for line in verdict_of(facts.manifest):
        point_id = str(line.get("point_id"))
        if point_id in points and (point_id not in lines or not line.get("limit")):
            lines[point_id] = line
    shown = sorted(lines, key=lambda point_id: IOPS.value(points[point_id]) or 0.0)
    shown = [*shown[:1], *shown[-1:]] if len(shown) > POINTS_SAID else list(lines)
    said = []
    for point_id in shown:
        line = lines[point_id]
        # Where a load was judged, its lines say how it stands and not what it gave.
        words = " ".join(io_words(points[point_id])).strip(" ,;") if line.get("limit") else str(line["meaning"])
        told = bounded_words(points[point_id], words) if line.get("limit") else words
        said.append(f"{line['question']}: {told} [{point_id}].")
    more = len(lines) - len(shown)
    return [*said, *([f"{count_of(more, 'more point')} lie between these, in the verdict."] if more else [])]


def stopped_text(answer: Answer, *, by: str = "missed ") -> str:
    """Words for what ended a search; `by` stands before a limit."""
    return limited_text(answer, by=by, errors=IOPS.failed)


def _representative(facts: RunFacts) -> Answer | None:
    """The answer that stands for most OLTP databases: 8 KiB at 70/30, or else the nearest to it."""
    every = io_answers(facts)
    answers = [answer for answer in every if answer.get("part") in (None, "", "oltp", "custom", "profile")] or every

    def distance(answer: Answer) -> float:
        workload = asked_of(answer)
        return abs(block_bytes_of(workload) - 8192) / 8192 + abs(float(workload.get("read_share") or 0) - 0.7)

    return min(answers, key=distance, default=None)


def _name(answer: Record) -> str:
    return shorten(workload_label(cast("Accesses", answer["workload"])), 60)


def _held(answer: Answer) -> str:
    """Most that the answer holds, in one sentence; what limits it stands apart."""
    most = found_at(answer)
    if not most:
        if answer.get("limited_by") == "generator":
            return f"{_name(answer)}: not measured, because the load generator was the bottleneck at every load."
        if answer.get("limited_by") == HOSTS_APART:
            return f"{_name(answer)}: not measured, because hosts measured too far apart at every load."
        return nothing_held_text(answer, _name(answer), IOPS.failed)
    iops = most["iops"] or 0.0
    held = held_text(answer, iops, f"{format_iops(iops)} IOPS", _name(answer), format_iops)
    doubts = "".join(f"; {text}" for text in repeats_words(answer))
    return f"{held}{doubts} [{most.get('point_id') or DASH}]."


def _latency(point: Record) -> str | None:
    """Mean latency of each direction of a point."""
    found = [(side, latency_of(point.get(side), "mean")) for side in ("read", "write")]
    return joined(f"{format_latency(value)} a {side}" for side, value in found if value is not None) or None


def _log_write(facts: RunFacts) -> str | None:
    points = [point for point in points_of_part(facts, "log") if latency_of(point.get("write"), "mean") is not None]
    if not points:
        return None
    point = min(points, key=lambda point: abs(block_bytes_of(asked_of(point)) - 8192))
    mean, tail = (latency_of(point["write"], statistic) for statistic in ("mean", "p99"))
    size = format_bytes(block_bytes_of(asked_of(point)))
    far = f", p99 {format_latency(tail)}" if tail is not None else ""
    told = bounded_words(point, f"{format_latency(mean)} on average{far}", is_rate=False)
    return f"Log writes of {size} take {told} [{point.get('id')}]."


def _best_scan(facts: RunFacts) -> str | None:
    scans = [
        (point, asked, read["bytes_per_s"])
        for point in points_of_part(facts, "dss")
        if (asked := asked_of(point)).get("random_share") == 0
        and asked.get("read_share") == 1
        and (read := point.get("read"))
    ]
    if not scans:
        return None
    best, asked, bytes_per_s = max(scans, key=lambda scan: float(scan[2]))
    told = f"{format_throughput(bytes_per_s)} in blocks of {format_bytes(block_bytes_of(asked))}"
    return f"Sequential scans read {bounded_words(best, told)} [{best.get('id')}]."


def _gaps(facts: RunFacts) -> list[str]:
    """Parts of a whole examination that were not measured, and the end of a cache where nothing looked for it."""
    measured = {str(point.get("part") or "") for point in facts.points}
    planned = {str(part.get("name")) for part in facts.manifest.get("parts") or []}
    is_whole = facts.manifest.get("verb") == "assess"
    missing = [title for name, title in PARTS.items() if name not in measured and (is_whole or name in planned)]
    texts = [f"Missing from this run: {joined(missing)}."] if missing else []
    if not facts.manifest.get("cache_span"):
        texts.append("Where a cache ends was not searched for, so hits in caches may be part of every figure.")
    return texts

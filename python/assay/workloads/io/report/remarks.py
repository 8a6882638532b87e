"""What I/O says in the sections that all kinds share."""

from __future__ import annotations

from assay.document.elements import Paragraph
from assay.document.limits import limited_text
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
from assay.document.text import DASH, interval_text, joined, latency_of, shorten
from assay.results.answers import answer_words
from assay.results.source import Record, RunFacts
from assay.units import format_bytes, format_iops, format_latency, format_throughput
from assay.workloads.io.figures import FIGURES
from assay.workloads.io.report.labels import block_bytes_of, workload_label
from assay.workloads.io.report.points import io_answers, points_of_part

PARTS = {
    "oltp": "random I/O of transactions",
    "dss": "sequential and random scans of decision support",
    "log": "log writes",
    "database": "the database mix: reads, checkpoints, log and tempdb at once",
}
"""Parts of a whole examination; a report of one says which of them it lacks."""

MIX: Word = ("70/30", "70 % reads and 30 % writes")
KNEE: Word = ("knee", "the smallest load with 95 % of the most throughput within limits: where to run")
WORDS = (POINT, OUTSTANDING, LATENCY, PERCENTILE, BYTES, MIX, KNEE, INTERVAL, QUEUE, PRESSURE)


def io_remarks(facts: RunFacts) -> Remarks:
    """Build the remarks."""
    found = [_largest_answer(facts), _log_write(facts), _best_scan(facts)]
    return Remarks(
        headlines=[Paragraph(sentence, strong=True) for sentence in found if sentence],
        gaps=_gaps(facts),
        words=WORDS,
    )


def stopped_text(answer: Record, *, by: str = "stopped by ") -> str:
    """Words for what ended a search."""
    return limited_text(answer, by=by, errors="stopped by I/O errors")


def _largest_answer(facts: RunFacts) -> str | None:
    """One sentence on the answer that stands for most OLTP databases: 8 KiB at 70/30, or else the first."""
    every = io_answers(facts)
    answers = [answer for answer in every if answer.get("part") in (None, "", "oltp", "custom", "profile")] or every

    def distance(answer: Record) -> float:
        workload = answer["workload"]
        return abs(block_bytes_of(workload) - 8192) / 8192 + abs(float(workload.get("read_share") or 0) - 0.7)

    answer = min(answers, key=distance, default=None)
    if answer is None:
        return None
    name, most, stopped = shorten(workload_label(answer["workload"]), 60), answer.get("max"), stopped_text(answer)
    if not most:
        return f"{name}: no load was found that meets the limits ({stopped})."
    span = interval_text(answer.get("interval_95"), format_iops)
    figure, waits = FIGURES[0], [one for one in FIGURES if one.at_ends]
    further = answer_words(answer, figure, waits)
    return f"Holds {figure.words(most['iops'])} of {name}{span}{further}; {stopped} [{most.get('point_id') or DASH}]."


def _log_write(facts: RunFacts) -> str | None:
    points = [point for point in points_of_part(facts, "log") if latency_of(point.get("write"), "mean") is not None]
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
        for point in points_of_part(facts, "dss")
        if point["workload"].get("random_share") == 0 and point["workload"].get("read_share") == 1 and point.get("read")
    ]
    if not scans:
        return None
    best = max(scans, key=lambda point: float(point["read"]["bytes_per_s"]))
    throughput = format_throughput(best["read"]["bytes_per_s"])
    size = format_bytes(block_bytes_of(best["workload"]))
    return f"Sequential scans read {throughput} in blocks of {size} [{best.get('id')}]."


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

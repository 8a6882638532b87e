"""What queries say in the sections that all kinds share."""

from __future__ import annotations

from typing import cast

from assay.base.tables import Record
from assay.base.units import count_of, format_duration, format_throughput
from assay.document.elements import Paragraph
from assay.document.remarks import WORDS, Remarks, Word
from assay.document.text import percent
from assay.record.answers import least_words
from assay.record.points import MEMORY_AXIS
from assay.record.shapes.point import Point
from assay.record.source import RunFacts
from assay.workloads.databases.figures import CPU_BUSY_SHARE
from assay.workloads.tpch.figures import FIGURES, in_memory, own_bytes_read
from assay.workloads.tpch.job import DISCLAIMER
from assay.workloads.tpch.report.points import points_of, waits_for
from assay.workloads.tpch.report.study import study_figures, study_tables

OWN_WORDS: tuple[Word, ...] = (
    ("power", "one stream: every query by itself, with new orders before and old ones deleted after"),
    ("throughput", "several streams of all queries at once, with the refresh functions beside them"),
    ("spilled", "written to temporary files, since it did not fit into the memory that a query may use"),
)


def tpch_remarks(facts: RunFacts) -> Remarks:
    """Build the remarks."""
    points = points_of(facts)
    is_study = facts.told("study") is not None
    found = [_found(one) for one in facts.manifest.get("answers") or [] if one["axis"] == MEMORY_AXIS]
    told = found or [_sentence(point) for point in points]
    headlines = [] if is_study else [Paragraph(text, strong=True) for text in told]
    # Of data that came from memory there is nothing to rank, and nothing to advise.
    asked = [] if found else [point for point in points if not in_memory(cast(Point, point))]
    limiting = [] if is_study else [text for point in asked if (text := _limiting(point))]
    return Remarks(
        headlines=headlines,
        limiting=limiting,
        next_steps=[] if is_study else _next(asked),
        study_figures=study_figures(facts),
        study_tables=study_tables(facts),
        method=[f"{DISCLAIMER[:1].upper()}{DISCLAIMER[1:]}."],
        words=(*OWN_WORDS, *WORDS),
    )


def _found(answer: Record) -> str:
    """What a search over memory found, with the points that show it."""
    ids = [end["point_id"] for end in (answer.get("edge"), answer.get("first_failing")) if end]
    text = least_words(answer, FIGURES)
    return f"{text[:1].upper()}{text[1:]} [{', '.join(ids)}]."


def _sentence(point: Record) -> str:
    """A test in one sentence: scans 1.1 GB/s, 22 queries in 14 s, query 9 is the slowest and waits for reads."""
    dss = point["dss"]
    queries = dss.get("queries") or []
    done = [query for query in queries if query["ended_by"] == "done"]
    if not done:
        return f"No query was answered [{point.get('id')}]."
    if words := in_memory(cast(Point, point)):
        return (
            f"Scale {dss.get('scale') or 0:g} fits in memory: {words}, so that these {len(done)} queries say nothing of"
            f" the storage; a larger --scale or --cache cold does [{point.get('id')}]."
        )
    read, seconds = own_bytes_read(cast(Point, point)), (dss.get("storage") or {}).get("seconds")
    scans = f"scans {format_throughput(read / seconds)}, " if read and seconds else ""
    if dss.get("test") != "power":
        streams = count_of(int(dss.get("streams") or 0), "stream")
        text = f"{streams} {scans}{len(done)} queries in {format_duration(dss.get('completion_s') or 0)}"
        return f"With {text} [{point.get('id')}]."
    slowest = max(done, key=lambda query: query["seconds"])
    total = format_duration(sum(query["seconds"] for query in done))
    waits = waits_for(slowest)
    reason = f" and {waits}" if waits else ""
    text = f"{scans}{len(done)} queries in {total}, query {slowest['query']} is the slowest{reason}"
    return f"{text[:1].upper()}{text[1:]} [{point.get('id')}]."


def _limiting(point: Record) -> str:
    """What stops a test from being faster, where one thing plainly does."""
    dss = point["dss"]
    spilled = sum(query.get("temp_bytes") or 0 for query in dss.get("queries") or [])
    waiting = _waiting_share(point)
    cpu = (point.get("telemetry") or {}).get("cpu_share")
    name = "one stream" if dss.get("test") == "power" else count_of(int(dss.get("streams") or 0), "stream")
    words = []
    if waiting >= 0.5:
        words.append(f"With {name}, queries that wait for reads take {percent(waiting)} of the time.")
    elif cpu is not None and cpu >= CPU_BUSY_SHARE:
        words.append(f"With {name}, the processors of this host are the limit: {percent(cpu)} busy.")
    if spilled:
        words.append("Queries spilled to temporary files: more memory for each, such as work_mem, would spare that.")
    return " ".join(words)


def _waiting_share(point: Record) -> float:
    """Share of the time of a point's queries that those take which wait for reads."""
    timed = [query for query in point["dss"].get("queries") or [] if query.get("device_queue") is not None]
    waiting = sum(query["seconds"] for query in timed if waits_for(query) == "waits for reads")
    return waiting / total if (total := sum(query["seconds"] for query in timed)) else 0.0


def _next(points: list[Record]) -> list[str]:
    """What to do next: fewer bytes help queries that wait for them alone."""
    for point in (one for one in points if _waiting_share(one) >= 0.5):
        tables = point["dss"].get("tables") or []
        if tables and (tables[0].get("share") or 0) >= 0.5:
            return [
                f"{tables[0]['table']} is {percent(tables[0]['share'])} of the bytes read:"
                " partition it, or keep it by columns; the studies partitions and columnstore measure what each brings."
            ]
    return []

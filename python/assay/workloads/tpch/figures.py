"""The figures of queries: scores, times, and what the storage under the databases read."""

from __future__ import annotations

from dataclasses import replace

from assay.base.units import count_of, format_bytes, format_duration, format_latency
from assay.record.common_figures import COMMON_FIGURES
from assay.record.figures import Figure
from assay.record.shapes.point import Point
from assay.workloads.databases.figures import cpu_of_server, under
from assay.workloads.databases.in_memory import own_reads, queries_in_memory
from assay.workloads.databases.shapes import Storage
from assay.workloads.tpch.plan import QUERIES, SCALE_STEP
from assay.workloads.tpch.shapes import dss_of, storage_of
from assay.workloads.tpch.tables import TABLES


def _score(point: Point) -> float | None:
    dss = dss_of(point)
    return dss.get("power") if dss.get("test") == "power" else dss.get("throughput")


def seconds_of(point: Point) -> list[float]:
    """Times of the queries that came to their end."""
    return [query["seconds"] for query in dss_of(point).get("queries") or () if query["ended_by"] == "done"]


def _told(point: Point) -> str:
    """What a test came to."""
    dss = dss_of(point)
    queries, score = dss.get("queries") or [], _score(point)
    done = sum(query["ended_by"] == "done" for query in queries)
    if dss.get("test") == "power":
        words = f"{done} of {len(queries)} queries in {format_duration(sum(seconds_of(point)))}, one after the other"
    else:
        words = f"{count_of(dss['streams'] or 0, 'stream')} together in {format_duration(dss['completion_s'] or 0.0)}"
    return words + (f"; {SCORE.words(score)}" if score is not None else "; no score")


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9


SCORE = Figure(
    name="score",
    unit="count",
    title="Score",
    noun="scores",
    full="score: queries per hour times the scale",
    better="higher",
    value=_score,
    words=lambda score: f"score {score:,.1f}",
    study="score",
    limit="score",
    told=_told,
    failed="queries failed",
    nothing="no query was answered",
)
"""Of the power test, or of the throughput test."""

COMPLETION = Figure(
    name="completion_ns",
    unit="ns",
    title="Completion",
    noun="completion time",
    full="time from the first query to the last answer",
    better="lower",
    value=lambda point: _ns(dss_of(point).get("completion_s")),
    words=format_latency,
    study="completion",
    limit="completion",
)


def _spilled(point: Point) -> float | None:
    told = [query.get("temp_bytes") for query in dss_of(point).get("queries") or []]
    known = [count for count in told if count is not None]
    return float(sum(known)) if known else None


SPILLED = Figure(
    name="spilled_bytes",
    unit="bytes",
    title="Spilled",
    noun="bytes spilled",
    full="bytes that queries wrote to temporary files",
    better="lower",
    value=_spilled,
    words=format_bytes,
    study="spilled",
)
"""Of the power test alone, in which the server's counters belong to one query."""


def _query_figure(name: str, title: str, full: str) -> Figure:
    def value(point: Point) -> float | None:
        found = seconds_of(point)
        if not found:
            return None
        return _ns(max(found) if name == "max" else sum(found) / len(found))

    return replace(
        COMPLETION,
        name=f"query_{name}_ns",
        title=title,
        noun=f"{title.lower()} time",
        full=full,
        value=value,
        study=f"query_{name}",
        limit=f"query.{name}",
    )


def scan_bytes_per_s(point: Point) -> float | None:
    """Bytes read a second over a test: of the data's devices, else those that the servers asked for."""
    read = ((point.get("roles") or {}).get("data") or {}).get("read")
    return read["bytes_per_s"] if read else None


def in_memory(point: Point) -> str:
    """What the queries of a point read from storage, where memory answered them; empty where storage did."""
    dss = dss_of(point)
    of_all = len({query["query"] for query in dss.get("queries") or []}) / len(QUERIES)
    data_bytes = (dss.get("scale") or 0.0) / SCALE_STEP * TABLES.size.bytes_each * of_all
    return queries_in_memory(_counted(point), data_bytes)


def own_bytes_read(point: Point) -> float | None:
    """Bytes that the queries of a point can have read from storage; None where they are not known."""
    return own_reads(_counted(point))[1]


def _counted(point: Point) -> Storage:
    """What storage and servers counted; of databases in this process, what each query was seen to read."""
    storage = storage_of(point)
    database, seconds = storage.get("database") or {}, storage.get("seconds")
    each = [query.get("bytes_read") for query in dss_of(point).get("queries") or []]
    if not each or None in each or not seconds or database.get("read_bytes_per_s") is not None:
        return storage
    rate = sum(read for read in each if read is not None) / seconds
    return {**storage, "database": {**database, "read_bytes_per_s": rate}}


FIGURES: tuple[Figure, ...] = (
    SCORE,
    COMPLETION,
    _query_figure("mean", "Mean query", "mean time of a query"),
    _query_figure("max", "Slowest query", "time of the slowest query"),
    SPILLED,
    replace(under("data", COMMON_FIGURES["read_bytes_per_s"]), title="Scan rate", full="bytes read per second"),
    under("data", COMMON_FIGURES["read_latency_mean_ns"]),
    under("data", replace(COMMON_FIGURES["iops"], compared=False)),
    cpu_of_server(storage_of),
)

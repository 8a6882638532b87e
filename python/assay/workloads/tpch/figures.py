"""The figures of queries: scores, times, and what the storage under the databases read."""

from __future__ import annotations

from collections.abc import Callable
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


def _count_figure(
    name: str, title: str, full: str, verbs: tuple[str, str], value: Callable[[Point], float | None]
) -> Figure:
    """A number of queries, which searches bound and tell."""

    def words(count: float) -> str:
        who = f"{count:,.0f} {'queries' if count > 1 else 'query'}" if count else "no query"
        return f"{who} {verbs[count > 1]}"

    return Figure(
        name=name, unit="count", title=title, full=full, better="lower", value=value, words=words, at_ends=True,
        compared=False, limit=title.lower(), counts_errors=name == "queries_failed",
    )  # fmt: skip


def _spilling(point: Point) -> float | None:
    queries = dss_of(point).get("queries") or []
    told = [(query.get("temp_bytes"), query.get("temp_files")) for query in queries]
    known = [max(count or 0 for count in counts) for counts in told if counts != (None, None)]
    return float(sum(count > 0 for count in known)) if known else None


def _failed(point: Point) -> float | None:
    queries = dss_of(point).get("queries")
    return None if queries is None else float(sum(query["ended_by"] != "done" for query in queries))


SPILLING = _count_figure(
    "queries_spilled", "Spilled", "queries that wrote to temporary files", ("spills", "spill"), _spilling
)
FAILED = _count_figure("queries_failed", "Failed", "queries that failed or took too long", ("fails", "fail"), _failed)


def _per_hour(point: Point) -> float | None:
    done, seconds = len(seconds_of(point)), dss_of(point).get("completion_s")
    return done / seconds * 3600 if done and seconds else None


QUERIES_PER_H = Figure(
    name="queries_per_h",
    unit="count",
    title="Queries per hour",
    noun="queries per hour",
    better="higher",
    value=_per_hour,
    words=lambda rate: f"{rate:,.0f} queries per hour",
    in_answers=True,
    compared=False,
    failed="queries failed",
    nothing="no query was answered",
)
"""Of whichever queries were asked; a score needs all of them."""


def _read_size(point: Point) -> float | None:
    read = ((point.get("roles") or {}).get("data") or {}).get("read")
    return read["bytes_per_s"] / read["iops"] if read and read["iops"] else None


READ_SIZE = Figure(
    name="read_size_mean_bytes",
    unit="bytes",
    title="Read size",
    noun="mean read size",
    full="mean size of a read of the data",
    better=None,
    value=_read_size,
    words=format_bytes,
    study="read_size",
)
"""Of the data's devices, else of the reads that the servers asked for."""


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
    QUERIES_PER_H,
    SCORE,
    COMPLETION,
    _query_figure("mean", "Mean query", "mean time of a query"),
    _query_figure("max", "Slowest query", "time of the slowest query"),
    SPILLED,
    SPILLING,
    FAILED,
    READ_SIZE,
    replace(under("data", COMMON_FIGURES["read_bytes_per_s"]), title="Scan rate", full="bytes read per second"),
    under("data", COMMON_FIGURES["read_latency_mean_ns"]),
    under("data", replace(COMMON_FIGURES["iops"], compared=False)),
    cpu_of_server(storage_of),
)

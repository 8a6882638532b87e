"""Loading tables: made, filled by the core, indexed; a load that was cut short goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypedDict

from assay import _core
from assay.base.errors import AssayError, Interrupted, IoFailed, OpenFailed, OutOfSpace, UsageError
from assay.base.progress import Display, Gauge, Moment, ProgressStep
from assay.base.units import format_bytes, format_duration
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.in_process import AskedRows, CoreError, InProcessLoad, LoadReport
from assay.workloads.databases.opening import is_part_of, shape_of
from assay.workloads.databases.plan import DatabasesPlan, load_connections

Chunk = tuple[str, int, int]
"""Kind, unit of the scale, part."""

LOOK_S = 0.2
CHUNK_LOOK_S = 0.002
END_S = 60.0
"""How long chunks that are under way are waited for when a load is interrupted."""

GOES_ON = "the same command goes on where it was"

ERRORS: dict[str, type[AssayError]] = {
    "usage": UsageError,
    "open": OpenFailed,
    "space": OutOfSpace,
    "lost": OpenFailed,
    "other": IoFailed,
}
"""Exceptions for the kinds of errors that the core reports."""

_INDEXES_MARIADB = (
    "SELECT DISTINCT index_name FROM information_schema.statistics"
    " WHERE table_schema = database() AND table_name IN ({tables})"
)

INDEXES = {
    "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename IN ({tables})",
    "mariadb": _INDEXES_MARIADB,
    "mysql": _INDEXES_MARIADB,
    "mssql": "SELECT i.name FROM sys.indexes AS i JOIN sys.objects AS o ON o.object_id = i.object_id"
    " WHERE i.name IS NOT NULL AND o.schema_id = schema_id(schema_name()) AND o.name IN ({tables})",
}
"""Names of the indexes that tables have, by dialect."""

REFERENCES = (
    "SELECT constraint_name FROM information_schema.table_constraints"
    " WHERE constraint_type = 'FOREIGN KEY' AND table_schema = {schema}"
)
"""Names of the foreign keys that there are."""
_SCHEMA = {"postgresql": "current_schema()", "mariadb": "database()", "mysql": "database()", "mssql": "schema_name()"}


class LoadingJob(Protocol):
    """A load that goes on by itself."""

    def poll(self) -> str:
        """How it stands, as JSON."""
        ...

    def finish(self, within_s: float) -> str:
        """Begin no more chunks, and wait until running ones end."""
        ...


@dataclass(frozen=True, kw_only=True)
class LoadProgress:
    """What the display shows while rows are loaded."""

    done_share: float
    rows_per_s: float
    bytes_per_s: float
    left_s: float | None
    waiting: str = ""

    @property
    def moment(self) -> Moment:
        """The same as figures."""
        return Moment(
            part="",
            what="rows of the databases",
            phase="loading",
            left_s=self.left_s,
            done_share=self.done_share,
            gauges=(
                Gauge(name="rows_per_s", title="rows", value=self.rows_per_s, unit="/s"),
                Gauge(name="bytes_per_s", title="throughput", value=self.bytes_per_s, unit="bytes_per_s"),
            ),
            waiting=self.waiting.lstrip(", "),
        )

    @property
    def line(self) -> str:
        """All of it in one line."""
        left = "" if self.left_s is None else f", about {format_duration(self.left_s)} left"
        rate = f"{self.rows_per_s:,.0f} rows/s, {format_bytes(self.bytes_per_s)}/s"
        return f"loading: {self.done_share:.0%}, {rate}{left}{self.waiting}"


HINTS = {"space": "; free some space under the server, and run again"}
"""What to do about errors of a kind."""


class RowsLoaded(TypedDict):
    """What was loaded: bytes, seconds with indexes and writing to storage, and rows per second of loading alone."""

    rows: int
    bytes: int
    seconds: float
    rows_per_s: float
    resumed: bool


def core_error(error: CoreError) -> AssayError:
    """The exception for an error that the core reports, `{"kind", "text"}`."""
    return ERRORS.get(error["kind"], IoFailed)(error["text"] + HINTS.get(error["kind"], ""))


def load_tables(
    target: DatabaseTarget, plan: DatabasesPlan, *, display: Display, interrupt: threading.Event
) -> RowsLoaded | None:
    """Load the chunks that are not loaded yet.

    Returns
    -------
    dict or None
        `rows`, `bytes`, `seconds`, `rows_per_s`, `resumed`; None if everything was there.

    Raises
    ------
    Interrupted, OpenFailed, OutOfSpace, IoFailed
        What was loaded stays; loading again goes on.
    """
    states = {database.name: database.schema() for database in target.databases}
    missing = [
        database
        for database in target.databases
        if states[database.name].kind != "complete" or states[database.name].scale != target.scale[database.name]
    ]
    if not missing:
        return None
    began = time.monotonic()
    chunks = {
        database.name: states[database.name].chunks
        for database in missing
        if is_part_of(states[database.name], target.scale[database.name], plan.rows_seed, target.shape[database.name])
    }
    try:
        for database in missing:
            if not chunks.get(database.name):
                _make_tables(
                    database, target.scale[database.name], plan.rows_seed, target.shape[database.name], display
                )
        rows = moved = elapsed_ns = 0
        for group in _groups(target, missing):
            with ExitStack() as stack:
                for database in group:
                    stack.enter_context(database.loading())
                report = _load_rows(target, group, chunks, plan, display=display, interrupt=interrupt)
            rows, moved = rows + report["rows"], moved + report["bytes"]
            elapsed_ns += report["elapsed_ns"]
        for database in missing:
            _finish(database, load_connections(plan), display=display, interrupt=interrupt)
    except (OpenFailed, OutOfSpace, IoFailed) as error:
        raise type(error)(f"{error}; what was loaded is kept, {GOES_ON}") from None
    seconds = time.monotonic() - began
    return {
        "rows": rows,
        "bytes": moved,
        "seconds": seconds,
        "rows_per_s": rows / max(elapsed_ns / 1e9, 1e-9),
        "resumed": any(chunks.values()),
    }


def _groups(target: DatabaseTarget, databases: Sequence[Database]) -> list[list[Database]]:
    """Databases that are loaded together: those on servers, which the core loads, and each shape of rows by itself."""
    found: dict[tuple[object, ...], list[Database]] = {}
    for database in databases:
        key = (database.in_process, *target.shape[database.name].items())
        found.setdefault(key, []).append(database)
    return [found[key] for key in sorted(found, key=lambda key: bool(key[0]))]


def drop_loaded(database: Database) -> None:
    """Remove the tables, the procedures and the saved state.

    Raises
    ------
    RefusedTarget
        A table lacks Assay's mark, or something that is not Assay's hangs on one; nothing was dropped.
    """
    _drop_tables(database)
    database.drop_saved()


def _drop_tables(database: Database) -> None:
    database.refuse_drop()
    for _, text in database.table_set.statements(database.dialect, "drop"):
        database.execute(text)


def set_state(database: Database, state: str) -> None:
    """Write down what became of the tables."""
    database.execute("UPDATE assay_schema SET v = %s WHERE k = 'state'", (state,))


def _make_tables(database: Database, scale: int, seed: int, shape: Mapping[str, int], display: Display) -> None:
    """Make empty tables; of a load that was cut short before its first chunk, make them anew."""
    display.phase(f"creating tables in {database.name}")
    _drop_tables(database)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    table_set = database.table_set
    facts = {
        "format": table_set.format,
        table_set.scale: scale,
        "seed": seed,
        **shape,
        "state": "loading",
        "created_utc": created,
        "loaded_utc": "",
    }
    for name, text in table_set.statements(database.dialect, "schema"):
        database.create_table(name, text)
        if name == "assay_schema":
            for key, value in facts.items():
                database.execute("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", (key, str(value)))


def _load_rows(
    target: DatabaseTarget,
    databases: Sequence[Database],
    chunks: dict[str, frozenset[Chunk]],
    plan: DatabasesPlan,
    *,
    display: Display,
    interrupt: threading.Event,
) -> LoadReport:
    """Load the rows; returns the last report."""
    asked: list[AskedRows] = [
        {
            "name": database.name,
            "scale": target.scale[database.name],
            "done": sorted(chunks.get(database.name, ())),
        }
        for database in databases
    ]
    load = _start(databases, asked, plan, target.shape[databases[0].name])
    while True:
        report: LoadReport = json.loads(load.poll())
        display.point(_progress(report))
        if report["state"] != "running":
            break
        if interrupt.is_set():
            load.finish(END_S)
            raise Interrupted(f"interrupted while loading; {GOES_ON}")
        target.revive()
        time.sleep(LOOK_S)
    return _ended(report)


def load_chunks(database: Database, plan: DatabasesPlan, chunks: Sequence[Chunk], *, scale: int) -> int:
    """Load just these chunks into tables that are there, each with its entry in one transaction; gives their rows.

    Raises
    ------
    OpenFailed, OutOfSpace, IoFailed
        They could not be loaded; none of a chunk that failed is there.
    """
    asked: AskedRows = {"name": database.name, "scale": scale, "chunks": list(chunks)}
    load = _start([database], [asked], plan, shape_of(database, plan))
    while True:
        report: LoadReport = json.loads(load.poll())
        if report["state"] != "running":
            return _ended(report)["rows"]
        time.sleep(CHUNK_LOOK_S)


def _start(
    databases: Sequence[Database], asked: list[AskedRows], plan: DatabasesPlan, shape: Mapping[str, int]
) -> LoadingJob:
    """Start the core on servers, and threads of this process on a database that lives in it."""
    if any(database.in_process for database in databases):
        return InProcessLoad(databases, asked, load_connections(plan))
    for database, one in zip(databases, asked, strict=True):
        one["connection"] = database.connection().core_plan() | {"kind": database.dialect}
    return _core.RowsLoad(
        json.dumps(
            {
                "workload": databases[0].table_set.rows,
                "databases": asked,
                "connections": load_connections(plan),
                "threads": plan.threads,
                "seed": plan.rows_seed,
                "reconnect_s": plan.reconnect_s,
                **shape,
            }
        )
    )


def _ended(report: LoadReport) -> LoadReport:
    if report["state"] != "done":
        raise core_error(report["error"] or {"kind": "other", "text": "the load ended before its last chunk"})
    return report


def _progress(report: LoadReport) -> LoadProgress:
    seconds = max(report["elapsed_ns"] / 1e9, 1e-9)
    done, total = report["chunks_done"], max(report["chunks_total"], 1)
    left = total - report["chunks_skipped"] - done
    return LoadProgress(
        done_share=(report["chunks_skipped"] + done) / total,
        rows_per_s=report["rows"] / seconds,
        bytes_per_s=report["bytes"] / seconds,
        left_s=left / done * seconds if done else None,
        waiting=f", {report['reconnects']} times connected again" if report["reconnects"] else "",
    )


def _indexes(database: Database) -> set[str]:
    tables = ", ".join(f"'{table}'" for table in database.table_set.names)
    return {str(row[0]).lower() for row in database.query(INDEXES[database.dialect].format(tables=tables))}


def _make_references(database: Database, progress: Callable[[str, int, int], None]) -> None:
    """Make the foreign keys that are not there yet, one after the other: each locks the table that it refers to."""
    database_schema = _SCHEMA[database.dialect]
    there = {str(row[0]).lower() for row in database.query(REFERENCES.format(schema=database_schema))}
    wanted = database.table_set.statements(database.dialect, "foreign_keys")
    for number, (name, text) in enumerate(wanted, 1):
        if name.lower() not in there:
            database.execute(text)
            progress("foreign keys checked", number, len(wanted))


def _finish(database: Database, connections: int, *, display: Display, interrupt: threading.Event) -> None:
    """Build indexes and procedures, tell the planner, and say that all is loaded."""
    table_set, dialect = database.table_set, database.dialect
    wanted = table_set.statements(dialect, "indexes")
    there = _indexes(database) if wanted else set()
    missing = [text for name, text in wanted if name.lower() not in there]

    def progress(what: str, done: int, total: int) -> None:
        display.point(ProgressStep(f"{what} in {database.name}: {done} of {total}"))
        if interrupt.is_set():
            raise Interrupted(f"interrupted while loading; {GOES_ON}")

    if missing:
        display.phase(f"building {len(missing)} indexes in {database.name}")
        database.execute_many_parallel(missing, connections, partial(progress, "indexes built"))
    if table_set.has_references:
        _make_references(database, progress)
    for _, text in table_set.statements(dialect, "procedures"):
        database.execute(text)
    display.phase(f"tidying up and gathering statistics in {database.name}")
    database.vacuum_analyze(partial(progress, "tables done"))
    set_state(database, "loaded")
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    database.execute("UPDATE assay_schema SET v = %s WHERE k = 'loaded_utc'", (ended,))
    display.phase(f"writing what is in memory of {database.name} to storage")
    database.checkpoint()

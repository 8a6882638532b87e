"""Loading the warehouses: tables, rows through the core, indexes, procedures; a load that was cut short goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from assay import _core
from assay.errors import AssayError, Interrupted, IoFailed, OpenFailed, OutOfSpace, UsageError
from assay.progress import Display, Step
from assay.targets.databases import Database
from assay.targets.databases.target import DatabaseTarget
from assay.units import format_bytes, format_duration
from assay.workloads.tpcc.opening import is_part_of, load_connections
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.tables import TABLES

FORMAT = "1"
"""Version of the rows: the same seed gives the same ones as long as it stays."""

LOOK_S = 0.2
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

_OF_TABLES = "IN ({})".format(", ".join(f"'{table}'" for table in TABLES.names))
_INDEXES_MARIADB = (
    "SELECT DISTINCT index_name FROM information_schema.statistics"
    f" WHERE table_schema = database() AND table_name {_OF_TABLES}"
)

INDEXES = {
    "postgresql": f"SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename {_OF_TABLES}",
    "mariadb": _INDEXES_MARIADB,
    "mysql": _INDEXES_MARIADB,
    "mssql": "SELECT i.name FROM sys.indexes AS i JOIN sys.objects AS o ON o.object_id = i.object_id"
    f" WHERE i.name IS NOT NULL AND o.schema_id = schema_id(schema_name()) AND o.name {_OF_TABLES}",
}
"""Names of the indexes that the workload's tables have, by dialect."""


@dataclass(frozen=True, kw_only=True)
class LoadProgress:
    """What the display shows while rows are loaded."""

    done_share: float
    rows_per_s: float
    bytes_per_s: float
    left_s: float | None
    waiting: str = ""

    @property
    def line(self) -> str:
        """All of it in one line."""
        left = "" if self.left_s is None else f", about {format_duration(self.left_s)} left"
        rate = f"{self.rows_per_s:,.0f} rows/s, {format_bytes(self.bytes_per_s)}/s"
        return f"loading: {self.done_share:.0%}, {rate}{left}{self.waiting}"


HINTS = {"space": "; free some space under the server, and run again"}
"""What to do about errors of a kind."""


def core_error(error: dict[str, Any]) -> AssayError:
    """The exception for an error that the core reports, `{"kind", "text"}`."""
    return ERRORS.get(error["kind"], IoFailed)(error["text"] + HINTS.get(error["kind"], ""))


def load_warehouses(
    target: DatabaseTarget, plan: TpccPlan, *, display: Display, interrupt: threading.Event
) -> dict[str, Any] | None:
    """Load what is not loaded yet.

    Returns
    -------
    dict or None
        The `load` of docs/oltp.md; None if everything was there.

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
        if is_part_of(states[database.name], target.scale[database.name], plan.seed)
    }
    try:
        for database in missing:
            if not chunks.get(database.name):
                _make_tables(database, target.scale[database.name], plan.seed, display)
        report = _load_rows(target, missing, chunks, plan, display=display, interrupt=interrupt)
        for database in missing:
            _finish(database, load_connections(plan), display=display, interrupt=interrupt)
    except (OpenFailed, OutOfSpace, IoFailed) as error:
        raise type(error)(f"{error}; what was loaded is kept, {GOES_ON}") from None
    seconds = time.monotonic() - began
    return {
        "rows": report["rows"],
        "bytes": report["bytes"],
        "seconds": seconds,
        "rows_per_s": report["rows"] / max(report["elapsed_ns"] / 1e9, 1e-9),
        "resumed": any(chunks.values()),
    }


def sections(database: Database, file: str) -> list[tuple[str, str]]:
    """Names and statements of a file of the database's dialect."""
    return _core.tpcc_sql(database.dialect, file)


def drop_warehouses(database: Database) -> None:
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
    for _, text in sections(database, "drop"):
        database.execute(text)


def set_state(database: Database, state: str) -> None:
    """Write down what became of the warehouses."""
    database.execute("UPDATE assay_schema SET v = %s WHERE k = 'state'", (state,))


def _make_tables(database: Database, warehouses: int, seed: int, display: Display) -> None:
    """Make empty tables; of a load that was cut short before its first chunk, make them anew."""
    display.phase(f"creating tables in {database.name}")
    _drop_tables(database)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"format": FORMAT, "warehouses": warehouses, "seed": seed, "state": "loading", "created_utc": created}
    for name, text in sections(database, "schema"):
        database.create_table(name, text)
        if name == "assay_schema":
            for key, value in facts.items():
                database.execute("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", (key, str(value)))


def _load_rows(
    target: DatabaseTarget,
    databases: Sequence[Database],
    chunks: dict[str, frozenset[tuple[str, int, int]]],
    plan: TpccPlan,
    *,
    display: Display,
    interrupt: threading.Event,
) -> dict[str, Any]:
    """Let the core load the rows; returns its last report."""
    load = _core.RowsLoad(
        json.dumps(
            {
                "databases": [
                    {
                        "name": database.name,
                        "connection": database.connection().core_plan() | {"kind": database.dialect},
                        "warehouses": target.scale[database.name],
                        "done": sorted(chunks.get(database.name, ())),
                    }
                    for database in databases
                ],
                "connections": load_connections(plan),
                "threads": plan.threads,
                "seed": plan.seed,
                "reconnect_s": plan.reconnect_s,
            }
        )
    )
    while True:
        report: dict[str, Any] = json.loads(load.poll())
        display.point(_progress(report))
        if report["state"] != "running":
            break
        if interrupt.is_set():
            load.finish(END_S)
            raise Interrupted(f"interrupted while loading; {GOES_ON}")
        target.revive()
        time.sleep(LOOK_S)
    if report["state"] != "done":
        raise core_error(report["error"] or {"kind": "other", "text": "the load ended before its last chunk"})
    return report


def _progress(report: dict[str, Any]) -> LoadProgress:
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


def _finish(database: Database, connections: int, *, display: Display, interrupt: threading.Event) -> None:
    """Build indexes and procedures, tell the planner, and say that all is loaded."""
    there = {str(row[0]).lower() for row in database.query(INDEXES[database.dialect])}
    missing = [text for name, text in sections(database, "indexes") if name.lower() not in there]

    def progress(what: str, done: int, total: int) -> None:
        display.point(Step(f"{what} in {database.name}: {done} of {total}"))
        if interrupt.is_set():
            raise Interrupted(f"interrupted while loading; {GOES_ON}")

    if missing:
        display.phase(f"building {len(missing)} indexes in {database.name}")
        database.execute_many_parallel(missing, connections, partial(progress, "indexes built"))
    for _, text in sections(database, "procedures"):
        database.execute(text)
    display.phase(f"tidying up and gathering statistics in {database.name}")
    database.vacuum_analyze(partial(progress, "tables done"))
    set_state(database, "loaded")
    display.phase(f"writing what is in memory of {database.name} to storage")
    database.checkpoint()

"""Tables that files of the user's make: each is run once, and remembered."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime

from assay import _core
from assay.base.errors import Interrupted, NotSupported, UsageError
from assay.base.progress import Display, ProgressStep
from assay.targets.databases import Database
from assay.targets.databases.common.database import OWN_TABLES
from assay.targets.databases.common.marks import TABLE_MARK
from assay.workloads.databases.loading import set_state
from assay.workloads.sql.plan import SqlPlan
from assay.workloads.sql.scripts import PGBENCH, pgbench_statements
from assay.workloads.sql.tables import tables_named

SCHEMA = "CREATE TABLE assay_schema (k varchar(32) NOT NULL, v varchar(255) NOT NULL, PRIMARY KEY (k))"
BATCH_END = re.compile(r"\s*GO(?:\s+(\d{1,9}))?\s*;?\s*", re.IGNORECASE)
MOST_BATCHES = 10_000


def statements_of(plan: SqlPlan, dialect: str, scale: int) -> list[str]:
    """Statements that make the tables and fill them.

    Raises
    ------
    UsageError
        A file has a line that begins with a backslash.
    """
    found: list[str] = []
    for source in plan.init:
        if source.name == PGBENCH and not source.text:
            found += pgbench_statements(dialect, scale)
        elif dialect == "mssql":
            found += batches_of(source.name, source.text)
        else:
            found += _core.sql_statements(source.name, _parted(source.text))
    return found


def batches_of(name: str, text: str) -> list[str]:
    """Batches of a file for SQL Server: what stands between lines `GO`, `GO 5` runs the one before it five times.

    A batch goes to the server as it is: variables live as long as it does, and `;` parts nothing in it.

    Raises
    ------
    UsageError
        A batch would run more than `MOST_BATCHES` times.
    """
    found: list[str] = []
    batch: list[str] = []
    for number, line in enumerate([*text.splitlines(), "GO"], 1):
        end = BATCH_END.fullmatch(line)
        if end is None:
            batch.append(line)
            continue
        times = int(end[1] or 1)
        if times > MOST_BATCHES:
            raise UsageError(f"{name}, line {number}: GO {times} is too often; accepted: up to {MOST_BATCHES}")
        statement = "\n".join(batch).strip()
        found += [statement] * (times if statement else 0)
        batch = []
    return found


def _parted(text: str) -> str:
    """A text whose lines `GO` are semicolons, as files for SQL Server and another server share them."""
    return "\n".join(";" if line.strip().upper() == "GO" else line for line in text.splitlines())


def make_tables(database: Database, plan: SqlPlan, *, display: Display, interrupt: threading.Event) -> int:
    """Run the files in a database; gives how many statements they have.

    Raises
    ------
    Interrupted, AssayError
        The database holds what was made so far, and has to be made anew.
    """
    scale = plan.scale or 1
    statements = statements_of(plan, database.dialect, scale)
    before = set(database.tables())
    database.create_table("assay_schema", SCHEMA)
    facts = {
        "format": database.table_set.format,
        "scale": scale,
        "seed": plan.rows_seed,
        "state": "loading",
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for key, value in facts.items():
        database.execute("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", (key, str(value)))
    for number, statement in enumerate(statements, 1):
        if interrupt.is_set():
            raise Interrupted(f"interrupted while making the tables of {database.name}; begin with an empty database")
        display.point(ProgressStep(f"making the tables of {database.name}: statement {number} of {len(statements)}"))
        database.execute(statement)
    made = sorted(set(database.tables()) - before - set(OWN_TABLES))
    if database.dialect == "postgresql":
        for name in made:
            if name in _plain_tables(database):
                database.execute(f"COMMENT ON TABLE {_quoted(name)} IS '{TABLE_MARK}'")
        know_tables(database)
    database.vacuum_analyze()
    set_state(database, "loaded")
    database.checkpoint()
    return len(statements)


def know_tables(database: Database) -> None:
    """Let a database know which tables Assay made in it, so that they can be saved and restored."""
    if database.dialect == "postgresql":
        names = database.marked_tables() - set(OWN_TABLES)
        database.table_set = tables_named([name for name in names if name.isidentifier()])


def refuse_unsaved(database: Database) -> None:
    """Refuse to save or restore what Assay did not make, or cannot copy here.

    Raises
    ------
    NotSupported
        The state cannot be brought back.
    """
    if database.schema().kind != "complete":
        raise NotSupported(
            f"{database.name}: Assay did not make its tables, and rolls back nothing of others; let it make them with"
            " --init, or restore them yourself between runs"
        )
    if database.dialect != "postgresql":
        raise NotSupported(f"{database.name}: tables of one's own SQL are saved and restored on PostgreSQL alone")


def _plain_tables(database: Database) -> set[str]:
    rows = database.query(
        "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = to_regnamespace(pg_catalog.quote_ident(current_schema()))"
    )
    return {str(row[0]) for row in rows}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

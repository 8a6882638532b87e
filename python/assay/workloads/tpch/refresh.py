"""The refresh functions: new orders and their lines come in, as many old ones go; each set is used once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from assay import _core
from assay.base.errors import UsageError
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.loading import load_chunks
from assay.workloads.tpch.plan import TpchPlan

FUNCTIONS = ("rf1", "rf2")

DIALECTS = {
    "mssql": ("BEGIN TRANSACTION", "/"),
    "mariadb": ("BEGIN", "DIV"),
    "mysql": ("BEGIN", "DIV"),
    "duckdb": ("BEGIN", "//"),
}
"""How a transaction begins, and how whole numbers are divided, where it is not as in PostgreSQL."""


def sets_done(database: Database) -> dict[str, int]:
    """How many sets of each function a database has taken.

    Raises
    ------
    UsageError
        The database does not say: its counter is lost.
    """
    if "assay_chunk" not in database.tables():
        raise UsageError(
            f"{database.name}: the table assay_chunk, which counts the refresh sets, is gone; restore the saved state,"
            " or drop the tables and load again"
        )
    rows = database.query("SELECT kind, count(*), max(unit) FROM assay_chunk GROUP BY kind")
    found = {str(kind): (int(count), int(last)) for kind, count, last in rows}
    if "orders" not in found:
        raise UsageError(
            f"{database.name}: the table assay_chunk, which counts the refresh sets, has lost its entries; restore the"
            " saved state, or drop the tables and load again"
        )
    return {function: found.get(function, (0, 0))[1] for function in FUNCTIONS}


@dataclass(kw_only=True)
class Refresh:
    """Runs the next set of a refresh function on a database."""

    target: DatabaseTarget
    plan: TpchPlan

    def run(self, database: Database, function: str) -> tuple[int, int | None]:
        """Run the next set; gives its number, and its rows where they are counted.

        Raises
        ------
        UsageError
            The database has lost its counter.
        AssayError
            The rows could not be written; the set is not counted.
        """
        number = sets_done(database)[function] + 1
        if function == "rf1":
            return number, load_chunks(database, self.plan, [(function, number, 1)], scale=self._scale(database))
        self._delete(database, number)
        return number, None

    def _scale(self, database: Database) -> int:
        return self.target.scale[database.name]

    def _delete(self, database: Database, number: int) -> None:
        """Delete the orders of a set, their lines first, with the entry that counts it, in one transaction."""
        sequence, first, last = _core.tpch_refresh_keys(self._scale(database), number)
        begin, divide = DIALECTS.get(database.dialect, ("BEGIN", "/"))
        deletes = [
            f"DELETE FROM {table} WHERE {key} BETWEEN {first} AND {last} AND ({key} {divide} 8) % 4 = {sequence}"
            for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey"))
        ]
        entry = f"INSERT INTO assay_chunk (kind, unit, part, row_count) VALUES ('rf2', {number}, 0, 0)"
        # Left before its end, the session takes back what it did.
        with closing(database.new_session()) as session:
            for statement in (begin, entry, *deletes, "COMMIT"):
                session.execute(statement)

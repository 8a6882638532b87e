"""The SQL of the workload as tests read it, sessions that run them, and a small consistent database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymssql
import pymysql

CRATES = Path(__file__).parents[2] / "crates"
SQL = CRATES / "oltp/src/tpcc/sql"
SESSION = CRATES / "sql/sql"
FILES = ("schema", "indexes", "statements", "procedures", "conditions", "drop")
LAYERS = {
    "postgresql": ("base", "postgresql"),
    "mariadb": ("base", "mariadb"),
    "mysql": ("base", "mariadb"),
    "mssql": ("base", "mssql"),
}
TABLES = ("warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock", "item")

Rows = list[tuple[Any, ...]]


def sections(dialect: str, file: str) -> dict[str, str]:
    """Texts by name, in order; a section without a statement takes away what a layer below it has.

    A layer without the file differs in nothing.
    """
    merged: dict[str, str] = {}
    of_sessions = [SESSION / layer / "session.sql" for layer in LAYERS[dialect] if file == "statements"]
    for path in filter(Path.exists, [*of_sessions, *(SQL / layer / f"{file}.sql" for layer in LAYERS[dialect])]):
        own = re.split(r"(?m)^-- name: ", path.read_text())[1:]
        names = [part.partition("\n")[0].strip() for part in own]
        assert len(names) == len(set(names)), f"{path} has a name twice"
        merged |= {name: part.partition("\n")[2].strip() for name, part in zip(names, own, strict=True)}
    return {name: text for name, text in merged.items() if statement(text)}


def statement(text: str) -> str:
    """The text without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def columns(dialect: str) -> dict[str, list[str]]:
    return {table: re.findall(r"(?m)^    ([a-z]\w*) ", text) for table, text in sections(dialect, "schema").items()}


class Session:
    """One connection; parameters are text, as the drivers send them."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.dialect = parts.scheme
        self.statements = sections(self.dialect, "statements")
        if self.dialect == "postgresql":
            self.connection: Any = psycopg.connect(url, autocommit=True)
        elif self.dialect == "mssql":
            self.connection = pymssql.connect(
                parts.hostname or "", parts.username, parts.password, parts.path.lstrip("/"), port=str(parts.port),
                autocommit=True,
            )  # fmt: skip
        else:
            self.connection = pymysql.connect(
                host=parts.hostname, port=parts.port or 3306, user=parts.username, password=parts.password or "",
                database=parts.path.lstrip("/"), autocommit=True,
            )  # fmt: skip
        self.cursor = self.connection.cursor()

    def execute(self, text: str) -> Rows:
        self.cursor.execute(text)
        return self._rows()

    def prepared(self, name: str, *parameters: object) -> Rows:
        text = self.statements[name]
        values = [str(value) for value in parameters]
        if self.dialect == "postgresql":
            with psycopg.RawCursor(self.connection) as cursor:
                cursor.execute(text.encode(), values, prepare=True)
                return list(cursor) if cursor.description else []
        self.cursor.execute("PREPARE prepared FROM %s", (re.sub(r"\$\d+", "?", statement(text)),))
        for number, value in enumerate(values):
            self.cursor.execute(f"SET @p{number} = %s", (value,))
        variables = ", ".join(f"@p{number}" for number in range(len(values)))
        return self.execute("EXECUTE prepared" + (f" USING {variables}" if values else ""))

    def new_order(self, warehouse: int, district: int, customer: int, lines: Sequence[tuple[int, int, int]]) -> Rows:
        """Call the procedure; lines are items, supplying warehouses and quantities."""
        return self.prepared("call.new_order", warehouse, district, customer, *self.lines(lines))

    def lines(self, lines: Sequence[tuple[int, int, int]]) -> list[str]:
        """Lines as parameters of the procedure."""
        if self.dialect == "postgresql":
            return ["{" + ",".join(map(str, column)) + "}" for column in zip(*lines, strict=True)]
        return [str([list(line) for line in lines])]

    def failing(self, after_load: bool = True) -> set[int]:
        """Numbers of the conditions that are not met."""
        failed = set()
        for name, text in sections(self.dialect, "conditions").items():
            number = int(name.removeprefix("condition."))
            ((checked, violations, example),) = self.execute(text)
            assert int(checked) > 0
            assert (example is not None) == (int(violations) > 0)
            if int(violations) and (after_load or number != 11):
                failed.add(number)
        return failed

    def load(self) -> None:
        """Make the tables anew and fill them."""
        for file in ("drop", "schema"):
            for text in sections(self.dialect, file).values():
                self.execute(text)
        names = columns("postgresql")  # others may have a key more
        for table, values in rows().items():
            listed = ", ".join(names[table])
            if self.dialect == "postgresql":
                with self.cursor.copy(f"COPY {table} ({listed}) FROM STDIN") as copy:
                    for row in values:
                        copy.write_row(row)
            else:
                marks = ", ".join(["%s"] * len(names[table]))
                self.cursor.executemany(f"INSERT INTO {table} ({listed}) VALUES ({marks})", values)
        for file in ("indexes", "procedures"):
            for text in sections(self.dialect, file).values():
                self.execute(text)

    def close(self) -> None:
        self.connection.close()

    def _rows(self) -> Rows:
        found = list(self.cursor.fetchall()) if self.cursor.description else []
        if self.dialect == "mariadb":
            while self.cursor.nextset():
                pass
        return found


# Two warehouses of two districts: three customers; 2,100 delivered orders of one line, three new ones of two lines;
# twenty items. Lines of delivered orders cost nothing, but for one: 5.55, ordered by the first customer.
CUSTOMERS = ((1, "CHARLY", "GC", "-4.45"), (2, "ADAM", "BC", "-10.00"), (3, "BERTA", "GC", "-10.00"))
ORDERS = range(1, 2104)
NEW = range(2101, 2104)
ITEMS = range(1, 21)
PAID_FOR = 5
WHEN = "2026-01-02 03:04:05"
ADDRESS = ("street", "street", "city", "ST", "123411111")
PHONE = "1234567890123456"


def rows() -> dict[str, Rows]:
    """Rows by table, in the order of its columns."""
    places = [(w, d) for w in (1, 2) for d in (1, 2)]
    return {
        "warehouse": [(w, f"NAME{w}", *ADDRESS, "0.1000", "60.00") for w in (1, 2)],
        "district": [(d, w, f"NAME{d}", *ADDRESS, "0.0500", "30.00", 2104) for w, d in places],
        "customer": [
            (c, d, w, first, "OE", "BARBARBAR", *ADDRESS, PHONE, WHEN, credit, "50000.00", "0.2000", balance, "10.00",
             1, 0, "data")
            for w, d in places for c, first, credit, balance in CUSTOMERS
        ],
        "history": [(c, d, w, d, w, WHEN, "10.00", "data") for w, d in places for c, *_ in CUSTOMERS],
        "orders": [
            (o, d, w, 1 if o == PAID_FOR else o % 3 + 1, WHEN, None if o in NEW else 7, 2 if o in NEW else 1, 1)
            for w, d in places for o in ORDERS
        ],
        "new_order": [(o, d, w) for w, d in places for o in NEW],
        "order_line": [
            (o, d, w, number, number, w, None if o in NEW else WHEN, 5,
             "3.00" if o in NEW else "5.55" if o == PAID_FOR else "0.00", "D" * 24)
            for w, d in places for o in ORDERS for number in range(1, 3 if o in NEW else 2)
        ],
        "stock": [
            (i, w, 20, *(f"{number:02}" * 12 for number in range(1, 11)), 0, 0, 0, "data")
            for w in (1, 2) for i in ITEMS
        ],
        "item": [(i, i, f"item {i}", "2.50", "data") for i in ITEMS],
    }  # fmt: skip

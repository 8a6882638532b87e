"""Scripts as a command names them: files, and those that come with pgbench, each with a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from assay.base.errors import UsageError
from assay.base.reading import nearest

TEXT_MAX_BYTES = 1 << 20
"""The largest script that is read."""

BEGIN_END = {"mariadb": ("START TRANSACTION", "COMMIT"), "mssql": ("BEGIN TRANSACTION", "COMMIT TRANSACTION")}
"""How transactions begin and end where that is not `BEGIN` and `END`, by kind of target."""

_DRAWN = (
    "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n"
    "\\set delta random(-5000, 5000)\n"
)
_ACCOUNT = (
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
)
_TOTALS = (
    "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
    "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n"
)
_HISTORY = (
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
)

BUILT_IN = {
    "tpcb-like": _DRAWN + "{begin};\n" + _ACCOUNT + _TOTALS + _HISTORY + "{end};\n",
    "simple-update": _DRAWN + "{begin};\n" + _ACCOUNT + _HISTORY + "{end};\n",
    "select-only": "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
}
"""Scripts that pgbench knows by name: the same draws in the same order, and the same statements."""

PGBENCH = "pgbench"
"""Stands for the tables of these scripts where a file with a schema would be named."""

BRANCH_ACCOUNTS, BRANCH_TELLERS = 100_000, 10
"""Accounts and tellers of a branch, of which a scale has one."""


class SourceText(TypedDict):
    """A text with the name that messages give it."""

    name: str
    text: str


class WeighedSource(SourceText):
    """A script and how often it is drawn."""

    weight: int


def parse_scripts(words: Sequence[str], kind: str) -> list[WeighedSource]:
    """The scripts that `FILE@WEIGHT` words name, for a kind of target; the weight is 1 unless given.

    Raises
    ------
    UsageError
        A word names neither a file nor a script that comes with pgbench, a weight is not a number, or a name is given
        twice.
    """
    asked = [_split_weight(word) for word in words]
    names = Counter(Path(path).name for path, _ in asked)
    found: list[WeighedSource] = []
    for path, weight in asked:
        short = Path(path).name
        source = _source(path, short if names[short] == 1 else path, kind)
        if any(source["name"] == other["name"] for other in found):
            raise UsageError(f"{path}: is given twice; give it once, with a weight: {path}@2")
        found.append({**source, "weight": weight})
    return found


def init_source(path: str) -> SourceText:
    """A file that makes tables, or pgbench's own.

    Raises
    ------
    UsageError
        It cannot be read.
    """
    return {"name": path, "text": ""} if path == PGBENCH else {"name": path, "text": read_source(path)}


def _split_weight(word: str) -> tuple[str, int]:
    path, at, weight = word.rpartition("@")
    if not at or not path:
        return word, 1
    if not (weight.isascii() and weight.isdecimal() and int(weight[:9]) <= 1000 and len(weight) < 9):
        raise UsageError(f"{word}: accepted: FILE@WEIGHT with a weight from 0 to 1000, as in {path}@3")
    return path, int(weight)


def _source(path: str, name: str, kind: str) -> SourceText:
    """A file, or a script of pgbench's by its name or the beginning of it."""
    known = [one for one in BUILT_IN if one.startswith(path)]
    if len(known) == 1 and not Path(path).exists():
        begin, end = BEGIN_END.get(kind, ("BEGIN", "END"))
        return {"name": known[0], "text": BUILT_IN[known[0]].format(begin=begin, end=end)}
    if len(known) > 1 and path and not Path(path).exists():
        raise UsageError(f"{path}: may mean {' or '.join(known)}; give more of the name")
    return {"name": name, "text": read_source(path)}


def read_source(path: str) -> str:
    """The text of a file of SQL.

    Raises
    ------
    UsageError
        It cannot be read, is too large or is no text.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(TEXT_MAX_BYTES + 1)
    except OSError as error:
        meant = nearest(path, BUILT_IN)
        hint = f"did you mean {meant!r}?" if meant else f"name a file, or one of {', '.join(BUILT_IN)}"
        raise UsageError(f"{path}: cannot be read: {error.strerror}; {hint}") from error
    if len(data) > TEXT_MAX_BYTES:
        raise UsageError(f"{path}: is larger than {TEXT_MAX_BYTES >> 20} MiB; a script is a few lines of SQL")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not a text in UTF-8; convert it first, as with iconv") from None


def pgbench_statements(dialect: str, scale: int) -> list[str]:
    """Statements that make the tables of pgbench's scripts and fill them, as `pgbench -i -s SCALE` does."""
    stamp = "datetime2" if dialect == "mssql" else "timestamp"
    made = [
        f"CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime {stamp} NULL, filler char(22))",
        "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84))",
        "CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84))",
        "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88))",
    ]
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    # Joins of ten digits make rows on every server.
    joined = ", ".join(f"({digits}) AS {letter}" for letter in "abcde")
    number = "a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d"
    filled = []
    for branch in range(1, scale + 1):
        first = (branch - 1) * BRANCH_ACCOUNTS + 1
        tellers = ", ".join(
            f"({(branch - 1) * BRANCH_TELLERS + teller}, {branch}, 0)" for teller in range(1, BRANCH_TELLERS + 1)
        )
        filled += [
            f"INSERT INTO pgbench_branches (bid, bbalance) VALUES ({branch}, 0)",
            f"INSERT INTO pgbench_tellers (tid, bid, tbalance) VALUES {tellers}",
            "INSERT INTO pgbench_accounts (aid, bid, abalance, filler)"
            f" SELECT {first} + {number}, {branch}, 0, '' FROM {joined} ORDER BY 1",
        ]
    keys = [
        f"ALTER TABLE pgbench_{name} ADD PRIMARY KEY ({key})"
        for name, key in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid"))
    ]
    return [*made, *filled, *keys]

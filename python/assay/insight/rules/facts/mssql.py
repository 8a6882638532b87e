"""Facts of SQL Server: queries of `mssql.toml`, some of them in every database.

What a view does not show proves nothing: a user without rights sees empty views, and no rule may pass for that. So most
facts have a proof that all is to be seen, and without it they are lacking, with the right that is to be granted.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, Required, TypedDict, cast

from assay.base.errors import AssayError
from assay.insight.rules.facts.numbers import Setting, number
from assay.insight.rules.rule import Subject
from assay.targets.databases.common.database import Database

_ORIGIN = "its catalogue"
_GRANT = "GRANT VIEW SERVER STATE, VIEW ANY DEFINITION"

_DATABASES = """
select name, case when state = 0 and has_dbaccess(name) = 1 then 1 else 0 end from sys.databases where database_id <> 2
and state = 0
"""
"""Databases that are online, but for tempdb, and whether this user may use each."""


class CatalogueQuery(TypedDict, total=False):
    """A query for a fact; `mssql.toml` says what each key means."""

    sql: Required[str]
    columns: int
    each_database: bool
    needs: list[str]
    never_empty: bool
    list: bool


class ViewProof(TypedDict):
    """A query that gives 1 where a view shows all, and what to say where it does not."""

    lacks: str
    sql: str


class CatalogueQueries(TypedDict):
    """Queries by fact, and proofs by name."""

    proofs: dict[str, ViewProof]
    facts: dict[str, CatalogueQuery]


def queries() -> CatalogueQueries:
    """The queries and their proofs."""
    return cast(CatalogueQueries, tomllib.loads(files(__package__).joinpath("mssql.toml").read_text("utf-8")))


def read(database: Database, server: Subject) -> None:
    """Read all facts."""
    told = queries()
    proofs = {name: _proof(database, proof) for name, proof in told["proofs"].items()}
    everywhere: dict[str, CatalogueQuery] = {}
    for name, query in told["facts"].items():
        unproven = next((proofs[one] for one in query.get("needs", ()) if proofs[one]), "")
        if unproven:
            server.lack(name, unproven)
        elif query.get("each_database"):
            everywhere[name] = query
        else:
            _know(server, name, query, partial(database.query, query["sql"]))
    _everywhere(database, server, everywhere)


def _proof(database: Database, proof: ViewProof) -> str:
    """Why what a view shows proves nothing; empty where all is to be seen."""
    try:
        rows = database.query(proof["sql"])
    except AssayError as error:
        return _refused(error)
    return "" if rows and rows[0][0] == 1 else proof["lacks"]


def _know(server: Subject, name: str, query: CatalogueQuery, ask: Callable[[], Sequence[Sequence[Any]]]) -> None:
    try:
        rows = ask()
    except AssayError as error:
        server.lack(name, _refused(error))
        return
    value = _value(rows, query)
    if query.get("never_empty") and not value:
        server.lack(name, f"the server shows nothing of it; {_GRANT}")
        return
    server.know(name, value, _ORIGIN)
    server.lack(name, f"the server shows nothing of it; {_GRANT}")


def _value(rows: Sequence[Sequence[Any]], query: CatalogueQuery) -> Any:
    if query.get("list"):
        columns = query.get("columns", 1)
        return [row[0] if columns == 1 else tuple(row[:columns]) for row in rows if row[0] is not None]
    return next((row[0] for row in rows if row[0] is not None), None)


def _everywhere(database: Database, server: Subject, asked: Mapping[str, CatalogueQuery]) -> None:
    """Ask every database; one that cannot be asked makes a fact lacking, unless others showed something to find."""
    try:
        names = database.query(_DATABASES)
    except AssayError as error:
        for fact in asked:
            server.lack(fact, _refused(error))
        return
    found: dict[str, list[object] | int] = {fact: [] if query.get("list") else 0 for fact, query in asked.items()}
    gaps: dict[str, str] = {}
    for name, may_use in names:
        if may_use != 1:
            gaps |= dict.fromkeys(asked, f"user {database.spec.user!r} may not use database {name}")
            continue
        try:
            with contextlib.closing(database.new_session(str(name))) as session:  # type: ignore[call-arg]
                for fact, query in asked.items():
                    try:
                        found[fact] += _value(session.query(query["sql"]), query)
                    except AssayError as error:
                        gaps[fact] = f"in database {name}: {_refused(error)}"
        except AssayError as error:
            gaps |= dict.fromkeys(asked, f"database {name}: {_refused(error)}")
    for fact, value in found.items():
        if value or fact not in gaps:
            server.know(fact, value, f"the catalogues of {len(names)} databases")
        else:
            server.lack(fact, gaps[fact])


def from_settings(settings: Mapping[str, Setting], server: Subject, origin: str) -> None:
    """Settings as a run keeps them: of the server, and of the database that it used."""
    memory = number(settings.get("max server memory (MB)"))
    server.know("max_server_memory_bytes", memory * 2**20 if isinstance(memory, int) else None, origin)
    server.know("backup_compression", number(settings.get("backup compression default")), origin)
    # Of other databases the run says nothing, so that only what is found here counts.
    for name, key, bad in (
        ("simple_databases", "recovery_model", "SIMPLE"),
        ("automatic_checkpoints", "target_recovery_time_s", "0"),
    ):
        if str(settings.get(key)) == bad:
            server.know(name, [server.name], origin)
        server.lack(name, "a run tells of the database that it used alone; name the server's URL")
    verify = settings.get("page_verify")
    server.know("unverified_databases", [server.name] if verify not in (None, "CHECKSUM") else None, origin)


def _refused(error: AssayError) -> str:
    return f"it may not be read: {str(error)[:160]}; {_GRANT}"

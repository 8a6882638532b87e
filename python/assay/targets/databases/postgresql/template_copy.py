"""The loaded state of a PostgreSQL database, kept as a second database of the same server.

A copy is made under a name of its own and takes its place by renaming within one transaction, so that no half copy is
ever found under the name of a whole one.

Each of these databases carries a mark, and one without it is never dropped, whatever its name: the saved one a comment
that says what it holds, a copy under way a connection limit, which CREATE DATABASE sets itself (so that it is there
even where the client is killed and the server finishes the copy), a replaced database a comment that the transaction
of its renaming sets.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from assay.base.errors import AssayError, NotSupported, RefusedTarget, UsageError
from assay.targets.databases.common.connection import APPLICATION_NAME, Session
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.facts import SavedFacts
from assay.targets.databases.common.refusals import refuse_foreign, refuse_losses, refuse_others
from assay.targets.databases.common.run_lock import PostgresqlRunLock
from assay.targets.databases.postgresql.objects import data_of_others, foreign_tables, lost_by_restoring
from assay.targets.databases.postgresql.session import PostgresqlSession

_COMMENT = "saved by Assay: "
_REPLACED = "replaced by Assay, to be dropped"
_UNDER_WAY_LIMIT = int.from_bytes(b"assa", "big")
"""Connection limit of a copy under way, 1634956129: no server takes as many, so that no other database has it."""

_PART, _SAVED, _OLD = "_assay_part", "_assay_saved", "_assay_old"
_NAME_BYTES_MAX = 63 - len(_SAVED)
"""PostgreSQL cuts names at 63 bytes (NAMEDATALEN)."""

_HASH_LENGTH = 8

_END_TIMEOUT_S = 10

_LISTS = frozenset({"local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"})
"""Settings whose values are lists of names, which the catalogue keeps quoted."""


class TemplateCopy:
    """Copies between a database and its saved state.

    Parameters
    ----------
    new_session
        Connects once more, to another database of the server if one is named.
    """

    def __init__(self, database: Database, new_session: Callable[..., PostgresqlSession]) -> None:
        self._database = database
        self._new_session = new_session
        self._display = database.spec.display
        self._name = database.spec.database
        base = _shortened(self._name)
        self._saved, self._part, self._old = base + _SAVED, base + _PART, base + _OLD

    def save(self, facts: SavedFacts) -> None:
        """Copy the database, then put the copy in the place of the one saved before."""
        with self._elsewhere() as session:
            if self._exists(session, self._saved) and self._facts(session) is None:
                self._refuse_unmarked(self._saved)
            self._tidy(session)
            self._copy(session, self._name, self._part)
            comment = _literal(_COMMENT + json.dumps(facts | {"database": self._name}))
            part = _identifier(self._part)
            marks = [f"COMMENT ON DATABASE {part} IS {comment}", f"ALTER DATABASE {part} CONNECTION LIMIT -1"]
            # What is replaced keeps its comment, which is a mark.
            self._rename(session, self._saved, marks)
            self._tidy(session)

    def restore(self) -> None:
        """Copy the saved database, then put the copy in the place of the database.

        What would be lost is looked for before, and again once the database has the name under which it is dropped:
        then others no longer find it. What came in between brings it back.
        """
        with self._elsewhere() as session:
            if self._facts(session) is None:
                raise UsageError(f"{self._display}: nothing is saved; load and save first")
            if session.query("SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", (self._name,)):
                # The server drops no template.
                raise NotSupported(
                    f"{self._display}: the database is a template, which no copy replaces; ALTER DATABASE ... "
                    "IS_TEMPLATE false, or load again instead of restoring"
                )
            self._tidy(session)
            self._refuse_losses(self._name)
            self._copy(session, self._saved, self._part)
            try:
                self._take_over(session, self._part)
            except RefusedTarget as error:
                self._tidy(session)
                raise NotSupported(
                    f"{self._display}: user {self._database.spec.user!r} may not put back what is set for the database "
                    "or for roles in it (pg_db_role_setting); restore as a superuser, or load again instead of "
                    "restoring"
                ) from error
            self._end_sessions(session, self._name)
            limit, comment = self._limit_and_comment(session)
            live, part = _identifier(self._name), _identifier(self._part)
            self._rename(
                session,
                self._name,
                [
                    f"COMMENT ON DATABASE {part} IS {comment}",
                    f"ALTER DATABASE {part} CONNECTION LIMIT {limit}",
                    f"COMMENT ON DATABASE {live} IS {_literal(_REPLACED)}",
                ],
            )
            try:
                self._refuse_losses(self._old)
            except AssayError:
                self._end_sessions(session, self._name)
                session.execute_together(
                    [
                        f"ALTER DATABASE {live} RENAME TO {part}",
                        f"ALTER DATABASE {part} CONNECTION LIMIT {_UNDER_WAY_LIMIT}",
                        f"ALTER DATABASE {_identifier(self._old)} RENAME TO {live}",
                        f"COMMENT ON DATABASE {live} IS {comment}",
                    ]
                )
                self._tidy(session)
                raise
            self._tidy(session)

    def saved(self) -> SavedFacts | None:
        """What the comment on the saved database says."""
        return self._facts(self._database)

    def drop(self) -> None:
        """Drop the saved database and what an interrupted copy left; what has no mark stays."""
        with self._elsewhere() as session:
            if self._facts(session) is not None:
                self._drop(session, self._saved)
            for name in (self._old, self._part):
                if self._is_marked(session, name):
                    self._drop(session, name)

    def _refuse_losses(self, name: str) -> None:
        """Refuse to drop a database that holds what its saved state does not, or whose tables are not Assay's."""
        with (
            contextlib.closing(self._new_session(name)) as session,
            contextlib.closing(self._new_session(self._saved)) as saved,
        ):
            # The copy does not have the settings of the database.
            saved.query("SELECT set_config('search_path', %s, false)", session.query("SHOW search_path")[0])
            foreign = foreign_tables(session.query, self._database.table_set)
            if foreign:
                refuse_foreign(self._display, foreign)
            refuse_others(self._display, data_of_others(session.query, self._database.table_set))
            refuse_losses(self._display, lost_by_restoring(session.query, saved.query, self._database.table_set))

    def _facts(self, session: Database | Session) -> SavedFacts | None:
        rows = session.query(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (self._saved,)
        )
        return self._facts_of(str(rows[0][0] or "")) if rows else None

    def _facts_of(self, text: str) -> SavedFacts | None:
        """What a comment says of the saved state of this database; None if it is not one of that."""
        if not text.startswith(_COMMENT):
            return None
        try:
            facts = json.loads(text.removeprefix(_COMMENT))
        except ValueError:
            return None
        # Saved states of older versions do not say of which database they are.
        if not isinstance(facts, dict) or facts.pop("database", self._name) != self._name:
            return None
        return facts

    @contextmanager
    def _elsewhere(self) -> Iterator[PostgresqlSession]:
        """A session in another database: one that is copied or renamed must be free of sessions.

        That of the run's lock serves where there is one: a copy that the server finishes after the client was killed
        then keeps the lock until it is done.
        """
        lock = self._database.run_lock
        if isinstance(lock, PostgresqlRunLock) and lock.session is not None and not lock.is_inside:
            yield lock.session
            return
        failures: list[AssayError] = []
        for name in ("postgres", "template1"):
            try:
                session = self._new_session(name)
            except (RefusedTarget, UsageError) as error:
                failures.append(error)
                continue
            with contextlib.closing(session):
                yield session
            return
        raise NotSupported(
            f"{self._display}: saving needs a connection to the database 'postgres', which is refused; "
            "grant it, or load again instead of restoring"
        ) from failures[0]

    def _copy(self, session: PostgresqlSession, source: str, copy: str) -> None:
        self._end_sessions(session, source)
        owner = session.query(
            "SELECT pg_get_userbyid(datdba), pg_has_role(datdba, 'MEMBER') FROM pg_database WHERE datname = %s",
            (self._name,),
        )[0]
        statement = f"CREATE DATABASE {_identifier(copy)} TEMPLATE {_identifier(source)}"
        statement += f" CONNECTION LIMIT {_UNDER_WAY_LIMIT}"
        version = session.driver.info.server_version
        if version >= 150000:
            # The other strategy writes every page to the log as well.
            statement += " STRATEGY file_copy"
        if owner[1]:
            statement += f" OWNER {_identifier(str(owner[0]))}"
        try:
            self._create(session, statement, may_clone=version >= 180000)
            self._copy_rights(session, copy)
        except RefusedTarget as error:
            raise NotSupported(
                f"{self._display}: user {self._database.spec.user!r} may not copy the database; it needs CREATEDB and "
                "to own it, or load again instead of restoring"
            ) from error

    def _take_over(self, session: PostgresqlSession, copy: str) -> None:
        """Give a copy the settings of the database, which the catalogue of the server has and no copy takes along."""
        name = _identifier(copy)
        settings = session.query(
            "SELECT CASE WHEN setrole <> 0 THEN pg_get_userbyid(setrole) END, unnest(setconfig)"
            " FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = %s",
            (self._name,),
        )
        for role, setting in settings:
            key, _, value = str(setting).partition("=")
            shown = value if key in _LISTS else _literal(value)
            whose = f"DATABASE {name}" if role is None else f"ROLE {_identifier(str(role))} IN DATABASE {name}"
            session.execute(f"ALTER {whose} SET {key} = {shown}")

    def _limit_and_comment(self, session: PostgresqlSession) -> tuple[int, str]:
        """Connection limit and comment of the database, the comment as SQL has it."""
        limit, comment = session.query(
            "SELECT datconnlimit, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            (self._name,),
        )[0]
        return int(limit), "NULL" if comment is None else _literal(str(comment))

    def _copy_rights(self, session: PostgresqlSession, copy: str) -> None:
        """Give a copy the rights that are granted on the database; without any it has the usual ones, as that has."""
        if not session.query("SELECT 1 FROM pg_database WHERE datname = %s AND datacl IS NOT NULL", (self._name,)):
            return
        (owner,) = session.query("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s", (copy,))[0]
        session.execute(f"REVOKE ALL ON DATABASE {_identifier(copy)} FROM PUBLIC, {_identifier(str(owner))}")
        rights = session.query(
            "SELECT CASE WHEN grantee <> 0 THEN pg_get_userbyid(grantee) END, privilege_type, is_grantable"
            " FROM pg_database CROSS JOIN aclexplode(datacl) WHERE datname = %s",
            (self._name,),
        )
        for role, right, may_grant in rights:
            whom = "PUBLIC" if role is None else _identifier(str(role))
            option = " WITH GRANT OPTION" if may_grant else ""
            session.execute(f"GRANT {right} ON DATABASE {_identifier(copy)} TO {whom}{option}")

    def _create(self, session: PostgresqlSession, statement: str, *, may_clone: bool) -> None:
        if may_clone:
            try:
                session.execute("SET file_copy_method = clone")
                session.execute(statement)
                return
            except RefusedTarget:
                raise
            except AssayError:
                # File systems without reflinks refuse to clone; the copy that failed is gone already.
                session.execute("SET file_copy_method = copy")
        session.execute(statement)

    def _rename(self, session: PostgresqlSession, name: str, marks: Sequence[str]) -> None:
        """Give the finished copy a name, in place of the database that has it if one has, marks changing with it."""
        renames = [f"ALTER DATABASE {_identifier(self._part)} RENAME TO {_identifier(name)}"]
        if self._exists(session, name):
            renames.insert(0, f"ALTER DATABASE {_identifier(name)} RENAME TO {_identifier(self._old)}")
        session.execute_together([*marks, *renames])

    def _tidy(self, session: PostgresqlSession) -> None:
        """Drop what a copy replaced, or left when it was cut short.

        Raises
        ------
        RefusedTarget
            A database has one of these names and not Assay's mark.
        """
        there = [name for name in (self._old, self._part) if self._exists(session, name)]
        for name in there:
            if not self._is_marked(session, name):
                self._refuse_unmarked(name)
        for name in there:
            self._drop(session, name)

    def _is_marked(self, session: PostgresqlSession, name: str) -> bool:
        """Whether a database, if it is there, is a copy under way or one that was replaced."""
        rows = session.query(
            "SELECT datconnlimit, coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database"
            " WHERE datname = %s",
            (name,),
        )
        if not rows:
            return False
        limit, comment = rows[0]
        return bool(int(limit) == _UNDER_WAY_LIMIT or comment == _REPLACED or self._facts_of(str(comment)) is not None)

    def _refuse_unmarked(self, name: str) -> None:
        raise RefusedTarget(
            f"{self._display}: a database {name!r} is there that Assay did not make; rename it, or drop it yourself"
        )

    def _drop(self, session: PostgresqlSession, name: str) -> None:
        self._end_sessions(session, name)
        session.execute(f"DROP DATABASE {_identifier(name)}")

    def _exists(self, session: PostgresqlSession, name: str) -> bool:
        return bool(session.query("SELECT 1 FROM pg_database WHERE datname = %s", (name,)))

    def _end_sessions(self, session: PostgresqlSession, name: str) -> None:
        """End Assay's own sessions in a database, and refuse to go on if others use it."""
        others = session.query(
            "SELECT DISTINCT coalesce(nullif(application_name, ''), 'unnamed') FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend'"
            " AND NOT (usename = current_user AND application_name = %s)",
            (name, APPLICATION_NAME),
        )
        if others:
            names = ", ".join(sorted(str(row[0]) for row in others)[:5])
            raise RefusedTarget(f"{self._display}: database {name!r} is in use by others ({names}); end their sessions")
        sessions = (
            " FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        session.query(f"SELECT pg_terminate_backend(pid, %s) {sessions}", (_END_TIMEOUT_S * 1000, name))
        # The call above also reports a failure for a session that has just ended by itself.
        if session.query(f"SELECT pid {sessions}", (name,)):
            raise RefusedTarget(f"{self._display}: sessions in database {name!r} do not end; end them, then try again")


def _shortened(name: str) -> str:
    """A name with room for a suffix; one that must be cut has a hash of the whole, so that no two become one."""
    if len(name.encode()) <= _NAME_BYTES_MAX:
        return name
    cut = name.encode()[: _NAME_BYTES_MAX - _HASH_LENGTH - 1].decode(errors="ignore")
    return f"{cut}_{hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]}"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Standard strings take a backslash as it is.
    return "'" + text.replace("'", "''") + "'"

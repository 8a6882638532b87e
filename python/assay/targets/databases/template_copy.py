"""The loaded state of a PostgreSQL database, kept as a second database of the same server.

A copy is made under a name of its own and takes its place by renaming within one transaction, so that no half copy is
ever found under the name of a whole one. The comment on the saved database says what it holds and that it is Assay's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, NotSupported, RefusedTarget, UsageError
from assay.targets.databases.database import APPLICATION_NAME

if TYPE_CHECKING:
    from assay.targets.databases.postgresql import Postgresql, PostgresqlSession

_COMMENT = "saved by Assay: "
_PART, _SAVED, _OLD = "_assay_part", "_assay_saved", "_assay_old"
_NAME_BYTES_MAX = 63 - len(_SAVED)
"""PostgreSQL cuts names at 63 bytes (NAMEDATALEN)."""

_HASH_LENGTH = 8

_END_TIMEOUT_S = 10

_LISTS = frozenset({"local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"})
"""Settings whose values are lists of names, which the catalogue keeps quoted."""


class TemplateCopy:
    """Copies between a database and its saved state."""

    def __init__(self, database: Postgresql) -> None:
        self._database = database
        self._display = database.spec.display
        self._name = database.spec.database
        base = _shortened(self._name)
        self._saved, self._part, self._old = base + _SAVED, base + _PART, base + _OLD

    def save(self, facts: dict[str, Any]) -> None:
        """Copy the database, then put the copy in the place of the one saved before."""
        with contextlib.closing(self._elsewhere()) as session:
            if self._exists(session, self._saved) and self._facts(session) is None:
                raise RefusedTarget(f"{self._display}: a database {self._saved!r} is there that Assay did not make")
            self._copy(session, self._name, self._part)
            comment = _literal(_COMMENT + json.dumps(facts | {"database": self._name}))
            session.execute(f"COMMENT ON DATABASE {_identifier(self._part)} IS {comment}")
            self._replace(session, self._saved)

    def restore(self) -> None:
        """Copy the saved database, then put the copy in the place of the database."""
        with contextlib.closing(self._elsewhere()) as session:
            if self._facts(session) is None:
                raise UsageError(f"{self._display}: nothing is saved; load and save first")
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
            self._replace(session, self._name)

    def saved(self) -> dict[str, Any] | None:
        """What the comment on the saved database says."""
        return self._facts(self._database)

    def drop(self) -> None:
        """Drop the saved database and what an interrupted copy left."""
        with contextlib.closing(self._elsewhere()) as session:
            if self._facts(session) is not None:
                self._drop(session, self._saved)
            self._tidy(session)

    def _facts(self, session: Postgresql | PostgresqlSession) -> dict[str, Any] | None:
        rows = session.query(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (self._saved,)
        )
        text = str(rows[0][0] or "") if rows else ""
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

    def _elsewhere(self) -> PostgresqlSession:
        """Return a session in another database: one that is copied or renamed must be free of sessions."""
        failures: list[AssayError] = []
        for name in ("postgres", "template1"):
            try:
                return self._database.new_session(name)
            except UsageError as error:
                failures.append(error)
        raise NotSupported(
            f"{self._display}: saving needs a connection to the database 'postgres', which is refused; "
            "grant it, or load again instead of restoring"
        ) from failures[0]

    def _copy(self, session: PostgresqlSession, source: str, copy: str) -> None:
        self._tidy(session)
        self._end_sessions(session, source)
        owner = session.query(
            "SELECT pg_get_userbyid(datdba), pg_has_role(datdba, 'MEMBER') FROM pg_database WHERE datname = %s",
            (self._name,),
        )[0]
        statement = f"CREATE DATABASE {_identifier(copy)} TEMPLATE {_identifier(source)}"
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
        """Give a copy what the catalogue of the server has about the database, which no copy takes along."""
        name = _identifier(copy)
        limit, comment = session.query(
            "SELECT datconnlimit, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            (self._name,),
        )[0]
        session.execute(f"ALTER DATABASE {name} CONNECTION LIMIT {limit}")
        if comment is not None:
            session.execute(f"COMMENT ON DATABASE {name} IS {_literal(str(comment))}")
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

    def _replace(self, session: PostgresqlSession, name: str) -> None:
        """Give the finished copy a name, in place of the database that has it, if one has."""
        renames = [f"ALTER DATABASE {_identifier(self._part)} RENAME TO {_identifier(name)}"]
        if self._exists(session, name):
            renames.insert(0, f"ALTER DATABASE {_identifier(name)} RENAME TO {_identifier(self._old)}")
        session.execute_together(renames)
        self._tidy(session)

    def _tidy(self, session: PostgresqlSession) -> None:
        """Drop what a copy replaced, or left when it was cut short."""
        for name in (self._old, self._part):
            if self._exists(session, name):
                self._drop(session, name)

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
            " AND NOT (usename = current_user AND starts_with(application_name, %s))",
            (name, APPLICATION_NAME),
        )
        if others:
            names = ", ".join(sorted(str(row[0]) for row in others)[:5])
            raise RefusedTarget(f"{self._display}: database {name!r} is in use by others ({names}); end their sessions")
        ended = session.query(
            "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            (_END_TIMEOUT_S * 1000, name),
        )
        if not all(row[0] for row in ended):
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

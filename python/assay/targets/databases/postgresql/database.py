"""PostgreSQL, 14 or newer."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from assay.base.errors import IoFailed, NotAnswering, NotSupported, RefusedTarget, UsageError
from assay.base.secrets import Secret
from assay.targets.answering import answer_within
from assay.targets.databases.common.answers import FIRST_ANSWER_S
from assay.targets.databases.common.connection import APPLICATION_NAME, ConnectionPlan, Dialect, Progress, Session
from assay.targets.databases.common.data_files import beginning, is_process
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.facts import DatabaseFacts, LibpqMore, SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK
from assay.targets.databases.common.query_memory import QueryMemory
from assay.targets.databases.common.refusals import refuse_others
from assay.targets.databases.common.run_lock import PostgresqlRunLock
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.postgresql.objects import data_of_others, hanging_on_tables, hidden_catalogues
from assay.targets.databases.postgresql.session import (
    CONNECT_TIMEOUT_S,
    PostgresqlSession,
    connect_error,
    statement_error,
)
from assay.targets.databases.postgresql.template_copy import TemplateCopy

VERSION_MIN = 14
START_TIMEOUT_S = 60.0
"""How long a server may go on saying that it is starting up or recovering."""

_NOT_YET = r"system is (starting up|in recovery mode|not yet accepting connections)"

SETTINGS_SHOWN = (
    "shared_buffers",
    "effective_cache_size",
    "huge_pages",
    "work_mem",
    "maintenance_work_mem",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "wal_buffers",
    "wal_compression",
    "wal_segment_size",
    "commit_delay",
    "max_wal_size",
    "min_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "io_method",
    "io_workers",
    "effective_io_concurrency",
    "debug_io_direct",
    "data_checksums",
    "block_size",
    "autovacuum",
    "track_io_timing",
    "track_wal_io_timing",
    "default_transaction_isolation",
    "shared_preload_libraries",
    "max_connections",
    "random_page_cost",
    "archive_mode",
    "max_slot_wal_keep_size",
    "log_statement",
)
"""Settings that matter to storage; those that a version does not have are left out."""

_FIRST_SCHEMA_ONLY = (
    "SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident(pg_catalog.current_schema()), false)"
)
"""Unqualified names lead to the schema where tables are made and to no other, whose tables may be the user's.

The path that is there may lead to functions of these names before the server's own. Without any schema it stays as
it is.
"""


def _ask_first(session: PostgresqlSession) -> None:
    """Ask the first question of a session, which ends where the question fails."""
    try:
        session.query(_FIRST_SCHEMA_ONLY)
    except BaseException:
        session.close()
        raise


class Postgresql(Database):
    """A server that is already there."""

    dialect: Dialect = "postgresql"
    marking = "{statement}; COMMENT ON TABLE {name} IS '{mark}'"
    query_memory = QueryMemory(
        statement="SET work_mem = '{kib}kB'", words="work_mem, of each sort and each hash table", most_share=1 / 16,
        least_bytes=64 << 10,
    )  # fmt: skip

    def __init__(self, spec: DatabaseSpec, table_set: TableSet) -> None:
        super().__init__(spec, table_set)
        self._password: Secret | None = spec.password

    def open(self, *, connections: int = 0) -> None:
        """Connect, and check the version and that there are connections enough."""
        session = self.new_session()
        self._session = session
        driver = session.driver
        if driver.info.server_version < VERSION_MIN * 10000:
            version = (driver.info.parameter_status("server_version") or "of no version")[:40]
            self.close()
            raise NotSupported(
                f"{self.spec.display}: is PostgreSQL {version}; {VERSION_MIN} is the oldest that is supported"
            )
        self._check_connections(connections)

    def _check_connections(self, wanted: int) -> None:
        most, free = self._connections()
        if wanted > free:
            self.close()
            raise UsageError(
                f"{self.spec.display}: {wanted} connections are needed, the server allows {most}, of which {free} are "
                "free; give fewer users or connections, or raise max_connections"
            )

    def new_session(
        self, database: str | None = None, *, application_name: str = APPLICATION_NAME
    ) -> PostgresqlSession:
        """Connect once more, to another database of the server if one is named."""
        place = self._place()
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                driver = psycopg.connect(
                    host=str(Path(place.socket).parent) if place.socket else place.host,
                    port=place.port,
                    user=place.user,
                    password=place.password.reveal() if place.password is not None else None,
                    # What the core does not know is not taken from the environment either.
                    hostaddr="",
                    options="",
                    target_session_attrs="any",
                    dbname=database or place.database,
                    sslmode=place.tls,
                    sslrootcert=place.tls_ca,
                    gssencmode="disable",
                    connect_timeout=CONNECT_TIMEOUT_S,
                    application_name=application_name,
                    autocommit=True,
                    **self._more_of_libpq(),
                )
            except psycopg.Error as error:
                if re.search(_NOT_YET, str(error)) and time.monotonic() < deadline:
                    time.sleep(0.2)
                    continue
                raise connect_error(self.spec, error) from error
            # The password may have come from libpq's password file, and the core needs it as well.
            if driver.info.password:
                self._password = Secret(driver.info.password)
            session = PostgresqlSession(self.spec, driver)
            first = functools.partial(_ask_first, session)
            advice = "check that address and port are those of PostgreSQL, and its log"
            try:
                answer_within(FIRST_ANSWER_S, first, what=self.spec.display, advice=advice)
            except NotAnswering:
                # The thread that waits learns that nothing more comes.
                session.abort()
                raise
            return session

    def _more_of_libpq(self) -> LibpqMore:
        """Parameters of libpq that are not left to its environment variables."""
        return {}

    def _place(self) -> ConnectionPlan:
        return ConnectionPlan.of("postgresql", self.spec, self._password)

    def connection(self) -> ConnectionPlan:
        """What the load's connections need."""
        return self._place()

    def check_rights(self) -> None:
        """Make a table in a transaction that is rolled back."""
        session = self.new_session()
        try:
            with session.driver.transaction(force_rollback=True):
                session.driver.execute("CREATE TABLE assay_rights (k integer)")
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise RefusedTarget(
                f"{self.spec.display}: the server is read-only (a standby?); name the primary"
            ) from error
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName) as error:
            raise RefusedTarget(
                f"{self.spec.display}: user {self.spec.user!r} may not create tables here; "
                f"GRANT CREATE ON SCHEMA public TO {self.spec.user}, or make the user the database's owner"
            ) from error
        except psycopg.Error as error:
            raise statement_error(self.spec, error) from error
        finally:
            session.close()

    # What is in it

    def tables(self) -> list[str]:
        """Names of all tables and views, in small letters; those of extensions are left out."""
        rows = self.query(
            "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
            " WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS"
            " (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')"
        )
        return [str(row[0]).lower() for row in rows]

    def marked_tables(self) -> set[str]:
        """Names of the tables that carry Assay's mark, a comment."""
        rows = self.query(
            "SELECT relname FROM pg_class JOIN pg_description ON objoid = pg_class.oid AND objsubid = 0"
            " WHERE classoid = 'pg_class'::regclass AND description = %s AND relkind IN ('r', 'p')"
            " AND relnamespace = to_regnamespace(pg_catalog.quote_ident(current_schema()))",
            (TABLE_MARK,),
        )
        return {str(row[0]) for row in rows}

    def others_on_tables(self) -> list[str]:
        """Objects that depend on the tables, and columns that others added to them."""
        return hanging_on_tables(self.query, self.table_set)

    def bytes_used(self) -> int:
        """Bytes of the database's files."""
        return int(self.query("SELECT pg_database_size(current_database())")[0][0])

    # What is known of it

    def facts(self) -> DatabaseFacts:
        """Name, kind, version, limits and the settings that matter to storage."""
        most, free = self._connections()
        text = str(self.query("SELECT version()")[0][0])
        rows = self.query(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)", (list(SETTINGS_SHOWN),)
        )
        return {
            "name": self.name,
            "kind": self.spec.kind,
            "version": str(self.query("SHOW server_version")[0][0]).split()[0],
            "version_text": text,
            "max_connections": most,
            "connections_free": free,
            "is_local": self.is_local,
            "settings": {str(name): str(value) for name, value in sorted(rows)},
        }

    def _connections(self) -> tuple[int, int]:
        """Most connections at once, and how many of them this user could open now."""
        most, reserved, used, is_superuser = self.query(
            "SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int"
            " + coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0),"
            " (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database),"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
        )[0]
        return int(most), max(int(most) - (0 if is_superuser else int(reserved)) - int(used), 0)

    def scan_counters(self, session: Session) -> dict[str, float]:
        """Blocks that were not in shared buffers, and temporary files, of this database (pg_stat_database)."""
        with suppress(IoFailed):
            # Version 15 and newer: what the session did is counted now instead of within a minute.
            session.query("SELECT pg_stat_force_next_flush()")
        ((read, temporary),) = self.query(
            "SELECT blks_read * current_setting('block_size')::bigint, temp_bytes FROM pg_stat_database"
            " WHERE datname = current_database()"
        )
        return {"bytes_read": float(read), "temp_bytes": float(temporary)}

    def _transactions_count(self) -> float | None:
        return float(self.query("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database")[0][0] or 0)

    def server_pid(self) -> int | None:
        """Process of the postmaster, where its file may be read."""
        if not self.is_local:
            return None
        try:
            data = Path(str(self.query("SHOW data_directory")[0][0]))
            number = int(beginning(data / "postmaster.pid").split(b"\n", 1)[0])
        except (RefusedTarget, OSError, ValueError):
            return None
        return number if is_process(number) else None

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files, and of tablespaces."""
        if not self.is_local:
            self.notice(f"{self.spec.display} is not on this host, so what its disks do is not recorded")
            return {}
        try:
            data = Path(str(self.query("SHOW data_directory")[0][0]))
            (identifier,) = self.query("SELECT system_identifier FROM pg_control_system()")[0]
        except RefusedTarget:
            self.notice(
                f"{self.spec.display}: user {self.spec.user!r} may not see where the data is, so what its disks do is "
                f"not recorded; GRANT pg_read_all_settings, pg_monitor TO {self.spec.user}"
            )
            return {}
        if not self._is_here(data, int(identifier)):
            self.notice(
                f"{self.spec.display}: its folder {data} is not on this host (a container?), so what its disks do is "
                "not recorded"
            )
            return {}
        log = data / "pg_wal"
        if not _is_readable(data):
            self.notice(f"{self.spec.display}: {data} may not be looked into, so its log is taken to be there")
        paths = {"data": str(data), "log": str(log.resolve() if _is_readable(data) else data)}
        spaces = {
            str(name): str(location)
            for name, location in self.query("SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace")
            if location
        }
        temporary = str(self.query("SHOW temp_tablespaces")[0][0]).split(",")[0].strip(' "')
        paths["temp"] = spaces.get(temporary, str(data))
        return paths | {f"data:{name}": location for name, location in spaces.items()}

    def _is_here(self, data: Path, identifier: int) -> bool:
        """Whether a folder of this host is the server's, and not another's at the same place in a container."""
        try:
            # The first eight bytes of pg_control are the cluster's number (src/include/catalog/pg_control.h).
            head = beginning(data / "global" / "pg_control")[:8]
        except OSError:
            return self.spec.socket is not None and data.is_dir()
        return identifier in (
            int.from_bytes(head, "little", signed=True),
            int.from_bytes(head, "big", signed=True),
        )

    # Work

    def checkpoint(self) -> None:
        """Write all dirty pages."""
        try:
            self.execute("CHECKPOINT")
        except RefusedTarget:
            self.notice(
                f"{self.spec.display}: user {self.spec.user!r} may not ask for a checkpoint; GRANT pg_checkpoint "
                "(15 and newer) lets runs begin with clean buffers"
            )

    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """`VACUUM (ANALYZE)` of each table of the workload."""
        tables = [table for table in self.table_set.names if table in self.tables()]
        for number, table in enumerate(tables):
            self.execute(f"VACUUM (ANALYZE) {table}")
            if progress is not None:
                progress(number + 1, len(tables))

    # The saved state

    @property
    def _copy(self) -> TemplateCopy:
        return TemplateCopy(self, self.new_session)

    def save(self) -> None:
        """Copy the database to another of the same server."""
        self._note_hidden()
        facts = self._saved_facts()
        refuse_others(self.spec.display, data_of_others(self.query, self.table_set))
        with self._left_alone():
            self._copy.save(facts)

    def restore(self) -> None:
        """Put a copy of the saved database in the place of this one."""
        self._note_hidden()
        with self._left_alone():
            self._copy.restore()

    def saved(self) -> SavedFacts | None:
        """What is saved."""
        return self._copy.saved()

    def drop_saved(self) -> None:
        """Drop the saved database."""
        self._copy.drop()

    def _note_hidden(self) -> None:
        for catalogue in hidden_catalogues(self.query):
            self.notice(
                f"{self.spec.display}: user {self.spec.user!r} may not read {catalogue}, so what it holds is not "
                "looked for before a restore"
            )

    @contextmanager
    def _left_alone(self) -> Iterator[None]:
        """Without the session, and without the lock's where that is in the database; it is taken again afterwards."""
        with self._lock:
            self._drop_session()
        lock = self.run_lock
        if lock is None:
            yield
            return
        lock.hold()
        is_inside = isinstance(lock, PostgresqlRunLock) and lock.is_inside
        if is_inside:
            lock.release()
        try:
            yield
        finally:
            if is_inside:
                lock.hold()

    def _new_run_lock(self) -> PostgresqlRunLock | None:
        # An embedded server is locked by its folder.
        return None if self.spec.kind == "embedded" else PostgresqlRunLock(self.spec, self.new_session)


def _is_readable(folder: Path) -> bool:
    try:
        next(folder.iterdir(), None)
    except OSError:
        return False
    return True

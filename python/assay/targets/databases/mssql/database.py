"""SQL Server, 2019 or newer. Not verified on SQL Server: the contract test runs where ASSAY_TEST_MSSQL names one."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath

from assay.base.errors import IoFailed, NotSupported, RefusedTarget, UsageError
from assay.targets.answering import answer_within
from assay.targets.databases.common.answers import FIRST_ANSWER_S, UNLIKE_ANSWERS, not_understood
from assay.targets.databases.common.connection import APPLICATION_NAME, ConnectionPlan, Dialect, Progress, Session
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.facts import DatabaseFacts, SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK, own_columns
from assay.targets.databases.common.refusals import refuse_foreign, refuse_losses, refuse_others
from assay.targets.databases.common.run_lock import SqlServerRunLock
from assay.targets.databases.mssql.objects import MARKED, MARKING, beside_tables, digest, on_tables
from assay.targets.databases.mssql.session import NotOffered, SqlServerSession, connect_error

VERSION_MIN = 15
"""Major version of SQL Server 2019."""

CONNECT_TIMEOUT_S = 10
_DESCRIPTION = "saved by Assay: "

_ENCRYPTION = {"disable": "off", "prefer": "request", "require": "require"}
"""What FreeTDS calls the ways to encrypt."""

_SETTINGS_SHOWN = (
    "max server memory (MB)",
    "min server memory (MB)",
    "max degree of parallelism",
    "cost threshold for parallelism",
    "recovery interval (min)",
    "user connections",
    "backup compression default",
    "tempdb metadata memory-optimized",
)


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """A saved state.

    Attributes
    ----------
    path
        Its file on the server.
    number
        Number of the backup set, as its header has it.
    facts
        What its description says.
    """

    path: str
    number: str
    facts: SavedFacts


class SqlServer(Database):
    """A server that is already there."""

    dialect: Dialect = "mssql"
    marking = MARKING

    def open(self, *, connections: int = 0) -> None:
        """Connect, and check the version and that there are connections enough."""
        session = self.new_session()
        self._session = session
        version = self._version()
        if int(version.partition(".")[0]) < VERSION_MIN:
            self.close()
            raise NotSupported(
                f"{self.spec.display}: is SQL Server {version}; {VERSION_MIN} (2019) is the oldest that is supported"
            )
        most, free = self._connections()
        if connections > free:
            self.close()
            raise UsageError(
                f"{self.spec.display}: {connections} connections are needed, the server allows {most}, of which {free} "
                "are free; give fewer users or connections, or raise 'user connections'"
            )

    def new_session(self, database: str | None = None, *, application_name: str = APPLICATION_NAME) -> SqlServerSession:
        """Connect once more, to another database of the server if one is named."""
        import pymssql as driver

        spec = self.spec
        if spec.tls not in _ENCRYPTION:
            raise NotSupported(
                f"{spec.display}: sslmode={spec.tls} is not to be had for SQL Server; give sslmode=require"
            )
        try:
            connect = functools.partial(
                driver.connect,
                server=spec.host,
                port=str(spec.port),
                user=spec.user,
                password=spec.password.reveal() if spec.password is not None else "",
                database=database or spec.database,
                login_timeout=CONNECT_TIMEOUT_S,
                appname=application_name,
                encryption=_ENCRYPTION[spec.tls],
                autocommit=True,
                tds_version="7.4",
            )
            # The driver's timeout begins anew with each byte.
            return answer_within(
                FIRST_ANSWER_S,
                lambda: SqlServerSession(spec, driver, connect(), self.new_session),
                what=spec.display,
                advice="check that address and port are those of SQL Server, and its log",
            )
        except driver.Error as error:
            raise connect_error(spec, error) from error
        except UNLIKE_ANSWERS as error:
            raise not_understood(spec.display, error) from error

    def connection(self) -> ConnectionPlan:
        """What the load's connections need."""
        return ConnectionPlan.of("mssql", self.spec, self.spec.password)

    def check_rights(self) -> None:
        """Make a table in a transaction that is rolled back."""
        with contextlib.closing(self.new_session()) as session:
            try:
                session.execute("BEGIN TRANSACTION; CREATE TABLE assay_rights (k int); ROLLBACK TRANSACTION")
            except RefusedTarget as error:
                raise RefusedTarget(
                    f"{self.spec.display}: user {self.spec.user!r} may not create tables here; "
                    f"ALTER ROLE db_owner ADD MEMBER {self.spec.user}, and name the primary, not a replica"
                ) from error

    # What is in it

    def tables(self) -> list[str]:
        """Names of all tables, in small letters."""
        rows = self.query(
            "SELECT name FROM sys.objects WHERE type IN ('U', 'V') AND schema_id = schema_id(schema_name())"
        )
        return [str(row[0]).lower() for row in rows]

    def marked_tables(self) -> set[str]:
        """Names of the tables that carry Assay's mark, an extended property."""
        return {str(row[0]).lower() for row in self.query(MARKED, (TABLE_MARK,))}

    def others_on_tables(self) -> list[str]:
        """Columns, indexes, constraints and triggers that others added to the tables, and keys that refer to them."""
        return on_tables(self.query, self.table_set, self.marked_tables())

    def bytes_used(self) -> int:
        """Bytes of the pages in use."""
        rows = self.query("SELECT sum(cast(used_pages AS bigint)) * 8192 FROM sys.allocation_units")
        return int(rows[0][0] or 0)

    # What is known of it

    def _version(self) -> str:
        return str(self.query("SELECT cast(serverproperty('ProductVersion') AS nvarchar(128))")[0][0])

    def facts(self) -> DatabaseFacts:
        """Name, kind, version, limits and the settings that matter to storage."""
        most, free = self._connections()
        marks = ", ".join(["%s"] * len(_SETTINGS_SHOWN))
        rows = self.query(
            f"SELECT name, cast(value_in_use AS nvarchar(64)) FROM sys.configurations WHERE name IN ({marks})",
            _SETTINGS_SHOWN,
        )
        own = self.query(
            "SELECT recovery_model_desc, delayed_durability_desc, target_recovery_time_in_seconds,"
            " is_read_committed_snapshot_on, page_verify_option_desc FROM sys.databases WHERE name = db_name()"
        )[0]
        names = (
            "recovery_model",
            "delayed_durability",
            "target_recovery_time_s",
            "read_committed_snapshot",
            "page_verify",
        )
        return {
            "name": self.name,
            "kind": "mssql",
            "version": self._version(),
            "version_text": str(self.query("SELECT @@version")[0][0]).partition("\n")[0].strip(),
            "max_connections": most,
            "connections_free": free,
            "is_local": self.is_local,
            "settings": {str(name): str(value) for name, value in [*sorted(rows), *zip(names, own, strict=True)]},
        }

    def _connections(self) -> tuple[int, int]:
        most = int(self.query("SELECT @@max_connections")[0][0])
        rows = self.query("SELECT count(*) FROM sys.dm_exec_sessions WHERE is_user_process = 1")
        return most, max(most - int(rows[0][0]), 0)

    def scan_counters(self, session: Session) -> dict[str, float]:
        """Bytes read of this database's files, and written to those of tempdb (sys.dm_io_virtual_file_stats)."""
        try:
            ((read, written),) = self.query(
                "SELECT sum(CASE WHEN database_id = db_id() THEN num_of_bytes_read END),"
                " sum(CASE WHEN database_id = 2 THEN num_of_bytes_written END)"
                " FROM sys.dm_io_virtual_file_stats(NULL, NULL)"
            )
        except (RefusedTarget, IoFailed):
            return {}
        counted = {"bytes_read": read, "temp_bytes": written}
        return {name: float(value) for name, value in counted.items() if value is not None}

    def can_store_columns(self) -> bool:
        """Version 2016 and newer keep tables by columns in all editions."""
        return True

    def drop_cache(self) -> bool:
        """Write dirty pages and drop clean ones (DBCC DROPCLEANBUFFERS), where the user may."""
        self.execute("CHECKPOINT")
        self.execute("DBCC DROPCLEANBUFFERS")
        return True

    def _transactions_count(self) -> float | None:
        try:
            rows = self.query(
                "SELECT cntr_value FROM sys.dm_os_performance_counters WHERE counter_name = 'Batch Requests/sec'"
            )
        except RefusedTarget:
            self.notice(
                f"{self.spec.display}: user {self.spec.user!r} may not read the server's counters; GRANT VIEW SERVER "
                f"STATE TO {self.spec.user}"
            )
            return None
        return float(rows[0][0]) if rows else None

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files."""
        if not self.is_local:
            self.notice(f"{self.spec.display} is not on this host, so what its disks do is not recorded")
            return {}
        rows = self.query(
            "SELECT type, name, physical_name, database_id FROM sys.master_files WHERE database_id IN (db_id(), 2)"
        )
        paths: dict[str, str] = {}
        for kind, name, path, number in rows:
            folder = PurePosixPath(str(path)).parent
            if not _is_here(str(path)):
                self.notice(
                    f"{self.spec.display}: its file {path} cannot be seen from here (a container, or no permission), "
                    "so what its disks do is not recorded"
                )
                return {}
            role = "temp" if number == 2 else "log" if kind == 1 else "data"
            if paths.setdefault(role, str(folder)) != str(folder):
                paths[f"{role}:{name}"] = str(folder)
        return paths

    # Work

    def checkpoint(self) -> None:
        """Write all dirty pages."""
        try:
            self.execute("CHECKPOINT")
        except RefusedTarget:
            self.notice(f"{self.spec.display}: user {self.spec.user!r} may not ask for a checkpoint (db_owner may)")

    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """`UPDATE STATISTICS` of each table of the workload."""
        there = set(self.tables())
        tables = [table for table in self.table_set.names if table in there]
        for number, table in enumerate(tables):
            try:
                self.execute(f"UPDATE STATISTICS {table}")
            except (NotOffered, RefusedTarget) as error:
                self.notice(f"{error}; statistics are as the server keeps them by itself")
            if progress is not None:
                progress(number + 1, len(tables))

    # The saved state: a backup set is listed in msdb only once it is whole.

    def _new_run_lock(self) -> SqlServerRunLock:
        return SqlServerRunLock(self.spec, self.new_session)

    def save(self) -> None:
        """Back the database up to a file in the server's folder for backups."""
        if self.run_lock is not None:
            self.run_lock.hold()
        self._refuse_others()
        facts = self._saved_facts()
        others = digest(beside_tables(self.query, self.table_set, self.marked_tables()))
        # No other file has the name, and a backup that is cut short leaves the one before alone.
        self.execute(
            f"BACKUP DATABASE {_name(self.spec.database)} TO DISK = %s"
            " WITH COPY_ONLY, FORMAT, CHECKSUM, NAME = 'assay', DESCRIPTION = %s",
            (
                f"{self.spec.database}_assay_saved_{uuid.uuid4().hex}.bak",
                (_DESCRIPTION + json.dumps(facts | {"others": others}))[:255],
            ),
        )
        for backup in self._backups()[1:]:
            self._delete(backup)

    def restore(self) -> None:
        """Restore that backup over the database; one that is cut short cannot be used until restored again.

        It is taken offline first, since the one session of `SINGLE_USER` may be another's.
        """
        if self.run_lock is not None:
            self.run_lock.hold()
        with contextlib.closing(self.new_session("master")) as session:
            backups = self._backups(session)
            if not backups:
                raise UsageError(f"{self.spec.display}: nothing is saved; load and save first")
            self._check_header(session, backups[0])
            # One whose restore was cut short cannot be looked into, and was looked into before.
            if session.query("SELECT 1 FROM sys.databases WHERE name = %s AND state = 0", (self.spec.database,)):
                self._refuse_others()
                there = beside_tables(self.query, self.table_set, self.marked_tables())
                if digest(there) != backups[0].facts.get("others"):
                    refuse_losses(self.spec.display, [item.name for item in there])
            with self._lock:
                self._drop_session()
            name = _name(self.spec.database)
            session.execute(
                f"IF db_id(%s) IS NOT NULL AND databasepropertyex(%s, 'Status') = 'ONLINE'"
                f" ALTER DATABASE {name} SET OFFLINE WITH ROLLBACK IMMEDIATE",
                (self.spec.database, self.spec.database),
            )
            session.execute(
                f"RESTORE DATABASE {name} FROM DISK = %s WITH REPLACE, RECOVERY, CHECKSUM", (backups[0].path,)
            )

    def saved(self) -> SavedFacts | None:
        """What is saved; a load asks as well, whose user need not have the right to read the history of backups."""
        backups = self._known_backups()
        return {key: value for key, value in backups[0].facts.items() if key != "others"} if backups else None

    def drop_saved(self) -> None:
        """Delete the backup files; the server's history of backups stays."""
        for backup in self._known_backups():
            self._delete(backup)

    def _refuse_others(self) -> None:
        """Sequences and views count as well, partitions are not objects."""
        there = self.schema()
        if there.kind == "foreign":
            refuse_foreign(self.spec.display, there.tables)
        rows = self.query(
            "SELECT CASE WHEN schema_id = schema_id(schema_name()) THEN name"
            " ELSE schema_name(schema_id) + '.' + name END"
            " FROM sys.objects WHERE is_ms_shipped = 0 AND type IN ('U', 'V', 'SO') ORDER BY type, name"
        )
        known = own_columns(self.table_set, "mssql").keys()
        refuse_others(self.spec.display, [str(row[0]) for row in rows if str(row[0]).lower() not in known])

    def _known_backups(self) -> list[SavedState]:
        """Those of `_backups`; none where the history cannot be read, which a notice says."""
        try:
            return self._backups()
        except (NotOffered, RefusedTarget) as error:
            self.notice(f"{error}; backups cannot be looked up in msdb, so nothing counts as saved")
            return []

    def _backups(self, session: SqlServerSession | None = None) -> list[SavedState]:
        """Whole backups of Assay's whose files are there, the newest first."""
        rows = (session or self).query(
            "SELECT f.physical_device_name, s.description, cast(s.backup_set_uuid AS nvarchar(36))"
            " FROM msdb.dbo.backupset AS s"
            " JOIN msdb.dbo.backupmediafamily AS f ON f.media_set_id = s.media_set_id"
            " CROSS APPLY sys.dm_os_file_exists(f.physical_device_name) AS e"
            " WHERE e.file_exists = 1"
            " AND s.database_name = %s AND s.name = 'assay' AND s.type = 'D' ORDER BY s.backup_finish_date DESC",
            (self.spec.database,),
        )
        found = []
        for path, description, number in rows:
            text = str(description or "")
            with contextlib.suppress(ValueError):
                if text.startswith(_DESCRIPTION):
                    facts = json.loads(text.removeprefix(_DESCRIPTION))
                    found.append(SavedState(path=str(path), number=str(number).lower(), facts=facts))
        return found

    def _delete(self, backup: SavedState) -> None:
        with contextlib.closing(self.new_session("master")) as session:
            try:
                self._check_header(session, backup)
            except RefusedTarget as error:
                self.notice(str(error))
                return
            session.execute("EXECUTE master.sys.xp_delete_files %s", (backup.path,))

    def _check_header(self, session: SqlServerSession, backup: SavedState) -> None:
        """Refuse a file that holds anything but the backup it is known for: its name may have got other content."""
        numbers = session.column("RESTORE HEADERONLY FROM DISK = %s", (backup.path,), name="BackupSetGUID")
        if [str(number).lower() for number in numbers] != [backup.number]:
            raise RefusedTarget(
                f"{self.spec.display}: {backup.path} holds other backups than the one Assay made there; move it away"
            )


def _is_here(path: str) -> bool:
    return path.startswith("/") and os.path.exists(path)


def _name(text: str) -> str:
    return "[" + text.replace("]", "]]") + "]"

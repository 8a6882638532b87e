"""MariaDB, 10.6 or newer, and MySQL, 8.0 or newer."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import socket
import ssl
from pathlib import Path

import pymysql

from assay.base.errors import NotAnswering, NotSupported, OpenFailed, RefusedTarget, UsageError
from assay.targets.answering import answer_within
from assay.targets.databases.common.answers import UNLIKE_ANSWERS, not_understood
from assay.targets.databases.common.connection import APPLICATION_NAME, ConnectionPlan, Dialect, Progress, Session
from assay.targets.databases.common.data_files import beginning, is_process
from assay.targets.databases.common.database import OWN_TABLES, Database
from assay.targets.databases.common.facts import DatabaseFacts, SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK
from assay.targets.databases.common.query_memory import QueryMemory
from assay.targets.databases.common.run_lock import MariadbRunLock
from assay.targets.databases.mariadb.objects import in_definitions, not_in_definitions
from assay.targets.databases.mariadb.session import MariadbSession, connect_error
from assay.targets.databases.mariadb.tablespace_copy import TablespaceCopy, folder_name

VERSION_MIN = {"mariadb": (10, 6), "mysql": (8, 0)}
CONNECT_TIMEOUT_S = 10

SETTINGS_SHOWN = (
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_redo_log_capacity",
    "innodb_log_buffer_size",
    "innodb_log_write_ahead_size",
    "innodb_doublewrite",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_page_size",
    "innodb_file_per_table",
    "innodb_flush_neighbors",
    "innodb_max_dirty_pages_pct",
    "innodb_read_io_threads",
    "innodb_write_io_threads",
    "innodb_use_native_aio",
    "innodb_checksum_algorithm",
    "sync_binlog",
    "log_bin",
    "binlog_format",
    "local_infile",
    "performance_schema",
    "transaction_isolation",
    "tx_isolation",
    "max_connections",
    "binlog_checksum",
    "innodb_autoextend_increment",
)
"""Settings that matter to storage; those that a version does not have are left out."""


class Mariadb(Database):
    """A server that is already there; which of the two it is, it says itself."""

    dialect: Dialect = "mariadb"
    marking = "{statement} COMMENT = '{mark}'"
    query_memory = QueryMemory(
        statement="SET SESSION tmp_table_size = {bytes}, max_heap_table_size = {bytes}, sort_buffer_size = {bytes},"
        " join_buffer_size = {bytes}",
        words="tmp_table_size, max_heap_table_size, sort_buffer_size and join_buffer_size of a session",
        most_share=1 / 64, least_bytes=16 << 10,
    )  # fmt: skip

    def open(self, *, connections: int = 0) -> None:
        """Connect, and check the version and that there are connections enough."""
        session = self.new_session()
        self._session = session
        text = str(session.query("SELECT version()")[0][0])
        self.dialect = "mariadb" if "mariadb" in text.lower() else "mysql"
        least = VERSION_MIN[self.dialect]
        if version_of(text)[:2] < least:
            self.close()
            shown = "MariaDB" if self.dialect == "mariadb" else "MySQL"
            raise NotSupported(
                f"{self.spec.display}: is {shown} {text.partition('-')[0][:40]}; {least[0]}.{least[1]} is the oldest"
                " that is supported"
            )
        most, free = self._connections()
        if connections > free:
            self.close()
            raise UsageError(
                f"{self.spec.display}: {connections} connections are needed, the server allows {most}, of which {free} "
                "are free; give fewer users or connections, or raise max_connections"
            )

    def new_session(self, *, program_name: str = APPLICATION_NAME) -> MariadbSession:
        """Connect once more."""
        spec = self.spec
        try:
            if spec.socket is not None:
                # The driver leaves a socket open that no server answers.
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.settimeout(CONNECT_TIMEOUT_S)
                    probe.connect(spec.socket)
            connect = functools.partial(
                pymysql.connect,
                host=spec.host,
                port=spec.port,
                unix_socket=spec.socket,
                user=spec.user,
                password=spec.password.reveal() if spec.password is not None else "",
                database=spec.database,
                connect_timeout=CONNECT_TIMEOUT_S,
                charset="utf8mb4",
                autocommit=True,
                program_name=program_name,
                ssl=self._tls(),
                ssl_disabled=spec.tls == "disable",
            )
            # The driver's timeout ends with the connection: it waits without end for a server that then says nothing.
            connection = answer_within(CONNECT_TIMEOUT_S + 1.0, connect, what=spec.display)
        except NotAnswering:
            where = spec.socket or f"{spec.host}:{spec.port}"
            raise OpenFailed(
                f"{spec.display}: what listens at {where} does not answer as MariaDB does; check address and port"
            ) from None
        except (pymysql.Error, OSError) as error:
            raise connect_error(spec, error) from error
        except UNLIKE_ANSWERS as error:
            raise not_understood(spec.display, error) from error
        return MariadbSession(spec, connection, self.new_session)

    def _tls(self) -> ssl.SSLContext | None:
        spec = self.spec
        if spec.tls in ("disable", "prefer"):
            return None
        context = ssl.create_default_context(cafile=spec.tls_ca)
        context.check_hostname = spec.tls == "verify-full"
        if spec.tls == "require":
            context.verify_mode = ssl.CERT_NONE
        return context

    def connection(self) -> ConnectionPlan:
        """What the load's connections need."""
        return ConnectionPlan.of("mariadb", self.spec, self.spec.password)

    def check_rights(self) -> None:
        """Make a table and drop it again."""
        try:
            # A table of that name that is there already is not Assay's.
            name = f"assay_rights_{secrets.token_hex(8)}"
            self.execute(f"CREATE TABLE {name} (k integer)")
            self.execute(f"DROP TABLE {name}")
        except RefusedTarget as error:
            raise RefusedTarget(
                f"{self.spec.display}: user {self.spec.user!r} may not create and drop tables here; "
                f"GRANT ALL ON {self.spec.database}.* TO {self.spec.user}, and name the primary, not a replica"
            ) from error

    # What is in it

    def tables(self) -> list[str]:
        """Names of all tables, in small letters."""
        rows = self.query("SELECT table_name FROM information_schema.tables WHERE table_schema = database()")
        return [str(row[0]).lower() for row in rows]

    def marked_tables(self) -> set[str]:
        """Names of the tables that carry Assay's mark, a comment."""
        rows = self.query(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = database() AND table_type = 'BASE TABLE' AND table_comment = %s",
            (TABLE_MARK,),
        )
        return {str(row[0]).lower() for row in rows}

    def others_on_tables(self) -> list[str]:
        """Columns, indexes, constraints and triggers that others added to the tables, and keys that refer to them."""
        return [*in_definitions(self), *not_in_definitions(self)]

    def bytes_used(self) -> int:
        """Bytes of the tables' files, or of their pages where the user may not see the files."""
        view = "INNODB_SYS_TABLESPACES" if self.dialect == "mariadb" else "INNODB_TABLESPACES"
        try:
            rows = self.query(
                f"SELECT coalesce(sum(file_size), 0) FROM information_schema.{view}"
                " WHERE substring_index(name, '/', 1) = %s",
                (folder_name(self.spec.database),),
            )
        except RefusedTarget:
            rows = self.query(
                "SELECT coalesce(sum(data_length + index_length), 0) FROM information_schema.tables"
                " WHERE table_schema = database()"
            )
        return int(rows[0][0])

    # What is known of it

    def facts(self) -> DatabaseFacts:
        """Name, kind, version, limits and the settings that matter to storage."""
        most, free = self._connections()
        text = str(self.query("SELECT version()")[0][0])
        marks = ", ".join(["%s"] * len(SETTINGS_SHOWN))
        rows = self.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({marks})", SETTINGS_SHOWN)
        return {
            "name": self.name,
            "kind": self.dialect,
            "version": ".".join(map(str, version_of(text))),
            "version_text": f"{text} {self.query('SELECT @@version_comment')[0][0]}",
            "max_connections": most,
            "connections_free": free,
            "is_local": self.is_local,
            "settings": {str(name): str(value) for name, value in sorted(rows)},
        }

    def _connections(self) -> tuple[int, int]:
        """Most connections at once, and how many of them could be opened now."""
        most = int(self.query("SELECT @@max_connections")[0][0])
        return most, max(most - int(self._status("Threads_connected")["threads_connected"]), 0)

    def _status(self, *names: str) -> dict[str, float]:
        marks = ", ".join(["%s"] * len(names))
        rows = self.query(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({marks})", names)
        return {str(name).lower(): float(value) for name, value in rows}

    def scan_counters(self, session: Session) -> dict[str, float]:
        """What InnoDB read (Innodb_data_read), and how often the session spilled: bytes of that are not counted."""
        names = ("Created_tmp_disk_tables", "Sort_merge_passes")
        rows = session.query("SHOW SESSION STATUS WHERE Variable_name IN (%s, %s)", names)
        counted = {"temp_files": float(sum(int(value) for _, value in rows))} if rows else {}
        read = self._status("Innodb_data_read").get("innodb_data_read")
        return counted if read is None else counted | {"bytes_read": read}

    def can_store_columns(self) -> bool:
        """Whether the ColumnStore engine is installed."""
        rows = self.query("SELECT 1 FROM information_schema.engines WHERE engine = 'Columnstore' AND support <> 'NO'")
        return bool(rows)

    def _transactions_count(self) -> float | None:
        return sum(self._status("Com_commit", "Com_rollback").values())

    def _variable(self, name: str) -> str:
        rows = self.query("SHOW GLOBAL VARIABLES WHERE Variable_name = %s", (name,))
        return str(rows[0][1]) if rows else ""

    def server_pid(self) -> int | None:
        """Process of the server, by its file."""
        try:
            number = int(beginning(Path(self._variable("datadir")) / self._variable("pid_file")))
        except (OSError, ValueError):
            return None
        return number if self.is_local and is_process(number) else None

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files."""
        if not self.is_local:
            self.notice(f"{self.spec.display} is not on this host, so what its disks do is not recorded")
            return {}
        data = Path(self._variable("datadir"))
        # A folder of the same name on this host may be another server's, if this one is in a container.
        if self.server_pid() is None or not data.is_dir():
            self.notice(
                f"{self.spec.display}: its folder {data} or its process cannot be seen from here (a container, or no "
                "permission), so what its disks do is not recorded"
            )
            return {}
        log = self._variable("innodb_log_group_home_dir") or "."
        temporary = self._variable("tmpdir").split(":")[0] or "/tmp"
        return {
            "data": str(Path(os.path.normpath(data / (self._variable("innodb_data_home_dir") or ".")))),
            "log": os.path.normpath(data / log),
            "temp": temporary,
        }

    # Work

    def checkpoint(self) -> None:
        """Have all dirty pages of the tables written, at the speed of the storage: a flush for export does that."""
        there = set(self.tables())
        tables = [table for table in (*self.table_set.names, *OWN_TABLES) if table in there]
        if not tables:
            return
        try:
            with contextlib.closing(self.new_session()) as session:
                session.execute(f"FLUSH TABLES {', '.join(tables)} FOR EXPORT")
                session.execute("UNLOCK TABLES")
        except RefusedTarget:
            self.notice(
                f"{self.spec.display}: user {self.spec.user!r} may not have dirty pages written; GRANT RELOAD and"
                " LOCK TABLES lets runs begin with clean buffers"
            )

    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """`ANALYZE TABLE` of each table of the workload."""
        there = set(self.tables())
        tables = [table for table in self.table_set.names if table in there]
        for number, table in enumerate(tables):
            self.query(f"ANALYZE TABLE {table}")
            if progress is not None:
                progress(number + 1, len(tables))

    # The saved state

    @property
    def _copy(self) -> TablespaceCopy:
        return TablespaceCopy(self, self.new_session, Path(self._variable("datadir")))

    def _new_run_lock(self) -> MariadbRunLock:
        return MariadbRunLock(self.spec, self.new_session)

    def save(self) -> None:
        """Copy the tables' files, while the server holds them still."""
        if self.run_lock is not None:
            self.run_lock.hold()
        self._copy.save(self._saved_facts())

    def restore(self) -> None:
        """Make the tables anew and give them the saved files."""
        if self.run_lock is not None:
            self.run_lock.hold()
        self._copy.restore()

    def saved(self) -> SavedFacts | None:
        """What is saved."""
        return self._copy.saved() if self.is_local else None

    def drop_saved(self) -> None:
        """Delete the saved files."""
        if self.is_local:
            self._copy.drop()


def version_of(text: str) -> tuple[int, ...]:
    """Version as numbers.

    Examples
    --------
    >>> version_of("10.11.19-MariaDB-0+deb12u1"), version_of("5.5.5-10.6.3-MariaDB"), version_of("8.4.2")
    ((10, 11, 19), (10, 6, 3), (8, 4, 2))
    """
    # Older MariaDB puts a version before its own, for clients that know MySQL only.
    match = re.match(r"(?:5\.5\.5-)?([0-9]+)\.([0-9]+)\.([0-9]+)", text)
    return tuple(int(part) for part in match.groups()) if match else (0,)

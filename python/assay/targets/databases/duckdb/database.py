"""DuckDB: a column store in one file, within this process.

Assay makes the file or takes one in which all tables are its own. A file is first opened for reading, so that nothing
is written to one that is refused. Saved states are copies of the file beside it, in `NAME.assay-saved-N`
(`saved_folders`): DuckDB closes its file while it is copied or replaced.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from assay.base.errors import AssayError, NotSupported, OutOfSpace, UsageError
from assay.base.paths import others_shut_out
from assay.base.units import format_bytes
from assay.targets.databases.common.connection import ConnectionLost, ConnectionPlan, Dialect, Progress, Session
from assay.targets.databases.common.database import Database, file_errors
from assay.targets.databases.common.facts import DatabaseFacts, SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK, own_columns, own_indexes
from assay.targets.databases.common.query_memory import QueryMemory
from assay.targets.databases.common.refusals import refuse_foreign, refuse_others
from assay.targets.databases.common.saved_folders import SavedFolder, SavedFolders
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.common.tree_copy import (
    can_clone,
    copy_file,
    copy_open_file,
    free_bytes_of,
    sync_file_system,
)
from assay.targets.databases.duckdb.file import DuckdbFile, sync_folder
from assay.targets.databases.duckdb.session import DuckdbSession, open_error

SETTINGS_SHOWN = (
    "threads",
    "async_threads",
    "memory_limit",
    "temp_directory",
    "max_temp_directory_size",
    "checkpoint_threshold",
    "preserve_insertion_order",
    "default_block_size",
    "storage_block_prefetch",
    "storage_compatibility_version",
)
"""Settings that matter to storage; those that a version does not have are left out."""

_PINNED: dict[str, bool] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}
"""No statement reads other files, loads code, or reaches the network."""

_COPY, _RESTORED = "database", "restored"
"""Files in the folder of a saved state: the copy, and one of it that is about to become the database."""

_OTHERS = """
SELECT 'view ' || view_name FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
UNION ALL SELECT 'sequence ' || sequence_name FROM duckdb_sequences() WHERE database_name = current_database()
UNION ALL SELECT 'type ' || type_name FROM duckdb_types() WHERE NOT internal AND database_name = current_database()
UNION ALL SELECT DISTINCT 'macro ' || function_name FROM duckdb_functions()
WHERE NOT internal AND database_name = current_database()
UNION ALL SELECT 'schema ' || schema_name FROM duckdb_schemas()
WHERE NOT internal AND database_name = current_database() AND schema_name <> 'main'
ORDER BY 1
"""


class Duckdb(Database):
    """A DuckDB of Assay's own."""

    dialect: Dialect = "duckdb"
    marking = "BEGIN; {statement}; COMMENT ON TABLE {name} IS '{mark}'; COMMIT"
    is_own = True
    in_process = True
    query_memory = QueryMemory(
        statement="SET GLOBAL memory_limit = '{kib}KiB'", words="memory_limit, all that it takes", most_share=1 / 2,
        least_bytes=1 << 20, for_all="memory_limit",
    )  # fmt: skip

    def __init__(self, spec: DatabaseSpec, table_set: TableSet) -> None:
        super().__init__(spec, table_set)
        assert spec.file is not None
        temporary = spec.settings.get("temp_directory")
        self._file = DuckdbFile(spec.file, Path(temporary) if temporary else None, spec.display)
        self._base: duckdb.DuckDBPyConnection | None = None
        self._sessions: weakref.WeakSet[DuckdbSession] = weakref.WeakSet()
        self._is_made_here = False
        self._private = contextlib.ExitStack()
        self._life = threading.RLock()
        """Held while DuckDB opens or closes the file."""

    # Life

    def open(self, *, connections: int = 0) -> None:
        """Open the file, made first if there is none."""
        with self._life:
            if self._base is not None:
                return
            self._private.enter_context(others_shut_out())
            try:
                with file_errors(self.spec.display):
                    self._file.find()
                    is_new = not self._file.exists
                    if is_new:
                        self._make()
                        self._is_made_here = True
                    self._file.take()
                    if not is_new:
                        self._refuse_tables_of_others()
                        self._file.lock()
                    self._start()
                    self._file.check()
            except BaseException:
                self.close()
                raise

    def _make(self) -> None:
        """Make an empty database under a name that no one can guess, and give it its own."""
        path = self._file.path
        made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            self._connect(made).close()
            os.rename(made, path)
        finally:
            made.unlink(missing_ok=True)
        sync_folder(path.parent)

    def _connect(self, path: Path, **config: str) -> duckdb.DuckDBPyConnection:
        settings = {**self.spec.settings, "temp_directory": str(self._file.temporary), "access_mode": "READ_WRITE"}
        try:
            return duckdb.connect(path, config={**_PINNED, **settings, **config})
        except duckdb.Error as error:
            raise open_error(self.spec, path, error) from error

    def _refuse_tables_of_others(self) -> None:
        """Refuse a file with tables that are not Assay's, before anything opens it for writing."""
        with contextlib.closing(
            DuckdbSession(self.spec, self._connect(self._file.path, access_mode="READ_ONLY"))
        ) as session:
            rows = session.query(
                "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary"
                " AND comment IS DISTINCT FROM %s ORDER BY 1",
                (TABLE_MARK,),
            )
        if rows:
            refuse_foreign(self.spec.display, [str(row[0]) for row in rows])

    def _start(self) -> None:
        self._base = self._connect(self._file.path)

    def _stop(self) -> None:
        """Close the file, cleanly: what the log holds is written to it."""
        for session in list(self._sessions):
            session.close()
        self._sessions.clear()
        if self._base is not None:
            self._base.close()
            self._base = None

    def close(self) -> None:
        """End the sessions and close the file; one that was made here and holds no tables goes again."""
        super().close()
        with self._life:
            is_left_over = self._is_made_here and self._base is not None and not self._has_tables()
            self._stop()
            if is_left_over:
                self._file.remove()
            self._file.release()
            self._private.close()

    def _has_tables(self) -> bool:
        try:
            with contextlib.closing(self.new_session()) as session:
                return bool(session.query("SELECT 1 FROM duckdb_tables() WHERE NOT internal LIMIT 1"))
        except AssayError:
            return True

    def revive(self) -> bool:
        """Open the file again where an error ended DuckDB; whether it had."""
        with self._lock, self._life:
            if self._base is None:
                return False
            try:
                self._base.execute("SELECT 1")
            except duckdb.Error:
                with self._closed():
                    return True
            return False

    def new_session(self) -> DuckdbSession:
        """Begin another session in this process."""
        with self._life:
            if self._base is None:
                raise ConnectionLost(f"{self.spec.display}: is closed; open the database first")
            session = DuckdbSession(self.spec, self._base.cursor())
            self._sessions.add(session)
            return session

    @property
    def server(self) -> tuple[object, ...]:
        """The file: each is a server of its own."""
        return self.spec.kind, str(self._file.path)

    def connection(self) -> ConnectionPlan:
        """There is none.

        Raises
        ------
        NotSupported
            Always: DuckDB runs in this process and listens to no other.
        """
        raise NotSupported(f"{self.spec.display}: runs within Assay and takes no connections")

    def check_rights(self) -> None:
        """Make a table, and undo that."""
        with contextlib.closing(self.new_session()) as session:
            session.execute(f"BEGIN; CREATE TABLE assay_rights_{secrets.token_hex(8)} (k integer); ROLLBACK")

    def execute_many_parallel(
        self, statements: Sequence[str], connections: int, progress: Progress | None = None
    ) -> None:
        """Run statements one after the other: each takes all threads, and two that change one table conflict."""
        super().execute_many_parallel(statements, 1, progress)

    # What is in it

    def tables(self) -> list[str]:
        """Names of all tables and views, in small letters."""
        rows = self.query(
            "SELECT lower(table_name) FROM information_schema.tables"
            " WHERE table_catalog = current_database() AND table_schema = 'main'"
        )
        return [str(row[0]) for row in rows]

    def marked_tables(self) -> set[str]:
        """Names of the tables that carry Assay's mark, a comment."""
        rows = self.query(
            "SELECT lower(table_name) FROM duckdb_tables()"
            " WHERE NOT internal AND NOT temporary AND schema_name = 'main' AND comment = %s",
            (TABLE_MARK,),
        )
        return {str(row[0]) for row in rows}

    def others_on_tables(self) -> list[str]:
        """Views and other objects, and columns and indexes that others added to the tables."""
        columns, indexes = own_columns(self.table_set, self.dialect), own_indexes(self.table_set, self.dialect)
        marked = self.marked_tables()
        added = [
            f"column {table}.{column}"
            for table, column in self.query("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal")
            if table.lower() in marked & columns.keys() and column.lower() not in columns[table.lower()]
        ]
        added += [
            f"index {table}.{index}"
            for table, index in self.query("SELECT table_name, index_name FROM duckdb_indexes()")
            if table.lower() in marked and index.lower() not in indexes
        ]
        return [*added, *self._others()]

    def _others(self) -> list[str]:
        return [str(row[0]) for row in self.query(_OTHERS)]

    def bytes_used(self) -> int:
        """Bytes of the file and of its log."""
        with file_errors(self.spec.display):
            return self._file.bytes

    # What is known of it

    def facts(self) -> DatabaseFacts:
        """Name, kind, version, limits and the settings that matter to storage."""
        rows = self.query(
            "SELECT name, value FROM duckdb_settings() WHERE list_contains(%s, name) ORDER BY name", (SETTINGS_SHOWN,)
        )
        version, source = self.query("SELECT library_version, source_id FROM pragma_version()")[0]
        return {
            "name": self.name,
            "kind": self.dialect,
            "version": str(version).removeprefix("v"),
            "version_text": f"DuckDB {version} {source}",
            "max_connections": None,
            "connections_free": None,
            "is_local": True,
            "settings": {str(name): str(value) for name, value in rows},
            "settings_given": dict(self.spec.settings),
        }

    def _transactions_count(self) -> None:
        return None

    def scan_counters(self, session: Session) -> dict[str, float]:
        """Bytes that this process asked the system for: nothing else reads while a query runs by itself."""
        with open("/proc/self/io", encoding="ascii") as file:
            counted = dict(line.split(": ") for line in file.read().splitlines())
        return {"bytes_read": float(counted["rchar"])}

    def can_store_columns(self) -> bool:
        """It keeps all tables by columns."""
        return True

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Without checkpoints, for which each transaction would wait, and without an order of rows: both cost time.

        One checkpoint comes at the end.
        """
        ((threshold, order),) = self.query(
            "SELECT current_setting('checkpoint_threshold'), current_setting('preserve_insertion_order')"
        )
        self.execute("SET GLOBAL checkpoint_threshold = '1TB'; SET GLOBAL preserve_insertion_order = false")
        try:
            yield
        finally:
            self.execute(
                f"SET GLOBAL checkpoint_threshold = '{threshold}'; SET GLOBAL preserve_insertion_order = {order}"
            )

    def drop_cache(self) -> bool:
        """Close the file, let the system forget what it keeps of it, and open it again."""
        with self._closed():
            # By the descriptor that is held: closing another one would end DuckDB's lock.
            os.posix_fadvise(self._file.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return True

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files."""
        data, temporary = self._file.path.parent, self._file.temporary
        return {"data": str(data), "log": str(data), "temp": str(temporary if temporary.is_dir() else data)}

    # Work

    def checkpoint(self) -> None:
        """Write what the log holds to the file, and make that small once all tables are dropped."""
        self.execute("CHECKPOINT")
        if not self.tables():
            # Blocks that one checkpoint frees are cut off by the next, which does nothing without a change.
            name = f"assay_change_{secrets.token_hex(8)}"
            self.execute(f"BEGIN; CREATE TABLE {name} (k integer); DROP TABLE {name}; COMMIT; CHECKPOINT")

    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """Gather the statistics of each table of the workload."""
        there = set(self.tables())
        tables = [table for table in self.table_set.names if table in there]
        for number, table in enumerate(tables):
            self.execute(f"ANALYZE {table}")
            if progress is not None:
                progress(number + 1, len(tables))

    # The saved state

    @property
    def _folders(self) -> SavedFolders:
        return SavedFolders(self._file.path.parent, f"{self._file.path.name}.assay-saved-")

    def save(self) -> None:
        """Close the file, copy it, and open it again."""
        facts = self._saved_facts()
        refuse_others(self.spec.display, self._others())
        with self._closed(), self._folders.held() as before:
            self._check_room(os.fstat(self._file.descriptor).st_blocks * 512)
            with self._folders.created() as copy:
                try:
                    copy_open_file(self._file.descriptor, copy.file(_COPY))
                except BaseException:
                    copy.delete((_COPY,))
                    raise
                sync_file_system(copy.file("."))
                copy.finish({"facts": facts})
            self._delete(before)

    def restore(self) -> None:
        """Close the file, put a copy of the saved one in its place, and open that."""
        with self._newest() as (folder, _):
            if folder is None:
                raise UsageError(f"{self.spec.display}: nothing is saved; load and save first")
            there = self.schema()
            if there.kind == "foreign":
                refuse_foreign(self.spec.display, there.tables)
            refuse_others(self.spec.display, self._others())
            with self._closed():
                saved, copy = folder.file(_COPY), folder.file(_RESTORED)
                copy.unlink(missing_ok=True)
                self._check_room(saved.stat().st_blocks * 512)
                try:
                    copy_file(saved, copy)
                    sync_file_system(folder.file("."))
                    self._file.replace(copy)
                finally:
                    copy.unlink(missing_ok=True)

    @contextmanager
    def _closed(self) -> Iterator[None]:
        """DuckDB lets go of the file for a while; other processes are kept out."""
        with self._lock, self._life:
            self._drop_session()
            self._stop()
            self._file.lock()
            try:
                with file_errors(self.spec.display):
                    yield
            finally:
                self._start()

    def _check_room(self, needed_bytes: int) -> None:
        """Refuse a copy for which there is no room, unless the file system may share blocks."""
        folder = self._file.path.parent
        free_bytes = free_bytes_of(folder)
        if needed_bytes > free_bytes and not can_clone(folder):
            raise OutOfSpace(
                f"{self.spec.display}: a copy needs {format_bytes(needed_bytes)}, {format_bytes(free_bytes)} are free "
                f"in {folder}; free some space, or load again instead of restoring"
            )

    def saved(self) -> SavedFacts | None:
        """What is saved."""
        with self._newest() as (folder, facts):
            return facts if folder is not None else None

    def drop_saved(self) -> None:
        """Delete all copies that are Assay's, whole or not."""
        with file_errors(self.spec.display), self._folders.held() as folders:
            self._delete(folders)

    def _delete(self, folders: Sequence[SavedFolder]) -> None:
        for folder in folders:
            if not folder.delete((_COPY, _RESTORED)):
                self.notice(f"{self.spec.display}: {folder.path} holds files that are not Assay's; they stay there")

    @contextmanager
    def _newest(self) -> Iterator[tuple[SavedFolder | None, SavedFacts]]:
        """The newest whole copy with its facts."""
        with self._folders.held() as folders:
            for folder in folders:
                manifest = folder.manifest()
                if manifest is not None and isinstance(manifest.get("facts"), dict):
                    yield folder, manifest["facts"]
                    return
            yield None, {}

"""The loaded state of a MariaDB or MySQL database: files of its tables, exported and imported by the running server.

Copies lie beside the server's data directory, in `assay-saved-DIRECTORY-DATABASE-N` (`saved_folders`): servers whose
data directories lie side by side have their own. One is whole once it has its manifest, which is written last. A table
is dropped only if it carries Assay's mark in the session that drops it. While tables are replaced `assay_schema` says
`restoring`, so that a restore that was cut short is not taken for a loaded database.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil

from assay.base.errors import NotSupported, OutOfSpace, RefusedTarget, UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.databases.common.database import OWN_TABLES, Database, file_errors
from assay.targets.databases.common.facts import SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK
from assay.targets.databases.common.refusals import refuse_foreign, refuse_losses, refuse_others
from assay.targets.databases.common.saved_folders import SavedFolder, SavedFolders, SavedManifest
from assay.targets.databases.common.tree_copy import can_clone, copy_file, free_bytes_of, sync_file_system
from assay.targets.databases.mariadb.objects import in_definitions, not_in_definitions
from assay.targets.databases.mariadb.session import MariadbSession

_SUFFIXES = (".ibd", ".cfg")
_TABLES_AT_ONCE = 4


class TablespaceCopy:
    """Copies between a database's files and its saved state.

    Parameters
    ----------
    new_session
        Connects to the database once more.
    data
        The server's data directory.
    """

    def __init__(self, database: Database, new_session: Callable[[], MariadbSession], data: Path) -> None:
        self._database = database
        self._new_session = new_session
        self._display = database.spec.display
        whole = data.resolve()
        self._live = (data / folder_name(database.spec.database)).resolve()
        self._whole, self._shelf = whole, whole.parent
        prefix = f"assay-saved-{whole.name}-{folder_name(database.spec.database)}-"
        self._folders = SavedFolders(self._shelf, prefix)

    def save(self, facts: SavedFacts) -> None:
        """Copy the files while the server holds them still."""
        self._refuse_out_of_reach()
        there = set(self._database.tables())
        tables = [table for table in (*self._database.table_set.names, "assay_chunk") if table in there]
        if "assay_schema" not in there:
            raise UsageError(f"{self._display}: nothing is loaded; load first")
        self._refuse_other_layouts(tables)
        refuse_others(self._display, not_in_definitions(self._database))
        with contextlib.closing(self._new_session()) as session, file_errors(self._display):
            manifest: SavedManifest = {
                "facts": facts,
                "tables": {table: _definition(session, table) for table in (*tables, "assay_schema")},
                "schema": [list(row) for row in session.query("SELECT k, v FROM assay_schema")],
                "others": in_definitions(self._database),
            }
            self._check_room(tables)
            with self._folders.held() as before, self._folders.created() as copy:
                try:
                    session.execute(f"FLUSH TABLES {', '.join(tables)} FOR EXPORT")
                except RefusedTarget as error:
                    copy.delete(())
                    raise NotSupported(f"{error}; GRANT RELOAD and LOCK TABLES to save and restore") from None
                try:
                    for name in _files(tables):
                        copy_file(self._live / name, copy.file(name))
                finally:
                    session.execute("UNLOCK TABLES")
                sync_file_system(copy.file("."))
                copy.finish(manifest)
                self._delete(before)

    def restore(self) -> None:
        """Make each table anew as it was and give it the saved files."""
        self._refuse_out_of_reach()
        with self._newest() as (folder, manifest):
            if folder is None:
                raise UsageError(f"{self._display}: nothing is saved; load and save first")
            there = self._database.schema()
            if there.kind == "foreign":
                refuse_foreign(self._display, there.tables)
            self._refuse_losses(manifest)
            with file_errors(self._display):
                self._replace(folder, manifest)

    def _replace(self, folder: SavedFolder, manifest: SavedManifest) -> None:
        definitions = {table: str(manifest["tables"][table]) for table in (*self._database.table_set.names, *OWN_TABLES)
                       if table in manifest["tables"]}  # fmt: skip
        with contextlib.closing(self._new_session()) as session:
            session.execute(_if_absent(definitions.pop("assay_schema")))
            session.execute_together(
                [
                    ("DELETE FROM assay_schema WHERE k = 'state'", ()),
                    ("INSERT INTO assay_schema (k, v) VALUES ('state', 'restoring')", ()),
                ]
            )
            # A table with foreign keys is locked while another that it refers to is made.
            at_once = 1 if self._database.table_set.has_references else _TABLES_AT_ONCE
            with ThreadPoolExecutor(at_once, thread_name_prefix="assay-restore") as workers:
                done = [workers.submit(self._import, folder, manifest, *item) for item in definitions.items()]
            for future in done:
                future.result()
            rows: Sequence[Sequence[object]] = manifest["schema"]
            session.execute_together(
                [
                    ("DELETE FROM assay_schema", ()),
                    *(("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", row) for row in rows),
                ]
            )

    def _refuse_losses(self, manifest: SavedManifest) -> None:
        kept = set(manifest["others"])
        since = [name for name in in_definitions(self._database) if name not in kept]
        refuse_losses(self._display, [*since, *not_in_definitions(self._database)])

    def _import(self, folder: SavedFolder, manifest: SavedManifest, table: str, definition: str) -> None:
        with contextlib.closing(self._new_session()) as session:
            found = session.query(
                "SELECT table_comment FROM information_schema.tables"
                " WHERE table_schema = database() AND table_name = %s",
                (table,),
            )
            if found and found[0][0] != TABLE_MARK:
                refuse_foreign(self._display, [table])
            # Tables take minutes: what came meanwhile cuts the restore short.
            self._refuse_losses(manifest)
            session.execute("SET SESSION foreign_key_checks = 0")
            session.execute(f"DROP TABLE IF EXISTS {table}")
            session.execute(definition)
            session.execute(f"ALTER TABLE {table} DISCARD TABLESPACE")
            for suffix in _SUFFIXES:
                # The copies have the owner that the server's files had.
                copy_file(folder.file(f"{table}{suffix}"), self._live / f"{table}{suffix}")
            session.execute(f"ALTER TABLE {table} IMPORT TABLESPACE")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._live / f"{table}.cfg")
            session.query(f"ANALYZE TABLE {table}")

    def saved(self) -> SavedFacts | None:
        """What the manifest of the whole copy says."""
        with self._newest() as (folder, manifest):
            return dict(manifest["facts"]) if folder is not None else None

    def drop(self) -> None:
        """Delete all copies that are Assay's, whole or not."""
        with file_errors(self._display), self._folders.held() as folders:
            self._delete(folders)

    def _delete(self, folders: Sequence[SavedFolder]) -> None:
        for folder in folders:
            if not folder.delete(list(_files((*self._database.table_set.names, *OWN_TABLES)))):
                self._database.notice(
                    f"{self._display}: {folder.path} holds files that are not Assay's; they stay there"
                )

    @contextmanager
    def _newest(self) -> Iterator[tuple[SavedFolder | None, SavedManifest]]:
        """The newest whole copy with its manifest."""
        with self._folders.held() as folders:
            for folder in folders:
                manifest = folder.manifest()
                if manifest is not None and {"facts", "tables", "schema", "others"} <= manifest.keys():
                    yield folder, manifest
                    return
            yield None, {}

    # What stands against it

    def _refuse_out_of_reach(self) -> None:
        folders = (self._live, self._shelf)
        pid = self._database.server_pid()
        if pid is None or not all(os.access(folder, os.R_OK | os.W_OK) for folder in folders):
            raise NotSupported(
                f"{self._display}: saving copies the files in {self._live}, which are out of reach; run Assay on that "
                "host as root or as the server's user, or load again instead of restoring"
            )

        self._refuse_folders_of_others(pid)

    def _refuse_folders_of_others(self, pid: int) -> None:
        """Refuse folders that the server names and that are not its own: what a server says leads this user nowhere."""
        with contextlib.suppress(psutil.Error):
            owners = {os.geteuid(), psutil.Process(pid).uids().real}
            is_own = {os.stat(folder).st_uid for folder in (self._whole, self._live)} <= owners
            if is_own and os.stat(self._shelf).st_uid in {0, *owners}:
                return
        raise RefusedTarget(
            f"{self._display}: the server says that its data are in {printable(self._live)}, which is no folder of the"
            " server's user; load again instead of restoring"
        )

    def _refuse_other_layouts(self, tables: Sequence[str]) -> None:
        missing = [table for table in tables if not _is_file(self._live / f"{table}.ibd")]
        if missing:
            raise NotSupported(
                f"{self._display}: {missing[0]} has no file of its own (partitions, or innodb_file_per_table off); "
                "save before tables are partitioned, or load again instead of restoring"
            )

    def _check_room(self, tables: Sequence[str]) -> None:
        needed_bytes = sum((self._live / f"{table}.ibd").stat().st_blocks * 512 for table in tables)
        free_bytes = free_bytes_of(self._shelf)
        if needed_bytes > free_bytes and not can_clone(self._shelf):
            raise OutOfSpace(
                f"{self._display}: the saved state needs {format_bytes(needed_bytes)}, {format_bytes(free_bytes)} are "
                f"free in {self._shelf}; free some space, or load again instead of restoring"
            )


def _definition(session: MariadbSession, table: str) -> str:
    return str(session.query(f"SHOW CREATE TABLE {table}")[0][1])


def _if_absent(definition: str) -> str:
    return re.sub(r"^CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", definition)


def _files(tables: Sequence[str]) -> Iterator[str]:
    return (f"{table}{suffix}" for table in tables for suffix in _SUFFIXES)


def _is_file(path: Path) -> bool:
    """Whether a file is there itself, and not a link that leads elsewhere."""
    return path.is_file() and not path.is_symlink()


def folder_name(database: str) -> str:
    """Name of a database's folder: letters, digits and `_` as they are, others by their code.

    Examples
    --------
    >>> folder_name("tpcc_1"), folder_name("my-db")
    ('tpcc_1', 'my@002ddb')
    """
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"@{ord(match[0]):04x}", database)

"""The loaded state of a MariaDB or MySQL database: files of its tables, exported and imported by the running server.

Copies lie beside the server's data directory, in `assay-saved-DIRECTORY-DATABASE-N`: servers whose data directories
lie side by side have their own. One is whole once it has its manifest, which is written last. While tables are
replaced `assay_schema` says `restoring`, so that a restore that was cut short is not taken for a loaded database.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import NotSupported, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.database import TABLES, file_errors
from assay.targets.databases.tree_copy import can_clone, copy_file, delete_tree, free_bytes_of, sync_file_system
from assay.units import format_bytes

if TYPE_CHECKING:
    from assay.targets.databases.mariadb import Mariadb, MariadbSession

_MANIFEST = "manifest.json"
_SUFFIXES = (".ibd", ".cfg")
_TABLES_AT_ONCE = 4


class TablespaceCopy:
    """Copies between a database's files and its saved state."""

    def __init__(self, database: Mariadb, data: Path) -> None:
        from assay.targets.databases.mariadb import folder_name

        self._database = database
        self._display = database.spec.display
        whole = data.resolve()
        self._prefix = f"assay-saved-{whole.name}-{folder_name(database.spec.database)}-"
        self._live = data / folder_name(database.spec.database)
        self._shelf = whole.parent

    def save(self, facts: dict[str, Any]) -> None:
        """Copy the files while the server holds them still."""
        self._refuse_out_of_reach()
        there = set(self._database.tables())
        tables = [table for table in (*TABLES, "assay_chunk") if table in there]
        if "assay_schema" not in there:
            raise UsageError(f"{self._display}: nothing is loaded; load first")
        self._refuse_other_layouts(tables)
        # Numbers go on from what is there, whole or not.
        numbers = [number for number, _ in self._folders()]
        copy = self._shelf / f"{self._prefix}{max(numbers, default=0) + 1}"
        with contextlib.closing(self._database.new_session()) as session, file_errors(self._display):
            manifest = {
                "facts": facts,
                "tables": {table: _definition(session, table) for table in (*tables, "assay_schema")},
                "schema": [list(row) for row in session.query("SELECT k, v FROM assay_schema")],
            }
            self._check_room(tables)
            copy.mkdir(mode=0o700)
            try:
                session.execute(f"FLUSH TABLES {', '.join(tables)} FOR EXPORT")
            except RefusedTarget as error:
                copy.rmdir()
                raise NotSupported(f"{error}; GRANT RELOAD and LOCK TABLES to save and restore") from None
            try:
                for table in tables:
                    for suffix in _SUFFIXES:
                        copy_file(self._live / f"{table}{suffix}", copy / f"{table}{suffix}")
            finally:
                session.execute("UNLOCK TABLES")
            sync_file_system(copy)
            _write_whole(copy / _MANIFEST, json.dumps(manifest))
            for _, folder in self._folders():
                if folder != copy:
                    delete_tree(folder)

    def restore(self) -> None:
        """Make each table anew as it was and give it the saved files."""
        self._refuse_out_of_reach()
        folder, manifest = self._whole()
        if folder is None:
            raise UsageError(f"{self._display}: nothing is saved; load and save first")
        definitions = dict(manifest["tables"])
        with contextlib.closing(self._database.new_session()) as session, file_errors(self._display):
            session.execute(_if_absent(definitions.pop("assay_schema")))
            session.execute_together(
                [
                    ("DELETE FROM assay_schema WHERE k = 'state'", ()),
                    ("INSERT INTO assay_schema (k, v) VALUES ('state', 'restoring')", ()),
                ]
            )
            with ThreadPoolExecutor(_TABLES_AT_ONCE, thread_name_prefix="assay-restore") as workers:
                done = [workers.submit(self._import, folder, *item) for item in definitions.items()]
            for future in done:
                future.result()
            rows: Sequence[Sequence[object]] = manifest["schema"]
            session.execute_together(
                [
                    ("DELETE FROM assay_schema", ()),
                    *(("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", row) for row in rows),
                ]
            )

    def _import(self, folder: Path, table: str, definition: str) -> None:
        with contextlib.closing(self._database.new_session()) as session:
            session.execute("SET SESSION foreign_key_checks = 0")
            session.execute(f"DROP TABLE IF EXISTS {table}")
            session.execute(definition)
            session.execute(f"ALTER TABLE {table} DISCARD TABLESPACE")
            for suffix in _SUFFIXES:
                # The copies have the owner that the server's files had.
                copy_file(folder / f"{table}{suffix}", self._live / f"{table}{suffix}")
            session.execute(f"ALTER TABLE {table} IMPORT TABLESPACE")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._live / f"{table}.cfg")
            session.query(f"ANALYZE TABLE {table}")

    def saved(self) -> dict[str, Any] | None:
        """What the manifest of the whole copy says."""
        folder, manifest = self._whole()
        return dict(manifest["facts"]) if folder is not None else None

    def drop(self) -> None:
        """Delete all copies, whole or not."""
        with file_errors(self._display):
            for _, folder in self._folders():
                delete_tree(folder)

    def _folders(self) -> list[tuple[int, Path]]:
        pattern = re.compile(re.escape(self._prefix) + "([0-9]+)")
        try:
            names = os.listdir(self._shelf)
        except OSError:
            return []
        found = [(int(match[1]), self._shelf / name) for name in names if (match := pattern.fullmatch(name))]
        return sorted(found)

    def _whole(self) -> tuple[Path | None, dict[str, Any]]:
        for _, folder in reversed(self._folders()):
            with contextlib.suppress(OSError, ValueError):
                return folder, json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return None, {}

    # What stands against it

    def _refuse_out_of_reach(self) -> None:
        folders = (self._live, self._shelf)
        if self._database.server_pid() is None or not all(os.access(folder, os.R_OK | os.W_OK) for folder in folders):
            raise NotSupported(
                f"{self._display}: saving copies the files in {self._live}, which are out of reach; run Assay on that "
                "host as root or as the server's user, or load again instead of restoring"
            )

    def _refuse_other_layouts(self, tables: Sequence[str]) -> None:
        missing = [table for table in tables if not (self._live / f"{table}.ibd").is_file()]
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


def _write_whole(path: Path, text: str) -> None:
    written = path.with_name(f"{path.name}.new")
    with written.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, path)
    sync_file_system(path.parent)

"""The PostgreSQL that Assay initialises in a folder, tunes for the machine, starts and stops."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

from assay.errors import NotSupported, OutOfSpace, UsageError
from assay.targets.databases.cluster import Cluster, tablespaces
from assay.targets.databases.database import Connection, file_errors
from assay.targets.databases.postgresql import Postgresql
from assay.targets.databases.server import (
    Programs,
    Server,
    choose_programs,
    program_version,
    run_program,
    shipped_programs,
    socket_folder,
)
from assay.targets.databases.spec import DatabaseSpec
from assay.targets.databases.tree_copy import (
    can_clone,
    copy_tree,
    delete_tree,
    free_bytes_of,
    give_tree,
    sync_file_system,
    tree_bytes,
)
from assay.targets.databases.tuning import configuration, tuned_settings
from assay.targets.host import memory_bytes
from assay.units import format_bytes

_PORT = 5432
_CONFIGURATION = "assay.conf"


class EmbeddedPostgresql(Postgresql):
    """A server of our own, on a socket that only this user may use."""

    def __init__(self, spec: DatabaseSpec) -> None:
        super().__init__(spec)
        assert spec.directory is not None
        self._cluster = Cluster(spec.directory, spec.wal_directory, spec.display)
        self._programs: Programs | None = None
        self._server: Server | None = None
        self._socket_folder: Path | None = None
        self._connections_wanted = 0

    # Life

    def open(self, *, connections: int = 0) -> None:
        """Start the server, initialised first if the folder is new, and connect."""
        self._connections_wanted = max(connections, self._connections_wanted)
        if self._server is not None and self._server.is_running:
            if connections <= self._connections()[1]:
                return
            # Only a server that starts anew can take more connections.
            self._stop()
        elif self._server is None:
            shipped_programs()
            self._cluster.take()
        try:
            with file_errors(self.spec.display):
                self._start(connections=self._connections_wanted)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server cleanly and let others use the folder."""
        try:
            self._stop()
        finally:
            if self._socket_folder is not None:
                shutil.rmtree(self._socket_folder, ignore_errors=True)
                self._socket_folder = None
            if self._programs is not None and self._programs.copy is not None:
                # Made for this run, in a folder for temporary files.
                delete_tree(self._programs.copy)
            self._programs = None
            self._server = None
            self._cluster.release()

    def revive(self) -> bool:
        """Start the server again if it was killed or ended by itself; whether it had."""
        if self._server is None or self._server.is_running:
            return False
        with self._lock:
            self._drop_session()
        self._server.forget()
        self._start()
        return True

    def _start(self, *, connections: int = 0) -> None:
        """Start the server on the data that counts; makes that first where there is none.

        So many connections must be free then: none where users may have come back to it already.
        """
        cluster = self._cluster
        if self._programs is None:
            self._programs = choose_programs(cluster.directory, self.spec.display, wal_directory=cluster.wal_directory)
        if cluster.data is None:
            if cluster.saved is not None:
                self._copy_back()
            else:
                self._initialise()
        data = cluster.data
        assert data is not None
        self._check_version(data)
        if self._socket_folder is None:
            self._socket_folder = socket_folder(self._programs.identity)
        self._own(data)
        self._configure(data)
        self._server = Server(data, cluster.log, self._socket_folder, self.spec.display)
        self._server.start(self._programs, cluster.lock)
        self._make_database()
        super().open(connections=connections)

    def _stop(self, *, at_once: bool = False) -> None:
        self._leave_session()
        if self._server is not None:
            self._server.stop(at_once=at_once)

    def _initialise(self) -> None:
        assert self._programs is not None
        data = self._cluster.fresh("data")
        wal = self._cluster.wal_folder(data)
        for folder in (data, wal):
            if folder is not None:
                folder.mkdir(mode=0o700)
                os.chown(folder, *self._programs.identity.owner)
        arguments = [
            f"--pgdata={data}",
            f"--username={self.spec.user}",
            "--auth=peer",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
        ]
        run_program(
            self._programs,
            "initdb",
            arguments + ([f"--waldir={wal}"] if wal is not None else []),
            self.spec.display,
        )
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude '{_CONFIGURATION}'\n")
            file.flush()
            os.fsync(file.fileno())
        self._cluster.change(data=data.name)

    def _check_version(self, data: Path) -> None:
        assert self._programs is not None
        has = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        runs = program_version(shipped_programs() / "postgres")
        if has != runs.split(".")[0]:
            raise NotSupported(
                f"{self.spec.display}: was made by PostgreSQL {has}, this is {runs}; give another folder, or load it "
                "again"
            )

    def _own(self, data: Path) -> None:
        """Give the files to who the server runs as now, should it have been another before."""
        assert self._programs is not None
        owner = self._programs.identity.owner
        folders = [data, data / "pg_wal", *tablespaces(data)]
        for folder in folders:
            status = folder.stat()
            if (status.st_uid, status.st_gid) != owner and os.geteuid() == 0:
                give_tree(folder.resolve(), *owner)

    def _configure(self, data: Path) -> None:
        """Write settings and who may connect; both depend on this start and not on what was saved."""
        assert self._programs is not None
        assert self._socket_folder is not None
        settings = tuned_settings(
            memory_bytes(),
            free_bytes_of(data / "pg_wal"),
            connections=self._connections_wanted,
            chosen=self.spec.settings,
        )
        client = self._programs.identity.client.replace('"', '""')
        texts = {
            _CONFIGURATION: configuration(settings, str(self._socket_folder)),
            # Only who started the server gets in, whatever user this server's superuser is called.
            "pg_hba.conf": "local all all peer map=assay\nlocal replication all peer map=assay\n",
            "pg_ident.conf": f'assay "{client}" {self.spec.user}\n',
        }
        for name, text in texts.items():
            path = data / name
            path.write_text(text, encoding="utf-8")
            os.chown(path, *self._programs.identity.owner)

    def _make_database(self) -> None:
        with contextlib.closing(self.new_session("postgres")) as session:
            if not session.query("SELECT 1 FROM pg_database WHERE datname = %s", (self.spec.database,)):
                session.execute(f"CREATE DATABASE {self.spec.database}")
        with contextlib.closing(self.new_session()) as session:
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def _place(self) -> Connection:
        return Connection(
            kind="postgresql",
            host=None,
            port=_PORT,
            socket=f"{self._socket_folder}/.s.PGSQL.{_PORT}",
            user=self.spec.user,
            password=None,
            database=self.spec.database,
            tls="disable",
            tls_ca=None,
        )

    # What is known of it

    def facts(self) -> dict[str, Any]:
        """As of any PostgreSQL, and how the server is run."""
        assert self._programs is not None
        return super().facts() | {
            "runs_as": self._programs.identity.kind,
            "settings_given": dict(self.spec.settings),
        }

    def server_pid(self) -> int | None:
        """Process of the postmaster, while it runs."""
        return self._server.pid if self._server is not None else None

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files, and of tablespaces."""
        data = self._cluster.data
        assert data is not None
        spaces = self.query("SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace")
        paths = {"data": str(data), "log": str((data / "pg_wal").resolve()), "temp": str(data)}
        return paths | {f"data:{name}": str(location) for name, location in spaces if location}

    # The saved state

    def save(self) -> None:
        """Stop the server, copy its files, start it again."""
        if self.query("SELECT 1 FROM pg_tablespace WHERE pg_tablespace_location(oid) <> ''"):
            raise NotSupported(
                f"{self.spec.display}: has tablespaces, which lie outside its folder; save before they are made"
            )
        facts = self._saved_facts()
        self.checkpoint()
        cluster = self._cluster
        data = cluster.data
        assert data is not None
        self._stop()
        try:
            copy = cluster.fresh("saved")
            self._check_room(data, copy.parent)
            with file_errors(self.spec.display):
                copied_bytes = copy_tree(data, copy)
                sync_file_system(copy)
                cluster.change(saved={"folder": copy.name, "bytes": copied_bytes, **facts})
        finally:
            with file_errors(self.spec.display):
                cluster.tidy()
                self._start()

    def restore(self) -> None:
        """Stop the server, put a copy of the saved files in the place of its own, start it again."""
        cluster = self._cluster
        if cluster.saved is None:
            raise UsageError(f"{self.spec.display}: nothing is saved; load and save first")
        # What is to be thrown away need not be written first.
        self._stop(at_once=True)
        with file_errors(self.spec.display):
            # From here on the saved state is what counts, and an interrupted restore is finished by the next start.
            # Deleting first needs room for two copies only, not for three.
            cluster.change(data=None)
            cluster.tidy()
            self._start()

    def _copy_back(self) -> None:
        cluster = self._cluster
        assert cluster.saved is not None
        data = cluster.fresh("data")
        wal = cluster.wal_folder(data)
        copy_tree(cluster.saved, data)
        if wal is not None:
            copy_tree(data / "pg_wal", wal)
            delete_tree(data / "pg_wal")
            (data / "pg_wal").symlink_to(wal)
            sync_file_system(wal)
        sync_file_system(data)
        cluster.change(data=data.name)

    def _check_room(self, data: Path, folder: Path) -> None:
        """Refuse a copy for which there is no room, unless the file system may share blocks."""
        needed_bytes, free_bytes = tree_bytes(data), free_bytes_of(folder)
        if needed_bytes > free_bytes and not can_clone(folder):
            raise OutOfSpace(
                f"{self.spec.display}: the saved state needs {format_bytes(needed_bytes)}, {format_bytes(free_bytes)} "
                "are free; free some space, or load again instead of restoring"
            )

    def saved(self) -> dict[str, Any] | None:
        """What is saved."""
        saved = self._cluster.state.get("saved")
        return {key: value for key, value in saved.items() if key != "folder"} if saved else None

    def drop_saved(self) -> None:
        """Delete the saved files."""
        if self._cluster.saved is not None:
            with file_errors(self.spec.display):
                self._cluster.change(saved=None)
                self._cluster.tidy()

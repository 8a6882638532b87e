"""The PostgreSQL that Assay initialises in a folder, tunes for the machine, starts and stops."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psycopg

from assay.base.errors import NotSupported, OutOfSpace, UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.databases.common.connection import ConnectionPlan
from assay.targets.databases.common.data_files import read_small, replace_files
from assay.targets.databases.common.database import file_errors
from assay.targets.databases.common.facts import DatabaseFacts, LibpqMore, SavedFacts
from assay.targets.databases.common.folder_state import Made, Saved
from assay.targets.databases.common.layout import FOLDER as TABLESPACES
from assay.targets.databases.common.read_ahead import ReadAhead
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.common.tree_copy import can_clone, copy_tree, free_bytes_of, sync_file_system, tree_bytes
from assay.targets.databases.embedded.cluster import Cluster
from assay.targets.databases.embedded.launcher import closed_ancestor, needs_showing
from assay.targets.databases.embedded.programs import Programs, choose_programs, shipped_programs
from assay.targets.databases.embedded.server import SOCKET_PATH_BYTES_MAX, PostgresServer, run_program
from assay.targets.databases.embedded.temporary import TemporaryFolder, bases, remove_left_behind, socket_folder
from assay.targets.databases.embedded.tuning import configuration, pinned_arguments, preset_settings, tuned_settings
from assay.targets.databases.postgresql.database import Postgresql
from assay.targets.host import device_of, memory_bytes
from assay.targets.kernel import need_proc

_PORT = 5432
_SOCKETS = "s"
"""Folder of the socket in the run's own folder: every byte of its path counts."""

_SOCKET = f"/{_SOCKETS}/.s.PGSQL.{_PORT}"
_SEGMENT_BYTES = 16 << 20
"""A segment of PostgreSQL's log, as `initdb` makes them unless told otherwise."""
_TEMP = "assay_temp"
"""Tablespace of temporary files, where these have a volume of their own."""


class EmbeddedPostgresql(Postgresql):
    """A server of our own, on a socket that only this user may use."""

    is_own = True

    def __init__(self, spec: DatabaseSpec, table_set: TableSet) -> None:
        super().__init__(spec, table_set)
        assert spec.directory is not None
        self._cluster = Cluster(spec.directory, spec.wal_directory, spec.display)
        self._programs: Programs | None = None
        self._server: PostgresServer | None = None
        self._run: TemporaryFolder | None = None
        self._shown: dict[Path, Made] = {}
        self._connections_wanted = 0
        self._read_ahead = ReadAhead()

    # Life

    def refuse_host(self) -> None:
        """Try the server's programs as whom they may run here."""
        need_proc("the embedded database")
        copy = choose_programs(self.spec.display).copy
        if copy is not None:
            copy.remove()

    def open(self, *, connections: int = 0) -> None:
        """Start the server, initialised first if the folder is new, and connect."""
        need_proc("the embedded database")
        self._connections_wanted = max(connections, self._connections_wanted)
        if self._server is not None and self._server.is_running:
            if connections <= self._connections()[1]:
                return
            # Only a server that starts anew can take more connections.
            self._stop()
        elif self._server is None:
            shipped_programs()
            self._cluster.take()
            # A server that was left behind has stopped by now and holds none of them any more.
            remove_left_behind([*bases(runtime=True), *bases(runtime=False)])
        try:
            with file_errors(self.spec.display):
                self._start(connections=self._connections_wanted)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server and let others use the folder.

        Cleanly, or where it has no room at once: the checkpoint of a clean stop needs room for its log, without which
        PostgreSQL may wait for it without end. The next start recovers all that was acknowledged.
        """
        try:
            self._stop(at_once=not self._has_room())
        finally:
            self._read_ahead.restore()
            copy = self._programs.copy if self._programs is not None else None
            for folder in (self._run, copy):
                if folder is not None:
                    folder.remove()
            self._run = None
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

    def lose_power(self) -> None:
        """End the server as a power cut does, and let go of all that it is on."""
        # A thread that waits for the server to recover waits no longer.
        if self._server is not None:
            self._server.kill()
        self._leave_session()
        self._read_ahead.restore()
        self._cluster.release()

    def regain_power(self) -> None:
        """Take the folder again and start the server, which recovers.

        Raises
        ------
        AssayError
            It does not start any more.
        """
        self._cluster.take()
        with file_errors(self.spec.display):
            self._start()

    def drop_cache(self) -> bool:
        """Start the server anew: nothing else empties its buffers."""
        self._stop()
        with file_errors(self.spec.display):
            self._start(connections=self._connections_wanted)
        return True

    def _start(self, *, connections: int = 0) -> None:
        """Start the server on the data that counts; makes the data first if there are none.

        So many connections must be free then: none where users may have come back to it already.
        """
        cluster = self._cluster
        if self._programs is None:
            self._programs = self._choose_programs()
        identity = self._programs.identity
        if cluster.data is None:
            if cluster.saved is not None:
                self._copy_back()
            else:
                self._initialise()
        data = cluster.data
        assert data is not None
        self._check_version()
        cluster.give(identity.owner)
        if self._run is None:
            # What the configuration names has no descriptor that could lead there.
            by_path = identity.kind == "number"
            self._run = socket_folder(SOCKET_PATH_BYTES_MAX - len(_SOCKET), for_all=by_path)
            sockets = self._run.path / _SOCKETS
            sockets.mkdir(mode=0o700)
            os.chown(sockets, *identity.owner)
        temp = self._temp_place()
        if temp is not None:
            self._refuse_closed(self._programs, cluster.make_tablespace(temp, identity.owner))
        self._configure(data)
        self._set_read_ahead(data)
        self._shown = dict(cluster.tablespaces)
        folders = [*self._folders(data), *self._shown, self._run.path / _SOCKETS]
        left_over = [run.path for run in (self._run, self._programs.copy) if run is not None]
        held = [cluster.lock, *(run.lock for run in (self._run, self._programs.copy) if run is not None)]
        self._server = PostgresServer(data, cluster.log, cluster.open_log, self.spec.display)
        self._server.start(self._programs, pinned_arguments(str(data)), held=held, shown=folders, left_over=left_over)
        self._make_database()
        super().open(connections=connections)

    def _choose_programs(self) -> Programs:
        cluster = self._cluster
        owner = cluster.state.owners[-1] if cluster.state.owners else None
        programs = choose_programs(self.spec.display, dedicated_before=owner)
        if programs.identity.kind == "number" and cluster.wal_directory is not None:
            cluster.let_pass()
            self._refuse_closed(programs, cluster.wal_directory / "wal")
        return programs

    def _refuse_closed(self, programs: Programs, folder: Path) -> None:
        """Refuse a folder that the server reaches by its path alone, where that is closed to the server's user."""
        closed = closed_ancestor(str(folder)) if programs.identity.kind == "number" else None
        if closed is not None:
            raise NotSupported(
                f"{self.spec.display}: the server runs as user {programs.identity.uid} here, to whom the folder"
                f" {printable(Path(closed))} is closed; chmod o+x {printable(Path(closed))}, or give another folder for"
                " the log, the temporary files or the tablespace"
            )

    def _folders(self, data: Path) -> list[Path]:
        """Folders of a data directory: itself, and its log where that is elsewhere."""
        wal = self._cluster.wal_folder(data.name)
        return [data] if wal is None else [data, wal]

    def _has_room(self) -> bool:
        """Whether data and log have room for another segment of the log."""
        data = self._cluster.data
        if data is None:
            return True
        try:
            rooms = [os.statvfs(folder) for folder in self._folders(data)]
        except OSError:
            return True
        return all(room.f_bavail * room.f_frsize >= _SEGMENT_BYTES for room in rooms)

    def _stop(self, *, at_once: bool = False) -> None:
        self._leave_session()
        if self._server is not None:
            self._server.stop(at_once=at_once)

    def _initialise(self) -> None:
        assert self._programs is not None
        owner = self._programs.identity.first_owner
        self._cluster.change(owners=(owner[0],))
        data = self._cluster.make("data", owner)
        wal = self._cluster.wal_folder(data.name)
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
            shown=self._folders(data),
        )
        self._cluster.change(data=data.name)

    def _check_version(self) -> None:
        assert self._programs is not None
        with self._cluster.data_opened() as folder:
            has, runs = read_small("PG_VERSION", folder), self._programs.version
        if has != runs.split(".")[0]:
            raise NotSupported(
                f"{self.spec.display}: was made by PostgreSQL {has}, this is {runs}; give another folder, or load it "
                "again"
            )

    def _configure(self, data: Path) -> None:
        """Write the whole configuration: it depends on this start alone, and on nothing that stands there."""
        assert self._programs is not None
        assert self._run is not None
        settings = tuned_settings(
            memory_bytes(),
            free_bytes_of(self._folders(data)[-1]),
            connections=self._connections_wanted,
            chosen=({"temp_tablespaces": _TEMP} if self._temp_place() is not None else {}) | self._chosen(),
        )
        client = self._programs.identity.client.replace('"', '""')
        texts = {
            "postgresql.conf": configuration(settings, str(self._run.path / _SOCKETS)),
            "postgresql.auto.conf": "",
            # Only who started the server gets in, whatever user this server's superuser is called.
            "pg_hba.conf": "local all all peer map=assay\nlocal replication all peer map=assay\n",
            "pg_ident.conf": f'assay "{client}" {self.spec.user}\n',
            # A server that finds one of these runs commands of its configuration, or waits for another server.
            "recovery.signal": None,
            "standby.signal": None,
        }
        with self._cluster.data_opened() as folder:
            replace_files(texts, folder, readable_to=self._programs.identity.owner[1])

    def _chosen(self) -> dict[str, str]:
        """Settings of the preset, and those that are given, which win."""
        assert self._programs is not None
        version = self._programs.version
        settings, lacking = preset_settings(self.spec.preset, int(version.partition(".")[0]))
        if lacking:
            self.notice(f"{self.spec.display}: PostgreSQL {version} has no {', '.join(lacking)}; they are left out")
        return settings | self.spec.settings

    def _set_read_ahead(self, data: Path) -> None:
        """Let the disks of the data read ahead as the target asks."""
        count = self.spec.read_ahead_bytes
        if count is not None:
            found = (device_of(folder) for folder in (data, *self._cluster.tablespaces))
            devices = dict.fromkeys(device for device in found if device is not None)
            for text in self._read_ahead.set(devices, count, self.spec.display):
                self.notice(text)

    def _make_database(self) -> None:
        with contextlib.closing(self.new_session("postgres")) as session:
            if not session.query("SELECT 1 FROM pg_database WHERE datname = %s", (self.spec.database,)):
                session.execute(f"CREATE DATABASE {self.spec.database}")
            temp = self._temp_place()
            if temp is not None and not session.query("SELECT 1 FROM pg_tablespace WHERE spcname = %s", (_TEMP,)):
                quoted = str(temp).replace("'", "''")
                session.execute(f"CREATE TABLESPACE {_TEMP} LOCATION '{quoted}'")
        with contextlib.closing(self.new_session()) as session:
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def _temp_place(self) -> Path | None:
        """Folder of the tablespace of temporary files, on the volume that the array has for them."""
        array, volume = self.spec.array, self.spec.temp_volume
        return array.mounts / volume / TABLESPACES / "temp" if array is not None and volume is not None else None

    def _place(self) -> ConnectionPlan:
        socket = f"{self._run.path}{_SOCKET}" if self._run is not None else None
        return ConnectionPlan(
            kind="postgresql",
            host=None,
            port=_PORT,
            socket=socket,
            user=self.spec.user,
            password=None,
            database=self.spec.database,
            tls="disable",
            tls_ca=None,
        )

    def _more_of_libpq(self) -> LibpqMore:
        # What variables ask of other servers would refuse our own.
        os.environ.pop("PGSERVICE", None)
        version = psycopg.pq.version()
        return {
            "requirepeer": "",
            "channel_binding": "disable",
            **({"require_auth": ""} if version >= 160000 else {}),
            **({"sslnegotiation": "postgres"} if version >= 170000 else {}),
        }

    # What is known of it

    def facts(self) -> DatabaseFacts:
        """As of any PostgreSQL, and how the server is run."""
        assert self._programs is not None
        return super().facts() | {
            "runs_as": self._programs.identity.kind,
            "settings_given": self._chosen(),
        }

    def server_pid(self) -> int | None:
        """Process of the postmaster, while it runs."""
        return self._server.pid if self._server is not None else None

    def storage_paths(self) -> dict[str, str]:
        """Folders of data, log and temporary files, and of tablespaces."""
        data = self._cluster.data
        assert data is not None
        log = self._cluster.wal_folder(data.name) or data / "pg_wal"
        spaces = self.query("SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace")
        places = {str(name): str(location) for name, location in spaces if location}
        paths = {"data": str(data), "log": str(log), "temp": places.pop(_TEMP, str(data))}
        return paths | {f"data:{name}": location for name, location in places.items()}

    # The saved state

    def save(self) -> None:
        """Stop the server, copy its files, start it again."""
        outside = "SELECT 1 FROM pg_tablespace WHERE pg_tablespace_location(oid) <> '' AND spcname <> %s"
        if self.query(outside, (_TEMP,)):
            raise NotSupported(
                f"{self.spec.display}: has tablespaces, which lie outside its folder; save before they are made"
            )
        facts = self._saved_facts()
        # Nothing in it outlives a statement, and the next start makes it anew.
        self.execute(f"DROP TABLESPACE IF EXISTS {_TEMP}")
        self.checkpoint()
        cluster = self._cluster
        data = cluster.data
        assert data is not None
        self._stop()
        try:
            self._check_room(data)
            with file_errors(self.spec.display):
                # It belongs to this process's user, as whom no server writes to it.
                copy = cluster.make("saved", (os.geteuid(), os.getegid()))
                copied_bytes = copy_tree(data, copy, linked=self._log_elsewhere(data))
                sync_file_system(copy)
                cluster.change(saved=Saved.model_validate({"folder": copy.name, "bytes": copied_bytes, **facts}))
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
            # The saved state counts from here on, and the next start finishes an interrupted restore.
            # Deleting first needs room for two copies only, not for three.
            cluster.change(data=None)
            cluster.tidy()
            self._start()

    def _copy_back(self) -> None:
        cluster = self._cluster
        assert self._programs is not None
        assert cluster.saved is not None
        owner = self._programs.identity.owner
        data = cluster.make("data", owner)
        copy_tree(cluster.saved, data, owner=owner, placed=self._log_elsewhere(data))
        for folder in self._folders(data):
            sync_file_system(folder)
        cluster.change(data=data.name, owners=(owner[0],))

    def _log_elsewhere(self, data: Path) -> dict[str, Path]:
        wal = self._cluster.wal_folder(data.name)
        return {"pg_wal": wal} if wal is not None else {}

    def _check_room(self, data: Path) -> None:
        """Refuse a copy for which there is no room, unless the file system may share blocks."""
        folder = self._cluster.directory
        needed_bytes, free_bytes = sum(map(tree_bytes, self._folders(data))), free_bytes_of(folder)
        if needed_bytes > free_bytes and not can_clone(folder):
            raise OutOfSpace(
                f"{self.spec.display}: the saved state needs {format_bytes(needed_bytes)}, {format_bytes(free_bytes)} "
                "are free; free some space, or load again instead of restoring"
            )

    def saved(self) -> SavedFacts | None:
        """What is saved."""
        saved = self._cluster.state.saved
        return saved.model_dump(exclude={"folder"}) if saved is not None else None

    def drop_saved(self) -> None:
        """Delete the saved files."""
        if self._cluster.saved is not None:
            with file_errors(self.spec.display):
                self._cluster.change(saved=None)
                self._cluster.tidy()

    # Tablespaces

    def usual_places(self) -> tuple[str, ...]:
        """On a served array the file systems of its data volumes, one tablespace each."""
        array = self.spec.array
        return tuple(str(array.mounts / name) for name in self.spec.data_volumes) if array is not None else ()

    def make_place(self, folder: Path) -> str:
        """Make a folder for a tablespace, and start the server anew if it could not reach that.

        Parameters
        ----------
        folder
            It and the folder it is in are made; what holds both must be there.

        Returns
        -------
        str
            Where it really is.

        Raises
        ------
        UsageError
            There is nothing to make it in.
        RefusedTarget
            What stands there is not this database's, or other users could exchange it.
        OpenFailed, OutOfSpace
            It cannot be made, or the server does not start again.
        """
        assert self._programs is not None
        cluster, identity = self._cluster, self._programs.identity
        with file_errors(self.spec.display):
            place = cluster.make_tablespace(folder, identity.owner)
        self._refuse_closed(self._programs, place)
        is_shown = cluster.tablespaces[place] == self._shown.get(place)
        if identity.kind == "dedicated" and not is_shown and needs_showing(str(place)):
            self._stop()
            with file_errors(self.spec.display):
                self._start()
        return str(place)

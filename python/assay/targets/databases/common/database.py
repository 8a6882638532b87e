"""What Assay asks of a database, whatever its kind: the interface, and what all kinds do alike."""

from __future__ import annotations

import errno
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from assay.base.errors import NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.common.answers import reads_answers
from assay.targets.databases.common.connection import ConnectionLost, ConnectionPlan, Dialect, Progress, Row, Session
from assay.targets.databases.common.facts import DatabaseFacts, SavedFacts
from assay.targets.databases.common.marks import TABLE_MARK
from assay.targets.databases.common.query_memory import QueryMemory
from assay.targets.databases.common.refusals import refuse_foreign, refuse_hanging
from assay.targets.databases.common.run_lock import RunLock
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import TableSet

OWN_TABLES = ("assay_schema", "assay_chunk")
"""Tables that say what was loaded: docs/databases.md."""

LAID_OUT = "laid out"
"""State of tables that a study laid out in another way: neither saved nor run on as the plain ones."""

LEAVE_S = 5.0
"""How long leaving a database waits for a statement that is under way."""


@dataclass(frozen=True, kw_only=True)
class SchemaState:
    """What of the workload's tables a database holds.

    Attributes
    ----------
    kind
        `absent`: none of the tables. `partial`: a load was cut short. `complete`: loaded, whether or not it ran since.
        `foreign`: tables of these names without Assay's mark. `broken`: restoring the saved state was cut short.
    state
        As written in `assay_schema`: `loading`, `loaded`, `ran`, `laid out` or `restoring`.
    chunks
        What a partial load has loaded: kind, number within the scale, part.
    tables
        Tables of the workload that are there; where they are `foreign`, those that are not Assay's.
    """

    kind: Literal["absent", "partial", "complete", "foreign", "broken"]
    scale: int | None = None
    """How much is loaded, as the workload counts it."""
    seed: int | None = None
    shape: Mapping[str, int] = field(default_factory=dict)
    """What decides the rows beside scale and seed, as `TableSet.shape` names it."""
    format: str | None = None
    state: str | None = None
    chunks: frozenset[tuple[str, int, int]] = frozenset()
    tables: tuple[str, ...] = ()


class Database(ABC):
    """One database and the server it is on.

    Methods raise errors of `assay.base.errors` only, each with one line that names the database as the user wrote it,
    without the password. `query`, `execute` and what is built on them may be called from any thread.

    Attributes
    ----------
    spec
        As asked by the user.
    table_set
        The tables of the workload.
    notices
        What the user should know, one sentence each, such as a figure that is missing.
    run_lock
        What keeps other runs out, once `hold` took it.
    """

    dialect: Dialect
    is_own: ClassVar[bool] = False
    """Whether Assay makes the database and runs its server."""
    in_process: ClassVar[bool] = False
    """Whether it runs within this process: it takes no connections from the core, its sessions take rows as Arrow."""
    takes_changes: ClassVar[bool] = True
    """Whether rows of its tables can be inserted and deleted once they are loaded."""
    query_memory: ClassVar[QueryMemory | None] = None
    marking: str
    """Makes a table by its `statement` and gives it its mark, in one transaction."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        reads_answers(cls)

    def __init__(self, spec: DatabaseSpec, table_set: TableSet) -> None:
        self.spec = spec
        self.table_set = table_set
        self.notices: list[str] = []
        self._session: Session | None = None
        self._lock = threading.RLock()
        self.run_lock: RunLock[Any] | None = None

    @property
    def name(self) -> str:
        """Unique within the system."""
        return self.spec.name

    def notice(self, text: str) -> None:
        """Keep what the user should know, once."""
        if text not in self.notices:
            self.notices.append(text)

    # Life

    def refuse_host(self) -> None:  # noqa: B027 - most servers run elsewhere
        """Raise `NotSupported` where this host cannot run the server; nothing of its place is touched."""

    @abstractmethod
    def open(self, *, connections: int = 0) -> None:
        """Connect, and start the server where it is Assay's own.

        Parameters
        ----------
        connections
            How many the workload will open; more than the server allows are refused.

        Raises
        ------
        UsageError
            Wrong password, no such user, no such database, more connections than the server allows.
        OpenFailed
            The server cannot be reached or does not start.
        NotSupported
            The server is too old, or TLS is demanded and not offered.
        RefusedTarget
            The folder of an embedded server holds something that Assay did not make.
        """

    def close(self) -> None:
        """End the sessions, and stop the server where it is Assay's own; no data is lost."""
        self._leave_session()
        if self.run_lock is not None:
            self.run_lock.release()

    def hold(self) -> None:
        """Keep other runs of Assay out until `close`; take the lock again where its session was lost.

        Raises
        ------
        RefusedTarget
            Another run holds the database; the line says which.
        """
        if self.run_lock is None:
            self.run_lock = self._new_run_lock()
        if self.run_lock is not None:
            self.run_lock.hold()

    def _new_run_lock(self) -> RunLock[Any] | None:
        """The lock of this kind of server; None where no other run can get at it."""
        return None

    def revive(self) -> bool:
        """Start the server again if it is Assay's own and was killed or ended by itself; whether it had."""
        return False

    def server_pid(self) -> int | None:
        """First process of the server, where it is on this host and shows it."""
        return None

    @abstractmethod
    def new_session(self) -> Session:
        """Connect once more, for a caller that wants its own: the recorder, or work in parallel."""

    @abstractmethod
    def connection(self) -> ConnectionPlan:
        """What the load's connections need; after `open`.

        Raises
        ------
        NotSupported
            It runs within this process and takes none.
        """

    @property
    def server(self) -> tuple[object, ...]:
        """What tells servers apart: databases on one server have the same."""
        place = self.connection()
        return place.kind, place.socket or place.host, place.port

    @abstractmethod
    def check_rights(self) -> None:
        """Find out, by doing it, whether tables may be made here; nothing is left behind.

        Raises
        ------
        RefusedTarget
            The user may not create tables, or the server is read-only.
        """

    # Statements

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement that changes nothing; a lost connection is made again once."""
        with self._lock:
            try:
                return self._current().query(sql, params)
            except ConnectionLost:
                self._drop_session()
                return self._current().query(sql, params)

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement and commit it."""
        with self._lock:
            try:
                self._current().execute(sql, params)
            except ConnectionLost:
                self._drop_session()
                raise

    def execute_many_parallel(
        self, statements: Sequence[str], connections: int, progress: Progress | None = None
    ) -> None:
        """Run statements that do not depend on each other, several at once; the first that fails ends the others.

        Parameters
        ----------
        connections
            How many run at once.
        """
        sessions: list[Session] = []
        own = threading.local()
        guard = threading.Lock()
        done = 0

        def run(statement: str) -> None:
            nonlocal done
            if not hasattr(own, "session"):
                own.session = self.new_session()
                with guard:
                    sessions.append(own.session)
            own.session.execute(statement)
            with guard:
                done += 1
                if progress is not None:
                    progress(done, len(statements))

        workers = ThreadPoolExecutor(max(min(connections, len(statements)), 1), thread_name_prefix="assay-statement")
        try:
            running = [workers.submit(run, statement) for statement in statements]
            for future in wait(running, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            for session in list(sessions):
                session.cancel()
            raise
        finally:
            workers.shutdown()
            for session in sessions:
                session.close()

    def _current(self) -> Session:
        if self._session is None:
            self._session = self.new_session()
        return self._session

    def _leave_session(self) -> None:
        """End the session, unless a thread still waits on it for a server that does not answer."""
        if self._lock.acquire(timeout=LEAVE_S):
            try:
                self._drop_session()
            finally:
                self._lock.release()

    def _drop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # What is in it

    def schema(self) -> SchemaState:
        """Look at what the database holds of the workload.

        Raises
        ------
        RefusedTarget
            It holds the tables of another workload of Assay's, some of which have the same names.
        """
        there, marked = set(self.tables()), self.marked_tables()
        tables = tuple(table for table in self.table_set.names if table in there)
        known = [table for table in (*self.table_set.names, *OWN_TABLES) if table in there]
        foreign = tuple(table for table in known if table not in marked)
        if foreign or "assay_schema" not in there:
            return SchemaState(kind="foreign" if known else "absent", tables=foreign or tuple(known))
        values = {str(key): str(value) for key, value in self.query("SELECT k, v FROM assay_schema")}
        if values and self.table_set.scale not in values:
            raise RefusedTarget(
                f"{self.spec.display}: holds the tables of another workload of Assay's; give each a database of its own"
            )
        state = values.get("state")
        kind: Literal["partial", "complete", "broken"] = "partial"
        if state in ("loaded", "ran", LAID_OUT):
            kind = "complete"
        elif state == "restoring":
            kind = "broken"
        return SchemaState(
            kind=kind,
            scale=_whole(values.get(self.table_set.scale)),
            seed=_whole(values.get("seed")),
            shape={name: _whole(values.get(name)) or 0 for name in self.table_set.shape},
            format=values.get("format"),
            state=state,
            chunks=self._chunks() if kind == "partial" and "assay_chunk" in there else frozenset(),
            tables=tables,
        )

    def _chunks(self) -> frozenset[tuple[str, int, int]]:
        rows = self.query(f"SELECT kind, {self.table_set.unit}, part FROM assay_chunk")
        return frozenset((str(kind), int(number), int(part)) for kind, number, part in rows)

    @abstractmethod
    def tables(self) -> list[str]:
        """Names of all tables in the schema that unqualified names lead to, in small letters."""

    @abstractmethod
    def marked_tables(self) -> set[str]:
        """Names of those tables there that carry Assay's mark, in small letters."""

    def create_table(self, name: str, statement: str) -> None:
        """Make a table of the workload that carries Assay's mark from its first moment."""
        self.execute(self.marking.format(statement=statement, name=name, mark=TABLE_MARK))

    @abstractmethod
    def others_on_tables(self) -> list[str]:
        """Foreign objects that would go with Assay's tables, or keep these from being dropped."""

    def refuse_drop(self) -> None:
        """Refuse to drop the tables where that would take along what is not Assay's, as it is at this moment.

        Raises
        ------
        RefusedTarget
            Tables lack Assay's mark, or something else hangs on those that have it.
        """
        there = self.schema()
        if there.kind == "foreign":
            refuse_foreign(self.spec.display, there.tables)
        if there.kind != "absent":
            refuse_hanging(self.spec.display, self.others_on_tables())

    @abstractmethod
    def bytes_used(self) -> int:
        """Bytes the database occupies, indexes included."""

    # What is known of it

    @abstractmethod
    def facts(self) -> DatabaseFacts:
        """Name, kind, version, limits and the settings that matter to storage, for the manifest."""

    def counters(self) -> dict[str, float]:
        """Counters of the server that only grow.

        Returns
        -------
        dict of str to float
            `transactions_count`: what the server counts, other sessions included; absent where the user may not read
            it. Those of `table_set` are absent without their tables.
        """
        counters: dict[str, float] = {}
        transactions = self._transactions_count()
        if transactions is not None:
            counters["transactions_count"] = transactions
        there = set(self.tables())
        for name, (table, query) in self.table_set.counters.items():
            if table in there:
                counters[name] = float(self.query(query)[0][0] or 0)
        return counters

    @abstractmethod
    def _transactions_count(self) -> float | None: ...

    @property
    def is_local(self) -> bool:
        """Whether it is reached through a socket or the loopback; a container may lie between all the same."""
        host = self.spec.host or ""
        return self.spec.host is None or host in ("localhost", "::1") or host.startswith("127.")

    @abstractmethod
    def storage_paths(self) -> dict[str, str]:
        """Folders on this host by role: `data`, `log`, `temp`, and `data:NAME` for further places of data.

        Empty where the server is not on this host or does not tell; a notice says why.
        """

    def lose_power(self) -> None:
        """End at once as a power cut does, where the server is Assay's own.

        Raises
        ------
        NotSupported
            It is another's.
        """
        raise NotSupported(f"{self.spec.display}: power is cut under databases that Assay runs itself alone")

    def regain_power(self) -> None:
        """Start again after a power cut; refused as `lose_power` is."""
        raise NotSupported(f"{self.spec.display}: power is cut under databases that Assay runs itself alone")

    def usual_places(self) -> tuple[str, ...]:
        """Folders for tablespaces where a layout names none; none: beside the data."""
        return ()

    def scan_counters(self, session: Session) -> dict[str, float]:
        """What queries read and spilled so far, in counters that only grow.

        Parameters
        ----------
        session
            The one that ran the last query: servers may learn of it late.

        Returns
        -------
        dict of str to float
            `bytes_read`: asked of the operating system; `temp_bytes`, `temp_files`: written to temporary files.
        """
        return {}

    def can_store_columns(self) -> bool:
        """Whether tables can be kept by columns here."""
        return False

    # Work

    @contextmanager
    def loading(self) -> Iterator[None]:
        """While many rows come in: what would hold them up waits until the end."""
        yield

    def drop_cache(self) -> bool:
        """Empty the server's own cache, whatever that takes; whether it could be. Sessions may be lost by it."""
        return False

    @abstractmethod
    def checkpoint(self) -> None:
        """Write all dirty pages, as far as the user may ask for it; otherwise a notice says so."""

    @abstractmethod
    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """Tidy up after loading, and tell the planner what the tables hold."""

    # The saved state

    @abstractmethod
    def save(self) -> None:
        """Save the database in its present state, in place of the state that was saved before.

        Raises
        ------
        NotSupported
            It cannot be done here, or what is not Assay's would be rolled back; the line says what to do instead.
        RefusedTarget
            Others use the database.
        OutOfSpace
            There is no room for a copy.
        """

    @abstractmethod
    def restore(self) -> None:
        """Bring the saved state back; what was there is gone, the saved state stays.

        Raises
        ------
        UsageError
            Nothing is saved.
        NotSupported, RefusedTarget, OutOfSpace
            As of `save`.
        """

    @abstractmethod
    def saved(self) -> SavedFacts | None:
        """What is saved: `seed`, `saved_utc`, and the scale under its name; None if nothing is."""

    @abstractmethod
    def drop_saved(self) -> None:
        """Delete the saved state, if there is one."""

    def _saved_facts(self) -> SavedFacts:
        """Facts that are written beside a saved state."""
        state = self.schema()
        if state.kind == "foreign":
            refuse_foreign(self.spec.display, state.tables)
        if state.kind == "broken":
            raise UsageError(f"{self.spec.display}: a restore was cut short; restore again, or drop what is there")
        return {
            self.table_set.scale: state.scale,
            "seed": state.seed,
            "state": state.state,
            "saved_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def _whole(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


@contextmanager
def file_errors(display: str) -> Iterator[None]:
    """Turn what the file system says into errors that name the database and the file."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or "a file"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfSpace(f"{display}: no room is left for {where}; free some space") from error
        raise OpenFailed(f"{display}: {where}: {error.strerror or error}; check it and its permissions") from error


reads_answers(Database)

"""What goes on beside the transactions of a point, again and again: checkpoints, vacuum, base backups."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.base.errors import AssayError, IoFailed, NotSupported
from assay.base.log import event
from assay.targets.databases import ConnectionPlan, Database, Session
from assay.targets.databases.embedded.programs import shipped_programs
from assay.workloads.transactions.shapes import Background

CHECKPOINT_EVERY_S = 5.0
"""From the begin of a checkpoint to that of the next, unless it takes longer."""

END_S = 60.0
"""Longest wait at the end for background work that was told to stop."""

_DISCARDS_FROM = 15
"""The version from which a PostgreSQL can take a base backup without sending it anywhere."""


@dataclass
class Task:
    """One kind of work on one server.

    Attributes
    ----------
    turns
        Begin and end of what was finished, on the monotonic clock.
    began
        Begin of what is under way.
    """

    kind: str
    database: Database
    turns: list[tuple[float, float]] = field(default_factory=list)
    began: float | None = None
    session: Session | None = None
    process: subprocess.Popen[bytes] | None = None


class BackgroundWork:
    """All kinds of work of a point, each on a thread of its own; may be started and stopped once."""

    def __init__(self, databases: Sequence[Database], kinds: Sequence[str]) -> None:
        servers: dict[tuple[object, ...], Database] = {}
        for database in databases if kinds else ():
            refuse_unknown(database, kinds)
            place = database.connection()
            servers.setdefault((place.kind, place.socket or place.host, place.port), database)
        # A checkpoint and a backup are of a whole server, vacuum of one database.
        self._tasks = [
            Task(kind, database)
            for kind in kinds
            for database in (databases if kind == "vacuum" else list(servers.values()))
        ]
        self._kinds = tuple(kinds)
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self.error: AssayError | None = None
        """Why one kind of work did not go on; there is no point then."""

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._threads:
            return
        self._threads = [
            threading.Thread(target=self._go_on, args=(task,), name=f"assay-{task.kind}", daemon=True)
            for task in self._tasks
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop background work, and wait until it has ended."""
        self._ending.set()
        deadline = time.monotonic() + END_S
        for task in self._tasks:
            _end(task)
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.1))

    def report(self, from_s: float, to_s: float) -> list[Background]:
        """How often each kind was finished in a window, and how long it was at work.

        Parameters
        ----------
        from_s, to_s
            On the monotonic clock.

        Returns
        -------
        list of dict
            `kind`, `count`, `seconds`; of several servers or databases together.
        """
        found: list[Background] = []
        for kind in self._kinds:
            turns = [turn for task in self._tasks if task.kind == kind for turn in _turns(task, to_s)]
            within = [(max(began, from_s), min(ended, to_s)) for began, ended in turns]
            found.append(
                {
                    "kind": kind,
                    "count": sum(
                        1
                        for task in self._tasks
                        if task.kind == kind
                        for _, ended in task.turns
                        if from_s < ended <= to_s
                    ),
                    "seconds": sum(ended - began for began, ended in within if ended > began),
                }
            )
        return found

    def _go_on(self, task: Task) -> None:
        try:
            while not self._ending.is_set():
                task.began = began = time.monotonic()
                _DO[task.kind](task, self._ending)
                if self._ending.is_set():
                    break
                task.turns.append((began, time.monotonic()))
                task.began = None
                if task.kind == "checkpoint":
                    self._ending.wait(max(began + CHECKPOINT_EVERY_S - time.monotonic(), 0.0))
        except AssayError as error:
            # What was told to stop fails by that.
            if not self._ending.is_set():
                self.error = type(error)(f"{task.kind} beside the transactions failed: {error}")
        except Exception as error:
            self.error = IoFailed(f"{task.kind} beside the transactions failed: {type(error).__name__}: {error}")
        finally:
            if task.session is not None:
                task.session.close()


def refuse_unknown(database: Database, kinds: Sequence[str]) -> None:
    """Refuse work that a kind of server does not have.

    Raises
    ------
    NotSupported
        It does not; the line says why.
    """
    why = {
        "mariadb": "MariaDB and MySQL have no statements for checkpoints, vacuum or base backups",
        "mysql": "MariaDB and MySQL have no statements for checkpoints, vacuum or base backups",
        "mssql": "SQL Server tidies up by itself; checkpoint and backup may go on" if "vacuum" in kinds else "",
    }.get(database.dialect, "")
    if kinds and why:
        raise NotSupported(f"{database.spec.display}: background {', '.join(kinds)}: {why}")


def _turns(task: Task, to_s: float) -> list[tuple[float, float]]:
    return [*task.turns, *([(task.began, to_s)] if task.began is not None else [])]


def _end(task: Task) -> None:
    process, session = task.process, task.session
    if process is not None:
        process.terminate()
    if session is not None and task.began is not None:
        with contextlib.suppress(AssayError):
            session.cancel()


def _session(task: Task) -> Session:
    if task.session is None:
        task.session = task.database.new_session()
    return task.session


def _checkpoint(task: Task, ending: threading.Event) -> None:
    del ending
    _session(task).execute("CHECKPOINT")


def _vacuum(task: Task, ending: threading.Event) -> None:
    for table in task.database.table_set.names:
        if not ending.is_set():
            _session(task).execute(f"VACUUM {table}")


def _backup(task: Task, ending: threading.Event) -> None:
    if task.database.dialect == "mssql":
        # Not verified on SQL Server.
        name = task.database.spec.database.replace("]", "]]")
        _session(task).execute(f"BACKUP DATABASE [{name}] TO DISK = 'NUL' WITH COPY_ONLY")
        return
    place = task.database.connection()
    program = shipped_programs() / "pg_basebackup"
    version = int(_session(task).query("SELECT current_setting('server_version_num')::int")[0][0]) // 10000
    command = [str(program), "--checkpoint=fast", "--wal-method=none", "--no-password"]
    # Older servers can only send it: to standard output, which is thrown away.
    command += ["--target=blackhole"] if version >= _DISCARDS_FROM else ["--pgdata=-", "--format=tar"]
    try:
        task.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=_libpq_environment(place),
        )  # fmt: skip
    except OSError as error:
        raise NotSupported(f"{program} cannot be run: {error.strerror}; leave background backup out") from None
    event("child begun", program="pg_basebackup", pid=task.process.pid)
    if ending.is_set():
        task.process.terminate()
    _, said = task.process.communicate()
    event("child ended", program="pg_basebackup", pid=task.process.pid, code=task.process.returncode)
    if task.process.returncode and not ending.is_set():
        lines = said.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise IoFailed(f"{task.database.spec.display}: {lines[-1].removeprefix('pg_basebackup: ')}")


_DO = {"checkpoint": _checkpoint, "vacuum": _vacuum, "backup": _backup}


def _libpq_environment(place: ConnectionPlan) -> dict[str, str]:
    """How to connect, out of sight of process lists."""
    host = os.path.dirname(place.socket) if place.socket else place.host or ""
    environment = {
        "PGHOST": host,
        "PGPORT": str(place.port),
        "PGUSER": place.user,
        "PGSSLMODE": place.tls,
        "PGGSSENCMODE": "disable",
        "PGAPPNAME": "assay",
        "LC_ALL": "C",
    }
    if place.tls_ca is not None:
        environment["PGSSLROOTCERT"] = place.tls_ca
    if place.password is not None:
        environment["PGPASSWORD"] = place.password.reveal()
    return environment

"""A PostgreSQL that Assay initialises on the volume, a ledger as its load, and everything that must hold of it.

Clients move amounts between accounts and write each transfer down; each seventh is rolled back. After a crash every
acknowledged transfer must be there, none that was rolled back, and the balances must follow from the transfers.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.base.errors import IoFailed, NotSupported
from assay.insight.crash.own_user import server_user
from assay.insight.crash.stage import last_line
from assay.insight.crash.subject import CrashFinding
from assay.targets.databases.embedded.programs import choose_programs, environment

ACCOUNTS = 3000
BALANCE = 1000
ROLLS_BACK_EVERY = 7
CHECKPOINT_EVERY = 50
"""Transactions of the first client between two checkpoints."""
SERVER_BYTES = 16
"""Megabytes of shared buffers: the data fits, and a start is quick."""
START_S = 60.0

_TABLES = f"""
CREATE EXTENSION IF NOT EXISTS amcheck;
CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL, filler char(200) NOT NULL DEFAULT '');
CREATE TABLE transfers (client int, seq int, source int NOT NULL, target int NOT NULL, amount int NOT NULL,
    note text NOT NULL, PRIMARY KEY (client, seq));
CREATE INDEX transfers_source ON transfers (source);
INSERT INTO accounts SELECT id, {BALANCE} FROM generate_series(1, {ACCOUNTS}) id;
"""
_UNBALANCED = f"""
SELECT count(*) FROM accounts LEFT JOIN (
    SELECT id, sum(amount) AS moved FROM (
        SELECT source AS id, -amount AS amount FROM transfers UNION ALL SELECT target, amount FROM transfers
    ) each GROUP BY id
) sums USING (id) WHERE balance <> {BALANCE} + coalesce(moved, 0)
"""
_INDEXES = ("accounts_pkey", "transfers_pkey", "transfers_source")


class OwnPostgres:
    """A PostgreSQL of its own on the volume; its server never runs as root."""

    def __init__(
        self, *, settings: Sequence[str], transactions: int, clients: int, patience_s: float, work: Path
    ) -> None:
        """Find the server's programs and its user.

        Parameters
        ----------
        settings
            Settings of the server while the load runs, `name=value`.
        transactions, clients
            How many transactions all clients together try.
        patience_s
            How long a start after a crash may take.
        work
            Folder for the socket and the server's messages.
        """
        self._programs = choose_programs("crash")
        self._user = server_user("crash", self._programs.bin / "postgres")
        self._settings = tuple(settings)
        self._transactions, self._clients, self._patience_s = transactions, clients, patience_s
        self._sockets = work / "socket"
        self._sockets.mkdir()
        self._log = work / "server.log"
        if self._user.uid is not None:
            os.chown(self._sockets, self._user.uid, self._user.gid or 0)
        self.title = " ".join((f"PostgreSQL {self._programs.version}", *self._settings))

    @property
    def _is_18(self) -> bool:
        return int(self._programs.version.split(".")[0]) >= 18

    def prepare(self, place: Path) -> None:
        """Initialise the server and make the tables.

        Raises
        ------
        IoFailed
            The server's programs failed.
        """
        data = place / "data"
        data.mkdir(mode=0o700)
        if self._user.uid is not None:
            os.chown(data, self._user.uid, self._user.gid or 0)
        arguments = ["-D", str(data), "-U", "assay", "--auth=trust", "--no-sync", "--wal-segsize=1", "--locale=C", "-k"]
        done = subprocess.run(
            [str(self._programs.bin / "initdb"), *arguments, "--encoding=UTF8"],
            **self._user.as_options(),
            env=environment(),
            cwd="/",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise IoFailed(f"initdb: {last_line(done.stderr)}")
        with self._server(data, ["fsync=off"]), self._connected() as session:
            session.execute(_TABLES)
            # With hint bits set, a page's first change after a checkpoint is the load's, without a full page for hints.
            session.execute("VACUUM (FREEZE) accounts")
            session.execute("CHECKPOINT")

    def load(self, place: Path, told: Callable[[str], None]) -> None:
        """Run the clients to their end.

        Raises
        ------
        IoFailed
            The server does not start, or a client failed.
        """
        with self._server(place / "data", self._settings):
            failures: list[Exception] = []
            lock = threading.Lock()

            def tell(text: str) -> None:
                with lock:
                    told(text)

            clients = [
                threading.Thread(target=self._client, args=(number, tell, failures)) for number in range(self._clients)
            ]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        if failures:
            raise IoFailed(f"the load: {type(failures[0]).__name__}: {last_line(str(failures[0]))}")

    def _client(self, number: int, tell: Callable[[str], None], failures: list[Exception]) -> None:
        chance = random.Random(number)
        try:
            with self._connected() as session:
                for sequence in range(1, self._transactions // self._clients + 1):
                    self._transfer(session, number, sequence, chance, tell)
                    if number == 0 and sequence % CHECKPOINT_EVERY == 0:
                        session.execute("CHECKPOINT")
        except Exception as error:
            failures.append(error)

    def _transfer(
        self, session: Any, client: int, sequence: int, chance: random.Random, tell: Callable[[str], None]
    ) -> None:
        source, target = chance.sample(range(1, ACCOUNTS + 1), 2)
        amount, commits = chance.randint(1, 100), sequence % ROLLS_BACK_EVERY != 0
        session.execute("BEGIN")
        # In the order of their numbers, so that no two clients wait for each other.
        for account, change in sorted(((source, -amount), (target, amount))):
            session.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))
        session.execute(
            "INSERT INTO transfers VALUES (%s, %s, %s, %s, %s, %s)",
            (client, sequence, source, target, amount, "x" * chance.randint(0, 400)),
        )
        session.execute("COMMIT" if commits else "ROLLBACK")
        tell(f"{'+' if commits else '-'}{client} {sequence}")

    def check(self, place: Path, told: Sequence[str]) -> CrashFinding | None:
        """Start the server, which recovers, and ask for everything that must hold."""
        import psycopg

        data = place / "data"
        (data / "postmaster.pid").unlink(missing_ok=True)
        kept = [setting for setting in self._settings if setting.startswith("full_page_writes")]
        try:
            # The state is cut already: nothing is gained by syncing it.
            with self._server(data, ["fsync=off", "autovacuum=off", *kept]), self._connected() as session:
                return self._wrong(session, told)
        except IoFailed as error:
            return CrashFinding(kind="start", message=str(error))
        except psycopg.Error as error:
            message = last_line(str(error).partition("\n")[0])
            return CrashFinding(kind="corrupt", message=self._last_severe() or message)

    def _wrong(self, session: Any, told: Sequence[str]) -> CrashFinding | None:
        there = {f"{client} {seq}" for client, seq in session.execute("SELECT client, seq FROM transfers")}
        lost = [line[1:] for line in told if line[0] == "+" and line[1:] not in there]
        if lost:
            client, number = lost[0].split()
            of_all = sum(line[0] == "+" for line in told)
            message = (
                f"{len(lost)} of {of_all} acknowledged transactions: the first is number {number} of client {client}"
            )
            return CrashFinding(kind="lost", message=message)
        back = [one for one in there if int(one.split()[1]) % ROLLS_BACK_EVERY == 0]
        if back:
            return CrashFinding(kind="resurrected", message=f"transaction {back[0]} was rolled back and is there")
        count, total = session.execute("SELECT count(*), sum(balance) FROM accounts").fetchone()
        if (count, total) != (ACCOUNTS, ACCOUNTS * BALANCE):
            return CrashFinding(kind="inconsistent", message=f"{count} accounts hold {total} of {ACCOUNTS * BALANCE}")
        unbalanced = session.execute(_UNBALANCED).fetchone()[0]
        if unbalanced:
            return CrashFinding(kind="inconsistent", message=f"{unbalanced} balances do not follow from the transfers")
        for index in _INDEXES:
            session.execute("SELECT bt_index_check(%s::regclass, true)", (index,))
        for table in ("accounts", "transfers"):
            damaged = session.execute("SELECT msg FROM verify_heapam(%s::regclass) LIMIT 1", (table,)).fetchone()
            if damaged:
                return CrashFinding(kind="corrupt", message=f"{table}: {damaged[0]}")
        return None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        import psycopg

        with psycopg.connect(host=str(self._sockets), user="assay", dbname="postgres", autocommit=True) as session:
            yield session

    @contextlib.contextmanager
    def _server(self, data: Path, settings: Sequence[str]) -> Iterator[None]:
        common = [
            f"unix_socket_directories={self._sockets}",
            "listen_addresses=",
            f"shared_buffers={SERVER_BYTES}MB",
            "max_connections=20",
            "checkpoint_timeout=1h",
            "max_wal_size=64MB",
            "min_wal_size=2MB",
            "max_logical_replication_workers=0",
            "timezone=UTC",
            "log_timezone=UTC",
            *(["io_method=sync"] if self._is_18 else []),
        ]
        arguments = [word for setting in (*common, *settings) for word in ("-c", setting)]
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [str(self._programs.bin / "postgres"), "-D", str(data), *arguments],
                **self._user.as_options(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                cwd="/",
            )
        try:
            self._wait_until_ready(process, data)
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait_until_ready(self, process: subprocess.Popen[bytes], data: Path) -> None:
        deadline = time.monotonic() + max(self._patience_s, START_S)
        while process.poll() is None:
            with contextlib.suppress(OSError):
                lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
                # Line 8 is the state (src/include/utils/pidfile.h).
                if len(lines) >= 8 and lines[7].strip() == "ready":
                    return
            if time.monotonic() > deadline:
                raise IoFailed("PostgreSQL does not finish its recovery")
            time.sleep(0.004)
        raise IoFailed(self._last_severe() or "PostgreSQL does not start")

    def _last_severe(self) -> str:
        """The last message of the server that ended it."""
        lines = self._log.read_text(errors="replace").splitlines()[-200:]
        severe = [line for line in lines if re.search(r"\b(PANIC|FATAL|ERROR):", line)]
        words = [line for line in severe if "PANIC" in line] or severe
        return re.sub(r"^.*?(?=PANIC|FATAL|ERROR)", "", words[-1])[:500] if words else ""

    def close(self) -> None:
        """Remove the copy of the programs, if there is one."""
        if self._programs.copy is not None:
            self._programs.copy.remove()


def refuse_missing() -> None:
    """Refuse at once where PostgreSQL or its driver is missing.

    Raises
    ------
    NotSupported
        Something is not installed.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise NotSupported("crash: psycopg is not installed; pip install 'assay-storage[databases]'") from None

"""A ledger as the load of a server: clients move amounts between accounts and write each transfer down.

Each seventh transaction is rolled back. After a crash every acknowledged transfer must be there, none that was rolled
back, and the balances must follow from the transfers.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import closing

from assay.base.errors import IoFailed
from assay.insight.crash.own_server import OwnServer
from assay.insight.crash.stage import last_line
from assay.insight.crash.subject import CrashFinding
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.table_set import LoadedSize, TableSet

ACCOUNTS = 3000
BALANCE = 1000
INSERTED_TOGETHER = 500
ROLLS_BACK_EVERY = 7
CHECKPOINT_EVERY = 50
"""Transactions of the first client between two checkpoints."""

TABLES = TableSet(
    rows="",
    names=("accounts", "transfers"),
    scale="accounts",
    size=LoadedSize(words=str, option="", things="accounts", bytes_each=512, log_bytes_each=512),
    unit="id",
    keys={},
    statements=lambda _dialect, _file: [],
    counters={},
)

_MADE = (
    "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL, filler char(200) NOT NULL DEFAULT '')",
    "CREATE TABLE transfers (client int, seq int, source int NOT NULL, target int NOT NULL, amount int NOT NULL,"
    " note text NOT NULL, PRIMARY KEY (client, seq))",
    "CREATE INDEX transfers_source ON transfers (source)",
)
_UNBALANCED = f"""
SELECT count(*) FROM accounts LEFT JOIN (
    SELECT id, sum(amount) AS moved FROM (
        SELECT source AS id, -amount AS amount FROM transfers UNION ALL SELECT target, amount FROM transfers
    ) moves GROUP BY id
) sums USING (id) WHERE balance <> {BALANCE} + coalesce(moved, 0)
"""


class Ledger:
    """The tables, the clients and the questions."""

    title = ""
    tables = TABLES

    def __init__(self, *, transactions: int, clients: int) -> None:
        """Know the size.

        Parameters
        ----------
        transactions
            How many all clients together try.
        clients
            How many work at once.
        """
        self._transactions, self._clients = transactions, clients

    def prepare(self, server: OwnServer) -> None:
        """Make the tables."""
        database = server.database(TABLES)
        with closing(database.new_session()) as session:
            for statement in _MADE:
                session.execute(statement)
            for first in range(1, ACCOUNTS + 1, INSERTED_TOGETHER):
                rows = ", ".join(f"({number}, {BALANCE})" for number in range(first, first + INSERTED_TOGETHER))
                session.execute(f"INSERT INTO accounts (id, balance) VALUES {rows}")
            if database.dialect == "postgresql":
                # With hint bits set, a page's first change after a checkpoint is the load's, without a full page for
                # hints.
                session.execute("VACUUM (FREEZE) accounts")
            server.checkpoint(session)

    def run(self, server: OwnServer, told: Callable[[str], None]) -> None:
        """Run the clients to their end.

        Raises
        ------
        IoFailed
            A client failed.
        """
        failures: list[Exception] = []
        lock = threading.Lock()

        def tell(text: str) -> None:
            with lock:
                told(text)

        clients = [
            threading.Thread(target=self._client, args=(number, server, tell, failures))
            for number in range(self._clients)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        if failures:
            raise IoFailed(f"the load: {type(failures[0]).__name__}: {last_line(str(failures[0]))}")

    def _client(self, number: int, server: OwnServer, tell: Callable[[str], None], failures: list[Exception]) -> None:
        chance = random.Random(number)
        try:
            with closing(server.database(TABLES).new_session()) as session:
                for sequence in range(1, self._transactions // self._clients + 1):
                    _transfer(session, number, sequence, chance, tell)
                    if number == 0 and sequence % CHECKPOINT_EVERY == 0:
                        server.checkpoint(session)
        except Exception as error:
            failures.append(error)

    def commits(self, told: Sequence[str]) -> int:
        """Transfers; those that were rolled back are told of as well."""
        return sum(line[0] == "+" for line in told)

    def wrong(self, server: OwnServer, session: Session, told: Sequence[str]) -> CrashFinding | None:
        """What of the ledger does not hold."""
        del server
        there = {f"{client} {seq}" for client, seq in session.query("SELECT client, seq FROM transfers")}
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
        ((count, total),) = session.query("SELECT count(*), sum(balance) FROM accounts")
        if (count, total) != (ACCOUNTS, ACCOUNTS * BALANCE):
            return CrashFinding(kind="inconsistent", message=f"{count} accounts hold {total} of {ACCOUNTS * BALANCE}")
        ((unbalanced,),) = session.query(_UNBALANCED)
        if unbalanced:
            return CrashFinding(kind="inconsistent", message=f"{unbalanced} balances do not follow from the transfers")
        return None


def _transfer(session: Session, client: int, sequence: int, chance: random.Random, tell: Callable[[str], None]) -> None:
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

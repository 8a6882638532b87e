"""Transactions of a workload as the load of a server: its own users, tables and consistency conditions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from assay.base.progress import Silent
from assay.insight.crash.own_server import OwnServer
from assay.insight.crash.subject import CrashFinding
from assay.targets.databases import Database
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.loading import set_state
from assay.workloads.databases.opening import shape_of
from assay.workloads.registry import workload_named
from assay.workloads.transactions.check import check_conditions
from assay.workloads.transactions.unmeasured import UnmeasuredUsers
from assay.workloads.transactions.workload import TransactionsWorkload

LOOK_S = 0.002
"""Time between two looks for acknowledgements: each is marked in the log at most that much later."""
DAY_NS = 86_400 * 10**9
_BEGAN, _KEY, _COMMITS = "began", "acknowledged", "committed"


class WorkloadLoad:
    """A workload of transactions on one database."""

    def __init__(self, plan: str, conditions: Sequence[str], count: str, *, transactions: int, clients: int) -> None:
        """Read the plan.

        Parameters
        ----------
        plan
            A plan of transactions, JSON.
        conditions
            Queries of the user's that must return no row.
        count
            Query of the user's that counts commits; empty: none.
        transactions
            Commits after which the load ends.
        clients
            Users.
        """
        data = json.loads(plan)
        workload = workload_named(data["kind"])
        assert isinstance(workload, TransactionsWorkload), "the command refuses others"
        self._workload = workload
        self._plan = workload.load_plan(data | {"users": clients}, source="--load")
        self._application = workload.application_of(self._plan)
        names = list(self._application.transactions)
        self.title = " and ".join(names) if self._application.counts_all else self._application.name
        self._conditions, self._count = tuple(conditions), count
        self._transactions = transactions
        self.tables = self._application.tables

    def prepare(self, server: OwnServer) -> None:
        """Make the tables."""
        with closing(self._opened(server)) as database:
            target = self._target(database)
            self._workload.make_tables(target, self._plan, display=Silent(), interrupt=threading.Event())
            if database.schema().kind == "complete":
                set_state(database, "ran")
            with closing(database.new_session()) as session:
                server.checkpoint(session)

    def _opened(self, server: OwnServer) -> Database:
        database = server.database(self.tables)
        database.open()
        return database

    def _target(self, database: Database) -> DatabaseTarget:
        scale = self._plan.shares(1)[0]
        shape = {database.name: dict(shape_of(database, self._plan))}
        return DatabaseTarget(databases=[database], scale={database.name: scale}, shape=shape)

    def run(self, server: OwnServer, told: Callable[[str], None]) -> None:
        """Run users until enough transactions have committed.

        Raises
        ------
        AssayError
            The load failed.
        """
        with closing(self._opened(server)) as database:
            told(f"{_BEGAN} {time.time_ns()} {self._counted(database)}")
            users = UnmeasuredUsers(self._target(database), self._plan, self._application)
            seen = 0
            while users.committed < self._transactions:
                users.look()
                seen = _tell_new(users, seen, told)
                time.sleep(LOOK_S)
            users.finish()
            _tell_new(users, seen, told)

    def _counted(self, database: Database) -> int:
        return int(database.query(self._count)[0][0]) if self._count else 0

    def commits(self, told: Sequence[str]) -> int:
        """Keys that were told, or the number in the last line: many commits may be told of in one."""
        numbers = [int(line.split()[1]) for line in told if line.startswith(_COMMITS)]
        return numbers[-1] if numbers else sum(line.startswith(_KEY) for line in told)

    def wrong(self, server: OwnServer, session: Session, told: Sequence[str]) -> CrashFinding | None:
        """What is lost, which consistency conditions are broken, and which queries of the user's return a row."""
        database = server.database(self.tables)
        try:
            return (
                self._lost(database, told)
                or self._too_few(database, told)
                or self._broken(database)
                or self._unwanted(session)
            )
        finally:
            database.close()

    def _lost(self, database: Database, told: Sequence[str]) -> CrashFinding | None:
        find = self._application.find_acknowledged
        rows = [[int(word) for word in line.split()[1:]] for line in told if line.startswith(_KEY)]
        if find is None or not rows:
            return None
        began_ns = int(told[0].split()[1])
        missing = find(database, rows, began_ns, began_ns + DAY_NS)
        if not missing:
            return None
        first = ", ".join(map(str, missing[0][1:-1]))
        words = f"{len(missing)} of {len(rows)} acknowledged {self._application.first_plural}"
        return CrashFinding(kind="lost", message=f"{words}; the first by {self._application.acknowledged_key}: {first}")

    def _too_few(self, database: Database, told: Sequence[str]) -> CrashFinding | None:
        commits = [int(line.split()[1]) for line in told if line.startswith(_COMMITS)]
        if not self._count or not commits:
            return None
        there = self._counted(database) - int(told[0].split()[2])
        if there >= commits[-1]:
            return None
        message = f"{commits[-1] - there} of {commits[-1]} acknowledged transactions: {self._count} counts {there} more"
        return CrashFinding(kind="lost", message=message)

    def _broken(self, database: Database) -> CrashFinding | None:
        if not self._application.conditions_count:
            return None
        found = check_conditions([database], self._application, display=Silent(), interrupt=threading.Event())
        for one in found:
            if one["violations"]:
                words = f"condition {one['id']}, {one['title']}: {one['violations']} violations, as {one['example']}"
                return CrashFinding(kind="inconsistent", message=words)
        return None

    def _unwanted(self, session: Session) -> CrashFinding | None:
        for query in self._conditions:
            rows = session.query(query)
            if rows:
                return CrashFinding(kind="inconsistent", message=f"{query}: returns {len(rows)} rows, as {rows[0]}")
        return None


def _tell_new(users: UnmeasuredUsers, seen: int, told: Callable[[str], None]) -> int:
    """Tell the acknowledgements from a number on; how many there are."""
    if not users.keeps:
        if users.committed > seen:
            told(f"{_COMMITS} {users.committed}")
        return users.committed
    rows = users.acknowledged()
    for row in rows[seen:]:
        told(f"{_KEY} {' '.join(map(str, row))}")
    return len(rows)

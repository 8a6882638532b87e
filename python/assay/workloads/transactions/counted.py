"""What the servers of databases count while transactions run, asked at both ends of the window."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from assay.base.errors import AssayError
from assay.targets.answering import answer_within
from assay.targets.databases.common.target import DatabaseTarget
from assay.telemetry.collectors import ServerActivity, activity, hottest
from assay.workloads.transactions.shapes import HotTable, Statement

ANSWER_S = 10.0
"""How long a server may take to tell its counters."""

T = TypeVar("T")


class ServersCounted:
    """Counters of all servers, and what their statements and tables cost, each time they were looked at.

    Attributes
    ----------
    looked_at
        Each look, on the monotonic clock in seconds.
    """

    def __init__(self, target: DatabaseTarget) -> None:
        self._target = target
        self.looked_at: list[float] = []
        self._looks: list[tuple[float, dict[str, float]] | None] = []
        self._active: list[ServerActivity] = []

    def look(self) -> Sequence[str]:
        """Ask the servers what they count, and what their statements and tables cost.

        Returns
        -------
        sequence of str
            What a reader must know of the answers.

        Raises
        ------
        NotAnswering
            A server is there and says nothing.
        """
        self.looked_at.append(time.monotonic())
        self._looks.append(self.now())
        found = self._asked(lambda: activity(self._target.databases))
        self._active.append(found)
        return found.notices

    def now(self) -> tuple[float, dict[str, float]] | None:
        """Counters of all servers added up, with the time; None while one is away.

        Raises
        ------
        NotAnswering
            A server is there and says nothing.
        """
        return self._asked(self._ask)

    def grown(self, name: str) -> tuple[float, float] | None:
        """Growth of a counter between the first look and the last, and the seconds between their readings."""
        if len(self._looks) < 2 or self._looks[0] is None or self._looks[-1] is None:
            return None
        (began, before), (ended, after) = self._looks[0], self._looks[-1]
        growth = after.get(name, math.nan) - before.get(name, math.nan)
        # Counters begin again when the server was restarted.
        return (growth, ended - began) if growth >= 0 and ended > began else None

    def hottest(self) -> tuple[list[Statement], list[HotTable]]:
        """Statements and tables that cost most between the first look and the last."""
        if len(self._active) < 2:
            return [], []
        statements, tables = hottest(self._active[0], self._active[-1])
        return cast(list[Statement], statements), cast(list[HotTable], tables)

    def _asked(self, ask: Callable[[], T]) -> T:
        names = ", ".join(database.spec.display for database in self._target.databases)
        return answer_within(ANSWER_S, ask, what=names, advice="the server stopped answering; check it and its log")

    def _ask(self) -> tuple[float, dict[str, float]] | None:
        total: dict[str, float] = {}
        servers: set[tuple[object, ...]] = set()
        try:
            for database in self._target.databases:
                for name, count in database.counters().items():
                    # A server counts the transactions of all its databases.
                    if name in database.table_set.counters or database.server not in servers:
                        total[name] = total.get(name, 0.0) + count
                servers.add(database.server)
        except AssayError:
            return None
        return time.monotonic(), total

"""Power cuts under transactions: which were acknowledged to users before, and are not there any more afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.targets.arrays.live.watch import PowerCut
from assay.targets.databases import Database
from assay.workloads.transactions.shapes import CutOfPower, LostTransaction, Oltp

Acknowledged = Sequence[int]
"""Database, what names the transaction there, and when it was acknowledged, nanoseconds since the start, at the end."""

FindAcknowledged = Callable[[Database, Sequence[Acknowledged], int, int], list[Acknowledged]]
"""Finds transactions acknowledged between two times (UTC) that a database lacks."""

EXAMPLES_MAX = 20


class CutPower:
    """One power cut, and what users had been told of by then.

    Parameters
    ----------
    acknowledged
        As the core keeps them.
    started_ns
        When the load began, UTC.
    """

    def __init__(self, cut: PowerCut, acknowledged: Sequence[Acknowledged], started_ns: int) -> None:
        self._cut, self._acknowledged, self._started_ns = cut, acknowledged, started_ns
        self.missing: list[LostTransaction] | None = None

    @property
    def is_back(self) -> bool:
        """Whether the power is back and the databases have recovered."""
        return self._cut.back_utc_ns is not None

    def look_for(self, databases: Sequence[Database], find: FindAcknowledged | None) -> None:
        """Ask the databases for all that was acknowledged."""
        self.missing = []
        for number, database in enumerate(databases if find is not None else ()):
            own = [one for one in self._acknowledged if one[0] == number]
            for lost in find(database, own, self._started_ns, self._cut.at_utc_ns) if own and find is not None else ():
                self.missing.append(
                    {
                        "database": database.name,
                        "key": list(lost[1:-1]),
                        "acknowledged_utc_ns": self._started_ns + lost[-1],
                    }
                )

    def told(self) -> CutOfPower:
        """The cut as the point has it (docs/oltp-results.md)."""
        missing = sorted(self.missing or [], key=lambda one: one["acknowledged_utc_ns"] or 0)
        return {
            "at_utc_ns": self._cut.at_utc_ns,
            "back_utc_ns": self._cut.back_utc_ns,
            "acknowledged": len(self._acknowledged),
            "missing": len(missing) if self.missing is not None else None,
            "examples": missing[:EXAMPLES_MAX],
            "error": str(self._cut.error) if self._cut.error is not None else None,
        }


def missing_total(told: Oltp | None) -> int:
    """Acknowledged transactions that were lost, by what a run told."""
    return sum(cut["missing"] or 0 for cut in (told.get("power_cuts") if told else None) or [])

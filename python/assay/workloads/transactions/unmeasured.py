"""Users at work on databases whose transactions are counted and not measured."""

from __future__ import annotations

import json

from assay import _core
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.loading import core_error
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.core_plan import core_plan
from assay.workloads.transactions.plan import TransactionsPlan
from assay.workloads.transactions.power import Acknowledged
from assay.workloads.transactions.reports import OltpReport

INTERVAL_S = 0.02
"""Length of a tick: commits are counted by ticks."""
END_S = 30.0


class UnmeasuredUsers:
    """Users at work, from now on until `finish`."""

    def __init__(self, target: DatabaseTarget, plan: TransactionsPlan, application: Application) -> None:
        """Let them begin."""
        self.keeps = application.find_acknowledged is not None
        self.committed = 0
        text = core_plan(target, plan, application, seed=plan.seed, interval_s=INTERVAL_S, keeps_orders=self.keeps)
        self._core = _core.OltpRun(text)

    def look(self) -> None:
        """Count the commits of the ticks that are complete.

        Raises
        ------
        AssayError
            The users cannot go on.
        """
        self._count(self._core.poll())

    def finish(self) -> None:
        """Stop, wait for what is under way, and count the rest.

        Raises
        ------
        AssayError
            The users could not go on.
        """
        self._count(self._core.finish(END_S))

    def _count(self, text: str) -> None:
        report: OltpReport = json.loads(text)
        if report["state"] == "failed":
            assert report["error"] is not None, "a run that failed says why"
            raise core_error(report["error"])
        self.committed += sum(tick["committed"] for tick in report["ticks"])

    def acknowledged(self) -> list[Acknowledged]:
        """Transactions that users were told of, with what names each one; empty where the kind keeps none."""
        return list(json.loads(self._core.acknowledged()) or [])

"""The compiled core being followed: its ticks, its telemetry, and why it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from assay import _core
from assay.base.errors import AssayError, Interrupted, IoFailed, NotAnswering
from assay.base.progress import ProgressStep
from assay.document.text import percent
from assay.measure.recent import RecentPercentiles
from assay.telemetry.columns import SeriesColumns
from assay.telemetry.ticks import DIRECTIONS, add_ticks
from assay.workloads.job import PartContext
from assay.workloads.mailbox.core_report import MailboxReport, mailbox_report
from assay.workloads.mailbox.result import ACTIVITIES, stream_name
from assay.workloads.modelled import ModelRun, add_telemetry

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreTick
    from assay.record.rows import Rows

LOOK_S = 0.05
TICKS_KEPT = 400_000

ROLES = {"database": "data"}
"""Roles of streams that are not called as they are."""

PHASES = {
    "prepare": ("filling the databases", "pages"),
    "warm": ("warming the cache", "pages"),
    "backup": ("backup", "pages"),
    "make-log": ("making log", "log files"),
    "recovery": ("replaying log", "log files"),
    "flush": ("writing what is in memory", "pages"),
    "verify": ("verifying every page", "pages"),
}
"""Phases beside the load: what they do, and what their progress counts."""


class Running:
    """A run of the compiled core, on files and devices or on a modelled array."""

    def __init__(
        self, plan_json: str, context: PartContext, names: list[str], interval_s: float, model: ModelRun | None
    ) -> None:
        self.context, self.names, self.interval_s, self.model = context, names, interval_s, model
        if model is None:
            self.core = _core.MailboxRun(plan_json)
        else:
            self.core = _core.MailboxRun(plan_json, model.modelled, model.configuration.starts_warm)
        self.started_ns = time.time_ns() if model is None else model.epoch_ns
        context.under_load.begin()
        self.clock: Literal["wall", "virtual"] = "wall" if model is None else "virtual"
        self.latest: MailboxReport | None = None
        self.ticks: list[CoreTick] = []
        self.columns = SeriesColumns()
        self.told_phase: str | None = ""
        self.percentiles = RecentPercentiles({side: side for side in DIRECTIONS}, activity=0)
        self.has_ended = False

    @property
    def report(self) -> MailboxReport:
        """The latest report; there is one from the first look on."""
        assert self.latest is not None, "nobody looked yet"
        return self.latest

    @property
    def complete_ticks(self) -> int:
        """Ticks that are over."""
        return self.latest["complete_ticks"] if self.latest is not None else 0

    def look(self) -> MailboxReport:
        """Take new ticks; on a model one tick passes before.

        Raises
        ------
        Interrupted, IoFailed, NotAnswering
            The run cannot go on, or shall not.
        """
        if self.model is None:
            time.sleep(min(self.interval_s, LOOK_S) / 2)
        report = mailbox_report(self.core.poll())
        self.latest = report
        self._take(report)
        self._show_phase(report)
        self._judge(report)
        return report

    def _take(self, report: MailboxReport) -> None:
        self.ticks += report["ticks"]
        if len(self.ticks) > TICKS_KEPT:
            del self.ticks[: TICKS_KEPT // 2]
        if self.context.keeps_series:
            entities = [self._entity(tick["volume"]) for tick in report["ticks"]]
            add_ticks(self.columns, report["ticks"], entities, self.started_ns, self.interval_s, clock=self.clock)
        add_telemetry(self.columns, report, self.started_ns)
        if self.model is None:
            self.context.recorder.drain(self.columns)
        else:
            self.model.elapsed_ns = report["now_ns"]

    def _entity(self, stream: int) -> tuple[str, str]:
        database, place = divmod(stream, len(ACTIVITIES))
        activity = ACTIVITIES[place]
        return stream_name(self.names[database], activity), ROLES.get(activity, activity)

    def take_series(self) -> list[Rows]:
        """Rows since the last call."""
        return self.columns.take()

    def _show_phase(self, report: MailboxReport) -> None:
        phase = report["phase"]
        if phase in PHASES and report["of"]:
            text, things = PHASES[phase]
            share = percent(min(report["done"] / report["of"], 1.0))
            self.context.display.point(
                ProgressStep(f"{text}: {report['done']:,} of {report['of']:,} {things} ({share})")
            )
        if phase in PHASES and phase != self.told_phase:
            self.context.display.phase(PHASES[phase][0])
        self.told_phase = phase

    def _judge(self, report: MailboxReport) -> None:
        names = ", ".join(self.names)
        if report["state"] == "not-answering":
            self.has_ended = True
            raise NotAnswering(f"{names}: stopped answering: {report['detail']}")
        if report["state"] == "failed":
            self.has_ended = True
            raise IoFailed(str(report["detail"]))
        self.has_ended = report["state"] == "ended"
        if self.context.interrupt.is_set():
            raise Interrupted("interrupted; the load that was running is not kept, and pages were not verified")

    def until_phase(self, *phases: str) -> MailboxReport:
        """Follow the run until one of some phases begins, or it ends."""
        while True:
            report = self.look()
            if report["phase"] in phases or self.has_ended:
                return report

    def until_end(self) -> MailboxReport:
        """Follow the run to its end."""
        while not self.has_ended:
            self.look()
        return self.report

    def abandon(self, timeout_s: float) -> None:
        """End early, once running I/O has completed."""
        if self.has_ended:
            return
        self.core.abort()
        if self.model is not None:
            # Nothing that a model has under way is anywhere else.
            self.has_ended = True
            return
        deadline = time.monotonic() + timeout_s
        try:
            while not self.has_ended and time.monotonic() < deadline:
                state = mailbox_report(self.core.poll())["state"]
                self.has_ended = state != "running"
                time.sleep(LOOK_S)
        except AssayError:
            self.has_ended = True

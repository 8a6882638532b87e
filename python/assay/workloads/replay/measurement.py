"""One replay being measured: a point of I/O whose I/Os are those of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from assay.measure import judge
from assay.measure.core_reports import CoreFigures, SessionReport
from assay.targets.files.session import AnySession
from assay.telemetry.ticks import tick_length_of_s
from assay.workloads.io.measurement import IoAtWork, IoFigures, Measurement
from assay.workloads.io.plan import IoTiming
from assay.workloads.io.session import begin_session
from assay.workloads.replay.places import fit_words
from assay.workloads.replay.shapes import RecordedSide, ReplayDone, TraceReplayed

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreLateness
    from assay.record.shapes.point import Offered, Point
    from assay.workloads.replay.overlay import Overlay
    from assay.workloads.replay.reader import TraceReader
    from assay.workloads.replay.survey import SideSeen, Survey
    from assay.workloads.steps import Ask

UNTIMED_FACTOR, UNTIMED_MIN_S = 20.0, 60.0
"""A replay without times ends by itself; it is ended after this many times what the trace lasted, but no sooner."""


def replay_timing(overlay: Overlay) -> tuple[IoTiming, float]:
    """Timing of a replay, and a length of ticks that divides it whole: rates are those of its time and no other."""
    timing, seconds = overlay.plan.timing, overlay.seconds
    count = max(round(seconds / tick_length_of_s(seconds)), 1)
    interval_s = max(seconds / count, 1e-3)
    warmup_s = min(round(timing.warmup_s / interval_s), count - 1) * interval_s
    last_s = seconds if overlay.plan.pace == "timed" else max(UNTIMED_FACTOR * seconds, UNTIMED_MIN_S)
    return (
        IoTiming(warmup_s=warmup_s, duration_s=max(last_s - warmup_s, interval_s), io_timeout_s=timing.io_timeout_s),
        interval_s,
    )


class ReplayMeasurement(Measurement):
    """One replay being measured."""

    awaits_rest = False

    def __init__(self, opened: IoAtWork, ask: Ask, repeat: int, overlay: Overlay) -> None:
        timing, interval_s = replay_timing(overlay)
        super().__init__(opened, ask, repeat, timing=timing, interval_s=interval_s)
        self.overlay = overlay
        self.readers: list[TraceReader] = []

    def run(self) -> IoFigures:
        """Replay to the end; returns the measured part of the point.

        Raises
        ------
        UsageError
            A trace is damaged.
        """
        try:
            return super().run()
        finally:
            for reader in self.readers:
                reader.end()
            for reader in self.readers:
                if reader.error is not None:
                    raise reader.error

    def _begun(self) -> AnySession:
        opened = self.opened
        self.readers = self.overlay.readers()
        for reader in self.readers:
            reader.start()
        for reader in self.readers:
            reader.await_first()
        return begin_session(
            self.overlay.activities(),
            opened.volumes,
            writes=self.overlay.writes,
            interval_s=self.interval_s,
            io_timeout_s=self.timing.io_timeout_s,
            seed=self.seed,
            backend=opened.plan.backend,
            model=opened.model,
            traces=[reader.feeds for reader in self.readers],
        )

    def _figures(self, session: AnySession, report: SessionReport | None) -> IoFigures:
        # A trace is what it is: nothing of it needs to be steady.
        self.window.steady = None
        figures = super()._figures(session, report)
        lateness: CoreLateness | None = figures.pop("lateness", None)
        offered, total = cast("Point", figures)["offered"], figures["total"]
        iops = total["iops"] if total else 0.0
        begun = times = None
        if offered is not None:
            # What was due and had not begun keeps a target from holding the speed.
            begun = min(iops / offered["rate"], 1.0) if offered["rate"] else None
            times = None if begun is None else self.overlay.speed * begun
        elif total:
            times = iops / self.overlay.recorded_iops
        told: ReplayDone = {
            "pace": self.overlay.plan.pace,
            "speed": self.overlay.speed,
            "times_recorded": times,
            "fit": self.overlay.plan.fit,
            "fit_note": fit_words(self.overlay.seats) or None,
            "window": self.overlay.plan.window or None,
            "traces": [self._trace(number) for number in range(len(self.overlay.found))],
            "recorded_iops": self.overlay.recorded_iops,
            "begun_share": begun,
            "lateness": {**lateness} if lateness is not None else None,
            "is_replay": None if lateness is None else not figures["generator"]["saturated"],
        }
        return cast("IoFigures", {**figures, "replay": told})

    def _trace(self, number: int) -> TraceReplayed:
        found, asked = self.overlay.found[number], self.overlay.plan.traces[number]
        return {
            "name": self.overlay.names[number],
            "source": found.trace.head.source,
            "at_s": asked.at_s,
            "begin_ns": found.begin_ns,
            "seconds": found.seconds,
            "ios": found.ios,
            "discards": found.discards,
            "read": _side(found, found.sides["read"]),
            "write": _side(found, found.sides["write"]),
        }

    def _offered(self, report: SessionReport | None, figures: CoreFigures, outside: int) -> Offered | None:
        """Whether the target kept up with what was due; a replay without times asks as fast as it may."""
        if self.overlay.plan.pace != "timed":
            return None
        detail = report["detail"] if report is not None else None
        left = detail if isinstance(detail, dict) else None
        unfinished, seconds = left["unfinished"] if left else 0, self.window.seconds
        done = figures["total"]["iops"] if figures["total"] else 0.0
        return judge.offered(
            done + (unfinished + outside) / seconds,
            done,
            seconds,
            unfinished=unfinished,
            oldest_ns=left["oldest_unfinished_ns"] if left else 0,
        )


def _side(found: Survey, side: SideSeen) -> RecordedSide:
    return {
        "count": side.count,
        "bytes": side.bytes,
        "iops": side.count / found.seconds,
        "latency_ns": side.latency_ns,
    }

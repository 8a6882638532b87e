"""A run while it goes on: its display, and the file by which others watch it.

Every kind of workload tells its display what is under way; this stands before the display, adds how it went so far and
what the host does, and passes it on. It never disturbs the run: it does little, seldom, and fails into silence.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.base.progress import Display, Gauge, HostLoad, Moment, NearestLimit, OnCurve, Shown, Status
from assay.document.text import load_size
from assay.record import live as live_file
from assay.record.figures import value_of
from assay.record.folder import Folder
from assay.record.judgement import WORDS
from assay.record.limits import Limit, show_value
from assay.run.rows import PointRow, point_row
from assay.workloads.registry import figures_of

if TYPE_CHECKING:
    from assay.record.run_folder import RunFolder
    from assay.telemetry.recorder import Recorder

EVERY_S = 0.5
"""The display is told, and the file written, no more often."""
SAMPLE_S = 1.0
"""Histories have a value each second."""
HISTORY_MAX = 180
CURVE_MAX = 200
POINTS_MAX = 20
"""Values, points of a curve and finished points that are kept; all points are in the folder."""

_AXES = ("outstanding", "rate", "users", "streams", "speed")


class Live:
    """A display that also writes the file of a run that goes on.

    Parameters
    ----------
    display
        What is passed on to.
    folder
        The run.
    clock_s, utc_ns
        Clocks.
    """

    def __init__(
        self,
        display: Display,
        folder: RunFolder,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        utc_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._display, self._run, self._clock_s, self._utc_ns = display, folder, clock_s, utc_ns
        self._recorder: Recorder | None = None
        self._limits: Sequence[Limit] = ()
        self._told_s = self._sampled_s = -math.inf
        self._moment = Moment(part="", what="", phase="starting")
        self._times: deque[int] = deque(maxlen=HISTORY_MAX)
        self._histories: dict[str, deque[float | None]] = {}
        self._curve: deque[OnCurve] = deque(maxlen=CURVE_MAX)
        self._curve_of: tuple[Any, ...] = ()
        self._axis, self._figure = "", ("", "")
        self._judged: NearestLimit | None = None
        self._rows: deque[PointRow] = deque(maxlen=POINTS_MAX)
        self._done = self._error_count = 0
        self._folder: Folder | None = None

    def watch(self, recorder: Recorder) -> None:
        """Show what this recorder sees of the host from now on."""
        self._recorder = recorder

    def begin(self, limits: Sequence[Limit]) -> None:
        """A part begins, with limits of its own."""
        self._limits = limits

    def end(self) -> None:
        """Remove the file; the display goes on without it."""
        self._told_s = math.inf
        with contextlib.suppress(OSError):
            live_file.remove(self._opened())
        if self._folder is not None:
            self._folder.close()

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""
        self._display.layout(name, done_bytes, total_bytes)
        share = done_bytes / total_bytes if total_bytes else 1.0
        self._tell(Moment(part="", what=name, phase="laying out", done_share=share))

    def point(self, progress: Shown) -> None:
        """Show the point that is being measured or verified."""
        self._display.point(progress)
        if self._is_due():
            self._tell(progress.moment or Moment(part="", what=progress.line, phase="under way"))

    def status(self, status: Status) -> None:
        """Pass it on."""
        self._display.status(status)

    def tell(self, text: str) -> None:
        """Show a line that must not be missed."""
        self._display.tell(text)

    def phase(self, text: str) -> None:
        """Show the phase that runs now."""
        self._display.phase(text)
        self._tell(Moment(part=self._moment.part, what="", phase=text), at_once=True)

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show a finished point, and put it on the curve of its part."""
        self._display.point_done(point)
        self._done += 1
        self._error_count += int((point.get("errors") or {}).get("count") or 0)
        self._rows.append(point_row(point))
        self._put_on_curve(point)
        self._judged = self._nearest_of(point)
        self._tell(self._moment, at_once=True)

    def _put_on_curve(self, point: Mapping[str, Any]) -> None:
        figures = figures_of(point)
        curve_of = (point.get("part"), (point.get("workload") or {}).get("name"))
        if curve_of != self._curve_of or not figures:
            self._curve.clear()
            self._curve_of = curve_of
        if not figures:
            return
        load = point.get("load") or {}
        self._axis = next((name for name in _AXES if load.get(name) is not None), "load")
        self._figure = (figures[0].title, figures[0].unit)
        size = float(load.get(self._axis) or load_size(load))
        value = value_of(figures[0], point)
        self._curve.append(OnCurve(point_id=str(point["id"]), load=size, value=value, met=point.get("met")))

    def _nearest_of(self, point: Mapping[str, Any]) -> NearestLimit | None:
        """The limit of a finished point that is nearest to being missed."""
        bounds = {limit.text: limit for limit in self._limits}
        found = [
            _near(bounds[one["limit"]], str(one.get("scope") or ""), one.get("value"), str(point["id"]), one["met"])
            for one in point.get("limits") or []
            if one.get("limit") in bounds
        ]
        return max((one for one in found if one is not None), key=lambda one: one.share, default=None)

    def _nearest(self, moment: Moment) -> NearestLimit | None:
        """The same with what is under way, where its figures are bounded for all roles together."""
        gauges = {gauge.limit: gauge.value for gauge in moment.all_gauges if gauge.limit}
        now = [(one, gauges.get(one.name)) for one in self._limits if one.role is None]
        found = [_near(one, "", value, "now", value is not None and one.met_by(value)) for one, value in now]
        known = [one for one in (*found, self._judged) if one is not None]
        return max(known, key=lambda one: one.share, default=None)

    def _is_due(self) -> bool:
        return self._clock_s() - self._told_s >= EVERY_S

    def _tell(self, moment: Moment, *, at_once: bool = False) -> None:
        if (not at_once and not self._is_due()) or self._told_s == math.inf:
            return
        self._told_s = self._clock_s()
        moment = self._with_devices(moment)
        self._moment = moment
        self._sample(moment)
        status = self._status(moment)
        self._display.status(status)
        # Whoever does not watch loses nothing where the file cannot be written; the run's own files say what is wrong.
        with contextlib.suppress(OSError, ValueError):
            live_file.write(self._opened(), self._told(status))

    def _opened(self) -> Folder:
        if self._folder is None:
            self._folder = Folder.open(self._run.path)
        return self._folder

    def _with_devices(self, moment: Moment) -> Moment:
        """The progress of a point, with latencies of the devices where the workload has none of reads and writes."""
        if self._recorder is None or not moment.gauges or any(one.limit == "read.mean" for one in moment.gauges):
            return moment
        seen = self._recorder.latest("block")
        gauges = list(moment.gauges)
        for side in ("read", "write"):
            ios = {name: value for (name, metric), value in seen.items() if metric == f"{side}_ios_count" and value}
            spent = sum(seen.get((name, f"{side}_latency_mean_ns"), 0.0) * count for name, count in ios.items())
            if ios:
                title = f"device {side} latency"
                value = spent / sum(ios.values())
                gauges.append(Gauge(name=f"device_{side}_ns", title=title, value=value, unit="ns"))
        return replace(moment, gauges=tuple(gauges))

    def _sample(self, moment: Moment) -> None:
        now_s = self._clock_s()
        if not moment.gauges or now_s - self._sampled_s < SAMPLE_S:
            return
        self._sampled_s = now_s
        # Gauges that are new begin where the others are.
        for gauge in moment.all_gauges:
            self._histories.setdefault(gauge.name, deque([None] * len(self._times), maxlen=HISTORY_MAX))
        self._times.append(self._utc_ns())
        values = {gauge.name: gauge.value for gauge in moment.all_gauges}
        for name, history in self._histories.items():
            history.append(values.get(name))

    def _status(self, moment: Moment) -> Status:
        here = self._recorder.host_load("") if self._recorder is not None else HostLoad(name="")
        return Status(
            moment=moment,
            times_utc_ns=tuple(self._times),
            histories={gauge.name: tuple(self._histories.get(gauge.name, ())) for gauge in moment.all_gauges},
            nearest=self._nearest(moment),
            curve=tuple(self._curve),
            axis=self._axis,
            figure=self._figure,
            host_cpu_share=here.cpu_share,
            devices=here.devices,
            done=self._done,
            error_count=self._error_count,
        )

    def _told(self, status: Status) -> dict[str, Any]:
        """The file's content."""
        moment, nearest = status.moment, status.nearest
        return {
            "written_utc_ns": self._utc_ns(),
            "part": moment.part,
            "what": moment.what,
            "phase": moment.phase,
            "left_s": moment.left_s,
            "done_share": moment.done_share,
            "waiting": moment.waiting,
            "gauges": [
                {"name": one.name, "title": one.title, "unit": one.unit, "value": _finite(one.value),
                 "history": [_finite(value) for value in status.histories[one.name]]}
                for one in moment.all_gauges
            ],
            "times_utc_ns": list(status.times_utc_ns),
            "errors": {"count": moment.errors[0] + status.error_count, "word": moment.errors[1]},
            "nearest": None if nearest is None else {
                "limit": nearest.limit, "scope": nearest.scope, "share": nearest.share, "where": nearest.where,
                "word": WORDS[nearest.met],
                "text": show_value(nearest.value, nearest.unit),
            },
            "host": _load(HostLoad(name="", cpu_share=status.host_cpu_share, devices=status.devices)),
            "hosts": [{"name": one.name, **_load(one)} for one in moment.hosts],
            "curve": {
                "axis": status.axis, "title": status.figure[0], "unit": status.figure[1],
                "points": [{"id": one.point_id, "load": one.load, "value": _finite(one.value), "met": one.met}
                           for one in status.curve],
            },
            "done": status.done,
            "points": list(self._rows),
        }  # fmt: skip


def _load(host: HostLoad) -> dict[str, object]:
    return {
        "cpu_share": host.cpu_share,
        "devices": [{"name": name, "busy_share": share} for name, share in host.devices],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _near(limit: Limit, scope: str, value: float | None, where: str, is_met: bool | None) -> NearestLimit | None:
    """How near a value is to its limit; None where it is not known or the limit is zero."""
    if value is None or not math.isfinite(value) or limit.value <= 0:
        return None
    share = value / limit.value if limit.is_upper else limit.value / value if value > 0 else math.inf
    if not math.isfinite(share):
        return None
    return NearestLimit(
        limit=limit.text, scope=scope, value=value, unit=limit.unit, share=share, where=where, met=is_met
    )

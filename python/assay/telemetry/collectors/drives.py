"""Drives while a load runs: temperature, throttling, wear, errors and resets.

A drive is asked in a thread of its own, as it may not answer for a minute while it is being reset; the recorder takes
what the newest look found.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.base.errors import AssayError, NotSupported
from assay.record.drive_health import grown
from assay.record.drives import Drive, DriveHealth
from assay.targets.drives.health import examine, look, program_for
from assay.telemetry.collectors.kernel_log import KernelEvent, KernelLog, places_of
from assay.telemetry.columns import Reading

EVERY_S = 5.0
"""Between two looks in a run: a point of half a minute has six."""
INTERVALS_MAX = 100_000
EVENTS_MAX = 1000
_SILENT_S = 30.0
"""From when on a drive that does not answer is told of."""


class DriveInterval(NamedTuple):
    """What a drive did between two looks.

    Attributes
    ----------
    is_throttled
        None where the drive does not count it.
    is_hot
        Whether it was above its warning temperature; None where that is not known.
    """

    drive: str
    from_ns: int
    to_ns: int
    temperature_celsius: float | None
    is_throttled: bool | None
    is_hot: bool | None


class DriveSight(NamedTuple):
    """The two newest looks at a drive, and how often its resets and errors were in the kernel's log."""

    newest: DriveHealth
    before: DriveHealth | None
    resets: int = 0
    io_errors: int = 0


def interval_of(drive: Drive, before: DriveHealth, after: DriveHealth) -> DriveInterval:
    """What is known of the time between two looks."""
    throttled = [value for name in ("throttled_s", "throttles") if (value := grown(before, after, name)) is not None]
    warning, temperature = drive.get("warning_celsius"), after.get("temperature_celsius")
    heated = grown(before, after, "hot_s")
    is_above = None if warning is None or temperature is None else temperature >= warning
    return DriveInterval(
        drive=drive["name"],
        from_ns=before.get("utc_ns") or 0,
        to_ns=after.get("utc_ns") or 0,
        temperature_celsius=temperature,
        is_throttled=any(throttled) if throttled else None,
        is_hot=True if heated else is_above,
    )


class DrivesCollector:
    """Health of drives that were examined.

    Parameters
    ----------
    every_s
        Time between two looks.
    log
        Opens the kernel's log, for tests.
    looking, starting
        How a drive is looked at, fully or not, and how that is started beside the recorder, for tests.
    """

    name = "drives"
    tier = "storage"
    source = "drive"

    def __init__(
        self,
        *,
        every_s: float = EVERY_S,
        log: Callable[[dict[str, str]], KernelLog] = KernelLog,
        looking: Callable[[Drive, bool], DriveHealth] = lambda drive, fully: look(drive, fully=fully),
        starting: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._drives: dict[str, Drive] = {}
        self._every_s, self._open_log, self._looking = every_s, log, looking
        self._starting = starting or _in_a_thread
        self._places: dict[str, str] = {}
        self._log: KernelLog | None = None
        self._began_s: float | None = None
        self._is_looking = False
        self._silent: dict[str, str] = {}
        self._sights: dict[str, DriveSight] = {}
        self.intervals: deque[DriveInterval] = deque(maxlen=INTERVALS_MAX)
        """What each drive did between looks; of very long runs the newest."""
        self.events: list[KernelEvent] = []
        """The first lines of the kernel's log: they say what happened."""
        self.counts: dict[tuple[str, str], int] = {}

    def add(self, drives: Sequence[Drive], places: Mapping[str, str]) -> None:
        """Look at these, too, from now on.

        Parameters
        ----------
        drives
            As `assay.targets.drives.health.examine` found them.
        places
            What the kernel's log calls them.

        Raises
        ------
        NotSupported
            The kernel's log cannot be read; all else is recorded.
        """
        for drive in drives:
            if (before := drive.get("before")) is not None:
                self._sights[drive["name"]] = DriveSight(before, None)
                self._drives = {**self._drives, drive["name"]: drive}
        self._places |= places
        if self._log is None and places:
            self._log = self._open_log(self._places)

    def watch(self, names: Sequence[str], notice: Callable[[str], None]) -> list[Drive]:
        """Examine drives and look at them from now on; what cannot be seen of them is noticed."""
        found = [examine(name, program=program_for(name)) for name in names]
        try:
            self.add(found, places_of(names))
        except NotSupported as error:
            notice(f"resets and failed I/Os of {', '.join(names)} are not seen: {error}")
        return found

    def sample(self) -> Mapping[str, DriveSight]:
        """The newest looks; begins another one where it is time."""
        now_s = time.monotonic()
        if self._drives and not self._is_looking and (self._began_s is None or now_s - self._began_s >= self._every_s):
            self._began_s, self._is_looking = now_s, True
            self._starting(self._look)
        for event in self._log.events() if self._log is not None else ():
            self.counts[event.drive, event.kind] = self.counts.get((event.drive, event.kind), 0) + 1
            if len(self.events) < EVENTS_MAX:
                self.events.append(event)
        count = self.counts.get
        return {
            name: self._sights.get(name, DriveSight({}, None))._replace(
                resets=count((name, "reset"), 0), io_errors=count((name, "error"), 0)
            )
            for name in dict.fromkeys([*self._sights, *self._places.values()])
        }

    @property
    def missing(self) -> list[str]:
        """Drives that do not answer."""
        found = [f"{name} is not looked at any more: {reason}" for name, reason in list(self._silent.items())]
        if self._is_looking and self._began_s is not None and time.monotonic() - self._began_s > _SILENT_S:
            found.append(f"a drive has not answered for {_SILENT_S:g} s")
        return found

    def newest(self, name: str) -> DriveHealth | None:
        """The newest look at a drive."""
        return self._sights[name].newest if name in self._sights else None

    def look(self, *, fully: bool = False) -> None:
        """Look at all drives now, unless a look is under way that does not end."""
        if not self._is_looking:
            self._is_looking = True
            self._look(fully=fully)

    def _look(self, *, fully: bool = False) -> None:
        try:
            for name, drive in self._drives.items():
                if name in self._silent:
                    continue
                try:
                    health = self._looking(drive, fully)
                except (AssayError, OSError) as error:
                    self._silent[name] = str(error)
                    continue
                before = self._sights[name].newest
                self.intervals.append(interval_of(drive, before, health))
                self._sights[name] = DriveSight(health, before)
        finally:
            self._is_looking = False

    def readings(
        self, before: Mapping[str, DriveSight], after: Mapping[str, DriveSight], interval_ns: int
    ) -> Iterator[Reading]:
        """Temperature and throttling as the newest look has them; what was counted, once for each look."""
        del interval_ns
        for name, sight in after.items():
            if name in self._drives:
                yield from _state(self._drives[name], sight)
            was = before.get(name)
            if was is None:
                continue
            if self._log is not None:
                yield Reading(name, "resets_count", "delta", float(sight.resets - was.resets))
                yield Reading(name, "io_errors_count", "delta", float(sight.io_errors - was.io_errors))
            if sight.newest.get("utc_ns") != was.newest.get("utc_ns"):
                yield from _counted(name, was.newest, sight.newest)

    def close(self) -> None:
        """Close the log; a look that goes on ends with its thread."""
        if self._log is not None:
            self._log.close()


def _in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="assay-drives", daemon=True).start()


def _state(drive: Drive, sight: DriveSight) -> Iterator[Reading]:
    """Gauges of the newest look, which stand until the next one."""
    name, temperature = drive["name"], sight.newest.get("temperature_celsius")
    if temperature is not None:
        yield Reading(name, "temperature_celsius", "gauge", temperature)
        if warning := drive.get("warning_celsius"):
            yield Reading(name, "temperature_of_warning_share", "gauge", temperature / warning)
    if sight.before is not None:
        seconds = ((sight.newest.get("utc_ns") or 0) - (sight.before.get("utc_ns") or 0)) / 1e9
        held = grown(sight.before, sight.newest, "throttled_s")
        starts = grown(sight.before, sight.newest, "throttles")
        if held is not None and seconds > 0:
            # Counted in seconds: of a look's time it may come to more, and a start says that it was for a part of it.
            share = min(1.0, held / seconds) if held else 0.5 if starts else 0.0
            yield Reading(name, "throttled_share", "gauge", share)


def _counted(name: str, before: DriveHealth, after: DriveHealth) -> Iterator[Reading]:
    for metric, key in (
        ("media_errors_count", "media_errors"),
        ("error_log_entries_count", "error_log_entries"),
        ("nand_written_bytes", "nand_written_bytes"),
    ):
        if (value := grown(before, after, key)) is not None:
            yield Reading(name, metric, "delta", float(value))
    for metric in ("wear_share", "spare_share"):
        share = after.get(metric)
        if isinstance(share, float):
            yield Reading(name, metric, "gauge", share)

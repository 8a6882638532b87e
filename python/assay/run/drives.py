"""Drives beneath the targets of a run: read before it, looked at while it goes on, read again at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

from assay.base.errors import AssayError
from assay.record.drive_health import grown
from assay.record.shapes.drive import Drive
from assay.record.shapes.point import Point
from assay.targets.drives.health import drives_beneath, error_log
from assay.telemetry.collectors.drives import DriveInterval, DrivesCollector

LINES_KEPT = 5
"""Lines of the kernel's log that a run keeps of each drive."""
_OF_POINTS: tuple[Literal["points_watched", "points_throttled", "points_hot"], ...] = (
    "points_watched",
    "points_throttled",
    "points_hot",
)


class DriveWatch:
    """The drives of a run, as its targets become known."""

    def __init__(self) -> None:
        self.collector = DrivesCollector()
        self.notices: list[str] = []
        """What cannot be seen of them."""
        self._drives: list[Drive] = []
        self._earlier: dict[str, Drive] | None = None

    def watch(self, devices: Iterable[str]) -> None:
        """Examine the drives beneath devices that are not known yet, and look at them from now on."""
        known = {drive["name"] for drive in self._drives}
        new = [name for name in drives_beneath(devices) if name not in known]
        self._drives += self.collector.watch(new, self.notices.append)

    def facts(self, earlier: Sequence[Drive] | None, told: Sequence[Drive] = ()) -> list[Drive]:
        """The drives for the manifest.

        Parameters
        ----------
        earlier
            Those of the manifest: a run that goes on keeps what its drives were when it began.
        told
            Drives of other hosts, as these told of them.
        """
        if self._earlier is None:
            self._earlier = {drive["name"]: drive for drive in earlier or ()}
        return [_gone_on(self._earlier.get(drive["name"]), drive) for drive in (*self._drives, *told)]

    def conclude(self, points: Sequence[Point]) -> None:
        """Look at the drives once more, and say what happened in which points."""
        self.collector.look(fully=True)
        for place, drive in enumerate(self._drives):
            name, after = drive["name"], self.collector.newest(drive["name"])
            own = [one for one in self.collector.intervals if one.drive == name]
            if own and after is not None:
                drive = drive | Drive(name=name, after=after)
                with suppress(AssayError, OSError):
                    if grown(drive.get("before"), after, "error_log_entries"):
                        drive["errors"] = error_log(drive)
            self._drives[place] = drive | _of_points(name, own, points) | self._of_kernel(name)

    def _of_kernel(self, name: str) -> Drive:
        counts, lines = self.collector.counts, [one.line for one in self.collector.events if one.drive == name]
        resets, io_errors = counts.get((name, "reset"), 0), counts.get((name, "error"), 0)
        return Drive(name=name, resets=resets, io_errors=io_errors, kernel_lines=lines[:LINES_KEPT])


def _of_points(name: str, intervals: Sequence[DriveInterval], points: Sequence[Point]) -> Drive:
    """Points in which a drive was looked at, throttled and was hot; its highest temperature in any."""
    found = Drive(name=name, points_watched=[], points_throttled=[], points_hot=[])
    temperatures = [one.temperature_celsius for one in intervals if one.temperature_celsius is not None]
    found["temperature_max_celsius"] = max(temperatures, default=None)
    for point in points:
        begin, end = point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns")
        if begin is None or end is None:
            continue
        own = [one for one in intervals if one.from_ns < end and one.to_ns > begin]
        for key, holds in (
            ("points_watched", any(one.is_throttled is not None or one.is_hot is not None for one in own)),
            ("points_throttled", any(one.is_throttled for one in own)),
            ("points_hot", any(one.is_hot for one in own)),
        ):
            if holds:
                found[key] = [*(found[key] or []), point["id"]]  # type: ignore[literal-required]
    return found


def _gone_on(earlier: Drive | None, drive: Drive) -> Drive:
    """A drive of a run that goes on, with what was seen of it before; another drive in its place is a new one."""
    if earlier is None or (earlier.get("model"), earlier.get("firmware")) != (
        drive.get("model"),
        drive.get("firmware"),
    ):
        return drive
    both = drive | Drive(name=drive["name"], before=earlier.get("before") or drive.get("before"))
    for key in _OF_POINTS:
        both[key] = list(dict.fromkeys([*(earlier.get(key) or []), *(drive.get(key) or [])]))
    both["resets"] = (earlier.get("resets") or 0) + (drive.get("resets") or 0)
    both["io_errors"] = (earlier.get("io_errors") or 0) + (drive.get("io_errors") or 0)
    both["kernel_lines"] = [*(earlier.get("kernel_lines") or []), *(drive.get("kernel_lines") or [])][:LINES_KEPT]
    heat = [one for told in (earlier, drive) if (one := told.get("temperature_max_celsius")) is not None]
    both["temperature_max_celsius"] = max(heat, default=None)
    return both

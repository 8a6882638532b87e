"""Where progress goes: what a run tells its display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.base.units import format_bytes, format_duration, format_iops, format_latency


@dataclass(frozen=True, kw_only=True)
class Gauge:
    """A figure of the point that is being measured.

    Attributes
    ----------
    name
        As it is kept: `iops`.
    title
        For people: `read latency`.
    value
        In the base unit; None where nothing ended.
    unit
        `iops`, `ns`, `bytes_per_s`, `share`, or the words after a number.
    limit
        The name that limits have for it, such as `read.mean`; empty where none bounds it.
    """

    name: str
    title: str
    value: float | None
    unit: str
    limit: str = ""

    @property
    def words(self) -> str:
        """Title and value for people: the number first where its unit is part of the title."""
        text = gauge_text(self.value, self.unit)
        return f"{text} {self.title}" if self.unit == "iops" or text[-1:].isdigit() else f"{self.title} {text}"


def gauge_text(value: float | None, unit: str) -> str:
    """A gauge's value for people.

    Examples
    --------
    >>> gauge_text(1234.0, "iops"), gauge_text(1.5e6, "ns"), gauge_text(12.0, "/s"), gauge_text(None, "ns")
    ('1,234', '1.50 ms', '12/s', '-')
    """
    if value is None:
        return "-"
    if unit == "iops":
        return format_iops(value)
    if unit == "ns":
        return format_latency(value)
    if unit == "bytes_per_s":
        return f"{format_bytes(value)}/s"
    if unit == "share":
        return f"{value:.0%}"
    return f"{value:,.0f}{unit if unit.startswith('/') else ''}"


@dataclass(frozen=True, kw_only=True)
class HostLoad:
    """What a host does at a moment.

    Attributes
    ----------
    cpu_share
        Share of its processors that is used, None where it was not recorded.
    devices
        Busy share of the target's devices, busiest first.
    """

    name: str
    cpu_share: float | None = None
    devices: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The progress of a point at a moment, of any kind of workload.

    Attributes
    ----------
    what
        Workload and load, in words.
    left_s
        Time left, None where it is not known; at most so long where `is_most`.
    done_share
        How much is done, where that is known.
    gauges
        Its figures, the first one what is maximised.
    percentiles
        Those of what ended lately; they are left out of the line.
    errors
        What went wrong, counted, and what it is called.
    waiting
        What is waited for, in words.
    hosts
        What the other hosts do that make the load.
    """

    part: str
    what: str
    phase: str
    left_s: float | None = None
    is_most: bool = False
    done_share: float | None = None
    gauges: Sequence[Gauge] = ()
    percentiles: Sequence[Gauge] = ()
    errors: tuple[int, str] = (0, "errors")
    waiting: str = ""
    hosts: Sequence[HostLoad] = ()

    @property
    def moment(self) -> Moment:
        """The same."""
        return self

    @property
    def all_gauges(self) -> Sequence[Gauge]:
        """Its figures, and the percentiles."""
        return (*self.gauges, *self.percentiles)

    @property
    def line(self) -> str:
        """All of it in one line.

        Examples
        --------
        >>> gauges = (Gauge(name="iops", title="IOPS", value=512.0, unit="iops"),)
        >>> Moment(part="oltp", what="8 KiB", phase="warm-up", left_s=9, gauges=gauges, errors=(2, "errors")).line
        '[oltp] 8 KiB: warm-up, 9 s left, 512 IOPS, 2 errors'
        """
        pieces = [self.phase] if self.phase else []
        pieces += [f"{self.done_share:.0%} done"] if self.done_share is not None else []
        if self.left_s is not None:
            pieces.append(f"{'at most ' if self.is_most else ''}{format_duration(self.left_s)} left")
        pieces += [gauge.words for gauge in self.gauges if gauge.value is not None]
        pieces += [f"{self.errors[0]:,} {self.errors[1]}"] if self.errors[0] else []
        pieces += [self.waiting] if self.waiting else []
        what = f"{self.what}: " if self.what else ""
        return (f"[{self.part}] " if self.part else "") + what + ", ".join(pieces)


class Shown(Protocol):
    """Progress of a run: its phase, its points, its layout."""

    @property
    def line(self) -> str:
        """All of it in one line."""
        ...

    @property
    def moment(self) -> Moment | None:
        """The same as figures; None where there are none."""
        ...


@dataclass(frozen=True)
class ProgressStep:
    """One of many steps, of which not every one need be seen."""

    line: str
    moment: Moment | None = None


@dataclass(frozen=True, kw_only=True)
class NearestLimit:
    """The limit that is nearest to being missed.

    Attributes
    ----------
    share
        Value over bound, or bound over value where the limit bounds from below: above 1 it is missed.
    met
        Whether a value of a finished point meets the limit, None where that is unknown; of what is under way, so far.
    where
        What the value is of: a point's id, or `now`.
    """

    limit: str
    scope: str
    value: float
    unit: str
    share: float
    where: str
    met: bool | None


@dataclass(frozen=True, kw_only=True)
class OnCurve:
    """A finished point on the curve of its part."""

    point_id: str
    load: float
    value: float | None
    met: bool | None


@dataclass(frozen=True, kw_only=True)
class Status:
    """How a run stands: what is under way, how it went so far, and what it does to the host.

    Attributes
    ----------
    histories
        Values of each gauge of the moment over time, oldest first, and when they were taken.
    curve
        Points of the part so far: of a search what it has found. `axis` and `figure` name its axes.
    host_cpu_share, devices
        Load of this host, and busy share of the target's devices, busiest first; nothing where it was not recorded.
    done, error_count
        Points that are finished, and errors in all of them.
    """

    moment: Moment
    times_utc_ns: Sequence[int]
    histories: Mapping[str, Sequence[float | None]]
    nearest: NearestLimit | None = None
    curve: Sequence[OnCurve] = ()
    axis: str = ""
    figure: tuple[str, str] = ("", "")
    host_cpu_share: float | None = None
    devices: Sequence[tuple[str, float]] = ()
    done: int = 0
    error_count: int = 0


class Display(Protocol):
    """Where progress goes."""

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show bytes being laid out."""

    def point(self, progress: Shown) -> None:
        """Show the point that is being measured or verified."""

    def status(self, status: Status) -> None:
        """Show how the run stands."""

    def tell(self, text: str) -> None:
        """Show a line that must not be missed."""

    def phase(self, text: str) -> None:
        """Show the phase that runs now."""

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show a finished point."""


class Silent:
    """A display that shows nothing."""

    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None:
        """Show nothing."""

    def point(self, progress: Shown) -> None:
        """Show nothing."""

    def status(self, status: Status) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Show nothing."""

    def phase(self, text: str) -> None:
        """Show nothing."""

    def point_done(self, point: Mapping[str, Any]) -> None:
        """Show nothing."""


SILENT = Silent()

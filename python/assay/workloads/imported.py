"""Runs of other programs: the shape in which their results come in, and what a format of results is to the importer.

A workload names its importers (`Workload.importers`); `run/imports.py` writes the run folder. What a file does not hold
stays absent: a percentile is read from a histogram or from the file, never made from other percentiles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from assay.base.tables import Record
from assay.record.figures import PERCENTILES
from assay.record.points import blank_point
from assay.record.shapes.point import Direction, Latency, Sides
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.taken import TakenFile

if TYPE_CHECKING:
    from assay._core import Histogram


BYTES_MAX = 64 * 2**20
"""Size of a file of results: it is read whole. fio's json+ of 4,000 jobs has as much."""

AMOUNT_MAX = 1e18
"""No latency, count or rate is as much: nanoseconds of thirty years, bytes of an exabyte."""

COUNT_MAX = 1e15
"""No job counts as many I/Os, so that sums over jobs stay whole numbers of 64 bits."""

LATENCY_LONGEST_NS = 3600 * 10**9
"""The longest latency that histograms hold."""


@dataclass(kw_only=True)
class ImportedPoint:
    """One workload at one load, as another program measured it.

    Attributes
    ----------
    workload, load
        As points have them (docs/results.md).
    figures
        All other keys of the point that the file tells of.
    label
        What the file calls it.
    """

    workload: Record
    load: Record
    figures: dict[str, Any]
    label: str

    def as_point(self) -> dict[str, Any]:
        """The point without the keys that a run gives it; nothing but what was told is in it."""
        blank = blank_point()
        blank["steady"]["reached"] = None
        blank["generator"]["saturated"] = None
        return {"workload": dict(self.workload), "load": dict(self.load), **blank, **self.figures}


@dataclass(kw_only=True)
class ImportedRun:
    """What a file of results holds.

    Attributes
    ----------
    program, version
        Who measured.
    volumes
        What was under load, as manifests name volumes.
    hostname
        The host that measured, where the file names it.
    taken
        What became of the file.
    """

    program: str
    version: str
    taken: TakenFile
    points: list[ImportedPoint] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    hostname: str | None = None


class RunImporter(ABC):
    """One format of results. Add a module with one, and name it in `importers` of its workload."""

    name: ClassVar[str]
    """As results name it."""
    title: ClassVar[str]
    """For people."""

    @abstractmethod
    def recognises(self, head: str) -> bool:
        """Whether a file that begins so is of this format."""

    @abstractmethod
    def read(self, text: str, options: Options) -> ImportedRun:
        """Read a file of at most `BYTES_MAX`.

        Raises
        ------
        NotTaken
            It is of the format, and cannot be used.
        """


# Numbers


def amount(value: object, where: str) -> float | None:
    """A number that is not negative; None where there is none.

    Raises
    ------
    NotTaken
        No measurement gives such a number.

    Examples
    --------
    >>> amount(5, "iops"), amount("2.5", "iops"), amount(None, "iops"), amount("", "iops")
    (5.0, 2.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except ValueError:
        return None
    if not 0 <= number <= AMOUNT_MAX:
        shown = str(value) if isinstance(value, str) else repr(number)
        raise NotTaken(f"{where}: {shown[:40]} is no value of a measurement")
    return number


def whole(value: object, where: str) -> int:
    """A count; 0 where there is none.

    Raises
    ------
    NotTaken
        No measurement counts as many.
    """
    number = amount(value, where) or 0.0
    if number > COUNT_MAX:
        raise NotTaken(f"{where}: {number:g} is no value of a measurement")
    return int(number)


# Reads and writes


def latency_of_statistics(
    mean_ns: float | None, max_ns: float | None, percentiles_ns: Mapping[float, float], histogram: Histogram | None
) -> Latency:
    """Statistics of a latency: percentiles of the histogram where there is one, else those given.

    Parameters
    ----------
    percentiles_ns
        Values by percentage, as 99.9.

    Examples
    --------
    >>> latency_of_statistics(2e6, None, {50.0: 1e6, 75.0: 3e6, 99.9: 9e6}, None)
    {'mean': 2000000.0, 'p50': 1000000.0, 'p99_9': 9000000.0}
    """
    found: dict[str, float] = {} if mean_ns is None else {"mean": mean_ns}
    for name, share in PERCENTILES.items():
        if histogram is not None:
            found[name.replace(".", "_")] = float(histogram.percentile(100 * share))
        elif (value := percentiles_ns.get(round(100 * share, 6))) is not None:
            found[name.replace(".", "_")] = value
    return cast("Latency", found if max_ns is None else {**found, "max": max_ns})


@dataclass(kw_only=True)
class Side:
    """What reads, writes or both did, and can be added up with others."""

    count: int
    iops: float
    bytes_per_s: float
    latency_ns: Latency = field(default_factory=Latency)
    histogram: Histogram | None = None

    def as_direction(self) -> Direction:
        """As points have it."""
        return {
            "count": self.count,
            "iops": self.iops,
            "bytes_per_s": self.bytes_per_s,
            "latency_ns": self.latency_ns,
            "histogram": self.histogram.to_base64() if self.histogram is not None else None,
        }


def together(sides: Iterable[Side | None]) -> Side | None:
    """What ran at the same time as one: rates are summed, percentiles come from merged histograms or not at all."""
    found = [side for side in sides if side is not None]
    if len(found) < 2:
        return found[0] if found else None
    histogram = merged([side.histogram for side in found])
    means = [side.latency_ns.get("mean") for side in found]
    most = [side.latency_ns.get("max") for side in found]
    count = sum(side.count for side in found)
    mean_ns = None
    if None not in means and count:
        mean_ns = sum(mean * side.count for mean, side in zip(means, found, strict=True) if mean is not None) / count
    known = [value for value in most if value is not None]
    return Side(
        count=count,
        iops=sum(side.iops for side in found),
        bytes_per_s=sum(side.bytes_per_s for side in found),
        latency_ns=latency_of_statistics(mean_ns, max(known) if len(known) == len(found) else None, {}, histogram),
        histogram=histogram,
    )


def merged(histograms: Sequence[Histogram | None]) -> Histogram | None:
    """All histograms as a new one; None where one is missing."""
    from assay._core import Histogram

    whole = Histogram()
    for one in histograms:
        if one is None:
            return None
        whole.merge(one)
    return whole if histograms else None


def histogram_of_bins(bins: Iterable[tuple[int, int]], count: int) -> Histogram | None:
    """A histogram from values in nanoseconds and their counts; None where these do not add up to `count`."""
    from assay._core import Histogram

    found, total = Histogram(), 0
    for value_ns, number in bins:
        if value_ns < 0 or number < 0 or value_ns > LATENCY_LONGEST_NS:
            return None
        total += number
        if total > count:
            return None
        if number:
            found.record(max(value_ns, 1), number)
    return found if total == count and count else None


def sides_of(read: Side | None, write: Side | None, total: Side | None) -> Sides:
    """Keys `read`, `write` and `total` of a point, role, volume or activity."""
    return {
        "read": read.as_direction() if read is not None else None,
        "write": write.as_direction() if write is not None else None,
        "total": total.as_direction() if total is not None else None,
    }

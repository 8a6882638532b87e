"""Histograms of vscsiStats (`-p all -c`), one snapshot or several in one file.

They are since the collection began (`-s`) or was set back (`-r`): of snapshots that go on counting the differences are
taken. vscsiStats prints no times. Source: a file of it in a public repository,
and VMware's description of the tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment_in
from assay.telemetry.importers.snapshots import ReportTimes
from assay.telemetry.importers.taken import NO_USE

_TITLE = re.compile(
    r"^Histogram: (?P<what>[^,{]{1,200})[,{]\s{0,9}virtual machine worldGroupID\s{0,9}[,:]\s{0,9}(?P<world>\d{1,20})"
    r"\s{0,9},\s{0,9}virtual disk handleID\s{0,9}[,:]\s{0,9}(?P<disk>[^,}\r\n]{1,200})",
    re.MULTILINE | re.ASCII,
)
_FIGURE = re.compile(r"\s{0,40}(?P<name>min|max|mean|count)\s{0,40}[,:]\s{0,40}(?P<value>-?\d{1,18})\s*", re.ASCII)
_BUCKET = re.compile(
    r"\s{0,40}(?P<ios>\d{1,18})\s{0,40}[,(]\s{0,40}(?P<sign><=|>)?\s{0,40}(?P<limit>-?\d{1,18})\s{0,40}\)?\s*", re.ASCII
)
_ADDRESS = re.compile(r"\((?P<name>[^)]+)\)")
_PROGRAM = "while sleep 10; do date -u +%s; vscsiStats -p all -c; vscsiStats -r; done"

_NS_PER_US = 1e3
_SIDES = {"Read": "read_", "Write": "write_", "": ""}
_KINDS = {"latency of": "latency", "IO lengths of": "length", "number of outstanding": "outstanding"}
LATE_SHARE = 0.01
"""The share of I/Os that took longest, whose bound is taken: what 99 of a hundred I/Os took at most."""


@dataclass
class _Histogram:
    """One histogram as it stands in the file."""

    figures: dict[str, int] = field(default_factory=dict)
    buckets: list[tuple[int, bool, int]] = field(default_factory=list)
    """Limit, whether it is of what lies above the limit, and I/Os."""

    @property
    def values(self) -> int:
        """How many values it holds."""
        return len(self.figures) + len(self.buckets)

    def since(self, before: _Histogram | None) -> _Histogram:
        """What happened since an earlier one; itself where it was set back meanwhile."""
        count = self.figures.get("count", 0)
        earlier = before.figures.get("count", 0) if before is not None else 0
        if before is None or count < earlier or len(before.buckets) != len(self.buckets):
            return self
        buckets = [
            (limit, is_above, ios - old[2])
            for (limit, is_above, ios), old in zip(self.buckets, before.buckets, strict=True)
        ]
        if any(ios < 0 for _, _, ios in buckets):
            return self
        figures = {"count": count - earlier}
        if figures["count"]:
            spent = self.figures.get("mean", 0) * count - before.figures.get("mean", 0) * earlier
            figures["mean"] = max(round(spent / figures["count"]), 0)
        return _Histogram(figures, buckets)

    def at_most(self, share: float) -> int | None:
        """The limit of the bucket up to which all but a share of the I/Os lie; None where it has none."""
        left = sum(ios for _, _, ios in self.buckets) * share
        over = 0
        for limit, is_above, ios in reversed(self.buckets):
            over += ios
            if over > left:
                return None if is_above else limit
        return None


Key = tuple[str, str]
"""A disk, and the name of a histogram."""


class VscsiStats(Importer):
    """vscsiStats."""

    name: ClassVar[str] = "vscsistats"
    title: ClassVar[str] = "vscsiStats -p all -c"

    def recognises(self, head: str) -> bool:
        """The title of a histogram."""
        return _TITLE.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take number, latency and size of reads and writes of each virtual disk, and I/Os outstanding beside them."""
        log = _Log(into, file, is_set_back=_is_set_back(file))
        current: _Histogram | None = None
        for raw in file:
            title = _TITLE.match(raw)
            if title is not None:
                current = log.histogram(title)
            elif (figure := _FIGURE.fullmatch(raw)) is not None and current is not None:
                current.figures.setdefault(figure["name"], int(figure["value"]))
            elif (bucket := _BUCKET.fullmatch(raw)) is not None and current is not None:
                limit = int(bucket["limit"])
                # In CSV the last bucket, of all above, has the limit of the one before it.
                is_above = bucket["sign"] == ">" or (current.buckets != [] and current.buckets[-1][0] == limit)
                current.buckets.append((limit, is_above, int(bucket["ios"])))
            elif (at := moment_in(raw)) is not None:
                log.end(log.times.line(at))
                current = None
            elif "," in raw and not raw.startswith("Frequency"):
                into.taken.not_understood("lines", raw, 1 if current is not None else 0)
        log.end(log.times.end() if log.times.is_open else None)


def _is_set_back(file: TextIO) -> bool:
    """Whether a count ever falls from one snapshot to the next: then each snapshot counts for itself."""
    counts: dict[str, int] = {}
    title, found = "", False
    for raw in file:
        if _TITLE.match(raw) is not None:
            title = raw.strip()
        elif (figure := _FIGURE.fullmatch(raw)) is not None and figure["name"] == "count" and title:
            found |= int(figure["value"]) < counts.get(title, 0)
            counts[title] = int(figure["value"])
    file.seek(0)
    return found


class _Log:
    """Snapshots of one file."""

    def __init__(self, into: Into, file: TextIO, *, is_set_back: bool) -> None:
        self.times = ReportTimes(into, file, _PROGRAM, has_begun=True)
        self._into = into
        self._now: dict[Key, _Histogram] = {}
        self._before: Mapping[Key, _Histogram] = {}
        self._is_set_back = is_set_back

    def histogram(self, title: re.Match[str]) -> _Histogram:
        """A histogram begins; one that comes again is of the next snapshot."""
        named = _ADDRESS.search(title["disk"])
        disk = f"{title['world']}:{named['name'] if named is not None else title['disk'].strip()}"
        key = (disk, " ".join(title["what"].split()))
        if key in self._now:
            self.end(self.times.end())
        self.times.begin()
        return self._now.setdefault(key, _Histogram())

    def end(self, t_ns: int | None) -> None:
        """The end of a snapshot, and its time."""
        now, self._now = self._now, {}
        if not now:
            return
        into, taken, host = self._into, self._into.taken, self._into.options.host
        count = sum(one.values for one in now.values())
        interval_ns = into.advance(host, t_ns) if t_ns is not None else None
        before, self._before = self._before, {} if self._is_set_back else now
        if interval_ns == 0 and into.options.interval_ns is not None:
            # The collection began an interval before.
            interval_ns = into.options.interval_ns
        if t_ns is None or not interval_ns:
            why = "neither the file nor --interval says how long it was collected, or its time was before"
            taken.ignore("snapshots without a length", why, count)
            return
        found = []
        for (disk, what), one in now.items():
            found += self._readings(disk, what, one, one.since(before.get((disk, what))))
        into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier="application", source="guest")

    def _readings(self, disk: str, what: str, whole: _Histogram, one: _Histogram) -> list[Reading]:
        taken = self._into.taken
        kind = next((kind for begin, kind in _KINDS.items() if what.startswith(begin)), "")
        side = next((word for word in ("Read", "Write") if word in what.split()), "")
        prefix = _SIDES[side]
        if not kind or "interarrival" in what:
            taken.ignore(what, NO_USE, whole.values)
            return []
        found: list[Reading] = []
        ios, mean = one.figures.get("count"), one.figures.get("mean")

        def take(name: str, metric: str, kind_of: str, value: float, values: int = 1) -> None:
            taken.take(f"{what}.{name}", f"guest {metric}", values)
            found.append(Reading(disk, metric, kind_of, value))

        left = dict(whole.figures)
        buckets = len(whole.buckets)
        if kind == "latency" and ios is not None:
            take("count", f"{prefix}ios_count", "delta", float(ios))
            del left["count"]
        if mean is not None and ios and "mean" in left:
            metric, factor = {
                "latency": (f"{prefix}latency_mean_ns", _NS_PER_US), "length": (f"{prefix}size_mean_bytes", 1.0),
                "outstanding": (f"{prefix}queue_at_issue_mean_count", 1.0),
            }[kind]  # fmt: skip
            take("mean", metric, "gauge", mean * factor)
            del left["mean"]
        most = one.at_most(LATE_SHARE) if kind == "latency" and ios else None
        if most is not None:
            take("Frequency", f"{prefix}latency_p99_most_ns", "gauge", most * _NS_PER_US, buckets)
            buckets = 0
        if left:
            taken.ignore(f"{what}: {', '.join(left)}", "since the collection began, or of no I/O", len(left))
        if buckets:
            taken.ignore(f"{what}: Frequency", "its mean is taken, or there was no I/O", buckets)
        return found

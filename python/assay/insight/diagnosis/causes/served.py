"""Served arrays that lack a disk: what their counters and their log of events say, and what the load shows.

Counters are in the series (source `array`), the log in the points of the run (`served[].events`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from assay.document.text import joined, moment
from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.evidence import add_slower, disk_of
from assay.insight.diagnosis.observed import Flags, Observations, Track
from assay.insight.diagnosis.signals import CauseSignals
from assay.record.served_names import named_arrays
from assay.record.shapes.point import ServedPoint

LACKING = ("degraded", "rebuilding")
"""States of an array that lacks a disk."""

KNOWN_S = 60.0
"""The array itself says that a disk is missing, so that half a minute of ten is told too, with as little confidence."""

TOLD_MAX = 4
"""Entries of the log that are told; more are counted."""

_OF_DISKS = re.compile(r"(?P<disk>(?P<member>\S+)/disk\d+): (?P<what>pulled|inserted|rebuil)")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of an array's log: a disk that goes or comes."""

    t_ns: int
    member: str
    disk: str
    what: str

    @property
    def words(self) -> str:
        """The entry with its time."""
        return f"{self.what} ({moment(self.t_ns)})"


def lacks_a_disk(observed: Observations) -> list[tuple[CauseSignals, str]]:
    """Signals of each member whose counters say that it lacks a disk, and what is missing, in words."""
    entries = sorted(_entries(observed), key=lambda entry: entry.t_ns)
    found = []
    for missing in observed.find("degraded_count", source="array"):
        member = missing.entity
        own = [entry for entry in entries if entry.member == member]
        disks = list(dict.fromkeys(entry.disk for entry in own))
        lacking = missing.above(at.MISSING.value)
        if not lacking.any():
            continue
        signals = CauseSignals(observed)
        text = f"{member}: disks are missing between {_span(observed, lacking)}"
        signals.add("state", text, missing, at.MISSING, required=True)
        by_the_log = _by_the_log(observed, member)
        signals.add_where("log", f"{member}: the array's log {_told(own)}", by_the_log, entity=member)
        for track in observed.find("rebuilt_bytes", source="array", entity=member, host=missing.host):
            signals.add("rebuild", f"{member}: rebuilds", track, at.REBUILDS)
        for disk in disks:
            text = f"{disk}: does nothing while other disks of {member} work"
            signals.add_where("silent", text, lacking & _silent(observed, missing, disk), entity=disk)
        add_slower(signals, missing.host, lacking, f"{member} lacks a disk")
        found.append((signals, joined(disks) if disks else f"the disk of {member}"))
    return found


def _logs(observed: Observations) -> Iterator[tuple[str, ServedPoint]]:
    """What stands before the names of each array in each window, and its log."""
    for window in observed.windows:
        yield from named_arrays(window.point)


def _entries(observed: Observations) -> Iterator[Entry]:
    for prefix, served in _logs(observed):
        for event in served.get("events") or ():
            if (of_disk := _OF_DISKS.match(str(event["what"]))) is not None:
                member, disk = f"{prefix}{of_disk['member']}", f"{prefix}{of_disk['disk']}"
                yield Entry(t_ns=event["t_ns"], member=member, disk=disk, what=f"{prefix}{event['what']}")


def _span(observed: Observations, holds: Flags) -> str:
    steps = np.flatnonzero(holds)
    first, last = (moment(int(observed.begin_ns + step * observed.step_ns)) for step in (steps[0], steps[-1] + 1))
    return f"{first} and {last}"


def _told(entries: Sequence[Entry]) -> str:
    """What the log says, in words; that it begins without a disk where the disk went before."""
    if not entries:
        return "begins without a disk"
    more = len(entries) - TOLD_MAX
    words = [entry.words for entry in entries[:TOLD_MAX]] + ([f"{more} more"] if more > 0 else [])
    return f"says: {', '.join(words)}"


def _by_the_log(observed: Observations, member: str) -> Flags:
    """Steps in which the array of a member lacks a disk by its log."""
    middles_ns = observed.begin_ns + (np.arange(observed.steps) + 0.5) * observed.step_ns
    lacking = np.zeros(observed.steps, dtype=bool)
    for prefix, served in _logs(observed):
        if not member.startswith(prefix):
            continue
        edges = [(served.get("from_utc_ns", 0), served.get("state"))]
        edges += [(event["t_ns"], event.get("state")) for event in served.get("events") or ()]
        ends = [*(t_ns for t_ns, _ in edges[1:]), served.get("to_utc_ns", 0)]
        for (from_ns, state), to_ns in zip(edges, ends, strict=True):
            if state in LACKING:
                lacking |= (middles_ns >= from_ns) & (middles_ns < to_ns)
    return lacking


def _silent(observed: Observations, missing: Track, disk: str) -> Flags:
    """Steps in which a disk does nothing and the median one of the others does something."""
    member, host = disk_of(missing.entity), missing.host
    ios = {
        track.entity: rates
        for track in observed.find("read_ios_count", source="array", host=host, where=member)
        if (rates := observed.ios_per_s(track)) is not None
    }
    own = ios.pop(disk, None)
    if own is None or not ios:
        return np.zeros(observed.steps, dtype=bool)
    return np.asarray((own == 0) & (np.nanmedian(list(ios.values()), axis=0) > 0))

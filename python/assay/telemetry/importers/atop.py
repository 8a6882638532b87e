"""Samples of atop: its screens as text (`atop -r FILE`), and lines for programs (`atop -P DSK,CPU,... -r FILE`).

atop has no latency of disks: `avio` is the time a disk was busy by its I/Os. With the mean queue while it was busy
(`avq`) their product is the mean time of an I/O by Little's law. Source: atop 2.8, `showlinux.c`, `parseable.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.numbers import amount_of, number
from assay.telemetry.importers.sysstat import with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_HEADER = re.compile(
    r"^ATOP - (?P<host>\S+)\s+(?P<at>\d{4}/\d\d/\d\d\s+\d\d:\d\d:\d\d)\s.{0,400}?(?P<elapsed>\S{1,30}) elapsed\s*$",
    re.MULTILINE,
)
_LINE = re.compile(
    r"^(?P<label>[A-Za-z]{3}) (?P<host>\S+) (?P<at>\d{9,10}) \d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?P<elapsed>\d{1,9})"
    r" (?P<rest>\S.*)$",
    re.MULTILINE,
)
_ELAPSED = re.compile(r"(\d{1,6})([dhms])")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_CELL = re.compile(r"(?P<name>\S+(?: w)?)\s+(?P<value>-?[\d.]\S*(?: \S+)?)")
_PROCESSOR = re.compile(r"cpu\d{1,6} w", re.ASCII)
_TIME = re.compile(r"(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>ns|µs|us|ms|s)")
_NS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}

_BOOT = "it is of the time since the host's start"
_SHARE = 0.01

_CPU: Counters = {
    "system": Counter("system_share"), "sys": Counter("system_share"),
    "user": Counter("user_share"), "nice": Counter("nice_share"), "idle": Counter("idle_share"),
    "wait": Counter("iowait_share"), "irq": Counter("interrupt_share"), "softirq": Counter("softirq_share"),
    "steal": Counter("steal_share"), "guest": Counter("guest_share"),
}  # fmt: skip
"""Shares of all processors, or of one."""
_MEMORY: Counters = {
    name: Counter(metric)
    for name, metric in (("physical", "total_bytes"), ("tot", "total_bytes"), ("free", "free_bytes"),
                         ("avail", "available_bytes"), ("dirty", "dirty_bytes"))
}  # fmt: skip
_PAGING: Counters = {
    name: Counter(metric, "count")
    for name, metric in (("swin", "pages_in_count"), ("swout", "pages_out_count"), ("swapins", "pages_in_count"),
                         ("swapouts", "pages_out_count"))
}  # fmt: skip
_DISK: Counters = {
    "busy": Counter("busy_share", factor=_SHARE), "ms busy": Counter("busy_share"),
    "read": Counter("read_ios_count", "count"), "write": Counter("write_ios_count", "count"),
    "discrd": Counter("discard_ios_count", "count"), "inflt": Counter("queue_now_count"),
    "KiB/r": Counter("read_size_mean_bytes", factor=1024.0, of="read"),
    "KiB/w": Counter("write_size_mean_bytes", factor=1024.0, of="write"),
    "MBr/s": Counter("read_bytes", "delta", 1024.0**2), "MBw/s": Counter("write_bytes", "delta", 1024.0**2),
    "sectors read": Counter("read_bytes", "count", 512.0), "sectors written": Counter("write_bytes", "count", 512.0),
    "sectors discarded": Counter("discard_bytes", "count", 512.0),
    "avq": Counter("queue_mean_count"),
    "avio": "the busy time by I/Os is no latency; with avq it makes the queue and the latency",
}  # fmt: skip
_PRESSURE: Counters = {"some": Counter("some_share"), "full": Counter("full_share")}
_NET: Counters = {"bytes received": Counter("in_bytes", "count"), "bytes sent": Counter("out_bytes", "count")}
_DISKS = ("DSK", "MDD", "LVM")

_NAMES: Mapping[str, tuple[str, ...]] = {
    "CPU": ("ticks per second", "processors", "system", "user", "nice", "idle", "wait", "irq", "softirq", "steal",
            "guest"),
    "cpu": ("ticks per second", "#", "system", "user", "nice", "idle", "wait", "irq", "softirq", "steal", "guest"),
    "MEM": ("page bytes", "physical", "free", "cache", "buffers", "slab", "dirty"),
    "PAG": ("page bytes", "scans", "stalls", "-", "swapins", "swapouts"),
    "PSI": ("present", "cpu some 10", "cpu some 60", "cpu some 300", "cpu some", "memory some 10", "memory some 60",
            "memory some 300", "memory some", "memory full 10", "memory full 60", "memory full 300", "memory full",
            "io some 10", "io some 60", "io some 300", "io some", "io full 10", "io full 60", "io full 300", "io full"),
    **dict.fromkeys(_DISKS, ("#", "ms busy", "read", "sectors read", "write", "sectors written", "discrd",
                             "sectors discarded", "inflt", "avq")),
    "NET": ("#", "packets received", "bytes received", "packets sent", "bytes sent"),
}  # fmt: skip
"""Fields of lines for programs, in their order; # is the name of what a line is of. Later versions append more."""
_OLD_DISK = 6
"""Fields of a disk before version 2.7: what came later stands after them."""

_KIND = {
    **dict.fromkeys(("CPU", "cpu"), ("client", "host", _CPU)), "MEM": ("client", "host", _MEMORY),
    "PAG": ("client", "host", _PAGING), "PSI": ("client", "host", _PRESSURE), "NET": ("client", "net", _NET),
    **dict.fromkeys(_DISKS, ("storage", "block", _DISK)),
}  # fmt: skip
_ENTITY = {"CPU": "cpu", "MEM": "memory", "PAG": "paging"}

Cells = dict[str, object]


@dataclass
class _Sample:
    """What was recorded over one interval."""

    host: str
    t_ns: int
    interval_ns: int
    is_since_boot: bool = False
    rows: list[tuple[str, str, Cells]] = field(default_factory=list)
    """Label, entity and values; in base units where a counter has no factor."""

    def hand_over(self, into: Into) -> None:
        """Account for every value."""
        taken = into.taken
        count = sum(len(cells) for _, _, cells in self.rows)
        since_last_ns = into.advance(self.host, self.t_ns)
        if self.is_since_boot or since_last_ns is None or not self.interval_ns:
            is_late = since_last_ns is None
            why = "their time was before" if is_late else _BOOT
            taken.ignore("samples while the clock was behind" if is_late else "samples since the start", why, count)
            return
        found: dict[tuple[str, str], list[Reading]] = {}
        has_disks = any(label == "DSK" for label, _, _ in self.rows)
        for label, entity, cells in self.rows:
            kind = _KIND.get(label)
            if kind is None:
                taken.ignore(label, NO_USE, len(cells))
                continue
            tier, source, known = kind
            if label in ("LVM", "MDD") and has_disks:
                # They lie on the disks, whose I/Os are the same.
                source = "volume"
            readings = taken.readings(
                cells, known, entity=entity, interval_ns=self.interval_ns, source=source, section=f"{label}."
            )
            if known is _DISK:
                readings += self._latency(readings, into)
            found.setdefault((tier, source), []).extend(with_busy(readings) if known is _CPU else readings)
        for (tier, source), readings in found.items():
            into.add(readings, host=self.host, t_ns=self.t_ns, interval_ns=self.interval_ns, tier=tier, source=source)

    def _latency(self, readings: Sequence[Reading], into: Into) -> list[Reading]:
        """The mean time of a disk's I/Os, by Little's law of its mean queue."""
        values = {one.metric: one.value for one in readings}
        ios = values.get("read_ios_count", 0.0) + values.get("write_ios_count", 0.0)
        queue = values.get("queue_mean_count")
        if queue is None and ios:
            into.taken.note("shows no queue of disks, so that no latency is known: atop -L 250 -r FILE shows it")
        if queue is None or not ios:
            return []
        return [Reading(readings[0].entity, "latency_mean_ns", "gauge", queue * self.interval_ns / ios)]


# Screens


class AtopText(Importer):
    """atop as text."""

    name: ClassVar[str] = "atop"
    title: ClassVar[str] = "atop -r FILE"

    def recognises(self, head: str) -> bool:
        """The first line of a screen."""
        return _HEADER.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, pressure and disks of every sample but those since the start."""
        clock = Clock(into)
        sample: _Sample | None = None
        for raw in file:
            header = _HEADER.match(raw)
            if header is not None:
                if sample is not None:
                    sample.hand_over(into)
                sample = _begun(header, clock, into)
            elif "Activity since Boot" in raw and sample is not None:
                sample.is_since_boot = True
            elif raw[3:5] == " |" and sample is not None:
                _screen_row(raw, sample, into)
            elif raw[:1] in (" ", "\t") or raw[:1].isdigit():
                cells = raw.split()
                if cells and cells[0] != "PID":
                    into.taken.ignore("processes", NO_USE, len(cells))
        if sample is not None:
            sample.hand_over(into)


def _begun(header: re.Match[str], clock: Clock, into: Into) -> _Sample | None:
    at = moment(" ".join(header["at"].split()))
    if at is None:
        into.taken.not_understood("times of samples", header["at"], 0)
        return None
    seconds = sum(int(count) * _SECONDS[unit] for count, unit in _ELAPSED.findall(header["elapsed"]))
    return _Sample(header["host"], clock.t_ns(at), seconds * 10**9)


def _screen_row(line: str, sample: _Sample, into: Into) -> None:
    label, *parts = (part.strip() for part in line.rstrip("\n").split("|"))
    parts = [part for part in parts if part]
    entity = _ENTITY.get(label, "")
    if label in (*_DISKS, "NET", "NFM") and parts:
        entity = parts.pop(0).split()[0]
    cells: Cells = {}
    for part in parts:
        match = _CELL.fullmatch(part)
        if match is None:
            into.taken.not_understood(f"{label} cells", part)
        elif label == "cpu" and match["name"].endswith(" w"):
            entity = f"cpu/{int(match['name'][3:-2])}" if _PROCESSOR.fullmatch(match["name"]) else ""
            cells["wait"] = match["value"]
        elif match["name"] in cells:
            into.taken.not_understood(f"{label} cells that come twice", part)
        else:
            cells[match["name"]] = match["value"]
    if label == "cpu" and not entity:
        into.taken.not_understood("processors without a number", line, len(cells))
    else:
        _add_screen_row(label, entity, cells, sample)


def _add_screen_row(label: str, entity: str, cells: Cells, sample: _Sample) -> None:
    if label in ("CPU", "cpu"):
        shares = {name: number(str(text).rstrip("%")) for name, text in cells.items() if name in _CPU}
        told = [share for name, share in shares.items() if share is not None and name != "guest"]
        # atop prints the sum over all processors.
        processors = max(round(sum(told) / 100), 1) if label == "CPU" else 1
        for name, share in shares.items():
            if share is not None:
                cells[name] = share / processors * _SHARE
    elif label in _DISKS:
        _queue(cells, sample.interval_ns)
    elif label == "PSI":
        for name in [one for one in cells if one.startswith(("cpu", "mem", "io"))]:
            share = number(str(cells[name]).rstrip("%"))
            resource = next(one for one in ("cpu", "mem", "io") if name.startswith(one))
            if share is not None:
                entity = f"psi-{'memory' if resource == 'mem' else resource}"
                del cells[name]
                sample.rows.append((label, entity, {name.removeprefix(resource): share * _SHARE}))
    elif label == "MEM":
        # Without a letter it is no amount: each has one.
        cells = {name: amount.value if (amount := amount_of(str(text))) else text for name, text in cells.items()}
    sample.rows.append((label, entity, cells))


def _queue(cells: Cells, interval_ns: int) -> None:
    """Make the mean queue of that while the disk was busy: `avio` times I/Os is how long that was, to three digits."""
    match = _TIME.fullmatch(str(cells.get("avio", "")))
    depth = number(str(cells.get("avq", "")))
    ios = sum(number(str(cells.get(name, ""))) or 0.0 for name in ("read", "write"))
    if match is not None and depth is not None and interval_ns:
        cells["avq"] = depth * float(match["value"]) * _NS[match["unit"]] * ios / interval_ns
    elif "avq" in cells:
        cells["avq while busy"] = cells.pop("avq")


# Lines for programs


class AtopLines(Importer):
    """Lines of atop for programs."""

    name: ClassVar[str] = "atop"
    title: ClassVar[str] = "atop -P DSK,CPU,..."

    def recognises(self, head: str) -> bool:
        """Its six first fields."""
        return _LINE.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, pressure, disks and interfaces of every sample but those since the start."""
        sample: _Sample | None = None
        is_since_boot = False
        for raw in file:
            match = _LINE.match(raw)
            word = raw.strip()
            if word in ("RESET", "SEP"):
                if sample is not None:
                    sample.hand_over(into)
                sample, is_since_boot = None, word == "RESET"
            elif match is not None:
                host, t_ns = match["host"], int(match["at"]) * 10**9
                if sample is None or (sample.host, sample.t_ns) != (host, t_ns):
                    if sample is not None:
                        sample.hand_over(into)
                    sample = _Sample(host, t_ns, int(match["elapsed"]) * 10**9, is_since_boot)
                _program_row(match["label"], match["rest"].split(), sample, into)
            elif word:
                into.taken.not_understood("lines", raw, len(raw.split()))
        if sample is not None:
            sample.hand_over(into)


def _program_row(label: str, fields: Sequence[str], sample: _Sample, into: Into) -> None:
    names = _NAMES.get(label)
    if names is None or (label == "NET" and fields[0] == "upper"):
        into.taken.ignore(label if names is None else "NET upper", NO_USE, len(fields))
        return
    if label in _DISKS and len(fields) < len(names):
        names = names[:_OLD_DISK]
    if len(fields) < len(names):
        into.taken.not_understood(f"{label} lines with too few fields", " ".join(fields), len(fields))
        return
    record = dict(zip(names, fields, strict=False))
    entity = record.pop("#", _ENTITY.get(label, ""))
    cells: Cells = dict(record)
    more = fields[len(names) :]
    if more:
        into.taken.ignore(f"{label} fields of later versions", NO_USE, len(more))
    if label in ("CPU", "cpu"):
        _ticks(cells)
    elif label == "MEM":
        page = number(record["page bytes"])
        for name in _MEMORY:
            pages = number(record.get(name, ""))
            if page is not None and pages is not None:
                cells[name] = pages * page
    elif label == "PSI":
        for resource in ("cpu", "memory", "io"):
            own: Cells = {}
            for kind in ("some", "full"):
                spent_us = number(str(cells.get(f"{resource} {kind}", "")))
                if spent_us is not None and sample.interval_ns:
                    del cells[f"{resource} {kind}"]
                    own[kind] = spent_us * 1e3 / sample.interval_ns
            if own:
                sample.rows.append((label, f"psi-{resource}", own))
    elif label in _DISKS:
        _busy_ms(cells, sample.interval_ns)
    sample.rows.append((label, f"cpu/{entity}" if label == "cpu" else entity, cells))


def _ticks(cells: Cells) -> None:
    """Make shares of the clock ticks of a processor."""
    ticks = {name: count for name, text in cells.items() if name in _CPU and (count := number(str(text))) is not None}
    total = sum(count for name, count in ticks.items() if name != "guest")
    for name, count in ticks.items():
        cells[name] = count / total if total > 0 else "-"


def _busy_ms(cells: Cells, interval_ns: int) -> None:
    """Make a share of the milliseconds that a disk was busy, and the mean queue of that while it was."""
    busy_ms, depth = number(str(cells["ms busy"])), number(str(cells.get("avq", "")))
    if busy_ms is None or not interval_ns:
        return
    cells["ms busy"] = busy_ms * 1e6 / interval_ns
    if depth is not None:
        cells["avq"] = depth * busy_ms * 1e6 / interval_ns

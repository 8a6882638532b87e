"""The character of a trace: everything that one pass over it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.record.rows import Integers, TextColumn
from assay.traces.character.places import Extents, ExtentSkew
from assay.traces.character.rates import Burst, BurstCounts, OverTime
from assay.traces.character.reuse import Reuse, SampledBlocks
from assay.traces.character.streams import Streams
from assay.traces.character.waiting import Waiting, Waits
from assay.traces.file import UNIT_NS, Trace
from assay.traces.ios import IoFlag, Ios

NAMES_MAX = 4096
"""Processes that are counted by name; the others are one."""
OTHERS = "others"


@dataclass
class AskedIos:
    """I/Os of one device or process."""

    ios: int = 0
    reads: int = 0
    read_bytes: int = 0
    write_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class TraceCharacter:
    """What a trace asks of storage.

    Attributes
    ----------
    span_ns
        From the first I/O to the last.
    windows, covered_ns
        How often the source was looked at, and for how long in all: the span, but for samples.
    counts
        I/Os by kind: `reads`, `writes`, `flushes`, `fua`, `discards`, `failed`, `preflushes`.
    sizes
        I/Os by size in bytes: of reads and of writes.
    sequential
        Shares of reads and of writes that go on with a stream; None where there is none of them.
    run_ios, interleaved
        I/Os of a stream, and streams at once on a device, on average.
    outstanding_mean
        I/Os that were under way on average, by Little's law; None where the trace tells no times.
    """

    span_ns: int
    windows: int
    covered_ns: int
    ios: int
    counts: dict[str, int]
    read_bytes: int
    write_bytes: int
    sizes: tuple[dict[int, int], dict[int, int]]
    over_time: OverTime
    bursts: list[Burst]
    sequential: tuple[float | None, float | None]
    run_ios: float
    interleaved: float
    skew: ExtentSkew | None
    reuse: Reuse | None
    waits: dict[str, dict[str, Waits]]
    outstanding_mean: float | None
    devices: dict[str, AskedIos]
    processes: dict[str, AskedIos]

    @property
    def seconds(self) -> float:
        """The time that was looked at; a trace of one moment counts as a second."""
        return self.covered_ns / 1e9 if self.covered_ns > 0 else 1.0


_KINDS = {"reads": IoFlag.READ, "writes": IoFlag.WRITE, "fua": IoFlag.FUA, "discards": IoFlag.DISCARD,
          "failed": IoFlag.FAILED}  # fmt: skip


def characterise(
    trace: Trace, *, begin_ns: int = 0, end_ns: int = 2**63 - 1, tell: Callable[[float], None] | None = None
) -> TraceCharacter:
    """Read a trace once and say what it asks for.

    Parameters
    ----------
    begin_ns, end_ns
        The window that is looked at.
    tell
        Told the share that has been read.

    Raises
    ------
    UsageError
        The trace is damaged.
    """
    spans = [one for one in trace.spans if one.end_ns >= begin_ns and one.begin_ns < end_ns]
    # The file tells times in its unit; a span tells them to the nanosecond.
    first_ns = max(begin_ns, spans[0].begin_ns) // UNIT_NS * UNIT_NS if spans else 0
    last_ns = min(end_ns - 1, spans[-1].end_ns) if spans else 0
    pass_ = _Pass(last_ns - first_ns, trace.head.resolution_ns)
    total = sum(one.ios for one in spans)
    for ios in trace.batches(begin_ns, end_ns):
        if len(ios):
            pass_.add(_from(ios, first_ns))
        if tell is not None:
            tell(pass_.ios / max(total, 1))
    return pass_.found(_windows(trace, first_ns, last_ns))


def _windows(trace: Trace, begin_ns: int, end_ns: int) -> list[int]:
    """Lengths of the windows in which the source was looked at, as far as they lie within a time."""
    told = trace.end.windows if trace.end is not None else ()
    lengths = [min(end, end_ns) - max(begin, begin_ns) for begin, end in told]
    within = [one for one in lengths if one > 0]
    return within if len(within) > 1 else [end_ns - begin_ns]


def _from(ios: Ios, first_ns: int) -> Ios:
    return Ios(ios.t_ns - first_ns, ios.queue_ns, ios.device_ns, ios.place_bytes, ios.size_bytes, ios.flags, ios.device,
               ios.process)  # fmt: skip


class _Pass:
    """One pass over a trace."""

    def __init__(self, span_ns: int, resolution_ns: int) -> None:
        self._span_ns = span_ns
        self.ios = 0
        self._counts: Counter[str] = Counter()
        self._sizes: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self._over_time, self._bursts = OverTime(span_ns), BurstCounts(resolution_ns)
        self._streams, self._extents, self._blocks = Streams(), Extents(), SampledBlocks()
        self._waiting = Waiting()
        self._timed = 0
        self._numbers: dict[str, int] = {}
        self._devices: dict[str, AskedIos] = {}
        self._processes: dict[str, AskedIos] = {}

    def add(self, ios: Ios) -> None:
        self.ios += len(ios)
        for name, flag in _KINDS.items():
            self._counts[name] += int(ios.has(flag).sum())
        moved = ios.has(IoFlag.READ) | ios.has(IoFlag.WRITE)
        flush = ios.has(IoFlag.FLUSH)
        self._counts["flushes"] += int((flush & ~moved).sum())
        self._counts["preflushes"] += int((flush & moved).sum())
        self._timed += int((ios.device_ns >= 0).sum())
        for counter, flag in zip(self._sizes, (IoFlag.READ, IoFlag.WRITE), strict=True):
            sizes, counts = np.unique(ios.size_bytes[ios.has(flag)], return_counts=True)
            counter.update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        device = self._numbered(ios.device)
        self._over_time.add(ios)
        self._bursts.add(ios.t_ns)
        self._streams.add(device, ios)
        self._extents.add(device, ios)
        self._blocks.add(device, ios)
        self._waiting.add(ios)
        _ask(self._devices, ios.device, ios)
        _ask(self._processes, ios.process, ios)

    def _numbered(self, column: TextColumn) -> Integers:
        own = [self._numbers.setdefault(text, len(self._numbers)) for text in column.texts]
        numbers: Integers = np.array(own, np.int64)[column.numbers]
        return numbers

    def found(self, windows: list[int]) -> TraceCharacter:
        streams, waits = self._streams, self._waiting.found()
        shares = [went_on / count if count else None
                  for went_on, count in zip(streams.sequential, streams.ios, strict=True)]  # fmt: skip
        sums = self._over_time.columns
        return TraceCharacter(
            span_ns=self._span_ns, windows=len(windows), covered_ns=sum(windows), ios=self.ios,
            counts=dict(self._counts),
            read_bytes=int(sums["read_bytes"].sum()), write_bytes=int(sums["write_bytes"].sum()),
            sizes=(dict(self._sizes[0]), dict(self._sizes[1])), over_time=self._over_time,
            # Pauses between windows would look like bursts.
            bursts=self._bursts.found(self._span_ns) if len(windows) == 1 else [],
            sequential=(shares[0], shares[1]),
            run_ios=streams.run_ios, interleaved=streams.interleaved,
            skew=self._extents.found(), reuse=self._blocks.found(), waits=waits,
            outstanding_mean=self._waiting.total_ns / sum(windows) if self._timed and sum(windows) else None,
            devices=self._devices, processes=self._processes,
        )  # fmt: skip


def _ask(asked: dict[str, AskedIos], column: TextColumn, ios: Ios) -> None:
    """Add I/Os to the names that asked for them."""
    read = ios.has(IoFlag.READ)
    length = len(column.texts)
    counts = np.bincount(column.numbers, minlength=length)
    reads = np.bincount(column.numbers[read], minlength=length)
    read_bytes = np.bincount(column.numbers, np.where(read, ios.size_bytes, 0), length)
    write_bytes = np.bincount(column.numbers, np.where(ios.has(IoFlag.WRITE), ios.size_bytes, 0), length)
    for number in np.flatnonzero(counts).tolist():
        name = column.texts[number]
        one = asked.setdefault(name if name in asked or len(asked) < NAMES_MAX else OTHERS, AskedIos())
        one.ios += int(counts[number])
        one.reads += int(reads[number])
        one.read_bytes += int(read_bytes[number])
        one.write_bytes += int(write_bytes[number])

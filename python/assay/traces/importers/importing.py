"""Importing traces: files are recognised, read once, put in order, looked at, and written as a trace of Assay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import count_of, format_bytes, format_duration
from assay.record.rows import TextColumn
from assay.traces.file import BATCH_IOS, TraceWriter
from assay.traces.head import DEVICES_MAX, NAME_MAX, TracedDevice, TraceHead
from assay.traces.importers.form import TraceForm
from assay.traces.importers.registry import TRACE_FORMS, form_named, form_of
from assay.traces.importers.sources import Source
from assay.traces.ios import IoFlag, Ios

DEVICE_BYTES_MAX = 2**53
"""Largest volume that any array offers is 4 PB; offsets beyond twice that were read in a wrong unit or order."""
FILES_MAX = 2000
_CAUTION_ALIGNED = 0.5


@dataclass
class ImportedTrace:
    """What was imported, and how it reads: whether a person would believe it.

    Attributes
    ----------
    offset_max_bytes
        The largest end of an I/O.
    aligned
        I/Os at a multiple of 4 KiB, and of 512 bytes.
    late
        I/Os that came later than the window of sorting reaches, and by how much at most.
    """

    title: str
    ios: int = 0
    reads: int = 0
    writes: int = 0
    offset_max_bytes: int = 0
    aligned: tuple[int, int] = (0, 0)
    first_ns: int = 0
    last_ns: int = 0
    late: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    devices: int = 0

    def line(self) -> str:
        """The reading in one line."""
        span = format_duration(max(self.last_ns - self.first_ns, 0) / 1e9)
        share = self.aligned[0] / max(self.ios, 1)
        known = max(self.reads + self.writes, 1)
        ios, devices = count_of(self.ios, "I/O"), count_of(self.devices, "device")
        return (f"{self.title}: {ios}, {self.reads / known:.0%} reads, {devices}, "
                f"offset max {format_bytes(self.offset_max_bytes)}, {share:.0%} at a multiple of 4 KiB, "
                f"span {span}")  # fmt: skip


def import_traces(
    paths: Sequence[Path], output: Path, *, form: str | None = None, device_bytes: int | None = None
) -> ImportedTrace:
    """Import files of one form as one trace.

    Parameters
    ----------
    paths
        The files; several are merged by time.
    output
        The trace, which must not exist.
    form
        Its name where the content does not tell it.
    device_bytes
        The size of the largest device; an I/O beyond it is refused.

    Raises
    ------
    UsageError
        A file cannot be read, its form is unknown, or what it says cannot be; nothing is left behind.
    OutOfSpace, IoFailed
        The trace cannot be written.
    """
    if len(paths) > FILES_MAX:
        raise UsageError(f"{len(paths):,} files are too many at once; {FILES_MAX:,} are merged at most")
    with ExitStack() as stack:
        sources = [stack.enter_context(Source(path)) for path in paths]
        of = _form(sources, form)()
        blocks = _in_order(of.ios(sources), found := ImportedTrace(of.title), device_bytes or DEVICE_BYTES_MAX, paths)
        first = next(blocks, None)
        notes = [note for source in sources for note in source.told()] if first is None else []
        if first is None:
            why = f"; {notes[-1]}" if notes else ""
            raise UsageError(f"{printable(paths[0])}: {of.title}: holds no I/O that can be used{why}")
        head = TraceHead(source=of.name, origin_utc_ns=of.origin_utc_ns(found.first_ns), times=of.times,
                         layer=of.layer, resolution_ns=of.resolution_ns,
                         notes=(of.remark,) if of.remark else ())  # fmt: skip
        writer = TraceWriter(output, head)
        try:
            with writer:
                _write(chain([first], blocks), writer, found, sources, of)
        except BaseException:
            with suppress(OSError):
                output.unlink()
            raise
    return found


def _write(blocks: Iterator[Ios], writer: TraceWriter, found: ImportedTrace, sources: Sequence[Source],
           of: TraceForm) -> None:  # fmt: skip
    ends: dict[str, int] = {}
    for ios in blocks:
        writer.write(ios)
        most = np.zeros(len(ios.device.texts), np.int64)
        np.maximum.at(most, ios.device.numbers, ios.place_bytes + ios.size_bytes)
        for name, end in zip(ios.device.texts, most.tolist(), strict=True):
            ends[name] = max(ends.get(name, 0), end)
        if len(ends) > DEVICES_MAX:
            raise UsageError(f"the trace names more than {DEVICES_MAX:,} devices, which no host has")
    found.devices = len(ends)
    notes = [note for source in sources for note in source.told()] + _doubts(found)
    found.notes = tuple(dict.fromkeys([of.remark, *notes] if of.remark else notes))[:100]
    own = tuple(note[:1000] for note in found.notes if note != of.remark)
    writer.close(devices=[TracedDevice(name=name) for name in ends], notes=own)


def _form(sources: Sequence[Source], asked: str | None) -> type[TraceForm]:
    known = ", ".join(one.name for one in TRACE_FORMS)
    if asked is not None:
        form = form_named(asked)
        if form is None:
            raise UsageError(f"--format: {asked!r} is no format of traces; accepted: {known}")
        return form
    forms = [form_of(source.head) for source in sources]
    for source, form in zip(sources, forms, strict=True):
        if form is None:
            raise UsageError(f"{printable(source.path)}: is of no format of traces that is known here; --format names "
                             f"one of {known}")  # fmt: skip
        if form is not forms[0]:
            raise UsageError(f"{printable(source.path)}: is {form.title}, and {printable(sources[0].path)} is "
                             f"{forms[0].title if forms[0] else ''}; import files of one format at a time")  # fmt: skip
    assert forms[0] is not None
    return forms[0]


def _in_order(blocks: Iterator[Ios], found: ImportedTrace, device_bytes: int, paths: Sequence[Path]) -> Iterator[Ios]:
    """Blocks whose times begin at zero and never go back, each of names that it has; figures are counted beside."""
    last_ns = -1
    for whole in blocks:
        for begin in range(0, len(whole), BATCH_IOS):
            ios = whole.where(slice(begin, begin + BATCH_IOS))
            if last_ns < 0:
                found.first_ns = last_ns = int(ios.t_ns[0])
            behind_ns = last_ns - ios.t_ns
            if behind_ns.max() > 0:
                count, most_ns = found.late
                found.late = count + int((behind_ns > 0).sum()), max(most_ns, int(behind_ns.max()))
            t_ns = np.maximum(ios.t_ns, last_ns)
            last_ns = found.last_ns = int(t_ns[-1])
            _count(ios, found, device_bytes, paths)
            yield Ios(t_ns - found.first_ns, ios.queue_ns, ios.device_ns, ios.place_bytes, ios.size_bytes, ios.flags,
                      _own_names(ios.device), _own_names(ios.process))  # fmt: skip


def _own_names(column: TextColumn) -> TextColumn:
    """The column with those texts alone that it has, as long as a head may hold."""
    numbers, own = np.unique(column.numbers, return_inverse=True)
    return TextColumn(own.astype(np.int32), [column.texts[number][:NAME_MAX] for number in numbers.tolist()])


def _count(ios: Ios, found: ImportedTrace, device_bytes: int, paths: Sequence[Path]) -> None:
    ends = ios.place_bytes + ios.size_bytes
    found.offset_max_bytes = max(found.offset_max_bytes, int(ends.max()))
    if found.offset_max_bytes > device_bytes:
        end = format_bytes(found.offset_max_bytes)
        raise UsageError(f"{printable(paths[0])}: {found.title}: an I/O ends at {end}, "
                         f"beyond {format_bytes(device_bytes)}: the format or its unit is another one, "
                         "or the file is damaged")  # fmt: skip
    found.ios += len(ios)
    found.reads += int(ios.has(IoFlag.READ).sum())
    found.writes += int(ios.has(IoFlag.WRITE).sum())
    four, sector = found.aligned
    found.aligned = (four + int((ios.place_bytes % 4096 == 0).sum()), sector + int((ios.place_bytes % 512 == 0).sum()))


def _doubts(found: ImportedTrace) -> list[str]:
    """What makes a reading doubtful."""
    doubts = []
    if found.aligned[1] < _CAUTION_ALIGNED * found.ios:
        doubts.append(f"only {found.aligned[1] / found.ios:.0%} of places are multiples of 512 bytes: the file may be "
                      "of another format, or its places in another unit")  # fmt: skip
    if found.late[0]:
        doubts.append(f"{found.late[0]:,} I/Os were earlier than a million others before them, by up to "
                      f"{found.late[1] / 1e9:,.3g} s; they take the time that had been reached")  # fmt: skip
    if found.ios > 1 and found.last_ns == found.first_ns:
        doubts.append("all I/Os have the same time")
    return doubts

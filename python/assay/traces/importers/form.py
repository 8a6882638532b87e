"""What a form of traces is to the import, and how its columns become I/Os."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from assay.base.paths import printable
from assay.base.units import count_of
from assay.record.rows import Integers, TextColumn
from assay.traces.importers.ordering import merged, sorted_within
from assay.traces.importers.sources import Source
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios, joined_ios

WINDOW_IOS = 2**20
"""I/Os of all files together among which times may go back: about 130 MB."""
WINDOW_LEAST = 2**13
TOLD_NS = 10**9
"""Times that go back by less are usual: many programs write an I/O when it completes."""
READ, WRITE = int(IoFlag.READ), int(IoFlag.WRITE)
T_NS_END, PLACE_END, SIZE_END = 2**62, 2**63, 2**32
SECTOR = 512

Fields = Sequence[Sequence[str]]
"""Columns of text, one sequence a column."""


class TraceForm(ABC):
    """A form of traces.

    Attributes
    ----------
    name
        What `--format` calls it.
    title
        What it is called in sentences.
    times
        What it tells of an I/O's time (`TraceHead.times`).
    resolution_ns
        How finely it tells times.
    has_wall_clock
        Whether its times are UTC; others count from some beginning.
    remark
        A sentence that every trace of this form carries.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    times: Literal["split", "whole", "none"] = "none"
    layer: Literal["queued", "issued"] = "issued"
    resolution_ns: int = 1000
    has_wall_clock: ClassVar[bool] = False
    remark: ClassVar[str] = ""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins so is of this form."""

    @abstractmethod
    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield the I/Os of a file, in its own order."""

    def ios(self, sources: Sequence[Source]) -> Iterator[Ios]:
        """Yield the I/Os of all files by time, as far as each is nearly in order."""
        window = max(WINDOW_IOS // len(sources), WINDOW_LEAST)
        ordered = [sorted_within(_watched(source, self.rows(source), window), joined_ios, window) for source in sources]
        yield from merged(ordered, joined_ios)

    def origin_utc_ns(self, first_ns: int) -> int | None:
        """When the first I/O was asked for, UTC; None where the form does not tell."""
        return first_ns if self.has_wall_clock and first_ns >= 0 else None


def _watched(source: Source, blocks: Iterator[Ios], window: int) -> Iterator[Ios]:
    """Blocks as they come; a clock that was set back further than sorting reaches goes on from where it was."""
    reached: deque[tuple[int, int]] = deque()
    latest_ns = early_ns = before_ns = -(2**62)
    rows = shift_ns = steps = worst_ns = 0
    for block in blocks:
        if not len(block):
            continue
        t_ns = block.t_ns + shift_ns
        back_ns = np.maximum.accumulate(np.concatenate([[latest_ns], t_ns]))[:-1] - t_ns
        steps += int((np.diff(t_ns, prepend=before_ns) < 0).sum())
        worst_ns = max(worst_ns, int(back_ns.max()))
        while reached and reached[0][0] <= rows - window:
            early_ns = reached.popleft()[1]
        if int(t_ns.max()) < early_ns:
            back = latest_ns - int(t_ns[0])
            source.note(f"{printable(source.path.name)}: the clock was set back by {back / 1e9:,.3g} s; times go on "
                        "from there")  # fmt: skip
            shift_ns += back
            t_ns = block.t_ns + shift_ns
        latest_ns, before_ns = max(latest_ns, int(t_ns.max())), int(t_ns[-1])
        rows += len(block)
        reached.append((rows, latest_ns))
        yield replace(block, t_ns=t_ns)
    if worst_ns >= TOLD_NS:
        source.note(f"{printable(source.path.name)}: times go back {count_of(steps, 'time')} in the file, by up to "
                    f"{worst_ns / 1e9:,.3g} s; the I/Os are sorted by their times")  # fmt: skip


def ios_of(
    *,
    t_ns: Integers,
    place_bytes: Integers,
    size_bytes: Integers,
    flags: npt.NDArray[np.integer],
    device: Sequence[str],
    device_ns: Integers | None = None,
    queue_ns: Integers | None = None,
    process: Sequence[str] | None = None,
) -> Ios:
    """Give the I/Os of columns.

    Raises
    ------
    ValueError
        A number is outside of what a trace holds.
    """
    for column, end in ((t_ns, T_NS_END), (place_bytes, PLACE_END - SIZE_END), (size_bytes, SIZE_END)):
        if len(column) and (column.min() < 0 or column.max() >= end):
            raise ValueError("a number is outside of its bounds")
    unknown = np.full(len(t_ns), UNKNOWN_NS)
    nobody = TextColumn(np.zeros(len(t_ns), np.int32), [""])
    return Ios(
        t_ns, unknown if queue_ns is None else queue_ns, unknown if device_ns is None else device_ns,
        place_bytes, size_bytes, flags.astype(np.uint16), TextColumn.of(device),
        nobody if process is None else TextColumn.of(process),
    )  # fmt: skip


def taken(lines: list[Sequence[str]], source: Source, make: Callable[[Fields], Ios]) -> Ios | None:
    """I/Os of rows of fields; rows that are not understood are counted, and the others taken."""
    if not lines:
        return None
    try:
        return make(list(zip(*lines, strict=True)))
    except (ValueError, OverflowError, KeyError, IndexError):
        pass
    if len(lines) == 1:
        source.bad(" ".join(lines[0]))
        return None
    half = len(lines) // 2
    parts = [one for part in (lines[:half], lines[half:]) if (one := taken(part, source, make)) is not None]
    return joined_ios(parts) if parts else None


def integers(texts: Iterable[str], factor: int = 1) -> Integers:
    """Integers of a column of decimal texts."""
    return np.fromiter((int(text) * factor for text in texts), np.int64)


def ns_of(texts: Iterable[str], digits: int) -> Integers:
    """Nanoseconds of decimal texts in units of 10^-digits seconds, exact to the nanosecond.

    Examples
    --------
    >>> ns_of(["1456135200.013118", "0.5", "7"], 0).tolist()
    [1456135200013118000, 500000000, 7000000000]
    """
    places = 9 - digits
    unit: int = 10**places

    def one(text: str) -> int:
        whole, _, rest = text.strip().partition(".")
        if "e" in rest or "E" in rest:
            return round(float(text) * unit)
        return int(whole or 0) * unit + (int(rest[:places].ljust(places, "0")) if rest and places else 0)

    return np.fromiter(map(one, texts), np.int64)


def directions(texts: Iterable[str], words: dict[str, int]) -> npt.NDArray[np.uint16]:
    """Flags of a column of words; a word that is not known is a KeyError."""
    return np.fromiter((words[text] for text in texts), np.uint16)

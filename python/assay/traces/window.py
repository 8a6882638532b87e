"""A window of a trace: part of its time, by offset, by the clock, or where it is busiest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.base.errors import UsageError
from assay.base.units import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.record.rows import Integers
    from assay.traces.file import Trace

ACCEPTED = "accepted: busiest:10m, 5m-15m, 10:00-10:10 (UTC)"
SECOND_NS, DAY_NS = 10**9, 86_400 * 10**9
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


@dataclass(frozen=True)
class Busiest:
    """The busiest part of this length."""

    length_ns: int


@dataclass(frozen=True)
class Between:
    """From one time to another: since the trace's begin, or of the day in UTC."""

    begin_ns: int
    end_ns: int
    is_clock: bool


def window_of(text: str) -> Busiest | Between:
    """Read a window.

    Raises
    ------
    ValueError
        It is none.

    Examples
    --------
    >>> window_of("busiest:10m"), window_of("90s-2m").end_ns
    (Busiest(length_ns=600000000000), 120000000000)
    >>> window_of("10:00-10:10").begin_ns // 10**9
    36000
    """
    if text.startswith("busiest:"):
        length_ns = _duration_ns(text.removeprefix("busiest:"), text)
        if length_ns <= 0:
            raise ValueError(f"{text!r} is no window: it has no length; {ACCEPTED}")
        return Busiest(length_ns)
    begin, dash, end = text.partition("-")
    if not dash:
        raise ValueError(f"{text!r} is no window; {ACCEPTED}")
    clocks = [_CLOCK.fullmatch(one) for one in (begin, end)]
    if all(clocks):
        first, last = (sum(int(part or 0) * unit for part, unit in zip(one.groups(), (3600, 60, 1), strict=True))
                       * SECOND_NS for one in clocks if one is not None)  # fmt: skip
        return Between(first, last if last > first else last + DAY_NS, is_clock=True)
    first, last = _duration_ns(begin, text), _duration_ns(end, text)
    if last <= first:
        raise ValueError(f"{text!r} is no window: it ends before it begins")
    return Between(first, last, is_clock=False)


def _duration_ns(text: str, whole: str) -> int:
    try:
        return round(parse_duration(text))
    except UsageError:
        raise ValueError(f"{whole!r} is no window; {ACCEPTED}") from None


def chosen_window(trace: Trace, text: str) -> tuple[int, int]:
    """Begin and end of a window of a trace, as times since its origin; its whole where the text is empty.

    Raises
    ------
    UsageError
        The window holds no I/O, the trace does not tell the time of the day, or it is damaged.
    """
    from assay.traces.file import UNIT_NS

    spans = trace.spans
    if not spans:
        raise UsageError(f"{trace.path}: holds no I/O")
    # The file keeps times to its unit.
    first_ns, last_ns = spans[0].begin_ns // UNIT_NS * UNIT_NS, spans[-1].end_ns
    if not text:
        return first_ns, last_ns + 1
    window = window_of(text)
    if isinstance(window, Busiest):
        return _busiest(trace, window.length_ns, first_ns, last_ns)
    begin_ns, end_ns = window.begin_ns + first_ns, window.end_ns + first_ns
    if window.is_clock:
        origin_ns = trace.head.origin_utc_ns
        if origin_ns is None:
            raise UsageError(f"--window {text}: {trace.path} does not tell the time of the day; give offsets: 5m-15m")
        # The first such time at which the trace has begun and not ended.
        day_ns = (origin_ns + first_ns) // DAY_NS * DAY_NS - origin_ns
        begin_ns, end_ns = day_ns + window.begin_ns, day_ns + window.end_ns
        if end_ns <= first_ns:
            begin_ns, end_ns = begin_ns + DAY_NS, end_ns + DAY_NS
    if begin_ns > last_ns or end_ns <= first_ns:
        length = format_duration((last_ns - first_ns) / 1e9)
        raise UsageError(f"--window {text}: {trace.path} has no I/O then; it lasts {length}")
    return max(begin_ns, 0), end_ns


def _busiest(trace: Trace, length_ns: int, first_ns: int, last_ns: int) -> tuple[int, int]:
    """The window with the most I/Os, to a hundredth of its length and no finer than a millisecond."""
    import numpy as np

    step_ns = max(length_ns // 100, 10**6, (last_ns - first_ns) // 10_000_000)
    counts = np.zeros((last_ns - first_ns) // step_ns + 1, np.int64)
    for ios in trace.batches():
        places, found = np.unique((ios.t_ns - first_ns) // step_ns, return_counts=True)
        counts[places] += found
    begin_ns = first_ns + busiest_steps(counts, max(length_ns // step_ns, 1)) * step_ns
    return begin_ns, begin_ns + length_ns


def busiest_steps(counts: Sequence[int] | Integers, length: int) -> int:
    """The step from which on this number of steps has the largest sum.

    Examples
    --------
    >>> busiest_steps([1, 5, 5, 0, 9], 2), busiest_steps([3], 10)
    (1, 0)
    """
    import numpy as np

    sums = np.concatenate([[0], np.cumsum(counts)])
    length = min(length, len(sums) - 1)
    return int(np.argmax(sums[length:] - sums[: len(sums) - length]))

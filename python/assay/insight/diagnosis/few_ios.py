"""Latencies of few I/Os: steps that complete few are judged together, since the slowest disks complete fewest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

IOS_MIN = 20.0
"""I/Os below which a mean latency is one of chance (DPACK calls latency below 100 sustained IOPS unreliable)."""

POOL_S = 600.0
"""Steps are pooled over at most this time, the window over which signals are judged."""

UNDER_WAY_MIN = 0.5
"""Fewer I/Os are enough where one was under way for half of the time: then their mean is no accident (Little's law)."""


def pooled(latency_ns: Numbers, ios_per_s: Numbers, queue: Numbers | None, step_s: float) -> Numbers:
    """Mean latencies in which each step stands for 20 I/Os at least.

    Steps with fewer I/Os are put together with the few-I/O steps that follow, until they hold 20 or `POOL_S` is over.
    All steps of such a pool in which an I/O completed or was under way get the pool's mean, weighted by I/Os. Pools
    that stay below 20 have no value, unless their I/Os took half of the time or longer.

    Examples
    --------
    >>> few, none = np.full(4, 5.0), None
    >>> pooled(np.array([1e6, 3e6, 1e6, 3e6]), few, none, 2.0).tolist()
    [2000000.0, 2000000.0, 2000000.0, 2000000.0]
    >>> pooled(np.array([1e6]), np.array([5.0]), none, 1.0).tolist()
    [nan]
    """
    counts = np.nan_to_num(ios_per_s) * step_s
    made = np.where(counts >= IOS_MIN, latency_ns, np.nan)
    done = (counts > 0) & np.isfinite(latency_ns)
    busy = done if queue is None else done | (np.nan_to_num(queue) >= UNDER_WAY_MIN)
    few = np.flatnonzero(busy & (counts < IOS_MIN))
    longest = max(round(POOL_S / step_s), 1)
    begin = 0
    total = weight = 0.0
    for place, step in enumerate(few):
        if done[step]:
            total, weight = total + counts[step] * latency_ns[step], weight + counts[step]
        is_last = place + 1 == len(few) or few[place + 1] - few[begin] >= longest
        if weight < IOS_MIN and not is_last:
            continue
        span_ns = (step - few[begin] + 1) * step_s * 1e9
        if weight and (weight >= IOS_MIN or total >= UNDER_WAY_MIN * span_ns):
            made[few[begin : place + 1]] = total / weight
        begin, total, weight = place + 1, 0.0, 0.0
    return made

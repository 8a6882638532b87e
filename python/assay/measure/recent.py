"""Percentiles of what is under way: the core merges the histograms of the newest ticks, and is seldom asked to."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence

from assay.base.progress import Gauge

EVERY_S = 1.0
"""Percentiles are read no more often."""
CPU_SHARE_MAX = 0.005
"""Most of a processor that reading them takes: it is read the more seldom the longer it takes."""
BEYOND_MIN = 1
"""A percentile needs as many values beyond it; else the largest value would be shown under another name."""
SHOWN = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}

Merged = Callable[[int, int], str]
"""What the core has of the complete ticks `from..to`, as JSON: the histograms of all workers, merged."""


class RecentPercentiles:
    """Percentiles of the newest ticks, as gauges.

    Parameters
    ----------
    sides
        Keys of what is merged, and their titles: `read` and `write` of I/O, `total` of transactions.
    activity
        Position of the activity whose I/Os are meant; all activities together unless it is given.
    limit
        The name that limits have for a side and statistic, such as `{side}.{statistic}`; empty where none bounds it.
    clock_s, cpu_ns
        Clocks: of the wall, and of the processor time of this thread.
    """

    def __init__(
        self,
        sides: Mapping[str, str],
        *,
        activity: int | None = None,
        limit: str = "",
        clock_s: Callable[[], float] = time.monotonic,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._sides, self._activity, self._limit = dict(sides), activity, limit
        self._clock_s, self._cpu_ns = clock_s, cpu_ns
        self._due_s = -math.inf
        self._kept: Sequence[Gauge] = ()

    def gauges(self, merged: Merged, from_tick: int, to_tick: int) -> Sequence[Gauge]:
        """Percentiles over the complete ticks `from_tick..to_tick`; until they are due again, those of before."""
        if from_tick >= to_tick or self._clock_s() < self._due_s:
            return self._kept
        began_ns = self._cpu_ns()
        told = json.loads(merged(from_tick, to_tick))
        told = told if self._activity is None else told["activities"][self._activity]
        self._kept = [gauge for side, title in self._sides.items() for gauge in self._of(side, title, told.get(side))]
        took_s = (self._cpu_ns() - began_ns) / 1e9
        self._due_s = self._clock_s() + max(EVERY_S, took_s / CPU_SHARE_MAX)
        return self._kept

    def _of(self, side: str, title: str, told: Mapping[str, object] | None) -> list[Gauge]:
        """Gauges of a side; none where nothing of it ended, and no value where too few I/Os did."""
        latency = told.get("latency_ns") if told else None
        count = told.get("count") if told else None
        if not isinstance(latency, Mapping) or not isinstance(count, int):
            return []
        found = []
        for statistic, share in SHOWN.items():
            words = statistic.replace("_", ".")
            value = latency.get(statistic) if round(count * (1 - share), 9) >= BEYOND_MIN else None
            limit = self._limit.format(side=side, statistic=words)
            name = f"{side}_{statistic}_ns"
            found.append(Gauge(name=name, title=f"{title} {words}", value=value, unit="ns", limit=limit))
        return found

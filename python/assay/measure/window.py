"""The window of a point: the ticks that count, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from assay.record.steady import Steadiness, steady_state
from assay.telemetry import ticks

if TYPE_CHECKING:
    from assay.measure.core_reports import FileTick
    from assay.record.shapes.point import Batches

NOT_JUDGED = Steadiness(reached=False, slope_share=None, half_width_share=None)
"""Of a window whose length is given, whatever it holds."""


@dataclass(kw_only=True)
class Window:
    """Ticks of a run that count as a point.

    Attributes
    ----------
    started_ns
        Begin of tick 0, UTC.
    interval_s
        Length of a tick.
    from_tick, to_tick
        The first tick that counts, and the first after it.
    clock
        `virtual` on a model.
    warmup_s
        Time before the window in which the load ran and did not count.
    ended_by
        `time`, `steady`, `failed`, `interrupted` or `not-answering`.
    steady
        Whether the window was steady; None where steadiness has no meaning.
    exact_ns
        Begin and end from the begin of tick 0, where these are not those of ticks.
    """

    started_ns: int
    interval_s: float
    from_tick: int = 0
    to_tick: int = 0
    clock: Literal["wall", "virtual"] = "wall"
    warmup_s: float = 0.0
    ended_by: str = "time"
    steady: Steadiness | None = field(default=NOT_JUDGED)
    exact_ns: tuple[int, int] | None = None

    @property
    def seconds(self) -> float:
        """Length of the window."""
        if self.exact_ns is not None:
            return (self.exact_ns[1] - self.exact_ns[0]) / 1e9
        return (self.to_tick - self.from_tick) * self.interval_s

    @property
    def start_ns(self) -> int:
        """Begin of the window, UTC."""
        return self.started_ns + self.exact_ns[0] if self.exact_ns is not None else self.at_ns(self.from_tick)

    @property
    def end_ns(self) -> int:
        """End of the window, UTC."""
        return self.started_ns + self.exact_ns[1] if self.exact_ns is not None else self.at_ns(self.to_tick)

    def at_ns(self, tick: int) -> int:
        """Begin of a tick, UTC."""
        return self.started_ns + round(tick * self.interval_s * 1e9)

    def judge_steady(self, values: Sequence[float]) -> Steadiness:
        """Judge whether values of each tick, oldest first, neither drift nor spread more than allowed; keep that."""
        self.steady = steady_state(values)
        return self.steady

    def batches(self, counted: Sequence[FileTick]) -> Batches:
        """Figures of I/Os over equal parts of the window, from which intervals are computed (`telemetry.ticks`)."""
        found = ticks.batches(counted, self.from_tick, self.to_tick, self.interval_s)
        return {"seconds": found["seconds"], "read": found["read"], "write": found["write"], "total": found["total"]}

    def rate_batches(self, per_tick: Sequence[int], seconds: float) -> tuple[float, list[float]]:
        """Length of equal parts of the window, and the rate of completions in each, per `seconds`.

        Parameters
        ----------
        per_tick
            Counts of the ticks of the window.
        """
        each = max(len(per_tick) // ticks.BATCHES, 1)
        sums = [sum(per_tick[first : first + each]) for first in range(0, len(per_tick) // each * each, each)]
        length_s = each * self.interval_s
        return length_s, [count / length_s * seconds for count in sums]

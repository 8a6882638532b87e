"""Sorting and merging what is nearly in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from assay.record.rows import Integers


class Timed(Protocol):
    """Rows with times."""

    @property
    def t_ns(self) -> Integers:
        """The time of each row."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...

    def where(self, chosen: Any) -> Self:
        """Give the chosen rows."""
        ...


TimedRows = TypeVar("TimedRows", bound=Timed)
Join = Callable[[Sequence[TimedRows]], TimedRows]


def sorted_within(blocks: Iterator[TimedRows], join: Join[TimedRows], window: int) -> Iterator[TimedRows]:
    """Yield rows by time: each may come up to `window` rows after its place."""
    waiting: list[TimedRows] = []
    for block in blocks:
        if not len(block):
            continue
        waiting.append(block)
        if sum(map(len, waiting)) >= 2 * window:
            whole = _by_time(join(waiting))
            yield whole.where(slice(0, window))
            waiting = [whole.where(slice(window, None))]
    if waiting:
        yield _by_time(join(waiting))


def merged(sources: Sequence[Iterator[TimedRows]], join: Join[TimedRows]) -> Iterator[TimedRows]:
    """Merge sources that are by time; rows of one time stay in the order of the sources."""
    if len(sources) == 1:
        yield from sources[0]
        return
    heads: list[TimedRows | None] = [next(one, None) for one in sources]
    while present := [head for head in heads if head is not None and len(head)]:
        horizon_ns = min(int(head.t_ns[-1]) for head in present)
        parts = []
        for number, head in enumerate(heads):
            if head is None:
                continue
            taken = int(np.searchsorted(head.t_ns, horizon_ns, "right"))
            parts.append(head.where(slice(0, taken)))
            heads[number] = head.where(slice(taken, None)) if taken < len(head) else next(sources[number], None)
        yield _by_time(join(parts))


def _by_time(rows: TimedRows) -> TimedRows:
    return rows.where(np.argsort(rows.t_ns, kind="stable")) if (np.diff(rows.t_ns) < 0).any() else rows

"""Reading a flight recording: each time at the level that is wanted, from what files are whole."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.base.errors import RunFolderError
from assay.base.paths import printable
from assay.record.flight_segments import (
    MINUTE_NS,
    ROLLED_NS,
    TIME_MAX_NS,
    SampleLayout,
    Segment,
    faults,
    floor_ns,
    layouts_of,
    opened,
    reason_of,
    recording_at,
)
from assay.record.rolled import VALUE_MAX, Rolled, floats_of, unpack_block, unpack_rolled

if TYPE_CHECKING:
    import sqlite3

VALUES_MAX = (4_000_000, 4_000_000, 4_000_000)
"""Values that are read of each level: the newest; what is older is read at the next."""

INTERVAL_MAX_NS = 366 * 24 * 60 * MINUTE_NS


class Samples(NamedTuple):
    """Samples of a layout: times and lengths of their intervals, and columns by series."""

    layout: SampleLayout
    times: list[tuple[int, int]]
    columns: list[array[float]]


class Rolls(NamedTuple):
    """Rolled-up values of a layout, which end at a time."""

    layout: SampleLayout
    level: int
    t_ns: int
    values: list[Rolled | None]


class _Head(NamedTuple):
    """A row of a segment before its values are read."""

    t_ns: int
    rowid: int
    number: int
    values_count: int


Source = tuple[str, str, str]


class RecordingReader:
    """A recording read level by level: each time of a source at the first level that has it, and from whole files.

    Parameters
    ----------
    path
        Folder of the recording.
    since_ns, until_ns
        What ended after the one, and until the other.
    takes
        Which layouts.

    Raises
    ------
    RunFolderError
        The folder cannot be read, or no file in it.
    """

    def __init__(
        self, path: Path, *, since_ns: int = 0, until_ns: int = TIME_MAX_NS,
        takes: Callable[[SampleLayout], bool] = lambda _: True,
    ) -> None:  # fmt: skip
        self.unread: list[str] = []
        """What could not be read, a sentence each."""
        self._folder, self._segments = recording_at(path)
        self._since_ns, self._until_ns, self._takes = since_ns, until_ns, takes
        self._minutes: dict[int, set[tuple[int, Source]]] = {0: set(), 1: set()}
        self._quarters: dict[int, set[tuple[int, Source]]] = {0: set(), 1: set(), 2: set()}
        self._failed: dict[str, str] = {}
        self._parts_count = self._newest_ns = 0

    def parts(self, order: Sequence[int]) -> Iterator[Samples | Rolls]:
        """What is kept of each time at the first of these levels that holds it.

        Raises
        ------
        RunFolderError
            No file can be read.
        """
        for place, level in enumerate(order):
            own = [one for one in self._segments if level in one.levels]
            from_ns = self._from_ns(level, own, order[:place])
            for segment in own:
                with self._forgiving(segment), opened(self._folder, segment.name) as connection:
                    # One moment of it, while the recorder goes on.
                    connection.execute("BEGIN")
                    layouts = layouts_of(connection)
                    for head in self._whole_heads(segment, connection, layouts, level, order[:place]):
                        if head.t_ns > from_ns and (part := self._part(segment, connection, layouts, level, head)):
                            self._parts_count += 1
                            yield part
                    if not level:
                        for samples in self._fresh(connection, layouts):
                            self._parts_count += 1
                            yield samples
            if not level and self._newest_ns and own[-1].name not in self._failed:
                # What came while samples were read is not told at a coarser level, with a gap before it.
                self._until_ns = min(self._until_ns, self._newest_ns)
        if not self._parts_count and len(self._failed) == len(self._segments):
            raise RunFolderError(next(iter(self._failed.values())))

    @contextmanager
    def _forgiving(self, segment: Segment) -> Iterator[None]:
        """Go on without the rest of a file that cannot be read; what was read of it is whole."""
        try:
            yield
        except FileNotFoundError:
            # Its time is over: the recorder removed it.
            pass
        except RunFolderError as error:
            self._note(segment, str(error))

    def _note(self, segment: Segment, text: str) -> None:
        if segment.name not in self._failed:
            self._failed[segment.name] = text
            self.unread.append(f"{text}; what cannot be read of it is left out, or told at a coarser level")

    def _from_ns(self, level: int, own: Sequence[Segment], before: Sequence[int]) -> int:
        """Where the values begin that are read of a level: as many of the newest as are read."""
        room = VALUES_MAX[level]
        for segment in reversed(own):
            with self._forgiving(segment), opened(self._folder, segment.name) as connection:
                for head in self._heads(connection, layouts_of(connection), level, before):
                    room -= head.values_count
                    if room < 0:
                        self.unread.append(
                            f"more was recorded than is read: what is older than the newest {VALUES_MAX[level]:,}"
                            f" values of {('samples', 'minutes', 'quarter hours')[level]} is"
                            f" {'left out' if level == 2 else 'told at a coarser level'}"
                        )
                        return floor_ns(head.t_ns, ROLLED_NS[2]) + ROLLED_NS[2]
        return 0

    def _heads(
        self, connection: sqlite3.Connection, layouts: dict[int, SampleLayout], level: int, before: Sequence[int]
    ) -> Iterator[_Head]:
        """Rows of a level that no level read before holds, the newest first."""
        if level:
            query = "SELECT t_ns, rowid, layout, 1 FROM rolled WHERE level = ? AND t_ns > ? AND t_ns <= ?"
            rows = connection.execute(f"{query} ORDER BY t_ns DESC", (level, self._since_ns, self._until_ns))
        else:
            query = "SELECT end_ns, rowid, layout, samples FROM blocks WHERE end_ns > ? AND begin_ns < ?"
            rows = connection.execute(f"{query} ORDER BY end_ns DESC", (self._since_ns, self._until_ns))
        taken = {number for number, layout in layouts.items() if self._takes(layout)}
        for t_ns, rowid, number, samples in rows:
            layout = layouts[number]
            if number in taken and not self._is_told(level, int(t_ns), layout, before):
                yield _Head(int(t_ns), int(rowid), int(number), int(samples) * len(layout.series))

    def _is_told(self, level: int, t_ns: int, layout: SampleLayout, before: Sequence[int]) -> bool:
        source = (layout.tier, layout.host, layout.source)
        quarter = (floor_ns(t_ns, ROLLED_NS[2]), source)
        if level == 2:
            return any(quarter in self._quarters[other] for other in before)
        minute = (floor_ns(t_ns, MINUTE_NS), source)
        return any(quarter in self._quarters[2] if other == 2 else minute in self._minutes[other] for other in before)

    def _told(self, level: int, t_ns: int, layout: SampleLayout) -> None:
        source = (layout.tier, layout.host, layout.source)
        self._quarters[level].add((floor_ns(t_ns, ROLLED_NS[2]), source))
        if not level:
            self._newest_ns = max(self._newest_ns, t_ns)
        if level < 2:
            self._minutes[level].add((floor_ns(t_ns, MINUTE_NS), source))

    def _whole_heads(
        self, segment: Segment, connection: sqlite3.Connection, layouts: dict[int, SampleLayout], level: int,
        before: Sequence[int],
    ) -> list[_Head]:  # fmt: skip
        """Rows as of `_heads`, the oldest first; of a damaged table those before the damage."""
        found: list[_Head] = []
        try:
            found.extend(self._heads(connection, layouts, level, before))
        except faults() as error:
            self._note(segment, self._fault(segment, error))
        return found[::-1]

    def _part(
        self,
        segment: Segment,
        connection: sqlite3.Connection,
        layouts: dict[int, SampleLayout],
        level: int,
        head: _Head,
    ) -> Samples | Rolls | None:
        """Values of a row; None where they are damaged."""
        table = "rolled" if level else "blocks"
        layout = layouts[head.number]
        found: Samples | Rolls
        try:
            (data,) = connection.execute(f"SELECT data FROM {table} WHERE rowid = ?", (head.rowid,)).fetchone()
            if level:
                found = Rolls(layout, level, head.t_ns, unpack_rolled(data))
            else:
                found = Samples(layout, *unpack_block(data))
        except faults() as error:
            self._note(segment, self._fault(segment, error))
            return None
        self._told(level, head.t_ns, layout)
        return found

    def _fault(self, segment: Segment, error: Exception) -> str:
        return f"{printable(self._folder.path / segment.name)}: cannot be read: {reason_of(error)}"

    def _fresh(self, connection: sqlite3.Connection, layouts: dict[int, SampleLayout]) -> Iterator[Samples]:
        """What is in no minute yet, and so in no level that was read before."""
        query = "SELECT t_ns, interval_ns, layout, data FROM fresh WHERE t_ns > ? AND t_ns <= ? ORDER BY t_ns"
        for t_ns, interval_ns, number, data in connection.execute(query, (self._since_ns, self._until_ns)):
            layout = layouts[number]
            if self._takes(layout):
                values = floats_of(data)
                yield Samples(layout, [(int(t_ns), int(interval_ns))], [array("d", (one,)) for one in values])
                self._told(0, int(t_ns), layout)


def is_reading(t_ns: int, interval_ns: int, value: float) -> bool:
    """Whether a value is one that a recorder can have seen: what a file says beyond is left out."""
    return 0 < t_ns < TIME_MAX_NS and 0 < interval_ns <= INTERVAL_MAX_NS and abs(value) < VALUE_MAX

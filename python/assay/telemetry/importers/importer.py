"""What a format is to the importer: how it is recognised, and how its rows are handed over.

An importer reads a file once, from its beginning to its end, and keeps nothing of it but names: files of a gigabyte
take no more memory than small ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, TextIO

from assay.errors import UsageError
from assay.telemetry.columns import Reading, SeriesColumns

if TYPE_CHECKING:
    import pyarrow as pa

FLUSH_ROWS = 2**14
"""Rows that are handed on together."""

VALUES_MAX = 25_000_000
"""Values of a recording that are read again (`assay.results.series.ROWS_MAX`)."""

T_NS_END = 2**63
"""Nanoseconds that a time may have: until the year 2262."""

VALUE_LARGEST = 1e24
"""Beyond all that is counted, and small enough that squares and sums of it stay finite."""

NO_USE = "no use is made of it"
"""Why a name is left out that Assay knows nothing to do with."""

NAMES_MAX = 2000
"""Names of what was left out that are kept for people."""

HEAD_CHARACTERS = 64 * 1024
"""How much of a file's beginning its format is recognised by: a header of thousands of counters is one line."""


class NotTaken(UsageError):
    """A file that cannot be imported; the line says why, and what to do."""


@dataclass(kw_only=True)
class Taken:
    """What became of one file.

    Attributes
    ----------
    counters
        Names in the file that were taken, and the metrics they became.
    ignored
        Names that were not, and why.
    rows
        Values taken.
    hosts
        Names of the hosts that the file tells of.
    from_ns, to_ns
        Beginning of the first interval and end of the last, UTC.
    notes
        What a reader must know: an assumed zone, a clock that went back.
    """

    format: str
    counters: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    hosts: list[str] = field(default_factory=list)
    from_ns: int | None = None
    to_ns: int | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes:
            self.notes.append(text)

    def ignore(self, name: str, reason: str) -> None:
        """Say of a name that it is not taken."""
        if name in self.ignored or len(self.ignored) < NAMES_MAX:
            self.ignored.setdefault(name, reason)
        else:
            self.note(f"more than {NAMES_MAX:,} names are left out; the first are listed")


@dataclass(kw_only=True)
class Options:
    """What the user says of the files.

    Attributes
    ----------
    host
        Name for hosts that a file does not name.
    zone_s
        Seconds to add to UTC for the local time of files that do not say theirs; None: that of this machine.
    roles
        Role of a device or volume, by its name.
    """

    host: str = "imported"
    zone_s: int | None = None
    roles: Mapping[str, str] = field(default_factory=dict)


class Into:
    """Where an importer hands its rows over.

    Attributes
    ----------
    taken
        What became of the file so far.
    """

    def __init__(self, name: str, options: Options, write: Callable[[Sequence[pa.RecordBatch]], None]) -> None:
        self.options, self.taken = options, Taken(format=name)
        self._write = write
        self._columns = SeriesColumns()
        self._pending = 0
        self._last_ns: dict[str, int] = {}
        self._late: dict[str, int] = {}

    def add(
        self, readings: Iterable[Reading], *, host: str, t_ns: int, interval_ns: int, tier: str, source: str
    ) -> None:
        """Hand over what was found over one interval; call `advance` first.

        Parameters
        ----------
        t_ns
            End of the interval, UTC.
        tier, source
            As in the series schema (docs/results.md).
        """
        taken = self.taken
        given = list(readings)
        # What is no number compares with none.
        found = [self._with_role(one) for one in given if -VALUE_LARGEST <= one.value <= VALUE_LARGEST]
        if not 0 <= interval_ns <= t_ns < T_NS_END:
            taken.note("rows with an interval that began before 1970 are left out")
            return
        if len(found) < len(given):
            taken.note("values that no counter has, such as 1e300, are left out")
        if not found:
            return
        self._columns.add(found, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source, host=host)
        taken.rows += len(found)
        if taken.rows > VALUES_MAX:
            raise NotTaken(
                f"holds more than the {VALUES_MAX:,} values that a recording keeps: thin it, as relog -t 10 and sadf"
                " with an interval do, or export fewer counters"
            )
        if host not in taken.hosts:
            taken.hosts.append(host)
        begin_ns = t_ns - interval_ns
        taken.from_ns = begin_ns if taken.from_ns is None else min(taken.from_ns, begin_ns)
        taken.to_ns = t_ns if taken.to_ns is None else max(taken.to_ns, t_ns)
        self._pending += len(found)
        if self._pending >= FLUSH_ROWS:
            self.flush()

    def advance(self, host: str, t_ns: int) -> int | None:
        """Nanoseconds from the row before to this one, 0 for the first; None where the clock went back.

        Such a row is to be left out.
        """
        if not 0 <= t_ns < T_NS_END:
            self.taken.note("rows with a time before 1970 or after 2262 are left out")
            return None
        before = self._last_ns.get(host)
        if before is not None and t_ns <= before:
            if not self._late.get(host):
                back_s = (before - t_ns) / 1e9
                self.taken.note(
                    f"the clock of {host} went back by {back_s:,.0f} s at {at_text(before)}; rows until it had caught"
                    " up are left out"
                )
            self._late[host] = self._late.get(host, 0) + 1
            return None
        self._last_ns[host] = t_ns
        return 0 if before is None else t_ns - before

    def flush(self) -> None:
        """Hand on what was added."""
        self._write(self._columns.take())
        self._pending = 0

    @property
    def late_rows(self) -> int:
        """Rows that were left out since the clock had gone back."""
        return sum(self._late.values())

    def _with_role(self, reading: Reading) -> Reading:
        roles = self.options.roles
        if not roles or reading.role:
            return reading
        names = {reading.entity, *reading.entity.split()}
        role = next((role for name, role in roles.items() if name in names), "")
        return reading._replace(role=role) if role else reading


class Importer(ABC):
    """One format. Add a module with one and a line in `registry.py`."""

    name: ClassVar[str]
    """As results name it."""
    title: ClassVar[str]
    """For people."""

    @abstractmethod
    def recognises(self, head: str) -> bool:
        """Whether a file that begins so is of this format."""

    @abstractmethod
    def read(self, file: TextIO, into: Into) -> None:
        """Read a file and hand its rows over.

        Raises
        ------
        NotTaken
            It is of the format, and cannot be used.
        """


def utc_ns(at: datetime) -> int:
    """A time with its zone as UTC nanoseconds, exactly.

    Examples
    --------
    >>> utc_ns(datetime(1970, 1, 1, 1, tzinfo=UTC))
    3600000000000
    """
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def at_text(t_ns: int) -> str:
    """A time for messages: UTC to the second."""
    return f"{datetime.fromtimestamp(t_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(text: str) -> float | None:
    """A number as tools write it, with a point or a comma; None for what is none, as a blank.

    Examples
    --------
    >>> number(" 12.5"), number("0,25"), number(" "), number("n/a"), number("nan")
    (12.5, 0.25, None, None, None)
    """
    try:
        value = float(text.replace(",", ".") if "," in text and "." not in text else text)
    except ValueError:
        return None
    return value if value - value == 0.0 else None

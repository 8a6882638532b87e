"""What a format is to the importer: how it is recognised, and how its rows are handed over.

An importer reads a file once, from its beginning to its end, and keeps nothing of it but names: files of a gigabyte
take no more memory than small ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, TextIO

from assay.base.errors import UsageError
from assay.telemetry.columns import Reading, SeriesColumns

if TYPE_CHECKING:
    import pyarrow as pa

FLUSH_ROWS = 2**14
"""Rows that are handed on together."""

VALUES_MAX = 8_000_000
"""Values of a recording: what import, report and diagnosis hold in about a gigabyte of memory."""

LOOK_ROWS = 2**18
"""After so many rows it is estimated how many a file will have."""

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
class TakenFile:
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
    values_max
        How many values of a file are kept.
    """

    host: str = "imported"
    zone_s: int | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    values_max: int = VALUES_MAX


class Into:
    """Where an importer hands its rows over.

    A file with more values than are kept is thinned while it is read: some samples become one.

    Parameters
    ----------
    share
        How much of the file has been read, from 0 to 1.

    Attributes
    ----------
    taken
        What became of the file so far.
    """

    def __init__(
        self,
        name: str,
        options: Options,
        write: Callable[[Sequence[pa.RecordBatch]], None],
        *,
        share: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.options, self.taken = options, TakenFile(format=name)
        self._write = write
        self._share, self._values_max = share, options.values_max
        self._look_at = min(LOOK_ROWS, options.values_max // 2)
        self._looked = 0, 0.0
        self._at_once = 1
        self._merging: dict[tuple[str, str, str], _Merged] = {}
        self._columns = SeriesColumns()
        self._pending = 0
        self._last_ns: dict[str, int] = {}
        self._last_seen_ns = 0
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
        if host not in taken.hosts:
            taken.hosts.append(host)
        if self._at_once == 1:
            self._keep(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)
            return
        key = (host, tier, source)
        merged = self._merging.setdefault(key, _Merged())
        merged.add(found, t_ns=t_ns, interval_ns=interval_ns)
        if merged.samples >= self._at_once:
            self._keep_merged(key)

    def _keep_merged(self, key: tuple[str, str, str]) -> None:
        merged = self._merging.pop(key)
        host, tier, source = key
        self._keep(
            merged.readings(), host=host, t_ns=merged.t_ns, interval_ns=merged.interval_ns, tier=tier, source=source
        )

    def _keep(
        self, found: Sequence[Reading], *, host: str, t_ns: int, interval_ns: int, tier: str, source: str
    ) -> None:
        taken = self.taken
        self._columns.add(found, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source, host=host)
        taken.rows += len(found)
        begin_ns = t_ns - interval_ns
        taken.from_ns = begin_ns if taken.from_ns is None else min(taken.from_ns, begin_ns)
        taken.to_ns = t_ns if taken.to_ns is None else max(taken.to_ns, t_ns)
        if taken.rows >= self._look_at:
            self._look_ahead()
        self._pending += len(found)
        if self._pending >= FLUSH_ROWS:
            self._hand_on()

    def _look_ahead(self) -> None:
        """Decide how many samples become one from here on, so that what is left of the file fits."""
        rows, room = self.taken.rows, self._values_max - self.taken.rows
        if room <= 0:
            raise NotTaken(
                f"holds more than the {self._values_max:,} values that a recording keeps, thinned as it is: export"
                " fewer counters"
            )
        share, (rows_before, share_before) = min(self._share(), 1.0), self._looked
        self._looked = rows, share
        # At the rate since the last look; a tenth of the room is for what the estimate misses.
        to_come = (rows - rows_before) * (1.0 - share) / max(share - share_before, 1e-9)
        more = math.ceil(to_come / (0.9 * room))
        if more > 1:
            self._at_once *= more
            self.taken.note(
                f"has more values than the {self._values_max:,} that are kept: from {at_text(self._last_seen_ns)} on"
                f" {self._at_once} samples are one, their mean; extremes are those of such means"
            )
        self._look_at = rows + max(room // 2, 1)

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
        self._last_ns[host] = self._last_seen_ns = t_ns
        return 0 if before is None else t_ns - before

    def flush(self) -> None:
        """Hand on everything that was added: the file is at its end."""
        for key in list(self._merging):
            self._keep_merged(key)
        self._hand_on()

    def _hand_on(self) -> None:
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


class _Merged:
    """Samples that become one: gauges their mean, counts their sum."""

    def __init__(self) -> None:
        self.samples = 0
        self.t_ns = 0
        self.interval_ns = 0
        self._found: dict[tuple[str, str, str, str], tuple[Reading, float, int]] = {}

    def add(self, found: Iterable[Reading], *, t_ns: int, interval_ns: int) -> None:
        """Take one sample more."""
        self.samples += 1
        self.t_ns = max(self.t_ns, t_ns)
        self.interval_ns += interval_ns
        for one in found:
            key = (one.entity, one.role, one.metric, one.kind)
            _, total, count = self._found.get(key, (one, 0.0, 0))
            self._found[key] = one, total + one.value, count + 1

    def readings(self) -> list[Reading]:
        """The sample that they are."""
        return [
            one._replace(value=total if one.kind == "delta" else total / count)
            for one, total, count in self._found.values()
        ]


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

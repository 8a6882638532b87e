"""What a format is to the importer: how it is recognised, and how its rows are handed over.

An importer reads a file once, from its beginning to its end, and keeps nothing of it but names: files of a gigabyte
take no more memory than small ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, TextIO

from assay.base.errors import UsageError
from assay.telemetry.columns import Reading, SeriesColumns
from assay.telemetry.importers.covered import Covered, Holder
from assay.telemetry.importers.moments import Order
from assay.telemetry.importers.taken import VALUE_LARGEST, TakenFile

if TYPE_CHECKING:
    from assay.record.rows import Rows
    from assay.telemetry.importers.samples import SampleTable

UNNAMED = "imported"
"""Stands for the host of files that name none."""

FLUSH_ROWS = 2**14
"""Rows that are handed on together."""

SAMPLED_VALUES = 2**16
"""Values of samples that are handed over together: each costs little then, and they take little memory."""

VALUES_MAX = 8_000_000
"""Values of a recording: what import, report and diagnosis hold in about a gigabyte of memory."""

LOOK_ROWS = 2**18
"""After so many rows it is estimated how many a file will have."""

T_NS_END = 2**63
"""Nanoseconds that a time may have: until the year 2262."""

HEAD_CHARACTERS = 64 * 1024
"""How much of a file's beginning its format is recognised by: a header of thousands of counters is one line."""

RELATIVE_NS = 400 * 86400 * 10**9
"""A time before this one is of a file that says no time of day: it is of the time since the file's beginning."""

GAP = 1.5
"""A step of so many usual ones has others missing in between: programs that report every ten seconds keep to it."""

STEPS_USUAL = 3
"""Steps alike after which a file's step is known."""


class NotTaken(UsageError):
    """A file that cannot be imported; the line says why, and what to do."""


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
    start_ns
        When files without times begin, UTC; None: their times are of the time since their beginning.
    interval_ns
        How far apart the reports of files without times are.
    date_order
        Order of day and month in files that do not settle it.
    """

    host: str = UNNAMED
    zone_s: int | None = None
    start_ns: int | None = None
    interval_ns: int | None = None
    date_order: Order | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    values_max: int = VALUES_MAX


class Into:
    """Where an importer hands its rows over.

    A file with more values than are kept is thinned while it is read: some samples become one.

    Parameters
    ----------
    share
        How much of the file has been read, from 0 to 1.
    before
        What files before this one hold.
    written_ns
        When the file was last written: it holds no time after that.
    file_name
        Its name, of which one format has to know what the values are.

    Attributes
    ----------
    taken
        What became of the file so far.
    covered
        What it holds so far, for the files after it.
    """

    def __init__(
        self,
        name: str,
        options: Options,
        write: Callable[[Sequence[Rows]], None],
        *,
        share: Callable[[], float] = lambda: 1.0,
        before: Covered | None = None,
        written_ns: int | None = None,
        file_name: str = "",
    ) -> None:
        self.file_name = file_name
        self.options, self.taken = options, TakenFile(format=name)
        self.written_ns = written_ns
        self.covered = Covered()
        self._before = before or Covered()
        self._write = write
        self._share, self._values_max = share, options.values_max
        self._look_at = min(LOOK_ROWS, options.values_max // 2)
        self._looked = 0, 0.0
        self._at_once = 1
        self._merging: dict[tuple[str, str, str], _Merged] = {}
        self._columns = SeriesColumns()
        self._sampled: SampleTable | None = None
        self._pending = 0
        self._last_ns: dict[str, int] = {}
        self._first_ns: dict[str, int] = {}
        self._usual_ns: dict[str, tuple[int, int]] = {}
        self._runs_ns: dict[str, list[tuple[int, int]]] = {}
        self._last_seen_ns = 0
        self._late: dict[str, int] = {}

    def add(
        self,
        readings: Iterable[Reading],
        *,
        host: str,
        t_ns: int,
        interval_ns: int,
        tier: str,
        source: str,
    ) -> None:
        """Hand over what was found over one interval; call `advance` first.

        Parameters
        ----------
        t_ns
            End of the interval, UTC.
        tier, source
            As in the series schema (docs/results.md).

        Raises
        ------
        NotTaken
            There are two values of one metric of one entity at this time.
        """
        taken = self.taken
        given = list(readings)
        # What is no number compares with none.
        found = [one for one in given if -VALUE_LARGEST <= one.value <= VALUE_LARGEST]
        if self.options.roles:
            found = [one._replace(role=one.role or self._role_of(one.entity)) for one in found]
        if not 0 <= interval_ns <= t_ns < T_NS_END:
            taken.note("rows with an interval that began before 1970 are left out")
            return
        if len(found) < len(given):
            taken.note("values that no counter has, such as 1e300, are left out")
        if (twice := self.covered.twice(host, source, t_ns, found)) is not None:
            raise NotTaken(
                f"has two values for {twice.metric} of {twice.entity or source} on {host} at {at_text(t_ns)}: which of"
                " them is right, it does not say"
            )
        if self._before:
            found = self._not_before(found, host, t_ns, interval_ns, source)
        if not found:
            return
        self.covered.extend(host, source, t_ns - interval_ns, t_ns)
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

    def _not_before(self, found: list[Reading], host: str, t_ns: int, interval_ns: int, source: str) -> list[Reading]:
        """What no file before this one has for the same time."""
        kept = []
        for one in found:
            other = self._before.holder(host, source, one.entity, one.metric, t_ns - interval_ns, t_ns)
            if other is None:
                kept.append(one)
            else:
                self._leave_to(other, one.entity, one.metric, host, source, t_ns)
        return kept

    def _leave_to(
        self, other: Holder, entity: str, metric: str, host: str, source: str, t_ns: int, values: int = 1
    ) -> None:
        """Leave values out that another file has for the same time.

        Raises
        ------
        NotTaken
            It is of the same program, so that none of the two is known to be right.
        """
        if other.format == self.taken.format:
            raise NotTaken(
                f"has {metric} of {entity or source} on {host} at {at_text(t_ns)}, and so has {other.name}:"
                " give one of them, or import them apart with hosts of their own (--host)"
            )
        self.taken.values_taken -= values
        self.taken.ignore(f"{source} {metric}", f"{other.name} has it for the same time", values)

    def samples_at_once(self, columns: int) -> int:
        """How many samples of so many columns are best handed over together."""
        return max(min(SAMPLED_VALUES, self._look_at - self.taken.rows) // max(columns, 1), 1)

    def add_samples(self, samples: SampleTable) -> None:
        """Hand over samples of the same columns, by time.

        The columns' names were given to `covered.declare`, which found no two alike; their values are within bounds.
        """
        import numpy as np

        if self.options.roles:
            columns = [one._replace(role=one.role or self._role_of(one.entity)) for one in samples.columns]
            samples = samples._replace(columns=columns)
        if self._before:
            self._sampled_before(samples)
        places: dict[tuple[str, str], list[int]] = {}
        for place, one in enumerate(samples.columns):
            places.setdefault((one.host, one.source), []).append(place)
        known, begins_ns = samples.known, samples.t_ns - samples.interval_ns
        for (host, source), own in places.items():
            rows = np.flatnonzero(known[:, own].any(axis=1))
            if rows.size:
                self.covered.extend(host, source, int(begins_ns[rows[0]]), int(samples.t_ns[rows[-1]]))
                if host not in self.taken.hosts:
                    self.taken.hosts.append(host)
        if self._sampled is not None and self._sampled.columns != samples.columns:
            self._keep_rest()
        samples = samples.after(self._sampled)
        whole = len(samples.t_ns) - len(samples.t_ns) % self._at_once
        self._sampled = samples.part(whole)
        self._keep_samples(samples.part(0, whole).thinned(self._at_once))

    def _sampled_before(self, samples: SampleTable) -> None:
        """Take out what a file before this one has for the same time."""
        import numpy as np

        known, t_ns, begins_ns = samples.known, samples.t_ns, samples.t_ns - samples.interval_ns
        for place, one in enumerate(samples.columns):
            for other in self._before.holders(one.host, one.source, one.entity, one.metric):
                shared = known[:, place] & (other.from_ns < t_ns) & (begins_ns < other.to_ns)
                if shared.any():
                    first_ns, count = int(t_ns[shared][0]), int(shared.sum())
                    self._leave_to(other, one.entity, one.metric, one.host, one.source, first_ns, count)
                    samples.values[shared, place] = np.nan
                    known[shared, place] = False

    def _keep_samples(self, samples: SampleTable) -> None:
        import numpy as np

        rows = np.flatnonzero(samples.known.any(axis=1))
        if rows.size:
            count = self._columns.add_samples(*samples)
            self._count(count, int((samples.t_ns - samples.interval_ns)[rows[0]]), int(samples.t_ns[rows[-1]]))

    def _keep_merged(self, key: tuple[str, str, str]) -> None:
        merged = self._merging.pop(key)
        host, tier, source = key
        self._keep(
            merged.readings(), host=host, t_ns=merged.t_ns, interval_ns=merged.interval_ns, tier=tier, source=source
        )

    def _keep(
        self, found: Sequence[Reading], *, host: str, t_ns: int, interval_ns: int, tier: str, source: str
    ) -> None:
        self._columns.add(found, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source, host=host)
        self._count(len(found), t_ns - interval_ns, t_ns)

    def _count(self, rows: int, from_ns: int, to_ns: int) -> None:
        """Count rows that are kept, look how many are to come, and hand them on."""
        taken = self.taken
        taken.rows += rows
        taken.from_ns = from_ns if taken.from_ns is None else min(taken.from_ns, from_ns)
        taken.to_ns = to_ns if taken.to_ns is None else max(taken.to_ns, to_ns)
        if taken.rows >= self._look_at:
            self._look_ahead()
        self._pending += rows
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

    def begin_run(self, host: str) -> None:
        """A run of its own begins: what was before it says nothing of how long its first interval is."""
        last = self._last_ns.pop(host, None)
        if last is not None:
            self._runs_ns.setdefault(host, []).append((self._first_ns[host], last))
        self._usual_ns.pop(host, None)

    def advance(self, host: str, t_ns: int) -> int | None:
        """Nanoseconds from the row before to this one, 0 for the first of a run; None where the clock went back.

        Such a row is to be left out.

        Raises
        ------
        NotTaken
            The time lies in another run of the file.
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
        if before is None:
            self._first_ns[host] = t_ns
        if self._runs_ns and any(begin <= t_ns <= end for begin, end in self._runs_ns.get(host, ())):
            raise NotTaken(f"has two values for {host} at {at_text(t_ns)}: its runs overlap; give each by itself")
        self._last_ns[host] = self._last_seen_ns = t_ns
        return 0 if before is None else t_ns - before

    def paced(self, host: str, interval_ns: int) -> int:
        """The interval of a report; after a gap, where reports were cut out, the usual interval.

        The time of the gap stays without values.
        """
        usual_ns, steps = self._usual_ns.get(host, (0, 0))
        # Times have whole seconds: a step of one more is none that is too long.
        if steps < STEPS_USUAL or interval_ns <= GAP * usual_ns or interval_ns < usual_ns + 2 * 10**9:
            is_same = abs(interval_ns - usual_ns) <= 10**9
            self._usual_ns[host] = interval_ns, steps + 1 if is_same else 1
            return interval_ns
        self.taken.note(
            f"{interval_ns / 1e9:,.0f} s from {at_text(self._last_ns[host] - interval_ns)} on hold no report, though"
            f" one came every {usual_ns / 1e9:,.3g} s; that time stays without values"
        )
        return usual_ns

    def flush(self) -> None:
        """Hand on everything that was added: the file is at its end."""
        for key in list(self._merging):
            self._keep_merged(key)
        self._keep_rest()
        self._hand_on()

    def _keep_rest(self) -> None:
        """Keep samples that are fewer than become one."""
        if self._sampled is not None:
            self._keep_samples(self._sampled.thinned(max(len(self._sampled.t_ns), 1)))
            self._sampled = None

    def _hand_on(self) -> None:
        self._write(self._columns.take())
        self._pending = 0

    @property
    def late_rows(self) -> int:
        """Rows that were left out since the clock had gone back."""
        return sum(self._late.values())

    def _role_of(self, entity: str) -> str:
        names = {entity, *entity.split()}
        return next((role for name, role in self.options.roles.items() if name in names), "")


class _Merged:
    """SampleTable that become one: gauges their mean, counts their sum."""

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

    def together(self, name: str) -> str | None:
        """What files of one run have in common in their names, where a run writes several; None of other files."""
        del name
        return None

    def joined(self, files: Sequence[TextIO]) -> Iterator[str]:
        """Lines of files that belong together, as one file has them."""
        raise NotImplementedError

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
    """A time for messages: UTC to the second, or that since the beginning of a file without times."""
    if 0 <= t_ns < RELATIVE_NS:
        return f"{t_ns / 1e9:,.0f} s after its beginning"
    return f"{datetime.fromtimestamp(t_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"

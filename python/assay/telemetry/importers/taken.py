"""What became of a file: each of its values was taken, left out by name, or not understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.telemetry.columns import Reading
from assay.telemetry.importers.numbers import NOTHING, Amount, amount_of

NO_USE = "no use is made of it"
"""Why a name is left out that Assay knows nothing to do with."""

NAMES_MAX = 2000
"""Names of what was left out that are kept for people."""

VALUE_LARGEST = 1e24
"""Beyond all that is counted, and small enough that squares and sums of it stay finite."""

EXAMPLE_LETTERS = 60
"""How much of a text that was not understood is shown."""


class Counter(NamedTuple):
    """What a counter of a file becomes: its metric in base units.

    Attributes
    ----------
    kind
        `gauge`; `delta`: a rate per second, which the interval makes a count; `count`: what the interval had.
    factor, offset
        Make base units of a value.
    of
        Other counters of the same record, joined by `+`: where all are 0, this one says nothing, whatever is printed.
    """

    metric: str
    kind: str = "gauge"
    factor: float = 1.0
    offset: float = 0.0
    of: str = ""


Counters = Mapping[str, "Counter | str"]
"""Counters by their names in the file; a text is the reason why one is left out."""


@dataclass(kw_only=True)
class TakenFile:
    """What became of one file.

    Attributes
    ----------
    counters
        Names in the file that were taken, and the metrics they became.
    ignored
        Names that were not, and why.
    unread
        Names whose values were not understood, and an example of their text.
    values_taken, values_left_out, values_unread
        How many values of the file ended so; together they are all that it holds.
    rows
        Values kept in the recording.
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
    unread: dict[str, str] = field(default_factory=dict)
    values_taken: int = 0
    values_left_out: int = 0
    values_unread: int = 0
    rows: int = 0
    hosts: list[str] = field(default_factory=list)
    from_ns: int | None = None
    to_ns: int | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes:
            self.notes.append(text)

    def take(self, name: str, metric: str, values: int = 1) -> None:
        """Say of values that they are taken, under the name that the file gives them."""
        self.counters.setdefault(name, metric)
        self.values_taken += values

    def ignore(self, name: str, reason: str, values: int = 0) -> None:
        """Say of a name that it is not taken, and how many values that concerns."""
        self.values_left_out += values
        self._name(self.ignored, name, reason, "are left out")

    def not_understood(self, name: str, example: str, values: int = 1) -> None:
        """Say of values that their text says nothing to Assay."""
        self.values_unread += values
        self._name(self.unread, name, example.strip()[:EXAMPLE_LETTERS], "have values that are not understood")

    def _name(self, names: dict[str, str], name: str, why: str, what: str) -> None:
        if name in names or len(names) < NAMES_MAX:
            names.setdefault(name, why)
        else:
            self.note(f"more than {NAMES_MAX:,} names {what}; the first are listed")

    def readings(
        self,
        record: Mapping[str, object],
        known: Counters,
        *,
        entity: str,
        interval_ns: int,
        source: str,
        section: str = "",
    ) -> list[Reading]:
        """What is taken of the values of one entity at one time; every one of them is accounted for.

        Parameters
        ----------
        record
            Values by the names of their counters: texts and numbers.
        interval_ns
            What rates are of; 0 where it is not known, and then they are left out.
        section
            Stands before the names.
        """
        found: list[Reading] = []
        of_metric: dict[str, str] = {}
        for name, value in record.items():
            counter = known.get(name)
            full = section + name if section else name
            if counter is None or isinstance(counter, str):
                self.ignore(full, counter or NO_USE, 1)
                continue
            metric, kind, _, _, of = counter
            amount = _amount(value)
            if metric in of_metric:
                self.ignore(full, f"{of_metric[metric]} says it as well", 1)
            elif amount is None:
                self._no_number(full, value)
            elif of and not any(_some(record.get(one)) for one in of.split("+")):
                self.ignore(f"{full} without I/O", "a mean of none says nothing", 1)
            elif kind != "gauge" and not interval_ns:
                self.ignore(f"{full} of the first sample", "a rate needs the time since the sample before", 1)
            elif (made := _made(amount, counter, interval_ns)) is None:
                self.not_understood(full, str(value))
            else:
                of_metric[metric] = full
                if full not in self.counters:
                    self.counters[full] = f"{source} {metric}"
                found.append(Reading(entity, metric, "gauge" if kind == "gauge" else "delta", made))
        self.values_taken += len(found)
        return found

    def _no_number(self, name: str, value: object) -> None:
        if value is None or str(value).strip().lower() in NOTHING:
            self.ignore(f"{name} without a value", "nothing was recorded there", 1)
        else:
            self.not_understood(name, str(value))


def _amount(value: object) -> float | Amount | None:
    """A number; with its unit where a letter made it bytes."""
    if isinstance(value, str):
        try:
            # The usual case at its full speed.
            number = float(value)
        except ValueError:
            return amount_of(value)
        return number if number - number == 0 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if value - value == 0 else None
    except OverflowError:
        return None


def _some(value: object) -> bool:
    amount = _amount(value)
    return amount is not None and (amount.value if isinstance(amount, Amount) else amount) > 0


def _made(amount: float | Amount, counter: Counter, interval_ns: int) -> float | None:
    """A value in base units; None for one that no counter has."""
    metric, kind, factor, offset, _ = counter
    if isinstance(amount, Amount):
        if amount.is_bytes and not metric.endswith("_bytes"):
            return None
        value = amount.value if amount.is_bytes else amount.value * factor + offset
    else:
        value = amount * factor + offset
    if kind != "gauge":
        if value < 0:
            return None
        value *= interval_ns / 1e9 if kind == "delta" else 1.0
    elif metric == "busy_share":
        value = min(max(value, 0.0), 1.0)
    return value if -VALUE_LARGEST <= value <= VALUE_LARGEST else None


def busy_of(readings: Iterable[Reading]) -> float | None:
    """The share of processors at work: all that is neither idle, nor waits for I/O, nor was withheld.

    Examples
    --------
    >>> busy_of([Reading("cpu", "idle_share", "gauge", 0.23), Reading("cpu", "iowait_share", "gauge", 0.01)])
    0.76
    """
    shares = {one.metric: one.value for one in readings}
    if "idle_share" not in shares:
        return None
    free = sum(shares.get(name, 0.0) for name in ("idle_share", "iowait_share", "steal_share"))
    return min(max(1.0 - free, 0.0), 1.0)

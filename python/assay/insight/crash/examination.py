"""Settings times promises: which a program needs, and controls that must fail."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from assay.insight.crash.controls import Control
from assay.insight.crash.drive import DriveClaim
from assay.insight.crash.promises import LIAR, Promises
from assay.insight.crash.requests import Recorded, VolumeRequest
from assay.insight.crash.subject import Kind
from assay.insight.crash.trial import CrashOutcome, Trial
from assay.record.intervals import by_blocks
from assay.record.power_cut import DriveCut

CONTROL_STATES = 200
"""States of a control, which ends at the first that fails."""
ROUNDS = 6
"""How often each row's load is run once more, to compare rates."""
AGAIN_STATES = 20
"""States of each recovery that is cut."""
WITHDRAWN_SHARE = 4
"""A promise that is withdrawn to see whether it is needed gets this part of the states."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """States under one set of promises.

    Attributes
    ----------
    what
        Why these promises were tried: as asked, the promise that was withdrawn, or the control.
    must_fail
        Whether it is a control.
    keeps_promises
        Whether the storage promises what was asked for, or more.
    """

    what: str
    outcome: CrashOutcome
    must_fail: bool = False
    keeps_promises: bool = True


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The share by which a rate is larger, with its 95 % interval: Student's t of the pairs of rounds."""

    share: float
    low: float
    high: float
    rounds: int

    @property
    def is_decided(self) -> bool:
        """Whether the interval lies above or below 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One program with its settings, under all promises."""

    settings: tuple[str, ...]
    recorded: Recorded
    counts: dict[str, int]
    tried: tuple[Tried, ...]
    control: Control | None = None
    rates: tuple[float, ...] = ()
    """Commits a second of the load, once in each round of all rows."""

    @property
    def must_fail(self) -> bool:
        """Whether the settings are a control."""
        return self.control is not None

    @property
    def asked(self) -> Tried:
        """The states under the promises that were asked for."""
        return self.tried[0]

    @property
    def told_per_s(self) -> float:
        """Commits a second, the median of the rounds; of a single row acknowledgements while its load was recorded."""
        if self.rates:
            return median(self.rates)
        return self.recorded.told / self.recorded.load_s if self.recorded.load_s else 0.0

    def gain_over(self, other: Row) -> Gain | None:
        """What the settings bring over another row's; None: too few rounds have a rate of both."""
        pairs = [(own, its) for own, its in zip(self.rates, other.rates, strict=False) if own and its]
        if len(pairs) < 2:
            return None
        center = fmean(math.log(own / its) for own, its in pairs)
        estimate, _ = by_blocks(list(zip(*pairs, strict=True)), center)
        if estimate is None:
            return None
        share, low, high = (math.expm1(one) for one in (center, estimate.low, estimate.high))
        return Gain(share=share, low=low, high=high, rounds=len(pairs))


@dataclass(frozen=True, kw_only=True)
class CrashAnswer:
    """All rows; the first has the settings that were asked for."""

    rows: tuple[Row, ...]
    volume: VolumeRequest
    seed: int
    jobs: int
    drive: DriveClaim | None = None
    cuts: tuple[DriveCut, ...] = ()
    """Power cuts that may prove the drive's claim."""

    @property
    def passing_controls(self) -> list[str]:
        """Controls that did not fail: with one of them no other result means anything."""
        cells = [
            f"{row.recorded.title}: {one.what}"
            for row in self.rows
            for one in row.tried
            if one.must_fail and not one.outcome.failed
        ]
        rows = [row.recorded.title for row in self.rows if row.must_fail and not row.asked.outcome.failed]
        return [*cells, *rows]

    @property
    def has_failed(self) -> bool:
        """Whether a state fails, in any row that is no control, under the promises asked for or stronger ones."""
        return any(
            one.outcome.failed for row in self.rows if not row.must_fail for one in row.tried if one.keeps_promises
        )


@dataclass(frozen=True, kw_only=True)
class CrashColumn:
    """Promises under which each row is tried.

    Attributes
    ----------
    states
        States to try.
    enough
        Failing states after which no more are tried; None: all are.
    is_control
        Whether it must fail.
    keeps_promises
        Whether the storage promises what was asked for, or more.
    """

    what: str
    promises: Promises
    states: int
    enough: int | None = None
    is_control: bool = False
    keeps_promises: bool = True


@dataclass(frozen=True, kw_only=True)
class CrashExamination:
    """What is to be tried of each trial.

    Attributes
    ----------
    states
        States under the promises that were asked for.
    matrix
        Whether all atomic sizes and the order of writes are tried.
    again
        States whose recovery is cut, too.
    """

    promises: Promises
    states: int
    matrix: bool
    again: int = 0
    say: Callable[[str], None] = lambda _: None

    def _cut_again(self, trial: Trial) -> Tried:
        """States of a second crash, while the recovery from some states writes."""
        began = time.monotonic()
        outcomes = []
        for name in trial.passing(self.promises, self.states, self.again):
            with trial.again(name, self.promises) as recovery:
                outcomes.append(recovery.try_states(self.promises, AGAIN_STATES))
        kinds = sum((Counter(one.kinds) for one in outcomes), Counter[Kind]())
        outcome = CrashOutcome(
            promises=self.promises,
            planned=sum(one.planned for one in outcomes),
            tried=sum(one.tried for one in outcomes),
            failed=sum(one.failed for one in outcomes),
            kinds=dict(kinds),
            coverage={},
            seconds=time.monotonic() - began,
            failure=next((one.failure for one in outcomes if one.failure is not None), None),
            cpu_seconds=sum(one.cpu_seconds for one in outcomes),
        )
        return Tried(what="cut again in recovery", outcome=outcome)

    def columns(self, counts: Mapping[str, int]) -> list[CrashColumn]:
        """The promises under which a row is tried, as asked first, the control last.

        Parameters
        ----------
        counts
            Requests of the log by kind: a promise about none of them is not withdrawn.
        """
        asked = self.promises
        fewer = max(self.states // WITHDRAWN_SHARE, 1)
        found = [CrashColumn(what="as asked", promises=asked, states=self.states)]
        found += [
            CrashColumn(what=title, promises=weaker, states=fewer, keeps_promises=False)
            for title, weaker in _weaker(asked)
        ]
        if self.matrix:
            known = {one.promises for one in found}
            others = [("4 KiB atomic", 4096), ("8 KiB atomic", 8192), ("16 KiB atomic", 16384), ("whole writes", None)]
            tried = [(title, replace(asked, atomic_bytes=size)) for title, size in others]
            for title, promises in [*tried, ("in order", replace(asked, order="submitted"))]:
                if promises not in known:
                    is_stronger = _at_least(promises, asked)
                    found.append(CrashColumn(what=title, promises=promises, states=fewer, keeps_promises=is_stronger))
            withdrawn = [("FUA ignored", "fua"), ("discards undefined", "discard")]
            for (title, name), count in zip(withdrawn, (counts["fua"], counts["discards"]), strict=True):
                weaker = asked.without([name])
                if count and weaker != asked:
                    found.append(CrashColumn(what=title, promises=weaker, states=fewer, keeps_promises=False))
        liar = replace(LIAR, atomic_bytes=asked.atomic_bytes)
        control = CrashColumn(
            what="control: flushes ignored",
            promises=liar,
            states=CONTROL_STATES,
            enough=1,
            is_control=True,
            keeps_promises=False,
        )
        return [*found, control]

    def examine(self, trial: Trial, settings: Sequence[str], *, control: Control | None = None) -> Row:
        """Record one trial and try its states.

        Parameters
        ----------
        control
            Why these settings must fail; those that lose acknowledged transactions under all promises are tried as
            asked, until the first state fails.
        """
        self.say(f"recording {' '.join(settings) or 'the load'}")
        recorded = trial.record()
        counts = trial.states(self.promises).counts()
        rate = recorded.told / recorded.load_s if recorded.load_s else 0.0
        self.say(
            f"recorded {recorded.title}: {recorded.told:,} acknowledgements in {recorded.load_s:.1f} s ({rate:,.0f}/s),"
            f" {counts['writes']:,} writes, {counts['flushes']:,} flushes, {counts['points']:,} crash points"
        )
        columns = self.columns(counts)
        if control is not None and not control.page_bytes:
            columns = [replace(columns[0], states=max(self.states, CONTROL_STATES), enough=1)]
        tried: list[Tried] = []
        for column in columns:
            outcome = trial.try_states(column.promises, column.states, enough=column.enough)
            if control is not None and not tried and not outcome.failed and column.states < CONTROL_STATES:
                outcome = trial.try_states(column.promises, CONTROL_STATES, enough=1)
            self.say(f"{column.what}: {outcome.failed:,} of {outcome.tried:,} states fail, {outcome.seconds:.0f} s")
            tried.append(
                Tried(
                    what=column.what,
                    outcome=outcome,
                    must_fail=column.is_control,
                    keeps_promises=column.keeps_promises,
                )
            )
        if self.again and control is None:
            cut = self._cut_again(trial)
            self.say(f"{cut.what}: {cut.outcome.failed:,} of {cut.outcome.tried:,} states fail")
            tried.append(cut)
        return Row(settings=tuple(settings), recorded=recorded, counts=counts, tried=tuple(tried), control=control)


def rated(rows: Sequence[Row], trials: Sequence[Trial], *, seed: int, say: Callable[[str], None]) -> list[Row]:
    """The rows with the rates of their loads, measured in rounds of all rows; a single row has nothing to compare.

    Each round takes the rows in an order of its own, so that what drifts, or follows upon another row, favours none.
    """
    if len(rows) < 2:
        return list(rows)
    say(f"running each load {ROUNDS} times more, in rounds of random order, to compare their rates")
    chance, rates = random.Random(seed), [list[float]() for _ in rows]
    for _ in range(ROUNDS):
        for number in chance.sample(range(len(trials)), len(trials)):
            rates[number].append(trials[number].rate())
    return [replace(row, rates=tuple(own)) for row, own in zip(rows, rates, strict=True)]


def _weaker(asked: Promises) -> list[tuple[str, Promises]]:
    """The same promises without each one that goes beyond what every drive promises."""
    default = Promises()
    found = []
    if asked.atomic_bytes != default.atomic_bytes:
        found.append(("512 B atomic", replace(asked, atomic_bytes=default.atomic_bytes)))
    if asked.order != default.order:
        found.append(("in any order", replace(asked, order=default.order)))
    if not asked.volatile_cache:
        found.append(("with a volatile cache", replace(asked, volatile_cache=True)))
    return found


def _at_least(promises: Promises, asked: Promises) -> bool:
    """Whether the atomic size is the one that was asked for or larger; all else is the same or stronger."""
    if promises.atomic_bytes is None or asked.atomic_bytes is None:
        return promises.atomic_bytes is None
    return promises.atomic_bytes >= asked.atomic_bytes

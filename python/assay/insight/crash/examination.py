"""Settings times promises: which a program needs, and controls that must fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from assay.insight.crash.promises import LIAR, Promises
from assay.insight.crash.requests import Recorded
from assay.insight.crash.trial import CrashOutcome, Trial

CONTROL_STATES = 200
"""States of a control, which ends at the first that fails."""
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
    """

    what: str
    outcome: CrashOutcome
    must_fail: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """One program with its settings, under all promises."""

    settings: tuple[str, ...]
    recorded: Recorded
    counts: dict[str, int]
    tried: tuple[Tried, ...]
    must_fail: bool = False

    @property
    def told_per_s(self) -> float:
        """Acknowledgements a second while the load was recorded."""
        return self.recorded.told / self.recorded.load_s if self.recorded.load_s else 0.0


@dataclass(frozen=True, kw_only=True)
class CrashAnswer:
    """All rows; the first has the settings that were asked for."""

    rows: tuple[Row, ...]
    file_system: str
    size_bytes: int
    seed: int
    jobs: int

    @property
    def passing_controls(self) -> list[str]:
        """Controls that did not fail: with one of them no other result means anything."""
        cells = [
            f"{row.recorded.title}: {one.what}"
            for row in self.rows
            for one in row.tried
            if one.must_fail and not one.outcome.failed
        ]
        rows = [
            row.recorded.title for row in self.rows if row.must_fail and not any(x.outcome.failed for x in row.tried)
        ]
        return [*cells, *rows]


@dataclass(frozen=True, kw_only=True)
class CrashExamination:
    """What is to be tried of each trial.

    Attributes
    ----------
    states
        States under the promises that were asked for.
    matrix
        Whether all atomic sizes and the order of writes are tried.
    """

    promises: Promises
    states: int
    matrix: bool
    say: Callable[[str], None] = lambda _: None

    def columns(self) -> list[tuple[str, Promises, int, int | None, bool]]:
        """Title, promises, states, failing states that are enough, and whether it is a control."""
        asked = self.promises
        liar = replace(LIAR, atomic_bytes=asked.atomic_bytes)
        found: list[tuple[str, Promises, int, int | None, bool]] = [("as asked", asked, self.states, None, False)]
        fewer = max(self.states // WITHDRAWN_SHARE, 1)
        for title, weaker in _weaker(asked):
            found.append((title, weaker, fewer, None, False))
        if self.matrix:
            known = {one[1] for one in found}
            others = [("4 KiB atomic", 4096), ("8 KiB atomic", 8192), ("16 KiB atomic", 16384)]
            stronger = [(title, replace(asked, atomic_bytes=size)) for title, size in others]
            for title, promises in [*stronger, ("in order", replace(asked, order="submitted"))]:
                if promises not in known:
                    found.append((title, promises, fewer, None, False))
        found.append(("control: flushes ignored", liar, CONTROL_STATES, 1, True))
        return found

    def examine(self, trial: Trial, settings: Sequence[str], *, must_fail: bool = False) -> Row:
        """Record one trial and try its states."""
        self.say(f"recording {' '.join(settings) or 'the load'}")
        recorded = trial.record()
        counts = trial.states(self.promises).counts()
        rate = recorded.told / recorded.load_s if recorded.load_s else 0.0
        self.say(
            f"recorded {recorded.title}: {recorded.told:,} acknowledgements in {recorded.load_s:.1f} s ({rate:,.0f}/s),"
            f" {counts['writes']:,} writes, {counts['flushes']:,} flushes, {counts['points']:,} crash points"
        )
        tried = []
        for title, promises, states, enough, is_control in self.columns():
            outcome = trial.try_states(promises, states, enough=enough)
            self.say(f"{title}: {outcome.failed:,} of {outcome.tried:,} states fail, {outcome.seconds:.0f} s")
            tried.append(Tried(what=title, outcome=outcome, must_fail=is_control))
        return Row(settings=tuple(settings), recorded=recorded, counts=counts, tried=tuple(tried), must_fail=must_fail)


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

"""Whether a run is worse than its baseline allows: each limit of change at each load that both measured.

A limit such as `read.p99>+10%` is broken only where the 95 % interval of the change lies beyond it, and held only where
the interval lies on its good side. Everything between is unknown, and is said so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from assay.base.errors import ExitCode, UsageError
from assay.base.paths import printable
from assay.base.units import count_of
from assay.insight.compare import compare_runs
from assay.insight.differences import (
    END_WORDS,
    LOGARITHM_MAX,
    AnswerDifference,
    ComparedRun,
    ComparedSide,
    FigureDifference,
    same_point,
    share_text,
    signed_percent,
)
from assay.insight.history.between_runs import known_value
from assay.record.figures import Figure
from assay.record.points import CUT_SHORT
from assay.record.shapes.point import Point
from assay.workloads.registry import figures_of

Standing = Literal["held", "broken", "unknown"]

_LIMIT = re.compile(r"(?P<name>[a-z][a-z0-9_.]{0,60}) *(?P<sign>[<>]) *(?P<change>[+-]?\d{1,4}(?:\.\d{1,3})?) *%")
_ACCEPTED = "accepted: a figure, < or >, and a change in percent, such as iops<-5% or read.p99>+10%"


@dataclass(frozen=True)
class ChangeLimit:
    """The change of a figure from which on a run fails.

    Attributes
    ----------
    text
        As it was given.
    name
        The figure, as limits or documents name it.
    is_most
        Whether more than `share` fails, rather than less.
    share
        Of after / before - 1.
    """

    text: str
    name: str
    is_most: bool
    share: float

    def judged(self, interval_95: tuple[float, float] | None) -> Standing:
        """What an interval of the change says of the limit.

        Examples
        --------
        >>> limit = parse_limit("iops<-5%")
        >>> limit.judged((-0.2, -0.1)), limit.judged((-0.02, 0.01)), limit.judged((-0.2, 0.1)), limit.judged(None)
        ('broken', 'held', 'unknown', 'unknown')
        """
        if interval_95 is None:
            return "unknown"
        low, high = interval_95
        if low > self.share if self.is_most else high < self.share:
            return "broken"
        return "held" if (high <= self.share if self.is_most else low >= self.share) else "unknown"

    def names(self, figure: Figure) -> bool:
        """Whether it bounds a figure: by the name in limits, with or without `total.`, or by that in documents."""
        return self.name in (figure.name, figure.limit, figure.limit.removeprefix("total."))


@dataclass(frozen=True)
class JudgedChange:
    """A limit of change at one load.

    Attributes
    ----------
    before, after
        In the words of the figure; empty where nothing was measured.
    share, interval_95
        After / before - 1.
    reason
        Why it is unknown.
    """

    limit: ChangeLimit
    load: str
    title: str
    before: str
    after: str
    share: float | None
    interval_95: tuple[float, float] | None
    standing: Standing
    reason: str = ""

    @property
    def words(self) -> str:
        """The change in words, with its interval."""
        if self.share is None:
            return self.reason
        sure = f", 95 % interval {signed_percent(self.interval_95[0])} to {signed_percent(self.interval_95[1])}" if (
            self.interval_95) else ""  # fmt: skip
        why = f": {self.reason}" if self.reason else ""
        return f"{self.before} -> {self.after}, {signed_percent(self.share)}{sure}{why}"


@dataclass(frozen=True)
class GateResult:
    """What a gate says of a run.

    Attributes
    ----------
    baseline, run
        In words.
    notes
        What else differs between them.
    """

    baseline: str
    run: str
    judged: tuple[JudgedChange, ...]
    notes: tuple[str, ...] = ()

    def having(self, standing: Standing) -> list[JudgedChange]:
        """Those that are held, broken or unknown."""
        return [one for one in self.judged if one.standing == standing]

    @property
    def standing(self) -> Standing:
        """Broken where one limit is; else unknown where one is; else held."""
        return next((word for word in ("broken", "unknown") if self.having(word)), "held")

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of its standing."""
        codes = {"held": ExitCode.DONE, "broken": ExitCode.WORSE, "unknown": ExitCode.LIMIT_UNKNOWN}
        return codes[self.standing]

    @property
    def sentence(self) -> str:
        """What came of it, in one sentence."""
        broken, unknown = len(self.having("broken")), len(self.having("unknown"))
        of = count_of(len(self.judged), "limit")
        if broken:
            return f"Worse than the baseline allows: {broken} of {of} broken, {unknown} unknown."
        if unknown:
            return f"Unknown: of {of} none is broken, and {unknown} cannot be told; repeat the run (--repeat 5)."
        return f"As the baseline: {of} held."


def parse_limit(text: str) -> ChangeLimit:
    """A limit of change from the command line.

    Raises
    ------
    UsageError
        It is something else.
    """
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--fail-on {printable(text[:60])}: {_ACCEPTED}")
    return ChangeLimit(text.strip(), match["name"], match["sign"] == ">", float(match["change"]) / 100)


def judge_changes(
    baseline: ComparedSide,
    run: ComparedSide,
    limits: Sequence[ChangeLimit],
    *,
    history: Sequence[ComparedSide] = (),
    names: tuple[str, str] = ("baseline", "run"),
    notes: Sequence[str] = (),
) -> GateResult:
    """Judge each limit at each load that both sides measured.

    Parameters
    ----------
    baseline, run
        Runs of each side; the medians of sides are compared.
    history
        Other runs of the target, which tell how much single runs vary (`compare_runs`).

    Raises
    ------
    UsageError
        No workload of the runs has the figure of a limit.
    """
    pools = [_pools(side) for side in (baseline, run)]
    whole = compare_runs([baseline, run], history=history, every=True)
    judged: list[JudgedChange] = []
    for limit in limits:
        rows = [_of_point(limit, pools[0][key], pools[1][key], history) for key in pools[0] if key in pools[1]]
        found = [row for of_load in rows for row in of_load] + [
            _of_answer(limit, row) for row in whole.answers if row.end == "max" and limit.names(row.figure)
        ]
        if not found:
            _refuse_unknown(limit, (baseline, run))
            reason = "no load that both measured has it"
            found = [JudgedChange(limit, "all loads", limit.name, "", "", None, None, "unknown", reason)]
        judged += found
    return GateResult(*names, tuple(judged), tuple(notes))


def _refuse_unknown(limit: ChangeLimit, sides: Sequence[ComparedSide]) -> None:
    """Refuse a limit of a figure that no workload of the runs has: it is misspelt."""
    points = [point for side in sides for run in side.runs for point in run.points]
    figures = [figure for point in points for figure in figures_of(point)]
    figures = [figure for figure in figures if figure.compared or figure.of_generator]
    if figures and not any(limit.names(figure) for figure in figures):
        known = ", ".join(dict.fromkeys(figure.limit.removeprefix("total.") or figure.name for figure in figures))
        raise UsageError(f"--fail-on {printable(limit.text)}: unknown metric {limit.name}; known: {known}")


_Pool = list[ComparedRun]
"""What the runs of a side measured at one load, each on its own."""


def _pools(side: ComparedSide) -> dict[str, _Pool]:
    found: dict[str, _Pool] = {}
    for run in side.runs:
        own: dict[str, list[Point]] = {}
        for point in run.points:
            if point.get("ended_by") not in CUT_SHORT:
                own.setdefault(same_point(point), []).append(point)
        for key, points in own.items():
            found.setdefault(key, []).append(ComparedRun({**run.manifest, "answers": []}, points))
    return found


def _of_point(limit: ChangeLimit, baseline: _Pool, run: _Pool, history: Sequence[ComparedSide]) -> list[JudgedChange]:
    """What a limit says of one load, with the comparison moved to the medians of the sides."""
    compared = compare_runs([ComparedSide(tuple(baseline)), ComparedSide(tuple(run))], history=history, every=True)
    found = []
    for row in compared.differences:
        if not limit.names(row.figure):
            continue
        share, interval = row.relative, row.interval_95
        middles = [_median(side, row.figure) for side in (baseline, run)]
        if share is not None and middles[0] and middles[1]:
            moved = math.log(middles[1] / middles[0]) - math.log1p(share)
            share = middles[1] / middles[0] - 1
            interval = (_moved(interval[0], moved), _moved(interval[1], moved)) if interval is not None else None
        words = [row.figure.words(value) if value else "" for value in middles]
        found.append(_judged(limit, row, row.figure.title, (words[0], words[1]), share, interval))
    return found


def _of_answer(limit: ChangeLimit, row: AnswerDifference) -> JudgedChange:
    """What a limit says of the most that a search found within its limits."""
    words = [row.figure.words(value) if value else "" for value in (row.a, row.b)]
    title = f"{row.figure.title} {END_WORDS[row.end]}"
    return _judged(limit, row, title, (words[0], words[1]), row.relative, row.interval_95)


def _judged(
    limit: ChangeLimit,
    row: FigureDifference | AnswerDifference,
    title: str,
    words: tuple[str, str],
    share: float | None,
    interval: tuple[float, float] | None,
) -> JudgedChange:
    """A limit that was judged, with the reason where it is unknown."""
    bottleneck = row.reason if row.reason.startswith("the generator") else ""
    standing: Standing = "unknown" if bottleneck else limit.judged(interval)
    why = row.reason or "the interval holds the limit"
    reason = bottleneck or (why if standing == "unknown" else "")
    load = f"{row.workload}, {row.load}"
    return JudgedChange(limit, load, title, *words, share, interval, standing, reason)


def _moved(share: float, by: float) -> float:
    return share if share <= -1 else math.expm1(min(math.log1p(share) + by, LOGARITHM_MAX))


def _median(pool: _Pool, figure: Figure) -> float | None:
    values = [value for run in pool if (value := known_value(figure, run.points)) is not None]
    return median(values) if values else None


def limit_words(limit: ChangeLimit) -> str:
    """A limit in words.

    Examples
    --------
    >>> limit_words(parse_limit("read.p99>+10%")), limit_words(parse_limit("iops<-5%"))
    ('read.p99 by more than +10 %', 'iops by less than -5 %')
    """
    share = f"{'+' if limit.share > 0 else '-' if limit.share < 0 else ''}{share_text(abs(limit.share))}"
    return f"{limit.name} by {'more' if limit.is_most else 'less'} than {share}"

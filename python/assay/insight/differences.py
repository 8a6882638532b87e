"""Differences of runs: what is compared, what came of it, and how both are told."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

from assay.base.units import count_of, format_bytes
from assay.record.figures import Figure
from assay.record.intervals import BETWEEN_RUNS, Estimate, Method
from assay.record.shapes.point import Point, Workload

Status = Literal["changed", "not changed", "cannot tell", "follows"]
"""What is said of a difference; a figure that follows from another is no comparison of its own."""

LOGARITHM_MAX = 700.0
"""Largest logarithm of a ratio; the exponential of a larger one is no number."""
VALUE_MIN = 1e-9
"""What is less counts as nothing: no measurement comes near it."""

SMALLEST_SHARE = 0.05
"""Smallest relative difference worth noticing, unless the caller states another."""


class RunLike(Protocol):
    """A run: its manifest and its points (docs/results.md)."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Content of `run.json`."""

    @property
    def points(self) -> Sequence[Point]:
        """The points, whole."""


@dataclass(frozen=True)
class ComparedRun:
    """The plainest `RunLike`."""

    manifest: Mapping[str, Any]
    points: Sequence[Point]


@dataclass(frozen=True)
class ComparedSide:
    """Runs of one setup, one or more: before, or after."""

    runs: tuple[RunLike, ...]

    @property
    def name(self) -> str | None:
        """Ids of its runs; None where one has none."""
        names = [run.manifest.get("run_id") for run in self.runs]
        return ", ".join(map(str, names)) if all(names) else None


BetweenRuns = tuple[float, int]
"""Standard deviation of a logarithm between runs, and of how many other runs it is; of none it is assumed."""

ONE_RUN = "one run each cannot tell"
"""Why a difference is not judged that only the noise within runs was held against."""


@dataclass(frozen=True)
class FigureDifference:
    """One figure of one matched point, in two runs.

    `relative` and `interval_95` are B / A - 1. `p` is the chance of such a difference without any change, `stands`
    whether it is still counted when all comparisons are taken together. `better` is None unless changed. `follows` is
    the title of the figure that this one follows from: that one is compared, and this one shown beside it.
    `between_runs` is what widened the interval of one run each.
    """

    workload: str
    load: str
    figure: Figure
    run: int
    a: float | None
    b: float | None
    relative: float | None
    interval_95: tuple[float, float] | None
    p: float | None
    method: Method
    status: Status
    better: bool | None
    reason: str = ""
    stands: bool = False
    repeats: tuple[int, int] = (1, 1)
    follows: str = ""
    between_runs: BetweenRuns | None = None

    @property
    def metric(self) -> str:
        """Name of the figure."""
        return self.figure.name

    def to_dict(self) -> dict[str, Any]:
        """The row as the document has it."""
        return _without_figure(self) | {"metric": self.metric}


@dataclass(frozen=True)
class AnswerDifference:
    """The most within limits, the knee or the edge, in two runs; None where no load met the limits."""

    workload: str
    axis: str
    end: str
    a_load: float | None
    b_load: float | None
    figure: Figure
    run: int
    a: float | None
    b: float | None
    relative: float | None
    interval_95: tuple[float, float] | None
    method: Method
    status: Status
    better: bool | None
    reason: str = ""
    between_runs: BetweenRuns | None = None

    @property
    def load(self) -> str:
        """The axis with the load of both."""
        loads = ["-" if load is None else f"{load:,.4g}" for load in (self.a_load, self.b_load)]
        return f"{self.axis} {' and '.join(dict.fromkeys(loads))}"

    def to_dict(self) -> dict[str, Any]:
        """The row as the document has it: values carry the name of their figure."""
        name, row = self.figure.name, _without_figure(self)
        return row | {"metric": name, f"a_{name}": row.pop("a"), f"b_{name}": row.pop("b")}


def _without_figure(row: FigureDifference | AnswerDifference) -> dict[str, Any]:
    return {of.name: getattr(row, of.name) for of in fields(row) if of.name != "figure"}


_AnyDifference = FigureDifference | AnswerDifference


@dataclass(frozen=True)
class RunComparison:
    """Everything `compare_runs` found; `runs` are the ids, the first of which is A."""

    runs: tuple[str, ...]
    smallest_share: float
    differences: tuple[FigureDifference, ...]
    answers: tuple[AnswerDifference, ...]
    unmatched: tuple[str, ...] = field(default=())

    @property
    def compared(self) -> list[FigureDifference]:
        """The differences that are comparisons of their own."""
        return [row for row in self.differences if not row.follows]

    @property
    def sentence(self) -> str:
        """The result in one sentence, with chance findings taken out by Holm's correction."""
        rows: list[_AnyDifference] = [*self.compared, *self.answers]
        if not rows:
            return "Nothing can be compared: no workload was measured at the same load in both."
        share = share_text(self.smallest_share)
        count = {status: sum(row.status == status for row in rows) for status in _STATUSES}
        changed = sum(row.status == "changed" and not self._is_small(row) for row in rows)
        told = _counted(len(rows), changed, count["cannot tell"], share)
        standing = [row for row in self.compared if row.stands]
        alone = [row for row in rows if row.reason == ONE_RUN]
        if alone and not standing:
            most = max(alone, key=_distance)
            title = most.figure.title
            where = f"{title[:1].upper()}{title[1:]} of {most.workload} at {most.load}"
            return (
                f"{told}. {where} differs by {signed_percent(most.relative)}; one run each cannot tell whether that is"
                " the storage: repeat both, three times each (--repeat 3), and compare before/* after/*."
            )
        large, small = ([row for row in standing if self._is_small(row) is is_small] for is_small in (False, True))
        if changed and not standing:
            told += "; taken together no change stands out from chance (Holm, 5 %)"
        told += f"; taken together {_standing(large)}" if large else ""
        told += f"; of smaller differences {_standing(small)}" if small else ""
        return f"{told}."

    def _is_small(self, row: _AnyDifference) -> bool:
        """Whether a difference is smaller than what is worth noticing, however sure it is."""
        return row.relative is not None and abs(row.relative) < self.smallest_share

    @property
    def basis(self) -> str:
        """What was taken to vary between runs where one run each was compared; empty where nothing was."""
        rows: list[_AnyDifference] = [*self.compared, *self.answers]
        used = [row.between_runs for row in rows if row.between_runs is not None]
        known = sorted((deviation, runs) for deviation, runs in used if runs)
        told = []
        if known:
            least, most = (share_text(math.expm1(deviation)) for deviation, _ in (known[0], known[-1]))
            runs = max(runs for _, runs in known)
            told.append(
                f"From run to run the target varies by {least if least == most else f'{least} to {most}'} (standard"
                f" deviation of {runs} other runs of it in the same folder); the intervals hold that."
            )
        if len(known) < len(used):
            told.append(
                f"A standard deviation of {share_text(BETWEEN_RUNS[0])} from run to run is assumed where fewer than"
                " three other runs of the target at the same load lie in the folder."
            )
        return " ".join(told)

    def rows(self) -> list[tuple[str, ...]]:
        """Rows for a table, in the columns of `COLUMNS`."""
        return [self._row(row.load, row.figure.title, row) for row in self.differences]

    def answer_rows(self) -> list[tuple[str, ...]]:
        """Rows of the answers for a table, in the columns of `COLUMNS`."""
        return [self._row(row.load, f"{row.figure.title} {END_WORDS[row.end]}", row) for row in self.answers]

    def _row(self, load: str, title: str, row: _AnyDifference) -> tuple[str, ...]:
        # With more than two runs the column B holds several, so each value says whose it is.
        of = f" ({run_letter(row.run)})" if len(self.runs) > 2 else ""
        a, b = ("-" if value is None else row.figure.words(value) for value in (row.a, row.b))
        follows = isinstance(row, FigureDifference) and row.follows
        interval = "-" if follows else _interval_text(row.interval_95)
        status = f"differs by less than {share_text(self.smallest_share)}" if self._is_small(row) else ""
        status = status if row.status == "changed" and status else _status_text(row)
        texts = (signed_percent(row.relative), interval, f"follows from {follows}" if follows else status)
        return (row.workload, load, title, a, b + of, *texts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as one JSON document."""
        document = {of.name: getattr(self, of.name) for of in fields(self)} | {
            "sentence": self.sentence,
            "basis": self.basis,
        }
        document |= {name: [row.to_dict() for row in document[name]] for name in ("differences", "answers")}
        plain: dict[str, Any] = json.loads(json.dumps(document))
        return plain


def _counted(rows: int, changed: int, unknown: int, share: str) -> str:
    """How many figures differ by what is worth noticing, how many do not, and of how many that is not known."""
    if changed:
        told = f"Of {count_of(rows, 'figure')} {changed} changed by {share} or more, {rows - changed - unknown} did not"
        return f"{told}, and {unknown} cannot tell" if unknown else told
    if unknown == rows:
        told = f"Whether a difference is {share} or more cannot be told"
        return f"{told} from any of {rows} figures" if rows > 1 else told
    if unknown:
        return (
            f"No difference of {share} or more in {rows - unknown} of {count_of(rows, 'figure')}; {unknown} cannot tell"
        )
    return f"No difference of {share} or more in {count_of(rows, 'figure')}"


def _standing(rows: Sequence[FigureDifference]) -> str:
    """How many differences stand out from chance, and the largest."""
    most = max(rows, key=_distance)
    where = f"{most.figure.title} of {most.workload} at {most.load} in {run_letter(most.run)}"
    stand = f"{len(rows)} stand{'s' if len(rows) == 1 else ''} out from chance (Holm, 5 %)"
    return f"{stand}, most of all {where}: {signed_percent(most.relative)}"


def _distance(row: _AnyDifference) -> float:
    return abs(math.log1p(row.relative or 0.0))


COLUMNS = ("workload", "load", "metric", "A", "B", "difference", "95 % interval", "verdict")
END_WORDS = {"max": "within limits", "knee": "at the knee", "edge": "at the edge"}
"""Loads of an answer that are compared, and how rows name them."""
_STATUSES: tuple[Status, ...] = ("changed", "not changed", "cannot tell")


def run_letter(index: int) -> str:
    """Return A for the first run, B for the second; R27 and on when letters run out."""
    return chr(ord("A") + index) if index < 26 else f"R{index + 1}"


def signed_percent(share: float | None) -> str:
    """Relative difference for people.

    Examples
    --------
    >>> signed_percent(0.123), signed_percent(-0.0004), signed_percent(None)
    ('+12.3 %', '+0.0 %', '-')
    """
    # Adding 0.0 turns the -0.0 that rounding may leave into 0.0.
    return "-" if share is None else f"{round(100 * share, 1) + 0.0:+.1f} %"


def share_text(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.3g} %"


def _interval_text(interval: tuple[float, float] | None) -> str:
    return "no interval" if interval is None else f"{signed_percent(interval[0])} to {signed_percent(interval[1])}"


def _status_text(row: _AnyDifference) -> str:
    direction = {True: ", better", False: ", worse", None: ""}[row.better]
    return f"{row.status}{direction}" + (f": {row.reason}" if row.reason else "")


def same_workload(workload: Workload) -> str:
    """Return what makes a workload the same one: all its facts but its name, which is a label."""
    return json.dumps({key: value for key, value in workload.items() if key != "name"}, sort_keys=True)


def same_point(point: Point) -> str:
    """Return what makes a point one of the same workload at the same load."""
    return f"{same_workload(point['workload'])} {json.dumps(point['load'], sort_keys=True)}"


def workload_text(workload: Mapping[str, object]) -> str:
    """A workload by its name, or in words."""
    if workload.get("name"):
        return str(workload["name"])
    block_bytes = workload.get("block_bytes")
    size = format_bytes(block_bytes) if isinstance(block_bytes, int) else "mixed blocks"
    shares = (workload.get(key) for key in ("read_share", "random_share"))
    reads, random = (share_text(share if isinstance(share, (int, float)) else 0) for share in shares)
    return f"{size}, {reads} read, {random} random"


def on_virtual_clock(points: Iterable[Point]) -> bool:
    """Whether nothing but the seeds of a model can vary between runs; unknown where there is no point."""
    return {point.get("clock") for point in points} == {"virtual"}


def is_better(figure: Figure, change: float | None) -> bool | None:
    """Whether a change is one for the better; None where neither way is."""
    return None if figure.better is None else ((change or 0) > 0) == (figure.better == "higher")


def judged(estimate: Estimate | None, smallest_share: float) -> tuple[tuple[float, float] | None, Status]:
    """The 95 % interval of B / A - 1, and what it says of a change."""
    if estimate is None:
        return None, "cannot tell"
    low, high = (math.expm1(min(edge, LOGARITHM_MAX)) for edge in (estimate.low, estimate.high))
    if low > 0 or high < 0:
        return (low, high), "changed"
    return (low, high), "not changed" if -smallest_share <= low and high <= smallest_share else "cannot tell"

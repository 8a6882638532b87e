"""Whether a limit is met, missed or unknown, and why: decided here once, for everything that says so.

Unknown is an answer of its own. It is never shown as met and never as missed, and it comes with its reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.base.tables import Record
from assay.base.units import count_of
from assay.record.answers import LONGER, is_vague, names_of
from assay.record.common_figures import DIRECTIONS, share_words
from assay.record.figures import PERCENTILES, Figure
from assay.record.histograms import histogram_of
from assay.record.limits import Limit, bounded_figures, show_value
from assay.record.shapes.manifest import Manifest
from assay.record.shapes.point import Answer, JudgedLimit, Point, VerdictLine
from assay.record.standstill import HOSTS_APART, OVERDRIVEN, STOOD_STILL, why_saturated
from assay.record.steady import half_width_95

WORDS: Mapping[bool | None, str] = {True: "met", False: "missed", None: "unknown"}

GENERATOR, NO_SUCH_IO, NOT_RECORDED, NOTHING_ENDED = "generator", "no such I/O", "not recorded", "nothing ended"
TOO_FEW, IN_INTERVAL, FROM_MEMORY = "too few samples", "within the interval", "from memory"

ADVICE: Mapping[str, str] = {
    GENERATOR: "give the generator more processors or hosts, or ask for less",
    STOOD_STILL: "measure again while nothing pauses or starves this host",
    HOSTS_APART: "measure longer points, or find what delays a host",
    OVERDRIVEN: "ask for less, or serve the array on a host with more processors",
    FROM_MEMORY: "ask for more data than memory holds, or begin with cold caches",
    NO_SUCH_IO: "measure a load that has them, or leave the limit out",
    NOT_RECORDED: "leave the limit out, or measure where it is recorded",
    NOTHING_ENDED: "measure longer points",
    TOO_FEW: "measure longer points",
    IN_INTERVAL: LONGER,
}
"""What to do about each reason for which a limit is unknown."""
NOT_ASKED = frozenset({NO_SUCH_IO, NOT_RECORDED})
"""Reasons by which a limit of a preset does not concern a load; the user's own limit is unknown by them."""
UNDECIDED = frozenset({GENERATOR, HOSTS_APART})
"""What may end a search before anything was missed."""

RISK = 0.05
"""The risk that is taken of a wrong word."""


def samples_needed(statistic: str) -> int:
    """The least I/Os of which the largest lies above the percentile with 95 % probability; of a mean as of a median.

    1 - p^n >= 0.95 (S. S. Wilks, "Determination of Sample Sizes for Setting Tolerance Limits", Annals of Mathematical
    Statistics 12, 1941). A maximum is itself whatever was measured.

    Examples
    --------
    >>> [samples_needed(one) for one in ("mean", "p90", "p99", "p99.9", "max")]
    [5, 29, 299, 2995, 1]
    """
    share = PERCENTILES.get("p50" if statistic == "mean" else statistic)
    return 1 if share is None else math.ceil(math.log(RISK) / math.log(share))


def judge(
    limits: Sequence[Limit], point: Point, figures: Iterable[Figure] = (), *, untouched: str = ""
) -> list[JudgedLimit]:
    """Every limit against a point, per role and per volume.

    Parameters
    ----------
    limits
        What is asked.
    point
        The point, whole but for its limits.
    figures
        Those of the point's kind.
    untouched
        What shows that memory answered the work: then I/O of the devices is that of other programs, and judges nothing.

    Returns
    -------
    list of JudgedLimit
        The `limits` of docs/results.md. `met` is None where it is unknown; then `reason` and `why` say why.
    """
    known = bounded_figures(figures)
    return [one for limit in limits for one in _judge_one(limit, known[limit.name], point, untouched)]


def met(judged: Iterable[JudgedLimit]) -> bool | None:
    """How all limits of a point stand together; None where one is unknown, or none concerns the point."""
    asked = [one.get("met") for one in judged if concerns(one)]
    return together(asked) if asked else None


def together(found: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False where one does not, else None where one is unknown.

    Examples
    --------
    >>> together([True, None, False]), together([True, None]), together([True])
    (False, None, True)
    """
    known = {*found}
    return False if False in known else None if None in known else True


def rate_reaches(rate: float, least: float, half_width: float) -> bool | None:
    """Whether a rate reaches the least that is asked; None where its interval holds both.

    Examples
    --------
    >>> rate_reaches(104.0, 99.0, 4.0), rate_reaches(100.0, 99.0, 4.0), rate_reaches(90.0, 99.0, 4.0)
    (True, None, False)
    """
    return None if abs(rate - least) < half_width else rate >= least


def concerns(judged: JudgedLimit) -> bool:
    """Whether a limit concerns the load at which it was judged; older runs say no reason where it does not."""
    return judged.get("met") is not None or judged.get("reason") not in (None, *NOT_ASKED)


def _judge_one(limit: Limit, figure: Figure, point: Point, untouched: str) -> Iterator[JudgedLimit]:
    if figure.scopes is None:
        found = [("all", figure.value(point), figure.record(point))]
    else:
        found = list(figure.scopes(point, limit.role))
    # A limit that was measured nowhere appears once: for its only scope, such as the host, or for all.
    alone = found[0][0] if len(found) == 1 and limit.direction is None else limit.role or "all"
    for scope, value, record in [one for one in found if one[1] is not None] or [(alone, None, None)]:
        reason, why = _doubt(limit, figure, point, value, record)
        if untouched and limit.direction in DIRECTIONS and reason != NO_SUCH_IO:
            reason, why = FROM_MEMORY, untouched
        # A load that was not what was meant, or asked nothing of the storage, has no value to be held against a limit.
        held = None if reason in (GENERATOR, STOOD_STILL, HOSTS_APART, OVERDRIVEN, FROM_MEMORY) else value
        is_met = None if reason or held is None else limit.met_by(held)
        yield JudgedLimit(
            limit=limit.text, scope=scope, value=held, unit=limit.unit, met=is_met, reason=reason or None,
            why=why or None,
        )  # fmt: skip


def _doubt(limit: Limit, figure: Figure, point: Point, value: float | None, record: Record | None) -> tuple[str, str]:
    """Why the value cannot decide: the reason and a clause; both empty where it can."""
    if value is None and limit.direction in DIRECTIONS and not _asks_for(point, limit):
        return NO_SUCH_IO, f"the load has no {_plural(limit)}"
    generator = point.get("generator") or {}
    # A share of processors beyond its bound under less load than was meant is beyond it under more.
    is_beyond = value is not None and limit.unit == "share" and limit.is_upper and not limit.met_by(value)
    if generator.get("saturated") and not is_beyond:
        return str(generator.get("reason") or GENERATOR), why_saturated(point)
    if value is None:
        if limit.direction in DIRECTIONS:
            return NOTHING_ENDED, f"no {_plural(limit)} ended while it was measured"
        return NOT_RECORDED, f"{limit.name} was not recorded"
    count, needed = (record or {}).get("count"), samples_needed(figure.statistic)
    if figure.statistic and count is not None and count < needed and not _misses_surely(limit, figure, record, count):
        return TOO_FEW, f"{limit.name} rests on {count_of(int(count), 'sample')}, {needed:,} are the least"
    half_width = _half_width(figure, point, value)
    if abs(value - limit.value) < half_width:
        ends = (show_value(max(value + sign * half_width, 0.0), limit.unit) for sign in (-1, 1))
        return IN_INTERVAL, f"its 95 % interval, {' to '.join(ends)}, holds the limit"
    return "", ""


def _plural(limit: Limit) -> str:
    noun = {"total": "I/Os", "flush": "flushes"}.get(str(limit.direction), f"{limit.direction}s")
    return f"{limit.role} {noun}" if limit.role else noun


def _asks_for(point: Point, limit: Limit) -> bool:
    """Whether the load has I/O that a limit bounds, as far as the workload says what it has."""
    workload: Record = point.get("workload") or {}
    for one in workload.get("activities") or (workload,):
        share = one.get("read_share")
        if not isinstance(share, int | float) or (limit.role is not None and one.get("role") != limit.role):
            continue
        syncs = one.get("sync") in ("fdatasync", "fsync") and share < 1
        if {"read": share > 0, "write": share < 1, "flush": syncs}.get(str(limit.direction), True):
            return True
    return False


def _misses_surely(limit: Limit, figure: Figure, record: Record | None, count: int) -> bool:
    """Whether few samples miss a limit all the same: a rank that lies below the percentile with 95 % does.

    At least r of n samples lie below the percentile p with the probability that a binomial count of n and p is r or
    more (W. J. Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2).
    """
    share = PERCENTILES.get(figure.statistic)
    histogram = histogram_of(record)
    if share is None or histogram is None or not limit.is_upper:
        return False
    rank, probability = count, share**count
    while probability < 1 - RISK and rank > 1:
        rank -= 1
        probability += math.comb(count, rank) * share**rank * (1 - share) ** (count - rank)
    return probability >= 1 - RISK and not limit.met_by(float(histogram.percentile(100 * rank / count)))


def _half_width(figure: Figure, point: Point, value: float) -> float:
    """Half of the 95 % interval of a rate, from its batches; 0 for any other figure, and where there are none."""
    batches = list(figure.batches(point)) if figure.better == "higher" else []
    mean = sum(batches) / len(batches) if batches else 0.0
    half_width = half_width_95(batches)
    return value * half_width / mean if mean and math.isfinite(half_width) else 0.0


# Words


def unknown_words(reason: object, why: object) -> str:
    """Why a limit is unknown and what to do, as a clause.

    Examples
    --------
    >>> unknown_words("too few samples", "read.p99 rests on 20 samples, 299 are the least")
    'unknown: read.p99 rests on 20 samples, 299 are the least; measure longer points'
    """
    return "; ".join(text for text in (f"unknown: {why}" if why else "unknown", ADVICE.get(str(reason), "")) if text)


def judged_words(limit: Limit, value: float) -> str:
    """A value against its limit.

    Examples
    --------
    >>> from assay.record.limits import parse_limits
    >>> judged_words(parse_limits(["read.mean<=20ms"])[0], 5e6)
    '5.00 ms, 25 % of the limit'
    """
    share = value / limit.value if limit.value else 0.0
    against = f"{share_words(share)} of the limit" if share < 10 else f"{share:.0f} times the limit"
    return f"{show_value(value, limit.unit)}, {against}"


# Verdicts


def verdict_of(manifest: Manifest) -> list[VerdictLine]:
    """The verdict of a run; of older runs, a search that the load generator ended says nothing of a limit.

    Nor does one whose answer may as well be less than half of itself.
    """
    lines = [line for line in manifest.get("verdict") or [] if isinstance(line, Mapping)]
    return [_undecided(line, manifest) for line in lines]


def failed_answer(line: VerdictLine, manifest: Manifest) -> Answer | None:
    """The search that found no load within its limits, of which a line tells; None for any other line."""
    if line.get("met") is not False or line.get("point_id"):
        return None
    answers, parts = manifest.get("answers") or [], manifest.get("parts") or []
    failed = (answer for answer in answers if not answer.get("max") and line["question"] in names_of(answer, parts))
    return next((answer for answer in failed if line.get("part") in (None, answer.get("part"))), None)


def answer_found(line: VerdictLine, manifest: Manifest) -> Answer | None:
    """The search of which a line tells what it found; None for any other line."""
    point_id, parts = line.get("point_id"), manifest.get("parts") or []
    if point_id is None:
        return None
    found = [one for one in manifest.get("answers") or [] if (one.get("max") or {}).get("point_id") == point_id]
    return next((one for one in found if line["question"] in names_of(one, parts)), None)


def _undecided(line: VerdictLine, manifest: Manifest) -> VerdictLine:
    answer, found = failed_answer(line, manifest), answer_found(line, manifest)
    if answer is not None and answer.get("limited_by") in UNDECIDED:
        return {**line, "met": None}
    return {**line, "met": None} if found and is_vague(line.get("value"), found.get("interval_95")) else line


def standing_word(line: Mapping[str, object]) -> str:
    """The word of a line of the verdict or of a judged limit: met, missed, unknown; or that nothing was asked."""
    has_limit = line.get("met") is not None or line.get("limit") or line.get("value") is None
    return WORDS[line.get("met")] if has_limit else "no limit"  # type: ignore[index]


WORST_FIRST = ("missed", "unknown", "met")


def is_counted(line: VerdictLine) -> bool:
    """Whether a line is a limit or a check of its own; one that sums up others counts where it is missed alone."""
    return standing_word(line) != "no limit" and not (line.get("sums_up") and line.get("met") is not False)


def standing_counts(lines: Iterable[VerdictLine]) -> Counter[tuple[str, str]]:
    """How many limits and checks stand how: counts by `limit` or `check` and word.

    A limit counts once for each question, by its worst scope. What has no limit and is decided is a check.
    """
    worst: dict[tuple[str, str], str] = {}
    for line in lines:
        word, key = standing_word(line), (str(line.get("question")), line.get("limit") or "")
        if is_counted(line):
            worst[key] = min(word, worst.get(key, "met"), key=WORST_FIRST.index)
    return Counter(("limit" if limit else "check", word) for (_, limit), word in worst.items())


def counts_words(counts: Mapping[tuple[str, str], int]) -> str:
    """How many limits are met and checks passed.

    Examples
    --------
    >>> counts_words({("limit", "met"): 3, ("limit", "missed"): 1, ("check", "met"): 2})
    '3 of 4 limits met, 2 of 2 checks passed'
    >>> counts_words({("limit", "unknown"): 1})
    '1 limit unknown'
    """
    told = []
    for kind, done in (("limit", "met"), ("check", "passed")):
        of = sum(count for (one, _), count in counts.items() if one == kind)
        if of and counts.get((kind, "unknown"), 0) == of:
            # None of one reads as a miss.
            told.append(f"{count_of(of, kind)} unknown")
        elif of:
            told.append(f"{counts.get((kind, 'met'), 0):,} of {count_of(of, kind)} {done}")
    return ", ".join(told)

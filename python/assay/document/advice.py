"""What follows from a search: what limits it, the load at which to run it, and what to do next."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence

from assay.base.tables import Record
from assay.base.units import format_latency
from assay.document.limits import MEETS, limit_text, parse_limit, search_state
from assay.document.text import DASH, interval_text, latency_of, load_size, load_words, percent
from assay.record.answers import KNEE_SHARE, edge_words, is_vague
from assay.record.figures import PERCENTILES, Figure, value_of
from assay.record.source import RunFacts
from assay.record.standstill import HOSTS_APART

_LIMITING = {
    "saturation": "{name}: throughput stops rising before any limit is reached; more load only adds waiting.",
    "axis end": "{name}: nothing was found that limits it; the largest load tried still met the limits.",
    "generator": "{name}: the load generator, not the storage, was the limit; the storage may hold more.",
    HOSTS_APART: "{name}: at more load hosts did not measure at the same time; the storage may hold more.",
    "rate not sustained": "{name}: beyond this rate requests arrive faster than they are served.",
    "errors": "{name}: I/O or transactions fail at more load.",
}
_NEXT = {
    "saturation": "{name}: for more throughput than this, add devices or paths; more outstanding work does not help.",
    "axis end": "{name}: measure again with a higher largest load, to find what limits it.",
    "generator": "{name}: measure again from a host with more or idle processors, to see what the storage holds.",
    HOSTS_APART: "{name}: measure longer, or find what delays a host, to see what the storage holds.",
    "rate not sustained": "{name}: keep the arrival rate below this one, or add devices.",
    "errors": "{name}: find the cause of the errors before relying on any figure; their kinds are among the points.",
}


def limiting_text(answer: Record, name: str) -> str | None:
    """What ended a search, as a sentence; None where that is not recorded."""
    limited_by = str(answer.get("limited_by") or "")
    where = "with more load it misses" if answer.get("max") else "the smallest load that was tried misses"
    text = _LIMITING.get(limited_by, f"{{name}}: {where} {{limit}}.")
    return text.format(name=name, limit=limit_text(limited_by)) if limited_by else None


def next_texts(
    facts: RunFacts, kind: str, answers: Sequence[Record], name: Callable[[Record], str], excused: Collection[str] = ()
) -> list[str]:
    """What to do about what ended the searches of a kind, and about limits its other points miss.

    Parameters
    ----------
    name
        Gives the name of an answer's workload.
    excused
        Names of limits whose miss is not the storage's fault.
    """
    ends = [(str(answer.get("limited_by") or ""), name(answer)) for answer in answers]
    texts = [_NEXT[end].format(name=who) for end, who in ends if end in _NEXT]
    every = facts.manifest.get("answers") or []
    searched = {point_id for answer in every for point_id in answer.get("point_ids") or []}
    missed = [end for end, _ in ends if end and end not in _LIMITING]
    own = facts.points_of(kind)
    missed += [
        str(one.get("limit"))
        for point in own
        if point.get("id") not in searched
        for one in point.get("limits") or []
        if one.get("met") is False
    ]
    texts += [_remedy(limit, own) for limit in dict.fromkeys(missed) if _metric(limit) not in excused]
    return list(dict.fromkeys(texts))


def _metric(limit: str) -> str:
    """What a limit bounds, as it is written."""
    return re.split(r"[<>]", limit, maxsplit=1)[0].strip()


def _remedy(limit: str, points: Sequence[Record]) -> str:
    """What brings a missed limit nearer: by the role and the statistic it bounds."""
    *where, statistic = re.split(r"\.(?!\d)", _metric(limit))
    shown = limit_text(limit)
    if "log" in where:
        return (
            f"{shown}: commits wait for the log; give it a device of its own, or one whose write cache survives a loss"
            " of power."
        )
    tail = _tail_words(limit, points) if re.fullmatch(r"p\d.*|max", statistic) else ""
    if tail:
        return f"{shown}: {tail}"
    if "read" in where or "write" in where:
        return f"{shown}: to hold more within it, add devices or paths, or faster ones; else keep the load below it."
    return f"{shown}: find out what else uses it, or ask for less."


def held_text(answer: Record, value: float, held: str, name: str, words: Callable[[float], str]) -> str:
    """What a search found to be held, with its interval: the beginning of a sentence.

    Examples
    --------
    >>> held_text({"interval_95": [0.0, 5204.0]}, 2352.0, "2,352 IOPS", "64 KiB reads", "{:,.0f}".format)
    '64 KiB reads: how much it holds is not known, 2,352 IOPS (95 % interval 0 to 5,204)'
    """
    interval = answer.get("interval_95")
    span = interval_text(interval, words)
    if is_vague(value, interval):
        return f"{name}: how much it holds is not known, {held}{span}"
    return f"Holds {held} of {name}{span}"


def _tail_words(limit: str, points: Sequence[Record]) -> str:
    """How the I/Os that miss a limit on a percentile lie to the others, at the least load that misses it.

    Waits of random arrivals are exponential at the worst: their percentile p is ln(1 / (1 - p)) / ln 2 medians, 6.6 for
    p99. What lies farther out was stalled by something else. Empty where the median is not known, or neither holds.
    """
    bound = parse_limit(limit)
    if bound is None:
        return ""
    direction, statistic, limit_ns = bound
    missing = [
        point for point in points
        if any(one.get("limit") == limit and one.get("met") is False for one in point.get("limits") or [])
    ]  # fmt: skip
    least = min(missing, key=lambda point: load_size(point.get("load") or {}), default=None)
    role = limit.strip().split(".", 1)[0]
    side = least and ((least.get("roles") or {}).get(role) or least).get(direction)
    median, value = latency_of(side, "p50"), latency_of(side, statistic)
    if not side or median is None or value is None:
        return ""
    if median > limit_ns:
        return (
            f"half of all {direction}s take over {format_latency(median)}; add devices or paths, or faster ones, or"
            " keep the load below it."
        )
    share = PERCENTILES.get(statistic.replace("_", "."), 1 - 1 / max(int(side.get("count") or 2), 2))
    if value > median * math.log(1 / (1 - share)) / math.log(2):
        return "a few I/Os wait far longer than the rest; find what stalls them in the series over time."
    return ""


def knee_of(facts: RunFacts, answer: Record, figure: Figure) -> Record | None:
    """The point at which to run: the smallest load that meets the limits and gives `KNEE_SHARE` of the most.

    Runs that recorded their knee are taken at their word; for others it is found among their points.
    """
    recorded = answer.get("knee")
    if recorded:
        return facts.point(recorded.get("point_id"))
    most = (answer.get("max") or {}).get(figure.name)
    if most is None:
        return None
    ids = answer.get("point_ids") or []
    passing = [
        point
        for point in facts.points
        if point.get("id") in ids
        and search_state(point) == MEETS
        and (value_of(figure, point) or 0.0) >= KNEE_SHARE * float(most)
    ]
    return min(passing, key=lambda point: load_size(point["load"]), default=None)


def running_text(
    facts: RunFacts,
    answer: Record,
    figure: Figure,
    name: str,
    latency: Callable[[Record], str | None] = lambda _point: None,
) -> str | None:
    """The load at which to run, with what it gives there; None where there is none, or its point is not in the run.

    Parameters
    ----------
    latency
        Gives the latency of a point in words.
    """
    point, most = knee_of(facts, answer, figure), (answer.get("max") or {}).get(figure.name)
    value = value_of(figure, point) if point else None
    if point is None or value is None or not most:
        return None
    waits = latency(point)
    share = "the most it holds" if value >= most else f"{percent(value / most)} of the most"
    edge = answer.get("edge")
    further = f"; {edge_words(answer)}" if edge and edge.get("point_id") != point.get("id") else ""
    return (
        f"{name}: {load_words(point['load'])}, which gives {figure.words(value)} ({share})"
        f"{f' at {waits}' if waits else ''} [{point.get('id') or DASH}]{further}."
    )

"""Words for limits and for what ended a search."""

from __future__ import annotations

import re

from assay.base.tables import Record
from assay.base.units import parse_duration
from assay.document.text import DASH, load_words
from assay.record.judgement import concerns, met
from assay.record.standstill import HOSTS_APART, were_apart

_LIMIT = re.compile(
    r"(?:(?P<role>[\w-]+)\.)?(?P<direction>read|write)\.(?P<statistic>mean|p[0-9._]+|max)\s*<=?\s*(?P<value>[\w.µ]+)"
)

STOPPED = {
    "saturation": "throughput stopped rising before any limit was reached",
    "axis end": "the largest load of the plan still passed",
    "generator": "the load generator itself was the bottleneck",
    HOSTS_APART: "hosts measured too far apart",
    "rate not sustained": "a higher rate was not sustained",
    "errors": "more load brings errors",
}
"""What ends a search besides limits."""


MEETS, MISSES = "meets the limits", "misses a limit"
"""States of a point of a search that is an answer, and of one that is none."""
UNKNOWN = "unknown whether it meets the limits"


def parse_limit(text: str) -> tuple[str, str, float] | None:
    """Direction, statistic and nanoseconds of a limit on the latency of I/O; None for any other limit.

    Examples
    --------
    >>> parse_limit("log.write.p99.9<=5ms"), parse_limit("cpu<80%")
    (('write', 'p99_9', 5000000.0), None)
    """
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        return None
    return match["direction"], match["statistic"].replace(".", "_"), float(parse_duration(match["value"]))


def limit_text(limit: object) -> str:
    """Limits as written in plans, with spaces around the comparison at which no line breaks."""
    return "; ".join(_one_limit(text) for text in str(limit).split("; ")) if limit else DASH


def _one_limit(text: str) -> str:
    for sign in ("<=", ">=", "<", ">"):
        if sign in text:
            shown = {"<=": "≤", ">=": "≥"}.get(sign, sign)
            return f"\N{NO-BREAK SPACE}{shown}\N{NO-BREAK SPACE}".join(text.split(sign, 1)).strip("\N{NO-BREAK SPACE}")
    return text


def limited_text(answer: Record, *, by: str = "more load misses ", errors: str = STOPPED["errors"]) -> str:
    """Words for what ended a search.

    Parameters
    ----------
    answer
        The answer, or whatever has `limited_by`.
    by
        Stands before a limit.
    errors
        What errors of the kind are called.

    Examples
    --------
    >>> limited_text({"limited_by": "axis end"})
    'the largest load of the plan still passed'
    """
    limited_by = answer.get("limited_by")
    if not limited_by:
        return "what limited it is not recorded"
    known = {**STOPPED, "errors": errors}
    return known.get(str(limited_by), f"{by}{limit_text(limited_by)}")


def nothing_held_text(answer: Record, name: str, errors: str) -> str:
    """What a search says where no load met its limits: the smallest load that was tried, and what ended the search."""
    failing = answer.get("first_failing")
    least = f"; the smallest was {load_words(failing)}" if failing else ""
    why = limited_text(answer, by="missed ", errors=errors)
    return f"{name}: no load that was tried met the limits ({why}){least}."


def searched_state(point: Record, answer: Record, failed: str = "errors") -> str:
    """The state of a point of a search, where repeats at its load disagree as the search judged them: by their mean."""
    state, axis = search_state(point, failed), str(answer.get("axis"))
    load = (point.get("load") or {}).get(axis)
    edge, failing = ((answer.get(end) or {}).get(axis) for end in ("edge", "first_failing"))
    if state == MISSES and None not in (load, edge) and load == edge:
        return MEETS
    return MISSES if state == MEETS and None not in (load, failing) and load == failing else state


def search_state(point: Record, failed: str = "errors") -> str:
    """The state of a point of a search, in the words of a legend: `MEETS`, or why the point is no answer."""
    if (point.get("errors") or {}).get("count"):
        return failed
    if (point.get("generator") or {}).get("saturated"):
        return "hosts measured apart" if were_apart(point) else "the load generator limits"
    limits = point.get("limits") or []
    if any(limit.get("met") is False for limit in limits):
        return MISSES
    if (point.get("offered") or {}).get("sustained") is False:
        return "rate not sustained"
    return MEETS if met(limits) is not None or not any(map(concerns, limits)) else UNKNOWN

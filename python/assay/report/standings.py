"""How each thing that was asked stands: the value that decides, against its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.base.errors import UsageError
from assay.document.limits import limit_text
from assay.document.remarks import Remarks
from assay.document.text import DASH, shorten
from assay.record.figures import Figure
from assay.record.judgement import WORDS, WORST_FIRST, answer_found, failed_answer, is_counted
from assay.record.limits import Limit, parse_limits
from assay.record.shapes.point import Answer, Point, VerdictLine
from assay.record.source import RunFacts, records
from assay.report.sections.verdict import judged_lines
from assay.workloads.registry import workload_recorded
from assay.workloads.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One line of the verdict that was asked for.

    Attributes
    ----------
    question
        What was asked.
    met
        None where it was not measured.
    limit
        The limit that decides: that of the line, or of several the one whose value is worst. None where there is none.
    value
        What was measured against it, in the limit's unit.
    excuse
        Why a miss does not count against the storage; empty where it does.
    kind
        `limit`, or `check` of what has none, such as pages that are right.
    searched
        Whether a search chose the load: it goes on until a value comes near its limit.
    """

    question: str
    met: bool | None
    limit: Limit | None = None
    value: float | None = None
    excuse: str = ""
    kind: str = "limit"
    searched: bool = False

    @property
    def what(self) -> str:
        """What the limit bounds, in words."""
        role = f"{self.limit.role} " if self.limit and self.limit.role else ""
        name = self.limit.name.replace(".", " ", 1) if self.limit else ""
        return f"{role}{name}"

    @property
    def bound(self) -> str:
        """The comparison and the bound, for people."""
        return "" if self.limit is None else limit_text(self.limit.text[self.limit.text.index(self.limit.operator) :])

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return "" if self.limit is None else self.limit.unit

    @property
    def share(self) -> float | None:
        """The value as a share of its limit, above 1 where it is missed; of a lower bound its inverse."""
        if self.limit is None or self.value is None:
            return None
        over, under = (self.value, self.limit.value) if self.limit.is_upper else (self.limit.value, self.value)
        return over / under if under else None


def standings(facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> list[Standing]:
    """What the verdict decides, in its order: a limit once for each question, by its worst scope."""
    worst: dict[tuple[str, str], Standing] = {}
    for line in judged_lines(facts):
        if not is_counted(line):
            continue
        key, one = (str(line.get("question")), line.get("limit") or ""), _standing(line, facts, remarks)
        worst[key] = max(worst.get(key, one), one, key=_badness)
    return list(worst.values())


def _badness(one: Standing) -> tuple[int, float]:
    return -WORST_FIRST.index(WORDS[one.met]), one.share or 0.0


def _standing(line: VerdictLine, facts: RunFacts, remarks: Mapping[Workload[Any], Remarks]) -> Standing:
    question, met = shorten(str(line.get("question") or DASH), 60), line.get("met")
    kind = "limit" if line.get("limit") else "check"
    answers = facts.manifest.get("answers") or []
    failed = failed_answer(line, facts.manifest)
    # Where no load met the limits, the point at which the search gave up tells by how much.
    point = facts.point(((failed.get("first_failing") or {}) if failed else line).get("point_id"))
    workload = workload_recorded(point) if point else None
    excuses = remarks[workload].not_storage if workload is not None and workload in remarks else {}
    figures = workload.figures if workload else ()
    known = [(limit, value) for text, value in _values(line, point, figures) if (limit := _parsed(text, figures))]
    # A line with a value and a limit of its own is no search's, even where it is of the same point.
    own = len(known) == 1 and known[0][1] == line.get("value")
    judged = _judged_by_search(line, failed, answers, figures) if known and not own else None
    known = [judged] if judged else known
    searched = answer_found(line, facts.manifest) is not None
    found = [
        Standing(
            question=question, met=met, limit=limit, value=value, kind=kind, searched=searched,
            excuse=excuses.get(limit.name, "") if met is False else "",
        )
        for limit, value in known
    ]  # fmt: skip
    # What is missed by fault of the storage decides before what is missed for another reason.
    return max(
        found,
        key=lambda one: (not one.excuse and (one.share or 0.0) > 1.0, one.share or 0.0),
        default=Standing(question=question, met=met, kind=kind),
    )


def _judged_by_search(
    line: VerdictLine, failed: Answer | None, answers: Sequence[Answer], figures: Sequence[Figure]
) -> tuple[Limit, float] | None:
    """The limit and value by which a search judged a load: by all its points, not the first; None of other lines."""
    point_id = line.get("point_id")
    ends = [failed.get("first_failing")] if failed else [one.get("max") for one in answers if point_id is not None]
    end = next((one for one in ends if one and (failed or one.get("point_id") == point_id)), None)
    limiting = end.get("limiting") if end else None
    if not limiting or limiting.get("share") is None:
        return None
    limit = _parsed(str(limiting.get("limit")), figures)
    return None if limit is None else (limit, float(limiting["share"] or 0.0) * limit.value)


def _values(line: VerdictLine, point: Point | None, figures: Sequence[Figure]) -> list[tuple[str, float]]:
    """Limits of a line with their values: its own, or all that were judged at the point of an answer."""
    text, value = str(line.get("limit") or ""), line.get("value")
    own = _parsed(text, figures)
    if own is not None and value is not None and own.unit == line.get("unit"):
        return [(text, float(value))]
    if value is None and line.get("met") is None:
        # What the point measured of other limits is no answer to this one.
        return []
    judged = records(point.get("limits") if point else None)
    found = [(str(one.get("limit")), float(held)) for one in judged if (held := one.get("value")) is not None]
    return found if line.get("limit") else []


def _parsed(text: str, figures: Any) -> Limit | None:
    try:
        return parse_limits([text], figures)[0]
    except UsageError:
        return None

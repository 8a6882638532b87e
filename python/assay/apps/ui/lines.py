"""Lines of a figure over time: what is asked for, and how lines of many members become one.

Entities have names such as `member0/disk3`. A figure shows the groups below one of them, each as the sum or mean of
what it holds, so that a reader goes from a group to its members and from a member to its disks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, NotRequired, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import TypedDict

from assay.base.errors import UsageError
from assay.base.paths import plain
from assay.base.reading import problem_of
from assay.record.flight_window import CatalogueGroup
from assay.record.latency_buckets import is_highest

LINES_MAX = 8
STEPS_MAX = 1200
QUERIES_MAX = 24
TEXT_MAX = 300
SECONDS_MAX = 2.0**33

Values = list[float | None]
Name = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Seconds = Annotated[float, Field(ge=0, lt=SECONDS_MAX)]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
"""A question is foreign input: types as JSON has them, and no key that is not read."""


class FigureAsked(TypedDict):
    """What one figure shows, as JSON."""

    host: str
    source: str
    metric: str
    under: str


class FiguresAsked(TypedDict):
    """Figures of one time, as JSON; seconds since 1970."""

    from_s: float
    to_s: float
    steps: int
    queries: list[FigureAsked]


class PageQuestion(TypedDict, total=False):
    """What an answer is asked of: a run's folder, or several, and figures of its series."""

    path: str
    paths: list[str]
    question: FiguresAsked


class FigureLine(TypedDict):
    """A line of a figure: values at each step, and whether there is more beneath its entity."""

    entity: str
    values: list[float | None]
    opens: bool


class FigurePanel(TypedDict):
    """Lines of one figure."""

    lines: list[FigureLine]


class FiguresOverTime(TypedDict):
    """Figures over one time; `t` is when each step ends, seconds since 1970."""

    t: list[float]
    panels: list[FigurePanel]


class SeriesCatalogue(TypedDict):
    """What a series holds, and its time in seconds since 1970; an empty one says no clock."""

    from_s: float | None
    to_s: float | None
    clock: NotRequired[str]
    groups: list[CatalogueGroup]


class FigureQuery(BaseModel):
    """What one figure shows.

    Attributes
    ----------
    under
        Entities below this one, by their next name; empty for all.
    """

    model_config = STRICT

    host: Name
    source: Name
    metric: Name
    under: Annotated[str, Field(max_length=TEXT_MAX)] = ""

    def takes(self, host: str, source: str, metric: str, entity: str) -> bool:
        """Whether a series is of it."""
        if (host, source, metric) != (self.host, self.source, self.metric):
            return False
        return not self.under or entity == self.under or entity.startswith(f"{self.under}/")

    def group(self, entity: str) -> str:
        """The line that an entity belongs to."""
        rest = entity.removeprefix(self.under).lstrip("/") if self.under else entity
        name = rest.split("/", 1)[0]
        return f"{self.under}/{name}" if self.under and name else name or entity


class FiguresQuestion(BaseModel):
    """Figures of one time."""

    model_config = STRICT

    from_s: Seconds
    to_s: Seconds
    steps: Annotated[int, Field(ge=2, le=STEPS_MAX)] = 400
    queries: Annotated[tuple[FigureQuery, ...], Field(max_length=QUERIES_MAX)]

    @model_validator(mode="after")
    def _is_some_time(self) -> Self:
        if self.from_ns >= self.to_ns:
            raise ValueError("from_s and to_s: accepted: seconds since 1970, the second later than the first")
        return self

    def asked(self) -> FiguresAsked:
        """The question as JSON."""
        queries: list[FigureAsked] = [
            {"host": one.host, "source": one.source, "metric": one.metric, "under": one.under} for one in self.queries
        ]
        return {"from_s": self.from_s, "to_s": self.to_s, "steps": self.steps, "queries": queries}

    @property
    def from_ns(self) -> int:
        """When the time begins."""
        return round(self.from_s * 1e9)

    @property
    def to_ns(self) -> int:
        """When the time ends."""
        return round(self.to_s * 1e9)

    def refuse_unknown(self, known: set[tuple[str, str, str]]) -> None:
        """Refuse a query that names what was not recorded.

        Parameters
        ----------
        known
            Host, source and metric of every series there is.

        Raises
        ------
        UsageError
            A query names none of them.
        """
        for place, query in enumerate(self.queries):
            if (query.host, query.source, query.metric) not in known:
                raise UsageError(
                    f"q: queries.{place}: no series {plain(query.metric)} of {plain(query.source)} was recorded on"
                    f" {plain(query.host)}"
                )


Q = TypeVar("Q", bound=BaseModel)


def parse_question(kind: type[Q], text: str | bytes) -> Q:
    """The question of a page, in JSON.

    Raises
    ------
    UsageError
        The text is no such question.
    """
    try:
        # Rust reads the text: nesting is bounded there, and a number such as 1e999 is none.
        return kind.model_validate_json(text)
    except ValidationError as error:
        place, reason = problem_of(error.errors(include_url=False)[0])
        where = ".".join(map(str, ("q", *place)))
        raise UsageError(plain(f"{where}: {reason}")[:TEXT_MAX]) from None


def is_mean(metric: str, kind: str) -> bool:
    """Whether several members have the mean of their values, as shares and latencies do, and not the sum.

    Examples
    --------
    >>> is_mean("busy_share", "gauge"), is_mean("read_ios_count", "delta"), is_mean("dirty_bytes", "gauge")
    (True, False, False)
    """
    return (kind != "delta" and not metric.endswith(("_bytes", "_count"))) or "_mean_" in metric


def grouped(query: FigureQuery, found: Sequence[tuple[str, str, Values]]) -> list[FigureLine]:
    """Lines of a figure, the largest first.

    Parameters
    ----------
    found
        Entity, kind and values of every series that the query takes.
    """
    members: dict[str, list[tuple[str, str, Values]]] = {}
    for one in found:
        members.setdefault(query.group(one[0]), []).append(one)
    lines: list[FigureLine] = []
    for name, own in members.items():
        # A group's own figures stand for it, where there are any.
        itself = [one for one in own if one[0] == name]
        chosen = itself or own
        combine = max if is_highest(query.metric) else _mean if is_mean(query.metric, chosen[0][1]) else _sum
        values = chosen[0][2] if len(chosen) == 1 else _each(combine, [one[2] for one in chosen])
        has_more = any(one[0].startswith(f"{name}/") for one in own)
        lines.append({"entity": name, "values": [_short(value) for value in values], "opens": has_more})
    if len(lines) > LINES_MAX:
        return sorted(lines, key=lambda line: -_size(line["values"]))[:LINES_MAX]
    return sorted(lines, key=lambda line: line["entity"])


def _each(combine: Callable[[list[float]], float], columns: Sequence[Values]) -> Values:
    known = ([value for value in row if value is not None] for row in zip(*columns, strict=True))
    return [combine(row) if row else None for row in known]


def _sum(values: list[float]) -> float:
    return math.fsum(values)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _short(value: float | None) -> float | None:
    """A value as a figure shows it; more digits would only make the answer longer."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def _size(values: Sequence[float | None]) -> float:
    return sum(abs(value) for value in values if value is not None)

"""Published figures: what others measured on arrays of the catalogue, to fit models to and to check them by.

`published.toml` beside this file holds them. A point that is not for fitting was left to be predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import read_text, table_of, validated
from assay.base.tables import TableValue

PublishedKind = Literal["iops", "bytes_per_s", "read_latency", "write_latency", "achieved_iops", "usable_bytes"]
"""Figures that points have, by the names that studies compare; `usable_bytes` is the capacity of the model."""


class PublishedPoint(Strict):
    """One published figure, and how to ask a model for it."""

    id: str
    title: str
    source: str
    array: str
    """Name of the model."""
    target: dict[str, TableValue] = Field(default_factory=dict)
    """Options of the model."""
    activity: dict[str, TableValue] = Field(default_factory=dict)
    limits: tuple[str, ...] = ()
    search: dict[str, TableValue] = Field(default_factory=dict)
    timing: dict[str, TableValue] = Field(default_factory=dict)
    plan: dict[str, TableValue] = Field(default_factory=dict)
    """A plan of another kind, in place of activity, limits, search and timing."""
    continues: bool = False
    """Goes on with the state in which the point before left the model."""
    of: str | None = None
    """Id of the point whose run gives this figure, too."""
    figure: PublishedKind = "iops"
    """What was published; of a search, at the largest load within the limits."""
    value: Annotated[float, Field(gt=0)] | None = None
    """In the unit of the figure, or a ratio; None where none was published. The middle of `within`, where that is
    given."""
    within: tuple[float, float] | None = None
    """The range that was published."""
    ratio_of: str | None = None
    """Id of the point whose figure, divided by this point's, is the value."""
    fit: bool = False
    """Whether the model was fitted to it."""
    note: str = ""
    """Why the model's figure differs, or what else a reader must know."""

    @model_validator(mode="before")
    @classmethod
    def _middle(cls, given: TableValue) -> TableValue:
        if isinstance(given, dict) and isinstance(ends := given.get("within"), list) and len(ends) == 2:
            return {"value": sum(float(str(end)) for end in ends) / 2, **given}
        return given

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.fit and (self.value is None or self.ratio_of is not None):
            raise ValueError("only a point with a figure of its own can be fitted to")
        return self

    @property
    def can_be_fitted_to(self) -> bool:
        """Whether a fit can ask the model for it: a rate of I/O that starts from a fresh array."""
        own = self.value is not None and self.ratio_of is None and self.of is None
        return own and self.figure in ("iops", "bytes_per_s") and not self.continues and not self.plan

    @property
    def target_text(self) -> str:
        """The target, as on the command line."""
        options = "&".join(f"{key}={value}" for key, value in self.target.items())
        return f"model:{self.array}" + (f"?{options}" if options else "")


class PublishedRanking(Strict):
    """Points whose figures were published to fall in this order."""

    id: str
    title: str
    source: str
    points: Annotated[tuple[str, ...], Field(min_length=2)]
    note: str = ""


class Published(Strict):
    """All of a file."""

    point: Annotated[tuple[PublishedPoint, ...], Field(min_length=1)]
    order: tuple[PublishedRanking, ...] = ()

    @property
    def sources(self) -> list[str]:
        """The studies that figures are from."""
        return list(dict.fromkeys(point.source for point in self.point))

    def of(self, sources: Sequence[str] | None) -> Self:
        """The figures of some studies; all where None.

        Raises
        ------
        UsageError
            A study is unknown.
        """
        if sources is None:
            return self
        for source in sources:
            if source not in self.sources:
                raise UsageError(f"source={source}: no published figures are from it; known: {', '.join(self.sources)}")
        points = tuple(point for point in self.point if point.source in sources)
        orders = tuple(order for order in self.order if order.source in sources)
        return self.model_copy(update={"point": points, "order": orders})


def sources_text() -> str:
    """The studies that figures are from, as `--levels source=` takes them."""
    return ",".join(read_published().sources)


def read_published(path: Path | None = None) -> Published:
    """Published figures from a file; those that come with Assay unless one is given.

    Raises
    ------
    UsageError
        The file cannot be read or is not of this form.
    """
    source = str(path) if path is not None else "published.toml"
    file = (
        path if path is not None else Path(str(resources.files("assay.insight.calibration").joinpath("published.toml")))
    )
    published = validated(Published, table_of(read_text(file, source), source), source)
    ids = [point.id for point in published.point]
    for point_id in ids:
        if ids.count(point_id) > 1:
            raise UsageError(f"{source}: two points are both {point_id!r}")
    named = [(point.id, other) for point in published.point for other in (point.ratio_of, point.of) if other]
    named += [(order.id, point_id) for order in published.order for point_id in order.points]
    for who, point_id in named:
        if point_id not in ids:
            raise UsageError(f"{source}: {who}: there is no point {point_id!r}")
    return published

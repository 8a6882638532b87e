"""Published figures: what others measured on arrays of the catalogue, to fit models to and to check them by.

`published.toml` beside this file holds them. A point that is not for fitting was left to be predicted.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import read_text, table_of, validated
from assay.base.tables import TableValue


class PublishedPoint(Strict):
    """One published figure, and how to ask a model for it."""

    id: str
    title: str
    source: str
    array: str
    """Name of the model."""
    target: dict[str, TableValue] = Field(default_factory=dict)
    """Options of the model."""
    activity: dict[str, TableValue]
    limits: tuple[str, ...] = ()
    search: dict[str, TableValue] = Field(default_factory=dict)
    timing: dict[str, TableValue] = Field(default_factory=dict)
    figure: Literal["iops", "bytes_per_s"] = "iops"
    """What was published; of a search, at the largest load within the limits."""
    value: Annotated[float, Field(gt=0)] | None = None
    """In I/Os or bytes per second, or a ratio; None where only an order was published."""
    ratio_of: str | None = None
    """Id of the point whose figure, divided by this point's, is the value."""
    fit: bool = False
    """Whether the model was fitted to it."""
    note: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.fit and (self.value is None or self.ratio_of is not None):
            raise ValueError("only a point with a figure of its own can be fitted to")
        return self

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
    named = [(point.id, point.ratio_of) for point in published.point if point.ratio_of is not None]
    named += [(order.id, point_id) for order in published.order for point_id in order.points]
    for who, point_id in named:
        if point_id not in ids:
            raise UsageError(f"{source}: {who}: there is no point {point_id!r}")
    return published

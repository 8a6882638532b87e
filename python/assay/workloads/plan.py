"""Plans and parts: what plans of every kind have, and a plan with the target it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field

from assay.base.fields import Strict
from assay.base.tables import Record
from assay.targets.arrays.live.events import PlannedEvent
from assay.workloads.examination import Examination

if TYPE_CHECKING:
    from assay.targets.target import Target


COMBINATIONS_MAX = 10_000
"""Combinations of levels: more points than a run has time for, and more than a plan's check should make."""


class SearchPlan(Strict):
    """How the largest load within limits is looked for; `axis` none measures the load as given."""

    axis: str = "none"
    start: Annotated[float, Field(gt=0, le=1e9)] | None = None
    end: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """First and last load; unless given those of `axes`."""
    repeats: Annotated[int, Field(ge=0, le=20)] = 1
    resolution_share: Annotated[float, Field(gt=0, lt=1)] = 0.06

    axes: ClassVar[Mapping[str, tuple[float, float]]]
    """First and last load of a search on each axis unless the plan says otherwise."""

    @property
    def first_load(self) -> float:
        """Where the search begins."""
        return self.start if self.start is not None else min(self.axes[self.axis][0], self.last_load)

    @property
    def last_load(self) -> float:
        """The largest load the search tries."""
        return self.end if self.end is not None else self.axes[self.axis][1]


class AnyPlan(Strict):
    """What plans of every kind have.

    Attributes
    ----------
    title
        What is asked, for people.
    seed
        Decides everything that is random.
    limits
        Acceptance limits, as texts.
    user_limits
        Whether the user gave the limits: missing them then changes the exit code.
    events
        What shall happen to the array that the run serves, at times since the load of a point began.
    """

    title: str = ""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    limits: tuple[str, ...] = ()
    user_limits: bool = False
    events: tuple[PlannedEvent, ...] = ()

    def repeated(self, name: str, title: str) -> Self:
        """The plan of a part that repeats another, with its own title."""
        del name
        return self.model_copy(update={"title": title})


P = TypeVar("P", bound=AnyPlan)


@dataclass(frozen=True, kw_only=True)
class Part(Generic[P]):
    """One part of a run: a plan with a name, and the target it runs on."""

    name: str
    title: str
    plan: P
    planned_s: float | None = None
    understood: tuple[str, ...] = ()
    """What the configuration of another tool was taken for, a line each."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """The level of each factor of a study, by its key."""
    target_text: str | None = None
    """A target of the part's own, as on the command line."""
    more_targets: tuple[str, ...] = ()
    """Databases beside that of `target_text`, over which the load is spread."""
    target: Target | None = None
    """The target of `target_text`, not opened yet."""
    optional: bool = False
    """Left out with a notice where its target cannot be used."""
    follows: str | None = None
    """A part that runs before: the plan takes over what its storage saw."""
    beside: Part[Any] | None = None
    """A load on a target of its own that runs while the part's points are measured."""
    continues: bool = False
    """Goes on with the state in which the part before left the target."""
    published: Record | None = None
    """The published figure that the part stands beside."""
    notice: str = ""
    """What an examination could not ask for in its time, and what would."""
    aside: bool = False
    """A closer look that no verdict is about, and that `--plan` does not take back."""


@dataclass(frozen=True, kw_only=True)
class ExaminationPart:
    """A part of the examination: its share of the budget, and its plan for what is asked."""

    name: str
    share: float
    part: Callable[[Examination], Part[Any]]
    of_need: bool = False
    """Whether it measures the need of the examination, and is left out where there is none."""

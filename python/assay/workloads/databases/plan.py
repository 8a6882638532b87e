"""What plans of workloads on databases have in common: actions in their order, and how much is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import FieldValueError, Seconds
from assay.base.reading import nearest
from assay.workloads.options import Fixed, Option
from assay.workloads.plan import AnyPlan

Action = Literal["load", "run", "check", "save", "restore", "drop"]
ACTIONS: tuple[Action, ...] = ("load", "run", "check", "save", "restore", "drop")

DATABASE = "Database"
"""A group of options."""


class DatabasesPlan(AnyPlan):
    """What plans of workloads on databases have.

    Attributes
    ----------
    actions
        What is done, in this order.
    reloads
        Tables that are there are used, whatever their seed, if they hold as much as is asked for or more, and loaded
        anew if not; unless set, another size or seed is refused.
    threads
        Threads that drive the load; None: one for each core.
    load_connections
        Connections that load in parallel, over all databases; None: one for each core.
    reconnect_s
        How long a lost server is waited for before the run fails.
    """

    takes_others: ClassVar[bool] = False
    """Whether it runs on tables that Assay did not make."""
    actions: Annotated[tuple[Action, ...], Fixed()] = ("load", "run", "check")
    reloads: bool = False
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    load_connections: Annotated[
        Annotated[int, Field(ge=1, le=1000)] | None,
        Option("--load-connections", "Connections that load in parallel (one per core).", DATABASE),
    ] = None
    reconnect_s: Annotated[Seconds, Option("--reconnect", "Time to wait for a lost server (60s).", DATABASE)] = 60.0

    @property
    def scale_asked(self) -> int | None:
        """Scale that the plan asks for, over all databases, as the table set counts it; None: the loaded one."""
        raise NotImplementedError

    @property
    def shape_asked(self) -> Mapping[str, int]:
        """Numbers that the plan asks for and that decide the rows beside scale and seed, by name."""
        return {}

    @property
    def rows_seed(self) -> int:
        """Decides the rows."""
        raise NotImplementedError

    def shares(self, databases: int) -> list[int]:
        """The scale of each database."""
        raise NotImplementedError

    def without(self, actions: Sequence[str]) -> Self:
        """The plan without actions that are done."""
        return self.model_copy(update={"actions": tuple(one for one in self.actions if one not in actions)})

    @model_validator(mode="after")
    def _each_action_once(self) -> Self:
        if not self.actions:
            raise FieldValueError("actions", f"none given; known: {', '.join(ACTIONS)}")
        repeated = [action for action in ACTIONS if self.actions.count(action) > 1]
        if repeated:
            raise FieldValueError("actions", f"{repeated[0]} is given twice; give each action once")
        return self


def load_connections(plan: DatabasesPlan) -> int:
    """Connections that load, over all databases."""
    return plan.load_connections or len(os.sched_getaffinity(0))


def split_actions(words: Sequence[str]) -> tuple[list[str], list[Action]]:
    """Targets, and the actions after them.

    Raises
    ------
    UsageError
        An action stands before a target, or a word after it is neither.

    Examples
    --------
    >>> split_actions(["embedded:/data/pg", "load", "check"])
    (['embedded:/data/pg'], ['load', 'check'])
    """
    first = len(words)
    while first and words[first - 1] in ACTIONS:
        first -= 1
    targets = list(words[:first])
    actions = [action for word in words[first:] for action in ACTIONS if action == word]
    early = next((word for word in targets if word in ACTIONS), None)
    if early is not None:
        raise UsageError(f"{early!r} stands before a target; name the targets first, then the actions in their order")
    if wrong := next((word for word in targets[1:] if word.replace("-", "").isalpha()), None):
        meant = nearest(wrong, ACTIONS)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"{wrong!r} is no action and no database; {hint}actions: {', '.join(ACTIONS)}")
    return targets, actions

"""What is known of a kind of workload before it is imported: its name, where it stands, and its verbs.

Most commands concern one kind at most. Declarations are light, so that no command pays for importing the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.workloads.workload import Workload


def imported(place: str) -> Any:
    """What stands at a place, `package.module:name`, imported."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, kw_only=True)
class Group:
    """A verb whose commands several kinds may declare, as `oltp` in `assay oltp tpcc`."""

    name: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of the command line, which is imported when it is called.

    Attributes
    ----------
    name
        As it is called.
    place
        Its function, `package.module:name`; the Typer application of a verb with commands or settings of its own.
    help
        The line that lists of verbs show: the first one of its own help.
    group
        The verb that it is a command of.
    hidden
        Whether lists leave it out.
    """

    name: str
    place: str
    help: str
    group: Group | None = None
    hidden: bool = False


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A kind of workload.

    Attributes
    ----------
    kind
        Its name, as plans and points have it.
    place
        Its registration, a class in its folder: `package.module:name`.
    verbs
        Its verbs. A kind that declares none gets one of its own name.
    """

    kind: str
    place: str
    verbs: tuple[Verb, ...] = ()

    def imported(self) -> Workload[Any]:
        """Its registration."""
        workload: Workload[Any] = imported(self.place)()
        assert workload.kind == self.kind, f"{self.place} is of another kind than {self.kind}"
        return workload

    def may_have(self, plan_type: type) -> bool:
        """Whether plans of a type may be of this kind: they or what they derive from stand in its folder."""
        folder = self.place.partition(":")[0].rpartition(".")[0]
        return any(f"{one.__module__}.".startswith(f"{folder}.") for one in plan_type.__mro__)

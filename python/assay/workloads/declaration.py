"""A kind of workload before it is imported: its name, and the place of its class.

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


@dataclass(frozen=True)
class Declaration:
    """A kind of workload.

    Attributes
    ----------
    kind
        Its name, as plans and points have it.
    place
        Its registration, a class in its folder: `package.module:name`.
    """

    kind: str
    place: str

    def imported(self) -> Workload[Any]:
        """Its registration."""
        workload: Workload[Any] = imported(self.place)()
        assert workload.kind == self.kind, f"{self.place} is of another kind than {self.kind}"
        return workload

    def may_have(self, plan_type: type) -> bool:
        """Whether plans of a type may be of this kind: they or what they derive from stand in its folder."""
        folder = self.place.partition(":")[0].rpartition(".")[0]
        return any(f"{one.__module__}.".startswith(f"{folder}.") for one in plan_type.__mro__)

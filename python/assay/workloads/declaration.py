"""A kind of workload before it is imported: its name, and the place of its class.

Most commands concern one kind at most. Declarations are light, so that no command pays for importing the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.record.shapes.kinds import Shapes
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

    def shapes(self) -> Shapes:
        """What it adds to points and manifests: `SHAPES` of the module `shapes` in its folder, or its registration's.

        Run folders are checked for the keys of all kinds; the kinds themselves need not be imported for that.
        """
        place = f"{self._folder}.shapes"
        found: Shapes = imported(f"{place}:SHAPES") if find_spec(place) is not None else self.imported().shapes
        return found

    def may_have(self, plan_type: type) -> bool:
        """Whether plans of a type may be of this kind: they or what they derive from stand in its folder."""
        return any(f"{one.__module__}.".startswith(f"{self._folder}.") for one in plan_type.__mro__)

    @property
    def _folder(self) -> str:
        return self.place.partition(":")[0].rpartition(".")[0]

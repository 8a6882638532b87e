"""The whole examination of a folder, to which every kind of workload contributes parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assay.record.shapes.need import AskedNeed

FULL_FROM_S = 15 * 60
"""Smaller budgets measure the levels that matter most instead of all of them too briefly."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The examination that a part belongs to, and what the user asked of it.

    Attributes
    ----------
    directory
        The folder on the storage that is examined.
    budget_s, planned_s
        Time of the whole examination, and of this part.
    limits
        Limits that the user gave instead of the method's.
    timeout_s
        Time-out of an I/O that the user gave.
    is_direct
        Whether files in the folder can be opened past the page cache.
    is_alone
        Whether no other part is asked for.
    need
        What is needed of the storage, for parts that measure that.
    given
        Other fields of plans that the user gave.
    """

    directory: str
    budget_s: float
    planned_s: float
    limits: list[str] | None = None
    timeout_s: float | None = None
    is_direct: bool = True
    is_alone: bool = False
    need: AskedNeed | None = None
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the budget is large enough for all levels."""
        return self.budget_s >= FULL_FROM_S

    @property
    def own_limits(self) -> dict[str, Any]:
        """Fields of a plan for limits that the user gave."""
        return {"limits": self.limits, "user_limits": True} if self.limits else {}

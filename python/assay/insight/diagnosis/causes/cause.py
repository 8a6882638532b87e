"""What a cause is to the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.insight.diagnosis.observed import Observations
from assay.insight.diagnosis.signals import Suspicion


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause. Add a function that finds it to a family's file, and the family to `registry.py`.

    Attributes
    ----------
    name
        As scripts know it.
    title
        For people.
    needs
        What must have been recorded for it to be found, in words.
    sources
        Sources of rows of which it needs one.
    find
        All places in which it is seen: of several hosts or devices one each.
    """

    name: str
    title: str
    needs: str
    sources: Sequence[str]
    find: Callable[[Observations], Sequence[Suspicion]]


def those(*found: Suspicion | None) -> list[Suspicion]:
    """The suspicions that are not None."""
    return [one for one in found if one is not None]

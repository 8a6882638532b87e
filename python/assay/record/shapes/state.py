"""The state of a target in a point and a manifest (docs/precondition.md)."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.record.shapes.terms import Flag, MaybeAmount, MaybeCount, MaybeNumber, Text, Texts


class TargetState(TypedDict, total=False):
    """In what state a target was when a point began, and how it came to it."""

    name: Text
    """`purged`, `filled`, `unsteady`, `steady` or `unknown`."""
    method: Text
    """The way of preconditioning: `full` or `short`; `model` where a model begins in the state."""
    purge: Text
    fills: MaybeCount
    rounds: MaybeCount
    written_bytes: MaybeAmount
    excursion_share: MaybeAmount
    slope_share: MaybeNumber
    only_files: Flag
    """Whether files were written and the rest of their drive was left as it was."""


class RunState(TargetState, total=False):
    """A state in which points of a run were measured, and the parts that these are of."""

    parts: Texts


class Preconditioning(TypedDict, total=False):
    """What a point did to bring its target into a state."""

    step: Text
    """`purge`, `fill`, `round` or `spread`."""
    number: MaybeCount
    tracked: Flag
    """Whether the I/Os per second of the point are what is to become steady."""
    written_bytes: MaybeAmount

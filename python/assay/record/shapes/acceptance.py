"""The shape of an acceptance test of a contract (docs/contract.md): its text, the loads asked for it, the verdicts."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from assay.record.shapes.terms import Flag, Interval, MaybeCount, MaybeNumber, Name, PointId, Text

StorageState = Literal["whole", "degraded", "rebuilding"]
"""How many disks were there: all, one lost, or one being written anew."""


class AcceptanceLoad(TypedDict):
    """A part of the run: which clause it measures, and in which state of the storage."""

    clause: Name
    part: Name
    state: StorageState


class AcceptanceMount(TypedDict):
    """Size of a file system that the contract names, when the test began; null where it could not be read."""

    path: str
    size_bytes: MaybeCount


class AcceptanceEvidence(TypedDict):
    """One measurement of a clause; `met` is null where it decides nothing, and `why` says why.

    `served` says in words how much of an open load was served, where that is less than was asked for.
    """

    asked: str
    state: StorageState
    value: MaybeNumber
    unit: str
    interval_95: Interval
    met: Flag
    why: str
    served: NotRequired[str]
    point_id: NotRequired[PointId | None]


class AcceptanceClause(TypedDict):
    """A clause and what it came to; `met` is null where it cannot be judged, and `why` says why."""

    kind: str
    name: Name
    promise: str
    met: Flag
    found: str
    why: str
    evidence: list[AcceptanceEvidence]


class AcceptanceTest(TypedDict):
    """The contract that a run tests.

    Attributes
    ----------
    terms
        The contract's file as it was read.
    lacking
        What could not be asked of this target, each with its reason: name of a clause and a sentence.
    clauses, sentence
        Once it was measured.
    """

    source: str
    terms: Annotated[str, Field(max_length=2**20)]
    title: Text
    vendor: Text
    reference: Text
    loads: list[AcceptanceLoad]
    lacking: dict[str, str]
    mounts: list[AcceptanceMount]
    clauses: NotRequired[list[AcceptanceClause]]
    sentence: NotRequired[Text]

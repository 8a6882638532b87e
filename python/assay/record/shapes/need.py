"""The shape of a need that a run is measured against (docs/need.md)."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from assay.record.shapes.terms import Amount, Count, Flag, MaybeAmount, Text


class NeededStream(TypedDict):
    """I/O of one kind: how many a second, of which size and mix, for which role."""

    role: str
    rate: Amount
    block_bytes: Count
    read_share: Amount
    random_share: Amount


class AskedNeed(TypedDict):
    """What is needed, and once it was measured whether it is held: null where that is not known.

    `times` is how many times the needed rate was held within the limits.
    """

    source: str
    streams: Annotated[list[NeededStream], Field(min_length=1)]
    limits: list[str]
    part: str
    held: NotRequired[Flag]
    times: NotRequired[MaybeAmount]
    sentence: NotRequired[Text]
    next_step: NotRequired[Text]

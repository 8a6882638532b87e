"""What the values of a run folder are made of: texts, flags and numbers that arithmetic bears."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

STRICT = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
"""Types as JSON has them, no text taken for a number; keys that this Assay does not know may be there.

The outermost shape has it, and those within it take it from there.
"""

LARGEST = 1e24
"""Beyond all that is measured, and small enough that squares and sums of it stay finite."""
INTEGER_MAX = 2**63 - 1

Text = str | None
Flag = bool | None
Integer = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, Field(ge=0, le=LARGEST)]
"""A number that is not negative: rates, latencies, bytes, shares."""

MaybeCount = Count | None
MaybeNumber = Number | None
MaybeAmount = Amount | None
Interval = Annotated[list[Number], Field(min_length=2, max_length=2)] | None
Texts = list[str] | None
Counts = dict[str, Count] | None
Name = str
"""Name of a part, volume or database. A file's may hold bytes that are no text, which no pattern is tried on."""
PointId = Annotated[str, Field(pattern=r"\Ap[0-9]{1,12}\z")]
"""Ids are counters; they become names of files and places in pages."""
HistogramText = Annotated[str, Field(max_length=2**22)] | None

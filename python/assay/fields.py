"""Fields of plans: quantities with units, and the model that refuses what it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from assay.errors import UsageError
from assay.units import parse_bytes, parse_duration, parse_share


def named_by_key(parse: Callable[[Any], float]) -> BeforeValidator:
    """A reader of quantities whose error leaves it to pydantic to name the key."""

    def read(value: Any) -> float:
        try:
            return parse(value)
        except UsageError as error:
            raise ValueError(str(error).partition(": ")[2]) from None

    return BeforeValidator(read)


Bytes = Annotated[int, named_by_key(parse_bytes), Field(gt=0, lt=1 << 60)]


Share = Annotated[float, named_by_key(parse_share), Field(ge=0, le=1)]


Seconds = Annotated[float, named_by_key(lambda value: parse_duration(value) / 1e9), Field(ge=0, le=366 * 86400)]
"""Seconds from a duration with a unit, or from a bare number of seconds."""


class Strict(BaseModel):
    """A model that refuses what it does not know and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

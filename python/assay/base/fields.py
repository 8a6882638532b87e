"""Fields of plans: quantities with units, models that refuse what they do not know, errors that name a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from assay.base.errors import UsageError
from assay.base.units import parse_bytes, parse_duration, parse_percent, parse_share

T = TypeVar("T")

Place = tuple[str | int, ...]
"""Where a value stands in a plan: keys of tables, and positions in lists, counted from 0."""


class FieldError(UsageError):
    """A value of a plan is wrong.

    Attributes
    ----------
    reason
        What is wrong.
    field
        The value that it is about; empty where it is about the plan as a whole.
    source
        Where the value was given: a file, an option.
    says_field
        Whether the reason names the value itself, so that the message does not.
    """

    def __init__(self, reason: str, *, field: Place = (), source: str = "", says_field: bool = False) -> None:
        self.reason, self.field, self.source, self.says_field = reason, field, source, says_field
        super().__init__(": ".join(filter(None, (source, "" if says_field else shown(field), reason))))


class FieldValueError(ValueError):
    """What a check of a whole model finds wrong with one of its fields."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(reason)


def shown(field: Place) -> str:
    """A place in a plan, for people: tables of a list are counted from 1.

    Examples
    --------
    >>> shown(("timing", "min_s")), shown(("activity", 0, "read_share"))
    ('timing.min_s', 'activity 1.read_share')
    """
    return "".join(f" {key + 1}" if isinstance(key, int) else f".{key}" for key in field).removeprefix(".")


@contextmanager
def within(source: str, *field: str | int) -> Iterator[None]:
    """Say where the values stand that are wrong.

    Raises
    ------
    FieldError
        For each `UsageError`: with the source, and with the field before its own.
    """
    try:
        yield
    except FieldError as error:
        place = (*field, *error.field)
        raise FieldError(error.reason, field=place, source=source, says_field=error.says_field) from None
    except UsageError as error:
        raise FieldError(str(error), field=field, source=source, says_field=True) from None


def unnamed(parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """A reader of quantities whose errors leave it to others to name the value."""

    def read(value: Any) -> T:
        try:
            return parse(value)
        except UsageError as error:
            raise ValueError(str(error).partition(": ")[2]) from None

    return read


def named_by_key(parse: Callable[[Any], float]) -> BeforeValidator:
    """A reader of quantities whose error leaves it to pydantic to name the key."""
    return BeforeValidator(unnamed(parse))


percent = unnamed(parse_percent)
"""A share from a percentage, as options take it."""


Bytes = Annotated[int, named_by_key(parse_bytes), Field(gt=0, lt=1 << 60)]


Share = Annotated[float, named_by_key(parse_share), Field(ge=0, le=1)]


Seconds = Annotated[float, named_by_key(lambda value: parse_duration(value) / 1e9), Field(ge=0, le=366 * 86400)]
"""Seconds from a duration with a unit, or from a bare number of seconds."""


class Strict(BaseModel):
    """A model that refuses what it does not know and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

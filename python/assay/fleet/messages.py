"""What the coordinator and its agents say to each other, typed where it comes off the pipe.

Each side is foreign input to the other. What is of another form ends the connection, and names the side that sent it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from assay.base.errors import RunFolderError
from assay.base.paths import plain
from assay.base.reading import problem_of
from assay.fleet.wire import Message, NotAMessage
from assay.record.histograms import histogram_of
from assay.record.shapes import check_manifest, check_point
from assay.record.shapes.terms import Count

WORDS_MAX = 1000
"""Letters of a text that is shown."""
LINES_MAX = 10_000
NAME_MAX = 4096


def _shown(text: str) -> str:
    return plain(text[:WORDS_MAX])


def _short(text: str) -> str:
    if not 0 < len(text) <= NAME_MAX or "\0" in text:
        raise ValueError("a name is expected")
    return text


Words = Annotated[str, AfterValidator(_shown)]
"""A text for people: on one line, printable, cut."""
Lines = Annotated[list[Words], Field(max_length=LINES_MAX)]
Name = Annotated[str, AfterValidator(_short)]
"""Name of a part, volume, database or path, which may hold bytes that are no text."""
Record = dict[str, Any]
Records = Annotated[list[Record], Field(max_length=1_000_000)]
Span = Annotated[list[Count], Field(min_length=2, max_length=2)]
Probe = Annotated[list[Count], Field(min_length=2, max_length=2)] | None
"""Which question about a clock: of which command, and the how manieth."""
_OWN_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
FileName = Annotated[str, Field(pattern=rf"\A(?:{_OWN_NAME}/){{0,4}}{_OWN_NAME}\z")]
"""A file of a part, in folders of its own: no name in it leads out of them."""


class WireMessage(BaseModel):
    """A message, or a part of one: types as JSON has them, and no key that is not read."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Value = TypeVar("Value")


def of_kind(kinds: Mapping[str, TypeAdapter[Any]], message: Message) -> Any:
    """A message as one of these kinds, which its key tells.

    Raises
    ------
    NotAMessage
        It is none of them.
    """
    found = [kind for key, kind in kinds.items() if key in message]
    if len(found) != 1:
        keys = ", ".join(plain(str(key)[:40]) for key in list(message)[:3])
        raise NotAMessage(f"a message of {keys or 'nothing'}")
    return valid(found[0], message)


def valid(adapter: TypeAdapter[Value], value: object) -> Value:
    """A value that is of this form.

    Raises
    ------
    NotAMessage
        It is of another.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        place, reason = problem_of(error.errors(include_url=False)[0])
        where = ".".join(map(str, place))
        raise NotAMessage(plain(f"{where}: {reason}" if where else reason)[:300]) from None


def check_told(keys: Mapping[str, object]) -> None:
    """Check keys that are to be part of a manifest.

    Raises
    ------
    NotAMessage
        No manifest has such a thing.
    """
    _in_form(check_manifest, {"schema_version": 1, **keys}, "manifest")


def check_measured(point: Mapping[str, object]) -> None:
    """Check figures that are to be a point, or one host's part of it.

    Raises
    ------
    NotAMessage
        No point has such a thing.
    """
    _in_form(check_point, {"id": "p0", **point}, "point")


def check_histograms(figures: object) -> None:
    """Check that histograms within a host's figures can be read, which takes longer than the rest.

    Raises
    ------
    NotAMessage
        One cannot.
    """
    if isinstance(figures, Mapping):
        if figures.get("histogram"):
            try:
                histogram_of({"histogram": figures["histogram"]})
            except RunFolderError:
                raise NotAMessage("point: a histogram that cannot be read") from None
        for value in figures.values():
            check_histograms(value)
    elif isinstance(figures, list):
        for value in figures:
            check_histograms(value)


def _in_form(check: Callable[[Mapping[str, object], str], None], value: Mapping[str, object], where: str) -> None:
    try:
        check(value, where)
    except RunFolderError as error:
        raise NotAMessage(plain(str(error).split("; the folder was changed")[0])) from None

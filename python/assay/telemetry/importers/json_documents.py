"""Reading of JSON documents that follow each other in one file, such as several answers of a service."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO, cast

from assay.base.tables import Record
from assay.telemetry.importers.importer import Importer, NotTaken

LETTERS_MAX = 64 * 2**20
"""Letters that are read of a file: as values of Python they take some six times as much."""


def texts(file: TextIO | Iterable[str]) -> Iterable[str]:
    """The text of a file; of several files that were joined that of each."""
    return (whole(cast(TextIO, file)),) if isinstance(file, io.TextIOBase) else file


def whole(file: TextIO) -> str:
    """The text of a file.

    Raises
    ------
    NotTaken
        It is longer than is read.
    """
    text = file.read(LETTERS_MAX + 1)
    if len(text) > LETTERS_MAX:
        raise NotTaken(f"has more than {LETTERS_MAX >> 20} MiB: ask for fewer metrics, or for a longer step")
    return text.removeprefix("\ufeff")


def documents(of: Iterable[str]) -> Iterator[Record]:
    """The objects of texts, one after the other.

    Raises
    ------
    NotTaken
        A text is no JSON; one that was cut off is none.
    """
    decoder = json.JSONDecoder()
    for text in of:
        at = 0
        while (begin := _next(text, at)) < len(text):
            try:
                found, at = decoder.raw_decode(text, begin)
            except (ValueError, RecursionError) as error:
                raise NotTaken(f"is no whole JSON document: {error}") from None
            for one in found if isinstance(found, list) else (found,):
                if not isinstance(one, Mapping):
                    raise NotTaken(f"holds JSON that is no answer of a service: {json.dumps(one)[:60]}")
                yield one


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def record(value: object) -> Record:
    """A value as an object; an empty one if it is none."""
    return value if isinstance(value, Mapping) else {}


def records(value: object) -> list[Record]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def leaves(value: object) -> int:
    """The number of values in a part of a document."""
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            count += 1
    return count


def number_of(value: object) -> float | None:
    """A finite number of JSON; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class JsonAnswers(Importer):
    """Answers of a monitoring system in JSON: several are of one time, for each may hold one metric."""

    def together(self, name: str) -> str | None:
        """All answers of the system."""
        del name
        return self.name

    def joined(self, files: Sequence[TextIO]) -> Iterator[str]:
        """The texts of answers, one after the other."""
        return map(whole, files)

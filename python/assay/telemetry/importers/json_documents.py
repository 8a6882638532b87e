"""JSON documents one after the other, as several answers of a service are kept in one file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TextIO

from assay.base.tables import Record
from assay.telemetry.importers.importer import NotTaken

LETTERS_MAX = 64 * 2**20
"""Letters that are read of a file: as values of Python they take some six times as much."""


def pieces(file: TextIO | Iterable[str]) -> Iterable[str]:
    """A file in pieces, whatever its lines; several files that were joined are in pieces."""
    return iter(partial(file.read, 2**16), "") if isinstance(file, io.TextIOBase) else file


def pieces_of_all(files: Sequence[TextIO]) -> Iterator[str]:
    """Files one after the other."""
    return chain.from_iterable(chain(pieces(file), "\n") for file in files)


def documents(parts: Iterable[str]) -> Iterator[Record]:
    """The objects of a file that is read in pieces, one after the other.

    Raises
    ------
    NotTaken
        It is longer than is read, or is no JSON; a file that was cut off is none.
    """
    held, size = [], 0
    for part in parts:
        size += len(part)
        if size > LETTERS_MAX:
            raise NotTaken(f"has more than {LETTERS_MAX >> 20} MiB: ask for fewer metrics, or for a longer step")
        held.append(part)
    text, at, decoder = "".join(held).lstrip("\ufeff"), 0, json.JSONDecoder()
    held.clear()
    while (rest := _next(text, at)) < len(text):
        try:
            found, at = decoder.raw_decode(text, rest)
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

"""What servers answer is foreign input: bounded in rows, bytes and letters, and of the kind that was asked for."""

from __future__ import annotations

import functools
import inspect
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from assay.base.errors import OpenFailed
from assay.targets.databases.common.connection import Row

SAID_LETTERS_MAX = 4000
"""Letters of a server's message that are looked at."""

FIRST_ANSWER_S = 10.0
"""How long the first question of a session waits for its answer. Later ones may take hours: they load and index."""

ROWS_ONCE = 10_000
ROWS_MAX = 5_000_000
BYTES_MAX = 1 << 30
"""Most that one statement of administration or decision support may answer."""

UNLIKE_ANSWERS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""What reading an answer raises that no server gives: too few columns or rows, other types, bytes that are no text."""


class _Asking(Protocol):
    is_own: Any
    spec: Any


T = TypeVar("T")


def said(text: str) -> str:
    """The beginning of a server's message."""
    return text[:SAID_LETTERS_MAX]


def not_understood(display: str, error: Exception) -> OpenFailed:
    """Error of an answer that no server of its kind gives."""
    what = said(str(error)).partition("\n")[0][:200]
    return OpenFailed(
        f"{display}: the server's answer cannot be understood ({type(error).__name__}: {what}); check that address and"
        " port are those of the database server"
    )


def chunks_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows, `ROWS_ONCE` at a time."""
    all_rows = iter(rows)
    while chunk := list(itertools.islice(all_rows, ROWS_ONCE)):
        yield chunk


def bounded(display: str, chunks: Iterable[list[Row]], give_up: Callable[[], None]) -> list[Row]:
    """All rows of an answer.

    Parameters
    ----------
    chunks
        At most `ROWS_ONCE` rows each.
    give_up
        Ends the connection: a server that goes on is not read to its end.

    Raises
    ------
    OpenFailed
        There are more than `ROWS_MAX` rows, or more than `BYTES_MAX` bytes of text.
    """
    rows: list[Row] = []
    count_bytes = 0
    for chunk in chunks:
        rows += chunk
        # Most answers are one chunk, and some of these are measured.
        if len(rows) > ROWS_ONCE:
            count_bytes += sum(len(value) for row in chunk for value in row if isinstance(value, str | bytes))
        if len(rows) > ROWS_MAX or count_bytes > BYTES_MAX:
            give_up()
            raise OpenFailed(
                f"{display}: the server answers with more than {len(rows):,} rows, which no question of Assay's has;"
                " check that address and port are those of the database server"
            )
    return rows


def reads_answers(kind: type[Any]) -> None:
    """Let methods of a database of others turn answers that cannot be understood into errors that say so."""
    for name, function in [*vars(kind).items()]:
        if inspect.isfunction(function) and not name.startswith("__"):
            setattr(kind, name, _reading(function))


def _reading(function: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(function)
    def read(self: _Asking, *arguments: Any, **named: Any) -> T:
        try:
            return function(self, *arguments, **named)
        except UNLIKE_ANSWERS as error:
            if self.is_own:
                raise
            raise not_understood(self.spec.display, error) from error

    return read

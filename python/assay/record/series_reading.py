"""Series as they are read: Parquet files and Arrow streams that this Assay or an earlier one wrote.

What is read may come from anybody, and the library that writes ends the process where a file lies to it in a new way. A
series has one form, so its reader is short: numbers lie plain, texts plain or as numbers of a dictionary, all is
compressed with zstd or not at all, and nothing is ever missing. What is unlike that is refused. How much pages and
messages unfold to is known before (`assay.record.series_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from assay.record.arrow_messages import TEXT, check_head, columns_of, decoded, exactly, messages, unpacked
from assay.record.rows import Integers, Rows, TextColumn
from assay.record.series_bounds import (
    COLUMNS,
    DICTIONARY_PAGE,
    NUMBER_COLUMNS,
    PLAIN,
    Chunk,
    Footer,
    Page,
    pages_of,
)

Bytes = npt.NDArray[np.uint8]
KINDS = {name: NUMBER_COLUMNS.get(name, TEXT) for name in COLUMNS}
WHOSE = "a series"
WIDTH_MAX = 25
"""Bits of a number of a text: four bytes hold one wherever it begins."""


# Streams


def stream_rows(file: BinaryIO) -> Iterator[tuple[Mapping[str, str], Rows]]:
    """Yield the rows of each message of a stream, with what its head says of it; those before a torn one are whole.

    Raises
    ------
    ValueError, OSError
        It is torn, or no stream of rows.
    """
    told = None
    for message in messages(file):
        if told is None:
            told = check_head(message, KINDS, WHOSE)
        else:
            yield told, _of_message(message)


def _of_message(message: bytes) -> Rows:
    found = columns_of(message, KINDS, WHOSE)
    numbers = {name: column for name, column in found.items() if not isinstance(column, TextColumn)}
    texts = {name: column for name, column in found.items() if isinstance(column, TextColumn)}
    return Rows(numbers["t_ns"], numbers["interval_ns"], numbers["value"], texts)


# Parquet


class _Part(NamedTuple):
    """Values of a page: numbers, or the numbers of texts in a dictionary."""

    values: npt.NDArray[Any]
    texts: Sequence[str] | None


def parquet_rows(file: BinaryIO, footer: Footer) -> Iterator[Rows]:
    """Yield the rows of each group of a Parquet file whose pages are known to be bounded.

    Raises
    ------
    ValueError, OSError
        It is damaged, or no series.
    """
    for group in footer.groups:
        numbers: dict[str, npt.NDArray[Any]] = {}
        texts: dict[str, TextColumn] = {}
        for name, chunk in group.chunks.items():
            parts = list(_parts(file, chunk, name))
            if sum(len(part.values) for part in parts) != group.rows:
                raise ValueError(f"{name} has another number of values than the file says")
            if name in NUMBER_COLUMNS:
                numbers[name] = np.concatenate([part.values for part in parts])
            else:
                texts[name] = _joined(parts)
        yield Rows(numbers["t_ns"], numbers["interval_ns"], numbers["value"], texts)


def _joined(parts: Sequence[_Part]) -> TextColumn:
    known: dict[str, int] = {}
    numbers = []
    for part in parts:
        mapping = np.array([known.setdefault(text, len(known)) for text in part.texts or ()], np.int32)
        numbers.append(mapping[part.values])
    return TextColumn(np.concatenate(numbers), list(known))


def _parts(file: BinaryIO, chunk: Chunk, name: str) -> Iterator[_Part]:
    dictionary: _Part | None = None
    for page in pages_of(file, chunk.begin, chunk.end):
        data = unpacked(page.stored, page.unfolded) if chunk.is_compressed else page.stored
        if page.encoding == PLAIN or page.kind == DICTIONARY_PAGE:
            found = _plain(data, page.values, name)
            if page.kind == DICTIONARY_PAGE:
                dictionary = found
            else:
                yield found
        elif dictionary is None:
            raise ValueError(f"{name} has no dictionary")
        else:
            yield dictionary._replace(values=dictionary.values[_numbers(data, page, len(dictionary.values))])


def _plain(data: bytes, count: int, name: str) -> _Part:
    """Values that lie one after the other."""
    if kind := NUMBER_COLUMNS.get(name):
        return _Part(exactly(np.frombuffer(data[: 8 * count], kind), count), None)
    return _Part(*TextColumn.of(_plain_texts(data, count)))


def _plain_texts(data: bytes, count: int) -> list[str]:
    """TextColumn of which each has its length before it."""
    found, at = [], 0
    for _ in range(count):
        begin = at + 4
        at = begin + int.from_bytes(data[at:begin], "little")
        if at > len(data) or begin > len(data):
            raise ValueError("a text is cut off")
        found.append(data[begin:at])
    return decoded(found)


def _numbers(data: bytes, page: Page, below: int) -> Integers:
    """Numbers of texts: runs of one number, and runs of numbers of as many bits (Parquet, "RLE/bit-packed hybrid")."""
    width, at, filled = (data[0] if data else 0), 1, 0
    if width > WIDTH_MAX:
        raise ValueError("numbers of texts have more bits than any series has")
    runs: list[tuple[int, int, int]] = []
    packed = bytearray()
    while filled < page.values:
        head, at = _varint(data, at)
        if head & 1:
            size = (head >> 1) * width
            if at + size > len(data):
                raise ValueError("numbers of texts are cut off")
            count = min((head >> 1) * 8, page.values - filled)
            runs.append((count, len(packed), -1))
            packed += data[at : at + size]
            at += size
        else:
            size, count = -(-width // 8), head >> 1
            runs.append((min(count, page.values - filled), 0, int.from_bytes(data[at : at + size], "little")))
            at += size
        if not runs[-1][0] or at > len(data):
            raise ValueError("numbers of texts are cut off")
        filled += runs[-1][0]
    found = np.empty(page.values, np.int64)
    unpacked = _bits(packed, width)
    begin = 0
    for count, place, number in runs:
        first = place * 8 // width if width else 0
        found[begin : begin + count] = number if number >= 0 else unpacked[first : first + count] if width else 0
        begin += count
    if page.values and not 0 <= found.min() <= found.max() < below:
        raise ValueError("a number has no text")
    return found


def _bits(packed: bytearray, width: int) -> Integers:
    """Numbers of so many bits each, the lowest bits first."""
    if not width:
        return np.zeros(0, np.int64)
    count = len(packed) * 8 // width
    data = np.frombuffer(packed + b"\0\0\0", np.uint8).astype(np.uint32)
    begins = np.arange(count, dtype=np.int64) * width
    places = begins >> 3
    words = data[places] | data[places + 1] << 8 | data[places + 2] << 16 | data[places + 3] << 24
    return np.asarray((words >> (begins & 7).astype(np.uint32)) & np.uint32((1 << width) - 1), np.int64)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35 and at < len(data):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7
    raise ValueError("a run of numbers has no length")

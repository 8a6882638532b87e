"""Series as they are read: Parquet files and Arrow streams that this Assay or an earlier one wrote.

What is read may come from anybody, and the library that writes ends the process where a file lies to it in a new way. A
series has one form, so its reader is short: numbers lie plain, texts plain or as numbers of a dictionary, all is
compressed with zstd or not at all, and nothing is ever missing. What is unlike that is refused. How much pages and
messages unfold to is known before (`assay.record.series_bounds`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from assay.record.rows import Integers, Rows, TextColumn
from assay.record.series_bounds import (
    COLUMNS,
    DICTIONARY_PAGE,
    NUMBER_COLUMNS,
    PLAIN,
    Chunk,
    Footer,
    Page,
    check_head,
    messages,
    pages_of,
    record_batch,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Bytes = npt.NDArray[np.uint8]
WIDTH_MAX = 25
"""Bits of a number of a text: four bytes hold one wherever it begins."""


def _unpacked(data: bytes, size: int) -> bytes:
    """Data that was compressed with zstd, which is known to have this size."""
    try:
        found = zstd.ZstdDecompressor().decompress(data, max_length=size + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"its data are not compressed as they should be: {error}") from error
    if len(found) != size:
        raise ValueError("its data unfold to another size than they say")
    return found


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
            told = check_head(message)
        else:
            yield told, _of_message(message)


def _of_message(message: bytes) -> Rows:
    count, is_compressed, buffers = record_batch(message)
    wanted = sum(2 if name in NUMBER_COLUMNS else 3 for name in COLUMNS)
    if len(buffers) != wanted or count < 0:
        raise ValueError("a batch has not the columns of a series")
    parts = iter(buffers)

    def data() -> bytes:
        part = next(parts)
        if not is_compressed or len(part) < 8:
            return part
        size = int.from_bytes(part[:8], "little", signed=True)
        return part[8:] if size == -1 else _unpacked(part[8:], size)

    numbers: dict[str, npt.NDArray[Any]] = {}
    texts: dict[str, TextColumn] = {}
    for name in COLUMNS:
        next(parts)  # Which values are there: all.
        if name in NUMBER_COLUMNS:
            numbers[name] = _exactly(np.frombuffer(data(), NUMBER_COLUMNS[name], count), count)
        else:
            ends = _exactly(np.frombuffer(data(), np.int32, count + 1), count + 1)
            texts[name] = _cut(data(), ends)
    return Rows(numbers["t_ns"], numbers["interval_ns"], numbers["value"], texts)


def _cut(data: bytes, ends: npt.NDArray[np.int32]) -> TextColumn:
    """TextColumn that lie one after the other, each from an end to the next one."""
    places = ends.tolist()
    if places[0] < 0 or places[-1] > len(data) or (ends[:-1] > ends[1:]).any():
        raise ValueError("texts lie outside of their data")
    first, count = data[places[0] : places[1]] if len(places) > 1 else b"", len(ends) - 1
    if (np.diff(ends) == len(first)).all() and data[places[0] : places[-1]] == first * count:
        # Most columns of a segment say the same in each row.
        return TextColumn(np.zeros(count, np.int32), _decoded([first][:count]))
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return TextColumn(np.array([numbers[piece] for piece in pieces], np.int32), _decoded(numbers))


def _decoded(pieces: Mapping[bytes, int] | Sequence[bytes]) -> list[str]:
    return [piece.decode() for piece in pieces]


def _exactly(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    if len(values) != count:
        raise ValueError("a column is shorter than it should be")
    return values


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
        data = _unpacked(page.stored, page.unfolded) if chunk.is_compressed else page.stored
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
        return _Part(_exactly(np.frombuffer(data[: 8 * count], kind), count), None)
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
    return _decoded(found)


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

"""Messages of an Arrow IPC stream, read without trust: bounded in size, of known columns, with every value there.

The library that writes them ends the process where a file lies to it in a new way. So they are read here: numbers lie
plain, texts plain, all is compressed with zstd or not at all (Arrow columnar format, "IPC Streaming Format" and
"Compression"; a message is a FlatBuffer).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from assay.record.rows import TextColumn

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Columns = Mapping[str, str]
"""Columns of a stream in their order: of numbers as NumPy names what they are, `TEXT` or `NUMBERED`."""
TEXT = "text"
NUMBERED = "text by its number"
"""Texts as numbers of 16 bits; a message before each batch says them (Arrow columnar format, "Dictionary Messages")."""

BATCH_BYTES_MAX = 64 * 2**20
"""A batch of a series holds the rows of a few seconds, one of a trace some 65,000 I/Os."""
METADATA_BYTES_MAX = 2**20

_INT, _FLOAT, _UTF8 = 2, 3, 5
_TYPES = {"<i8": (_INT, 64, True), "<u8": (_INT, 64, False), "<u4": (_INT, 32, False), "<u2": (_INT, 16, False),
          "<f8": (_FLOAT, 2, False), TEXT: (_UTF8, 0, False), NUMBERED: (_UTF8, 16, False)}  # fmt: skip
"""Type of Schema.fbs, its width or precision or that of its numbers, whether it has a sign."""
_DICTIONARY = 2
"""Header of a message that says texts (Message.fbs, `MessageHeader`)."""


def unpacked(data: bytes, size: int) -> bytes:
    """Data that was compressed with zstd, which is known to have this size."""
    try:
        found = zstd.ZstdDecompressor().decompress(data, max_length=size + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"its data are not compressed as they should be: {error}") from error
    if len(found) != size:
        raise ValueError("its data unfold to another size than they say")
    return found


def messages(file: BinaryIO) -> Iterator[bytes]:
    """Yield the messages of an Arrow IPC stream, those of batches that unfold to a bounded size.

    Raises
    ------
    ValueError
        The stream is cut off or torn, or a batch unfolds to more than one of a series does.
    """
    while head := file.read(8):
        if len(head) < 8 or head[:4] != b"\xff\xff\xff\xff":
            raise ValueError("it is cut off, or no stream of Arrow messages")
        length = _u32(head, 4)
        if length == 0:
            return
        if length > METADATA_BYTES_MAX:
            raise ValueError("a message is none")
        metadata = file.read(length)
        try:
            message = _Table(metadata, _u32(metadata, 0))
            at = message.field(3)
            body_length = struct.unpack_from("<q", metadata, at)[0] if at is not None else 0
            if not 0 <= body_length <= BATCH_BYTES_MAX:
                raise ValueError(f"a message has {body_length:,} bytes")
            body = file.read(body_length)
            if len(metadata) < length or len(body) < body_length:
                raise ValueError("it is cut off")
            batch = _batch_in(message)
            if body and batch is not None and _batch_bytes(metadata, batch, body) > BATCH_BYTES_MAX:
                raise ValueError(f"a batch unfolds to more than {BATCH_BYTES_MAX:,} bytes")
        except (struct.error, IndexError) as error:
            raise ValueError("a message is none") from error
        yield head + metadata + body


def check_head(message: bytes, columns: Columns, whose: str) -> dict[str, str]:
    """Check that a stream's first message says these columns and no others, and give its metadata.

    Parameters
    ----------
    columns
        Names, and what each holds, in their order.
    whose
        What has such columns, in words: a series.

    Raises
    ------
    ValueError
        It says others, or nothing.
    """
    metadata = message[8:]
    try:
        head = _Table(metadata, _u32(metadata, 0)).table(2)
        if head is None:
            raise ValueError("its first message is no schema")
        found = [_column(one) for one in head.tables(1)]
        told = {one.text(0): one.text(1) for one in head.tables(2)}
    except (struct.error, IndexError) as error:
        raise ValueError("its first message is no schema") from error
    numbered = (number for number, _ in enumerate(columns))
    wanted = [(name, *_TYPES[kind], next(numbered) if kind == NUMBERED else None) for name, kind in columns.items()]
    if found != wanted:
        raise ValueError(f"its columns are not those of {whose}")
    return told


def _column(field: _Table) -> tuple[str, int, int, bool, int | None]:
    """Name, type, width, whether it has a sign and the identity of its dictionary (Schema.fbs, `Field`)."""
    kind, of_kind, numbered = field.number(2, "<B"), field.table(3), field.table(4)
    identity = None
    if numbered is not None:
        # The width of what numbers its texts; without a type, it is a signed one of 32 bits.
        identity, of_kind = numbered.number(0, "<q"), numbered.table(1)
    if of_kind is None or (numbered is None and kind not in (_INT, _FLOAT)):
        return field.text(0), kind, 0, False, identity
    is_float = numbered is None and kind == _FLOAT
    width = of_kind.number(0, "<h" if is_float else "<i")
    return field.text(0), kind, width, not is_float and bool(of_kind.number(1, "<B")), identity


def read_batch(
    found: Iterator[bytes], columns: Columns, whose: str
) -> tuple[dict[str, npt.NDArray[Any] | TextColumn], int] | None:
    """Read a batch and the texts before it; give its columns and the bytes of all this, or None at the end.

    Raises
    ------
    ValueError
        The messages are none of such columns, or torn.
    """
    texts: dict[int, Sequence[str]] = {}
    size = 0
    for message in found:
        size += len(message)
        dictionary = _dictionary_in(message)
        if dictionary is None:
            return columns_of(message, columns, whose, texts), size
        texts[dictionary] = _texts_of(message)
    return None


def _dictionary_in(message: bytes) -> int | None:
    """The identity of the dictionary that a message says."""
    metadata = message[8:]
    try:
        head = _Table(metadata, _u32(metadata, 0))
        if head.number(1, "<B") != _DICTIONARY or (told := head.table(2)) is None:
            return None
        return told.number(0, "<q")
    except (struct.error, IndexError) as error:
        raise ValueError("a message is none") from error


def _texts_of(message: bytes) -> Sequence[str]:
    found = columns_of(message, {"": TEXT}, "a dictionary")[""]
    assert isinstance(found, TextColumn)
    return found.column()


def columns_of(
    message: bytes, columns: Columns, whose: str, texts: Mapping[int, Sequence[str]] | None = None
) -> dict[str, npt.NDArray[Any] | TextColumn]:
    """Give the columns of a batch; each has all of its values.

    Raises
    ------
    ValueError
        The message is no batch of such columns.
    """
    count, is_compressed, buffers = record_batch(message)
    if len(buffers) != sum(3 if kind == TEXT else 2 for kind in columns.values()) or count < 0:
        raise ValueError(f"a batch has not the columns of {whose}")
    parts = iter(buffers)

    def data() -> bytes:
        part = next(parts)
        if not is_compressed or len(part) < 8:
            return part
        size = int.from_bytes(part[:8], "little", signed=True)
        return part[8:] if size == -1 else unpacked(part[8:], size)

    found: dict[str, npt.NDArray[Any] | TextColumn] = {}
    numbered = 0
    for name, kind in columns.items():
        next(parts)  # Which values are there: all.
        if kind == TEXT:
            ends = exactly(np.frombuffer(data(), np.int32, count + 1), count + 1)
            found[name] = _cut(data(), ends)
        elif kind == NUMBERED:
            known, numbered = (texts or {}).get(numbered, ()), numbered + 1
            numbers = exactly(np.frombuffer(data(), np.uint16, count), count).astype(np.int32)
            if count and numbers.max() >= len(known):
                raise ValueError("a number of a text has none")
            found[name] = TextColumn(numbers, known)
        else:
            found[name] = exactly(np.frombuffer(data(), kind, count), count)
    return found


def record_batch(message: bytes) -> tuple[int, bool, list[bytes]]:
    """Rows of a batch, whether its buffers are compressed with zstd, and the buffers.

    Raises
    ------
    ValueError
        The message is no batch, or is compressed otherwise.
    """
    size = _u32(message, 4)
    metadata, body = message[8 : 8 + size], message[8 + size :]
    try:
        batch = _batch_in(_Table(metadata, _u32(metadata, 0)))
        if batch is None:
            raise ValueError("a message is no batch")
        compression = batch.table(3)
        # LZ4_FRAME is the default, and 1 is ZSTD (Message.fbs, `CompressionType`).
        if compression is not None and compression.number(0, "<b") != 1:
            raise ValueError("a batch is compressed as no series is")
        (start, count), rows = batch.vector(2), batch.number(0, "<q")
        if count > len(metadata) // 16:
            raise ValueError("a batch has more buffers than there is room for")
        places = [struct.unpack_from("<qq", metadata, start + 16 * number) for number in range(count)]
    except (struct.error, IndexError) as error:
        raise ValueError("a message is none") from error
    # Where buffers lie was checked with their sizes (`messages`).
    return rows, compression is not None, [body[offset : offset + length] for offset, length in places]


def _batch_in(message: _Table) -> _Table | None:
    """The record batch of a message, or that of the dictionary that it says."""
    head = message.table(2)
    return head.table(1) if head is not None and message.number(1, "<B") == _DICTIONARY else head


def _batch_bytes(metadata: bytes, batch: _Table, body: bytes) -> int:
    """Bytes that the buffers of a record batch unfold to."""
    # RecordBatch.buffers and .compression of Message.fbs; a buffer is an offset and a length.
    (start, count), compressed = batch.vector(2), batch.field(3) is not None
    total = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", metadata, start + 16 * number)
        if length < 0 or offset < 0 or offset + length > len(body):
            raise ValueError("a buffer lies outside of its message")
        unfolded = struct.unpack_from("<q", body, offset)[0] if compressed and length >= 8 else -1
        if unfolded < -1:
            raise ValueError("a buffer has an impossible size")
        # Minus one says that the bytes are not compressed after all.
        total += length if unfolded == -1 else unfolded
    return total


class _Table:
    """A table of a FlatBuffer (flatbuffers_internals.md)."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - struct.unpack_from("<i", data, at)[0]
        if self._fields < 0:
            raise ValueError("a message is no record batch")
        self._size = struct.unpack_from("<H", data, self._fields)[0]

    def field(self, number: int) -> int | None:
        """Place of a field, or None."""
        entry = 4 + 2 * number
        offset = struct.unpack_from("<H", self._data, self._fields + entry)[0] if entry < self._size else 0
        return self._at + offset if offset else None

    def table(self, number: int) -> _Table | None:
        """A table that a field leads to, or None."""
        at = self.field(number)
        return None if at is None else _Table(self._data, at + _u32(self._data, at))

    def number(self, number: int, form: str) -> int:
        """A number of a field; zero where it is left out."""
        at = self.field(number)
        return 0 if at is None else int(struct.unpack_from(form, self._data, at)[0])

    def text(self, number: int) -> str:
        """A text of a field."""
        start, count = self.vector(number)
        return self._data[start : start + count].decode()

    def tables(self, number: int) -> list[_Table]:
        """The tables of a vector."""
        start, count = self.vector(number)
        if count > len(self._data) // 4:
            raise ValueError("a vector is longer than what holds it")
        places = [start + 4 * place for place in range(count)]
        return [_Table(self._data, at + _u32(self._data, at)) for at in places]

    def vector(self, number: int) -> tuple[int, int]:
        """Place of the first element of a vector, and how many there are."""
        at = self.field(number)
        if at is None:
            return 0, 0
        start = at + _u32(self._data, at)
        return start + 4, _u32(self._data, start)


def _cut(data: bytes, ends: npt.NDArray[np.int32]) -> TextColumn:
    """TextColumn that lie one after the other, each from an end to the next one."""
    places = ends.tolist()
    if places[0] < 0 or places[-1] > len(data) or (ends[:-1] > ends[1:]).any():
        raise ValueError("texts lie outside of their data")
    first, count = data[places[0] : places[1]] if len(places) > 1 else b"", len(ends) - 1
    if (np.diff(ends) == len(first)).all() and data[places[0] : places[-1]] == first * count:
        # Most columns of a segment say the same in each row.
        return TextColumn(np.zeros(count, np.int32), decoded([first][:count]))
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return TextColumn(np.array([numbers[piece] for piece in pieces], np.int32), decoded(numbers))


def decoded(pieces: Mapping[bytes, int] | Sequence[bytes]) -> list[str]:
    """Give the texts of their bytes."""
    return [piece.decode() for piece in pieces]


def exactly(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Give values, whose count is known before.

    Raises
    ------
    ValueError
        There are fewer.
    """
    if len(values) != count:
        raise ValueError("a column is shorter than it should be")
    return values


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])

"""How much a file of a series unfolds to, from its headers, before anything is unfolded.

Compression and run lengths let a small file unfold to any size, and the sizes that a Parquet footer tells are only
claims. So what readers would allocate is read where they read it: in the header of every page of a Parquet file
(parquet.thrift, `PageHeader`, in Thrift's compact protocol) and before every compressed buffer of an Arrow record batch
(Arrow columnar format, "Compression"; the message is a FlatBuffer).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow.parquet as pq

PAGE_HEADER_BYTES_MAX = 2**16
"""A page's header holds numbers and two short statistics."""
PAGE_BYTES_MAX = 16 * 2**20
"""Assay's pages and dictionaries have a megabyte; a page of each column is in memory at a time."""
PAGES_MAX = 1_000_000
BATCH_BYTES_MAX = 64 * 2**20
"""A batch holds the rows of a few seconds."""
METADATA_BYTES_MAX = 2**20

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
"""Encodings of which a value takes its bytes in the page, or is a number of one that does; others unfold further."""

_TYPE, _UNCOMPRESSED, _COMPRESSED, _DATA, _DICTIONARY, _DATA_V2 = 1, 2, 3, 5, 7, 8
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_HEADER_OF = {DATA_PAGE: _DATA, DICTIONARY_PAGE: _DICTIONARY, DATA_PAGE_V2: _DATA_V2}


def check_pages(file: BinaryIO, metadata: pq.FileMetaData) -> None:
    """Check that no page of a Parquet file unfolds to more than a page of a series does; the file is left anywhere.

    Raises
    ------
    ValueError
        A page does, has an encoding that this Assay does not write, or no header.
    """
    for number, unfolded in enumerate(_page_bytes(file, metadata)):
        if unfolded > PAGE_BYTES_MAX or number >= PAGES_MAX:
            raise ValueError(f"a page unfolds to {unfolded:,} bytes, or there are more than {PAGES_MAX:,} pages")


def _page_bytes(file: BinaryIO, metadata: pq.FileMetaData) -> Iterator[int]:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = chunk.data_page_offset
            if chunk.dictionary_page_offset is not None and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            yield from _chunk_page_bytes(file, start, start + chunk.total_compressed_size)


def _chunk_page_bytes(file: BinaryIO, at: int, end: int) -> Iterator[int]:
    while at < end:
        file.seek(at)
        reader = _Compact(file.read(PAGE_HEADER_BYTES_MAX))
        header = reader.fields()
        kind, unfolded, stored = (header.get(key) for key in (_TYPE, _UNCOMPRESSED, _COMPRESSED))
        if not (isinstance(kind, int) and isinstance(unfolded, int) and isinstance(stored, int)):
            raise ValueError("a page has no header")
        if unfolded < 0 or stored < 0 or kind not in _HEADER_OF:
            raise ValueError("a page has an impossible header")
        of_kind = header.get(_HEADER_OF[kind])
        encoding = of_kind.get(_ENCODING[_HEADER_OF[kind]]) if isinstance(of_kind, dict) else None
        if encoding not in (PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY):
            raise ValueError(f"a page has encoding {encoding}, which no series has")
        yield unfolded
        at += reader.at + stored


class _Compact:
    """Reader of one struct in Thrift's compact protocol (thrift-compact-protocol.md)."""

    DEPTH_MAX = 8

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fields(self, depth: int = 0) -> dict[int, Any]:
        """Fields of a struct by number: integers, structs; others are passed over and None."""
        if depth > self.DEPTH_MAX:
            raise ValueError("a page's header is nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return found
            number = number + (head >> 4) if head >> 4 else _signed(self._varint())
            found[number] = self._value(head & 15, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return None
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return _signed(self._varint())
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind == 12:
            return self.fields(depth + 1)
        raise ValueError("a page's header holds what no header has")

    def _varint(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a page's header has a number without an end")

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise ValueError("a page's header is cut off")


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


# Arrow


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
            batch = message.table(2)
            if body and batch is not None and _batch_bytes(metadata, batch, body) > BATCH_BYTES_MAX:
                raise ValueError(f"a batch unfolds to more than {BATCH_BYTES_MAX:,} bytes")
        except (struct.error, IndexError) as error:
            raise ValueError("a message is none") from error
        yield head + metadata + body


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

    def vector(self, number: int) -> tuple[int, int]:
        """Place of the first element of a vector, and how many there are."""
        at = self.field(number)
        if at is None:
            return 0, 0
        start = at + _u32(self._data, at)
        return start + 4, _u32(self._data, start)


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])

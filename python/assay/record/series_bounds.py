"""How much a file of a series unfolds to, from its headers, before anything is unfolded.

Compression and run lengths let a small file unfold to any size, and the sizes that a Parquet footer tells are only
claims. So what readers would allocate is read where they read it: in the header of every page of a Parquet file
(parquet.thrift, `PageHeader`, in Thrift's compact protocol). `arrow_messages` does the same for Arrow streams.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

COLUMNS = ("t_ns", "clock", "interval_ns", "tier", "host", "source", "entity", "role", "metric", "kind", "value")
"""Columns of a series (docs/results.md, Series). `t_ns` is the end of the interval."""
NUMBER_COLUMNS = {"t_ns": "<i8", "interval_ns": "<i8", "value": "<f8"}
"""Columns of numbers, as NumPy names what they are."""

PAGE_HEADER_BYTES_MAX = 2**16
"""A page's header holds numbers and two short statistics."""
PAGE_BYTES_MAX = 16 * 2**20
"""Assay's pages and dictionaries have a megabyte; a page of each column is in memory at a time."""
PAGES_MAX = 1_000_000
FOOTER_BYTES_MAX = 64 * 2**20

DATA_PAGE, DICTIONARY_PAGE = 0, 2
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
"""Encodings of which a value takes its bytes in the page, or is a number of one that does; others unfold further."""

UNCOMPRESSED, ZSTD = 0, 6
VALUES_MAX = 2**26

_SCHEMA, _ROWS, _GROUPS, _KEY_VALUES = 2, 3, 4, 5
_GROUP_COLUMNS, _GROUP_ROWS, _META = 1, 3, 3
_PATH, _CODEC, _CHUNK_BYTES, _DATA_AT, _DICTIONARY_AT = 3, 4, 7, 9, 11
"""Fields of FileMetaData, of RowGroup and ColumnChunk, of ColumnMetaData (parquet.thrift)."""

_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_HEADER_OF = {DATA_PAGE: 5, DICTIONARY_PAGE: 7}


class Chunk(NamedTuple):
    """Where the pages of a column of a group begin and end, and whether they are compressed."""

    begin: int
    end: int
    is_compressed: bool


class RowGroup(NamedTuple):
    """Rows that are written together, and the chunk of each column."""

    rows: int
    chunks: dict[str, Chunk]


class Footer(NamedTuple):
    """What the end of a Parquet file says of it."""

    rows: int
    groups: list[RowGroup]
    metadata: dict[str, str]


def read_footer(file: BinaryIO) -> Footer:
    """Read the footer of a Parquet file; the file is left anywhere.

    Raises
    ------
    ValueError
        There is none, or it is that of no series.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = _u32(tail, 0) if len(tail) == 8 else 0
    if tail[4:] != b"PAR1" or not 0 < length <= min(size - 12, FOOTER_BYTES_MAX):
        raise ValueError("it has no footer of a Parquet file")
    file.seek(size - 8 - length)
    found = _Compact(file.read(length)).fields()
    try:
        kinds = [(one[4].decode(), one.get(1), one.get(3)) for one in found[_SCHEMA][1:]]
        groups = [_group(one, size) for one in found[_GROUPS]]
        told = {one[1].decode(): one[2].decode() for one in found.get(_KEY_VALUES) or () if 2 in one}
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("its footer is none of a Parquet file") from error
    # Physical types, all of which are required (parquet.thrift: INT64, DOUBLE, BYTE_ARRAY; REQUIRED).
    wanted = {name: {"<i8": 2, "<f8": 5}.get(NUMBER_COLUMNS.get(name, ""), 6) for name in COLUMNS}
    if {name: kind for name, kind, _ in kinds} != wanted or any(repetition != 0 for *_, repetition in kinds):
        raise ValueError("its columns are not those of a series")
    rows = sum(group.rows for group in groups)
    if rows != found.get(_ROWS):
        raise ValueError("its groups have other rows than the file")
    return Footer(rows, groups, told)


def _group(told: dict[int, Any], size: int) -> RowGroup:
    chunks = {}
    for column in told[_GROUP_COLUMNS]:
        meta = column[_META]
        (name,), codec, begin = meta[_PATH], meta[_CODEC], meta[_DATA_AT]
        dictionary = meta.get(_DICTIONARY_AT)
        if dictionary is not None and 0 < dictionary < begin:
            begin = dictionary
        end = begin + meta[_CHUNK_BYTES]
        if not 0 <= begin <= end <= size or codec not in (UNCOMPRESSED, ZSTD):
            raise ValueError("a column lies outside of the file, or is compressed as no series is")
        chunks[name.decode()] = Chunk(begin, end, codec == ZSTD)
    rows: int = told[_GROUP_ROWS]
    if set(chunks) != set(COLUMNS) or rows < 0:
        raise ValueError("its columns are not those of a series")
    return RowGroup(rows, chunks)


class Page(NamedTuple):
    """A page: its kind, its encoding, its values, and its bytes as they are stored."""

    kind: int
    encoding: int
    values: int
    unfolded: int
    stored: bytes


def check_pages(file: BinaryIO, footer: Footer) -> None:
    """Check that no page of a Parquet file unfolds to more than a page of a series does; the file is left anywhere.

    Raises
    ------
    ValueError
        A page does, has an encoding that this Assay does not write, or no header.
    """
    chunks = (chunk for group in footer.groups for chunk in group.chunks.values())
    pages = (page for chunk in chunks for page in pages_of(file, chunk.begin, chunk.end, with_data=False))
    for number, page in enumerate(pages):
        if page.unfolded > PAGE_BYTES_MAX or number >= PAGES_MAX:
            raise ValueError(f"a page unfolds to {page.unfolded:,} bytes, or there are more than {PAGES_MAX:,} pages")


def pages_of(file: BinaryIO, at: int, end: int, *, with_data: bool = True) -> Iterator[Page]:
    """Yield the pages of a column, without their bytes where these are not asked for.

    Raises
    ------
    ValueError
        A page has an encoding that this Assay does not write, or no header.
    """
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
        count, encoding = (of_kind.get(1), of_kind.get(2)) if isinstance(of_kind, dict) else (None, None)
        if encoding not in (PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY):
            raise ValueError(f"a page has encoding {encoding}, which no series has")
        at += reader.at + stored
        if at > end or not isinstance(count, int) or not 0 <= count <= VALUES_MAX:
            raise ValueError("a page ends behind its column, or has more values than any")
        data = b""
        if with_data:
            file.seek(at - stored)
            data = file.read(stored)
        yield Page(kind, encoding, count, unfolded, data)


class _Compact:
    """Reader of one struct in Thrift's compact protocol (thrift-compact-protocol.md); maps have no place in it."""

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
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if depth > self.DEPTH_MAX or count > len(self.data) - self.at:
                raise ValueError("a list is longer than what holds it")
            # Flags of a list have a byte each, unlike those of a struct.
            return [self._byte() if head & 15 in (1, 2) else self._value(head & 15, depth + 1) for _ in range(count)]
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

    def _bytes(self, count: int) -> bytes:
        self._skip(count)
        return self.data[self.at - count : self.at]

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise ValueError("a page's header is cut off")


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])

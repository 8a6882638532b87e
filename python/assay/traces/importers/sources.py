"""Files of foreign traces: opened without pipes, unpacked where they are gzip, read in blocks that end with a line."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from assay.base.errors import UsageError
from assay.base.paths import open_regular, plain, printable

HEAD_BYTES = 64 * 1024
"""A file's form is recognised by its beginning."""
BLOCK_BYTES = 2**21
LINE_BYTES_MAX = 2**20
EXAMPLE_LETTERS = 80
NOTES_MAX = 50


class Source:
    """A file of a foreign trace at its beginning.

    Attributes
    ----------
    path
        The file.
    head
        Its first bytes, unpacked.
    lines, lines_bad
        Lines, or records of binary files, that were read, and those that were not understood.
    notes
        What a reader of the trace must know, a sentence each.

    Raises
    ------
    UsageError
        It cannot be read, or is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self.lines_bad = 0
        self.notes: list[str] = []
        self._example = ""
        try:
            raw = os.fdopen(open_regular(os.path.realpath(path)), "rb")
        except OSError as error:
            raise UsageError(f"{printable(path)}: cannot be read: {error.strerror or error}") from None
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        self._raw = raw
        self._file: gzip.GzipFile | BufferedReader = gzip.GzipFile(fileobj=raw) if is_packed else raw
        self._ahead = b""
        self.head = self._ahead = self._read(HEAD_BYTES)
        if not self.head.strip():
            self._raw.close()
            raise UsageError(f"{printable(path)}: is empty; it holds no I/O")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._raw.close()

    def note(self, text: str) -> None:
        """Keep a sentence for the trace, once."""
        if text not in self.notes and len(self.notes) < NOTES_MAX:
            self.notes.append(text)

    def bad(self, example: str, count: int = 1) -> None:
        """Count lines that are not understood; the first is told."""
        self.lines_bad += count
        self._example = self._example or plain(example.strip())[:EXAMPLE_LETTERS]

    def told(self) -> list[str]:
        """Notes, and what was not understood.

        Raises
        ------
        UsageError
            Most of the file was not understood.
        """
        if self.lines_bad * 2 > self.lines:
            raise UsageError(f"{printable(self.path)}: {self.lines_bad:,} of its {self.lines:,} lines are not "
                             f"understood, such as {self._example!r}; name its format with --format")  # fmt: skip
        if self.lines_bad:
            self.note(f"{printable(self.path.name)}: {self.lines_bad:,} of {self.lines:,} lines are left out because "
                      f"they are not understood, such as {self._example!r}")  # fmt: skip
        return self.notes

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Yield the file in blocks, whatever is in them."""
        while block := self._read(size):
            yield block

    def text_blocks(self) -> Iterator[list[str]]:
        """Yield the lines of the file, many at once, without their ends and without empty ones."""
        encoding = "utf-16" if self.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        if encoding == "utf-16":
            yield from self._utf16_blocks()
            return
        rest = b""
        for block in self.blocks():
            whole, newline, rest_now = (rest + block).rpartition(b"\n")
            rest = rest_now
            if newline:
                yield self._split(whole.decode(encoding, "replace"))
            elif len(rest) > LINE_BYTES_MAX:
                raise UsageError(f"{printable(self.path)}: has a line of more than {LINE_BYTES_MAX:,} bytes, "
                                 "which no trace has")  # fmt: skip
        if rest:
            yield self._split(rest.decode(encoding, "replace"))

    def _utf16_blocks(self) -> Iterator[list[str]]:
        import codecs

        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        rest = ""
        for block in self.blocks():
            *lines, rest = (rest + decoder.decode(block)).split("\n")
            yield self._split("\n".join(lines))
        yield self._split(rest)

    def _split(self, text: str) -> list[str]:
        lines = [line for line in text.replace("\0", "").splitlines() if line and not line.isspace()]
        self.lines += len(lines)
        return lines

    def _read(self, size: int) -> bytes:
        """The next bytes; a packed file that is cut off ends there."""
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        found = b""
        try:
            # `read` of a packed file that is cut off would give nothing of what it has unpacked already.
            while len(found) < size and (part := self._file.read1(size - len(found))):
                found += part
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.note(f"{printable(self.path.name)}: is cut off or damaged as a gzip file ({plain(str(error))[:80]}); "
                      "what comes before is taken")  # fmt: skip
        except OSError as error:
            raise UsageError(f"{printable(self.path)}: cannot be read: {error.strerror or error}") from None
        return found

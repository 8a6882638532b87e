"""Opening foreign text: its encoding, its beginning, and what is no text at all."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO

from assay.base.paths import open_regular, printable
from assay.telemetry.importers.blg import BinaryLog, NotReadable, TextOfLog, is_blg
from assay.telemetry.importers.importer import HEAD_CHARACTERS, NotTaken

LINE_LETTERS_MAX = 32 * 2**20
"""A header of a hundred thousand counters is one line of some megabytes."""

BLOCK_LETTERS = 2**14
"""Letters that are read at once."""

_BINARIES = (
    (b"\xef\xbe\xed\xfe", 0, "a raw file of atop", "atop -P DSK,CPU,cpu,MEM,PAG,PSI,LVM,NET -r {0} > {1}.txt"),
    (b"\x96\xd5", 0, "an archive of sar", "sadf -j {0} -- -A > {1}.json"),
    (b"\x50\x05\x26", 4, "an archive of PCP", "pmrep -a {1} -o csv -x disk.dev kernel.all.cpu hinv.ncpu > {1}.csv"),
    (b"\x1f\x8b", 0, "packed by gzip", "gunzip {0}"), (b"\xfd7zXZ", 0, "packed by xz", "unxz {0}"),
    (b"\x28\xb5\x2f\xfd", 0, "packed by zstd", "unzstd {0}"), (b"PK\x03\x04", 0, "a ZIP archive", "unzip {0}"),
)  # fmt: skip
"""Binary files: how they begin and where, what they are, and the command that makes text of them."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@contextmanager
def opened(path: Path) -> Iterator[tuple[TextIO, str]]:
    """A foreign text file at its beginning, and that beginning.

    Raises
    ------
    NotTaken
        It cannot be read, is empty, or is no text.
    """
    shown = printable(path)
    try:
        descriptor = open_regular(os.path.realpath(path))
    except OSError as error:
        raise NotTaken(f"{shown}: cannot be read: {error.strerror or error}") from None
    with open(descriptor, "rb") as raw:
        head = raw.read(HEAD_CHARACTERS)
        if not head.strip():
            raise NotTaken(f"{shown}: is empty; nothing was recorded in it")
        if is_blg(head):
            yield from _of_binary_log(raw, path)
            return
        _refuse_binary(head, path)
        raw.seek(0)
        encoding = next((name for mark, name in _MARKS if head.startswith(mark)), None) or _encoding_of(head)
        peeking = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
        text = peeking.read(HEAD_CHARACTERS)
        peeking.detach().seek(0)
        file = _Lines(raw, encoding=encoding, errors="replace", newline="")
        yield file, text


def _of_binary_log(raw: BinaryIO, path: Path) -> Iterator[tuple[TextIO, str]]:
    """The text that `relog` would make of a binary log of Perfmon, and its beginning."""
    try:
        log = BinaryLog(raw)
        begin = io.TextIOWrapper(io.BufferedReader(TextOfLog(log)), encoding="utf-8", newline="").read(HEAD_CHARACTERS)
        yield _Lines(io.BufferedReader(TextOfLog(log)), encoding="utf-8", newline=""), begin
    except NotReadable as error:
        raise NotTaken(f"{printable(path)}: is a binary log of Perfmon that {error}; {_relog(path)}") from None


def _relog(path: Path) -> str:
    return f"convert it on Windows: relog {printable(Path(path.name))} -f csv -o {printable(Path(path.stem))}.csv -y"


class _Lines(io.TextIOWrapper):
    """Text whose lines are bounded: a file of gigabytes may be one line, which no memory holds."""

    def __next__(self) -> str:  # type: ignore[override]
        line = self.readline(LINE_LETTERS_MAX)
        if not line:
            raise StopIteration
        if len(line) >= LINE_LETTERS_MAX and line[-1] not in "\r\n":
            raise _too_long()
        return line


def _too_long() -> NotTaken:
    return NotTaken(f"has a line of more than {LINE_LETTERS_MAX:,} letters, which no tool writes")


def lines(file: TextIO) -> Iterator[str]:
    r"""Bounded lines of what is left of a file, without nulls; many are read at once, at a tenth of the time.

    Examples
    --------
    >>> list(lines(io.StringIO("a\r\nb\0\n\nc", newline="")))
    ['a\r\n', 'b\n', '\n', 'c']
    """
    return chain.from_iterable(io.StringIO(block, newline="") for block in _blocks(file))


def _blocks(file: TextIO) -> Iterator[str]:
    """Text in blocks that end with a line."""
    while block := file.read(BLOCK_LETTERS):
        line = file.readline(LINE_LETTERS_MAX)
        if len(line) >= LINE_LETTERS_MAX and line[-1] not in "\r\n":
            raise _too_long()
        yield (block + line).replace("\0", "")


def share_read(file: TextIO) -> float:
    """How much of a file that `opened` gave has been read, from 0 to 1; the text of a binary log may be longer."""
    return min(file.buffer.tell() / max(os.fstat(file.fileno()).st_size, 1), 1.0)


def _encoding_of(head: bytes) -> str:
    """UTF-8, or what Windows writes in western languages."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _refuse_binary(head: bytes, path: Path) -> None:
    shown = printable(path)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" not in head[:4096]:
        return
    if path.suffix.lower() == ".blg" or b"Perf" in head[:16]:
        raise NotTaken(f"{shown}: is a binary log of Perfmon of a form that is not known here; {_relog(path)}")
    names = [printable(Path(name)) for name in (path.name, path.stem)]
    for begin, place, what, command in _BINARIES:
        if head.startswith(begin, place):
            raise NotTaken(f"{shown}: is {what}; convert it: {command.format(*names)}")
    raise NotTaken(f"{shown}: is no text; assay import reads text as tools export it: CSV, TSV, JSON, XML and logs")

"""Batch files of classic `sqlio` commands, as studies publish them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.workloads.io.sqlio import Maps, SqlioCommand, read_sqlio, read_text_of


@dataclass(frozen=True)
class BatchLine:
    """A command of a batch file.

    Attributes
    ----------
    number
        The line it stands on.
    rest_s
        The rest in seconds before it, if the file asks for one.
    says_random
        Whether the comment above it, or the name of the file that takes its output, speaks of random I/O.
    """

    number: int
    words: tuple[str, ...]
    rest_s: float | None = None
    says_random: bool = False


def with_hint(command: SqlioCommand, *, says_random: bool = False) -> SqlioCommand:
    """The command with a notice where published scripts print -fsequential and mean random I/O.

    A page of 8 KiB or less in order is no sequential profile: those have 64 KiB and more.
    """
    if command.access != "sequential" or not (says_random or (command.block_bytes or 0) <= PAGE_BYTES):
        return command
    hint = (
        f"-fsequential: blocks of {format_bytes(command.block_bytes)} in order; published scripts print it"
        " where they mean random I/O, which -frandom asks for"
    )
    return replace(command, notices=(*command.notices, hint))


PAGE_BYTES = 8192
"""A page of SQL Server."""

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_IGNORED = re.compile(r"@?(?:rem|echo|setlocal|endlocal|cls)\b.*|(?:::|#).*", re.IGNORECASE)
_RESTS = re.compile(
    r"@?(?:timeout(?:\.exe)?\s+(?:/t\s+)?|sleep\s+)([0-9]{1,6})(?:\s+/nobreak)?(?:\s*>\s*\S+)?", re.IGNORECASE
)
_REDIRECTED = re.compile(r"\s+[12]?>>?\s*(?:\"[^\"]*\"|\S+)")
_PROGRAM = re.compile(r"(?:.*[\\/])?sqlio(?:\.exe)?", re.IGNORECASE)


def parse_batch(text: str) -> list[BatchLine]:
    r"""Read a batch file of classic commands: one `sqlio` a line, with rests (`timeout /T 60`, `sleep 60`) between.

    Comments, `echo` and redirections have no effect.

    Raises
    ------
    UsageError
        A line is none of these, or there is no command; the message gives its number.

    Examples
    --------
    >>> lines = parse_batch("rem study\nsqlio -kR -s10 a.dat >> out.txt\ntimeout /T 60\n.\\sqlio.exe -kW -s10 a.dat\n")
    >>> [(line.number, line.words, line.rest_s) for line in lines]
    [(2, ('-kR', '-s10', 'a.dat'), None), (4, ('-kW', '-s10', 'a.dat'), 60.0)]
    """
    commands: list[BatchLine] = []
    rest_s: float | None = None
    comment = ""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        plain = _REDIRECTED.sub("", line).strip()
        words = [quoted or word for quoted, word in _WORD.findall(plain)]
        if not words or _IGNORED.fullmatch(plain):
            comment = line if words else comment
            continue
        pause = _RESTS.fullmatch(plain)
        if pause is not None:
            rest_s = (rest_s or 0.0) + float(pause[1])
        elif _PROGRAM.fullmatch(words[0].removeprefix("@")):
            written = " ".join(_REDIRECTED.findall(line))
            says_random = "random" in f"{comment} {written}".lower()
            commands.append(BatchLine(number, tuple(words[1:]), rest_s, says_random))
            rest_s = None
        else:
            raise UsageError(f"line {number}: {line.strip()!r} is no command of sqlio, rest (timeout /T 60) or comment")
    if not commands:
        raise UsageError("holds no command of sqlio")
    return commands


def read_batch(path: str, maps: Maps = ()) -> list[tuple[BatchLine, SqlioCommand]]:
    """Read a batch file, and the parameter files that its commands name, before any of them runs.

    Raises
    ------
    UsageError
        As `parse_batch` and `read_sqlio`; the message gives file and line.
    """
    where = f"--batch {path}"
    text = read_text_of(path, where)
    try:
        lines = parse_batch(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    read = []
    for line in lines:
        try:
            command = read_sqlio(line.words, maps)
            read.append((line, with_hint(command, says_random=line.says_random)))
        except UsageError as error:
            raise UsageError(f"{where}, line {line.number}: {error}") from None
    return read

"""Batch files of classic `sqlio` commands, as studies publish them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.base.errors import UsageError
from assay.workloads.io.sqlio import Maps, SqlioCommand, read_sqlio, read_text_of


@dataclass(frozen=True)
class BatchLine:
    """A command of a batch file: the line it stands on, and the rest in seconds before it, if the file asks for one."""

    number: int
    words: tuple[str, ...]
    rest_s: float | None = None


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
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        plain = _REDIRECTED.sub("", line).strip()
        words = [quoted or word for quoted, word in _WORD.findall(plain)]
        if not words or _IGNORED.fullmatch(plain):
            continue
        pause = _RESTS.fullmatch(plain)
        if pause is not None:
            rest_s = (rest_s or 0.0) + float(pause[1])
        elif _PROGRAM.fullmatch(words[0].removeprefix("@")):
            commands.append(BatchLine(number, tuple(words[1:]), rest_s))
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
            read.append((line, read_sqlio(line.words, maps)))
        except UsageError as error:
            raise UsageError(f"{where}, line {line.number}: {error}") from None
    return read

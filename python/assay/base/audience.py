"""Who reads what Assay prints: a person, or a program that acts for one, such as a language model's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypedDict

OPTION = "--agent"
VARIABLES = ("AI_AGENT", "CLAUDECODE")
"""Variables by which programs that work for a language model make themselves known."""

HOST = "agent"
"""The verb of a host's share of a run: its coordinator reads it, and tells a program itself."""

_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_ACCEPTED = re.compile(r"(?:accepted|known): ([^;:]+)")


class Problem(TypedDict):
    """An error that ended a command, as a program reads it; what its message does not say is null."""

    code: int
    message: str
    option: str | None
    value: str | None
    accepted: list[str] | None


class Audience:
    """Who reads what this process prints."""

    is_program = False
    """Whether answers are Markdown, errors JSON, and no progress is shown."""


def reads_a_program(words: Sequence[str], environ: Mapping[str, str], *, on_terminal: bool) -> bool:
    """Whether a program reads: by the option, or by a variable where standard output is no terminal.

    Examples
    --------
    >>> reads_a_program(["--agent"], {}, on_terminal=True), reads_a_program([], {"AI_AGENT": "1"}, on_terminal=True)
    (True, False)
    >>> reads_a_program(["agent"], {"AI_AGENT": "1"}, on_terminal=False)
    False
    >>> [reads_a_program([], {"CLAUDECODE": text}, on_terminal=False) for text in ("1", "0")]
    [True, False]
    """
    if words[:1] == [HOST]:
        return False
    named = any(environ.get(name, "") not in ("", "0", "false") for name in VARIABLES)
    return OPTION in words or (named and not on_terminal)


def problem(code: int, message: str) -> Problem:
    """The parts of a message: it names the option first, quotes the value, and lists what is accepted.

    Examples
    --------
    >>> found = problem(2, "--export: unknown format 'xml'; accepted: csv, fio-json, openmetrics")
    >>> found["option"], found["value"], found["accepted"]
    ('--export', 'xml', ['csv', 'fio-json', 'openmetrics'])
    """
    option, accepted = _OPTION.search(message), _ACCEPTED.search(message)
    name = option[0] if option is not None else None
    # The parser of options quotes the option before its value.
    quoted = [one or other for one, other in _QUOTED.findall(message) if (one or other) != name]
    behind = re.search(r"\(given '?([^')]*)'?\)", message) or re.match(rf"{name} ([^\s:]+): ", message)
    value = behind[1] if behind is not None else quoted[0] if quoted else None
    listed = [part.strip() for part in accepted[1].split(",")] if accepted is not None else None
    if "Input should be" in message:
        listed = [one for one in quoted if one != value]
    return {
        "code": code,
        "message": message,
        "option": name,
        "value": value,
        "accepted": listed,
    }

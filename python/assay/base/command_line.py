"""The command line before anything else is imported: passwords leave it, and Ctrl-C ends the process in one line.

A command line is readable by every user of the machine, so a password in it is moved to a file in memory that the same
process finds open when it starts anew, and reads once. An environment would not do: it stays readable for its user, and
for every core dump, as long as the process lives, whatever is taken out of it. The new start comes before every import
that takes time: the password is in the process list for as long as the interpreter needs to begin, some hundredths of a
second.
The word that stands in its place names it, and is what manifests and messages show. This module therefore imports
little, and nothing of Assay.
"""

from __future__ import annotations

import os
import re
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence
    from types import FrameType
    from typing import NoReturn

PREFIX = "ASSAY_SECRET_"
PLACEHOLDER = re.compile(PREFIX + r"[0-9]+")
DESCRIPTOR = "ASSAY_SECRETS"
"""Variable that names the descriptor of the file in memory."""

INTERRUPTED = 130
"""Exit code of Ctrl-C and SIGTERM, as in `assay.base.errors`, which is not loaded yet."""

_DATABASES = r"(?:postgresql|postgres|mariadb|mysql|mssql)"
_STORAGE = r"(?:file|faulty|model|null|embedded|duckdb|spark-local):"
# A scheme that is misspelt or unknown precedes a password as well as one that is right, and so does one a slash short.
_URL = re.compile(rf"(?i)(?<![a-z0-9+.-])(?:(?!{_STORAGE})[a-z][a-z0-9+.-]*://|{_DATABASES}(?::/?|//))")
# Connection strings of libpq and ODBC are no targets, and hold passwords all the same.
_OPTION = re.compile(r"(?i)(?:^-{0,2}|[?&;\s])(?:(?:ssl)?password|passwd|pass|pwd)\s*=\s*([^&]+)")


def hide_passwords(argv: Sequence[str], environ: MutableMapping[str, str] = os.environ) -> list[str]:
    """Run this process again without the passwords of its command line, if it has any.

    The new process has `ASSAY_SECRET_1`, ..., in their place, and finds them by these words in a file in memory, from
    which `assay.base.secrets.take_secrets` takes them: no environment holds them, no child process inherits them.

    Parameters
    ----------
    argv
        The command line as Python gives it (`sys.argv`).

    Returns
    -------
    list of str
        The command line, which holds no password.
    """
    if any(password_places(argument) for argument in argv):
        command, secrets = redacted(sys.orig_argv, first=_first_free(environ))
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, command, {**environ, **handed_over(secrets)})
    return list(argv)


def handed_over(secrets: Mapping[str, str]) -> dict[str, str]:
    """Put passwords into a file in memory that the next program of this process finds open.

    Returns
    -------
    dict
        What its environment tells of the file; nothing where there is no password.
    """
    if not secrets:
        return {}
    descriptor = os.memfd_create(DESCRIPTOR, 0)
    data = b"\0".join(os.fsencode(f"{name}={secret}") for name, secret in secrets.items())
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return {DESCRIPTOR: str(descriptor)}


def redacted(arguments: Sequence[str], *, first: int = 1) -> tuple[list[str], dict[str, str]]:
    """Return a command line with words in place of its passwords, and the passwords by these words.

    Examples
    --------
    >>> redacted(["oltp", "tpcc", "mariadb://root:secret@db/tpcc"])
    (['oltp', 'tpcc', 'mariadb://root:ASSAY_SECRET_1@db/tpcc'], {'ASSAY_SECRET_1': 'secret'})
    """
    secrets: dict[str, str] = {}
    shown = []
    for argument in arguments:
        pieces, end = [], 0
        for first_letter, after in password_places(argument):
            name = f"{PREFIX}{first + len(secrets)}"
            secrets[name] = argument[first_letter:after]
            pieces += [argument[end:first_letter], name]
            end = after
        shown.append("".join([*pieces, argument[end:]]))
    return shown, secrets


def password_places(text: str) -> list[tuple[int, int]]:
    """Where passwords stand in a command line's argument, in order: begin and end of each.

    Rather too much than too little: a user part that was not percent-encoded reaches to the last `@`, any scheme
    counts, and an option `password=` is one whatever it is an option of.

    Examples
    --------
    >>> argument = "postgresql://me:se:cr@t@db.example/tpcc"
    >>> [argument[begin:end] for begin, end in password_places(argument)]
    ['se:cr@t']
    >>> argument = "/srv/data?password=secret"
    >>> [argument[begin:end] for begin, end in password_places(argument)]
    ['secret']
    """
    urls = list(_urls(text))
    places = [place for begin, end in urls for place in _places_in_url(text, begin, end)]
    before = text[: urls[0][0]] if urls else text
    options = [match.span(1) for match in _OPTION.finditer(before)]
    return [(begin, end) for begin, end in options if not PLACEHOLDER.fullmatch(text[begin:end])] + places


def _urls(text: str) -> Iterator[tuple[int, int]]:
    """Begin (after `//`) and end of each URL in the text."""
    found = [match.span() for match in _URL.finditer(text)]
    for number, (_, begin) in enumerate(found):
        yield begin, found[number + 1][0] if number + 1 < len(found) else len(text)


def _places_in_url(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    url = text[begin:end]
    options = [match.span(1) for match in _OPTION.finditer(url)]
    colon, at = url.find(":"), user_part_end(url)
    if 0 <= colon < at - 1 and not PLACEHOLDER.fullmatch(url[colon + 1 : at]):
        yield begin + colon + 1, begin + at
    for first, last in options:
        if first > at and not PLACEHOLDER.fullmatch(url[first:last]):
            yield begin + first, begin + last


def user_part_end(url: str) -> int:
    """Where the `@` after user and password is, or -1; `url` begins after `//`.

    A password may hold `/`, `?`, `#` or `@` that should have been encoded. What follows a plain `HOST:PORT/` or `HOST/`
    is no user part, though: options may hold an `@`.
    """
    if re.match(r"[^:/?#@]*(:[0-9]+)?([/?#]|$)", url):
        return -1
    before_options = re.split(r"\?(?=[a-z_.]+=)", url, maxsplit=1)[0]
    at = before_options.rfind("@")
    return at if at >= 0 else url.rfind("@")


def _first_free(environ: Mapping[str, str]) -> int:
    taken = [int(name.removeprefix(PREFIX)) for name in environ if PLACEHOLDER.fullmatch(name)]
    return max(taken, default=0) + 1


def open_closed_streams() -> None:
    """Give standard streams that are closed the null device.

    A target or a file of the run would otherwise get the number 1 or 2, and what is meant for the terminal.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given, and the ones below are taken.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def end_at_signals() -> None:
    """Let Ctrl-C and SIGTERM end the process at once, in one line: while it loads, and again when all is done."""
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    # Past Python's buffers and whatever is being imported: raising here would end in a traceback of the import system.
    os.write(2, b"assay: interrupted\n")
    os._exit(INTERRUPTED)

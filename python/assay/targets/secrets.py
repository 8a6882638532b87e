"""Passwords: kept out of process lists, messages, manifests and the environment of child processes.

A command line is readable by everybody on the machine, so a password in a URL is moved to the environment of the same
process, which only its user may read, before anything else happens. The word that stands in its place in the URL names
it, and is what manifests and messages show.
"""

from __future__ import annotations

import hmac
import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

_PREFIX = "ASSAY_SECRET_"
_PLACEHOLDER = re.compile(_PREFIX + r"[0-9]+")
_URL = re.compile(r"(?i)(?<![a-z0-9+.-])(?:postgresql|postgres|mariadb|mysql|mssql)://")
_OPTION = re.compile(r"(?i)[?&]password=([^&]+)")

_kept: dict[str, Secret] = {}
"""Secrets taken out of the environment, by the word that stands for them."""


class Secret:
    """A password that shows itself only when asked to.

    Examples
    --------
    >>> secret = Secret("correct horse")
    >>> print(secret, repr(secret), f"{secret}")
    *** Secret(***) ***
    >>> secret.reveal()
    'correct horse'
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the password itself, for the driver that needs it."""
        return self._text

    def removed_from(self, text: str) -> str:
        """Return a message of somebody else without the password, should it be in it."""
        return text.replace(self._text, "***") if self._text else text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret is not written anywhere")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a text a password stands."""

    begin: int
    end: int


def password_places(text: str) -> list[Place]:
    """Where passwords of database URLs stand in a command line's argument, in order.

    Rather too much than too little: a user part that was not percent-encoded reaches to the last `@`.

    Examples
    --------
    >>> argument = "postgresql://me:se:cr@t@db.example/tpcc"
    >>> [argument[place.begin : place.end] for place in password_places(argument)]
    ['se:cr@t']
    """
    return [place for begin, end in _urls(text) for place in _places_in_url(text, begin, end)]


def _urls(text: str) -> Iterator[tuple[int, int]]:
    """Begin (after `//`) and end of each URL of a database in the text."""
    found = [match.span() for match in _URL.finditer(text)]
    for number, (_, begin) in enumerate(found):
        yield begin, found[number + 1][0] if number + 1 < len(found) else len(text)


def _places_in_url(text: str, begin: int, end: int) -> Iterator[Place]:
    url = text[begin:end]
    options = [match.span(1) for match in _OPTION.finditer(url)]
    colon, at = url.find(":"), user_part_end(url)
    if 0 <= colon < at - 1 and not _PLACEHOLDER.fullmatch(url[colon + 1 : at]):
        yield Place(begin=begin + colon + 1, end=begin + at)
    for first, last in options:
        if first > at and not _PLACEHOLDER.fullmatch(url[first:last]):
            yield Place(begin=begin + first, end=begin + last)


def user_part_end(url: str) -> int:
    """Where the `@` after user and password is, or -1; `url` begins after `//`.

    A password may hold `/`, `?`, `#` or `@` that should have been encoded. What follows a plain `HOST:PORT/` or `HOST/`
    is no user part, though: options may hold an `@`.
    """
    if re.match(r"[^:/?#@]*(:[0-9]*)?([/?#]|$)", url):
        return -1
    before_options = re.split(r"\?(?=[a-z_.]+=)", url, maxsplit=1)[0]
    at = before_options.rfind("@")
    return at if at >= 0 else url.rfind("@")


def hide_passwords(argv: Sequence[str], environ: MutableMapping[str, str] = os.environ) -> list[str]:
    """Run this process again without the passwords of its command line, if it has any.

    The new process has them in its environment as `ASSAY_SECRET_1`, ..., and these words in their place. There they
    are taken out of the environment at once, so that no child process inherits them.

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
        os.execve(sys.executable, command, {**environ, **{name: secret.reveal() for name, secret in secrets.items()}})
    take_secrets(environ)
    return list(argv)


def redacted(arguments: Sequence[str], *, first: int = 1) -> tuple[list[str], dict[str, Secret]]:
    """Return a command line with words in place of its passwords, and the passwords by these words.

    Examples
    --------
    >>> redacted(["oltp", "tpcc", "mariadb://root:secret@db/tpcc"])
    (['oltp', 'tpcc', 'mariadb://root:ASSAY_SECRET_1@db/tpcc'], {'ASSAY_SECRET_1': Secret(***)})
    """
    secrets: dict[str, Secret] = {}
    shown = []
    for argument in arguments:
        pieces, end = [], 0
        for place in password_places(argument):
            name = f"{_PREFIX}{first + len(secrets)}"
            secrets[name] = Secret(argument[place.begin : place.end])
            pieces += [argument[end : place.begin], name]
            end = place.end
        shown.append("".join([*pieces, argument[end:]]))
    return shown, secrets


def take_secrets(environ: MutableMapping[str, str]) -> None:
    """Move the passwords that `hide_passwords` put into the environment out of it, into this process."""
    for name in [name for name in environ if _PLACEHOLDER.fullmatch(name)]:
        _kept[name] = Secret(environ.pop(name))


def secret_named(word: str, environ: Mapping[str, str]) -> Secret | None:
    """Password that a word of a URL stands for, as written there; None if the word stands for none or it is unknown."""
    if not _PLACEHOLDER.fullmatch(word):
        return None
    return Secret(environ[word]) if word in environ else _kept.get(word)


def is_placeholder(word: str) -> bool:
    """Whether a word of a URL stands for a password that was moved out of it."""
    return _PLACEHOLDER.fullmatch(word) is not None


def _first_free(environ: Mapping[str, str]) -> int:
    taken = [int(name.removeprefix(_PREFIX)) for name in environ if _PLACEHOLDER.fullmatch(name)]
    return max(taken, default=0) + 1

"""Passwords: kept out of process lists, messages, manifests and the environment of child processes.

They come from URLs (`assay.base.command_line` moves them out of the process list), from standard input, from the
environment, or from the password file of libpq.
"""

from __future__ import annotations

import hmac
import os
import resource
import sys
from collections.abc import Mapping, MutableMapping

from assay.base.command_line import DESCRIPTOR, PLACEHOLDER, handed_over
from assay.base.errors import UsageError
from assay.base.log import LOG

LONGEST = 4096
"""More characters on standard input are no password but a file sent by mistake."""

_kept: dict[str, Secret] = {}
"""Secrets taken out of the environment, by the word that stands for them."""

_typed: list[Secret] = []
"""What `--password-stdin` read; one at most."""


class Secret:
    """A password that shows itself only when asked to; a process that holds one leaves no core dump.

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
        # A core dump in the folder of results would be sent along with them.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        self._text = text
        LOG.hide(text)

    def reveal(self) -> str:
        """Return the password itself, for the driver that needs it."""
        return self._text

    def removed_from(self, text: str) -> str:
        """Return a message of another program with every occurrence of the password replaced."""
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


def take_secrets(environ: MutableMapping[str, str]) -> None:
    """Take the passwords that `handed_over` left for this process, and those that its environment holds out of it."""
    descriptor = environ.pop(DESCRIPTOR, "")
    for pair in _handed_over(descriptor).split(b"\0"):
        name, _, secret = os.fsdecode(pair).partition("=")
        if PLACEHOLDER.fullmatch(name):
            _kept[name] = Secret(secret)
    for name in [name for name in environ if PLACEHOLDER.fullmatch(name)]:
        _kept[name] = Secret(environ.pop(name))


def _handed_over(descriptor: str) -> bytes:
    """What a file in memory holds; it is gone then. Nothing where the number is of something else."""
    try:
        if not os.readlink(f"/proc/self/fd/{int(descriptor)}").startswith(f"/memfd:{DESCRIPTOR}"):
            return b""
        with open(int(descriptor), "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return b""


def secret_named(word: str, environ: Mapping[str, str]) -> Secret | None:
    """Password that a word of a URL stands for, as written there; None if the word stands for none or it is unknown."""
    if not PLACEHOLDER.fullmatch(word):
        return None
    return Secret(environ[word]) if word in environ else _kept.get(word)


def holds_placeholder(text: str) -> bool:
    """Whether a password was moved out of a text."""
    return PLACEHOLDER.search(text) is not None


def is_placeholder(word: str) -> bool:
    """Whether a word of a URL stands for a password that was moved out of it."""
    return PLACEHOLDER.fullmatch(word) is not None


def password_from_stdin() -> None:
    """Read a line of standard input, on a terminal unseen, as the password of all databases without one of their own.

    Raises
    ------
    UsageError
        There is no such line.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("--password-stdin: standard input is closed; send the password's line to it")
    if sys.stdin.isatty():
        import getpass

        try:
            line = getpass.getpass("password: ")
        except EOFError:
            line = ""
    else:
        line = os.fsdecode(sys.stdin.buffer.readline(LONGEST)).rstrip("\r\n")
    if not line or len(line) >= LONGEST - 1 or "\0" in line:
        raise UsageError("--password-stdin: the first line of standard input is no password")
    _typed[:] = [Secret(line)]


def typed_password() -> Secret | None:
    """Return what `--password-stdin` read."""
    return _typed[0] if _typed else None


def secrets_for_wire() -> tuple[dict[str, str], str | None]:
    """Passwords by the words that stand for them, and what was typed: for the pipe to an agent, and nowhere else."""
    return {word: secret.reveal() for word, secret in _kept.items()}, _typed[0].reveal() if _typed else None


def keep_secrets(words: Mapping[str, str], typed: str | None) -> None:
    """Keep the passwords that came over a pipe, as those of this process."""
    _kept.update({word: Secret(text) for word, text in words.items()})
    if typed is not None:
        _typed[:] = [Secret(typed)]


def secrets_for_child() -> dict[str, str]:
    """Environment for a process that this one becomes: it tells where that one takes them from (`take_secrets`)."""
    return handed_over({word: secret.reveal() for word, secret in _kept.items()})

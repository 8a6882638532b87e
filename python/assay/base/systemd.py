"""Command lines in units of systemd, and calendars of its timers. Sources: systemd.service(5), systemd.time(7)."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence

from assay.base.errors import UsageError

NAMED = ("minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly", "annually")
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_NUMBERS = r"[0-9*/,.]{1,40}"
_CALENDAR = re.compile(
    rf"(?:{_DAY}(?:(?:\.\.|,){_DAY}){{0,6}} )?(?:[0-9*/,.~-]{{1,40}} )?{_NUMBERS}:{_NUMBERS}(?::{_NUMBERS})?(?: UTC)?"
)


_SERVICE_HEAD = """\
# Written by {author}. Passwords belong into a password file, such as ~/.pgpass, or into {environment}
# as NAME=VALUE, readable by {reader} alone; never into this file.
[Unit]
Description={description}
Documentation=man:systemd.exec(5)
After=network-online.target local-fs.target
Wants=network-online.target

[Service]
Type={kind}
ExecStart={command}
EnvironmentFile=-{environment}
"""


def service_head(
    command: Sequence[str], *, author: str, description: str, kind: str, environment: str, reader: str
) -> str:  # fmt: skip
    """The first lines of a service that starts a command of Assay.

    Parameters
    ----------
    command
        Its words.
    author
        The command that writes the unit.
    kind
        Its `Type=`.
    environment
        File of variables, read where it is there.
    reader
        Who alone may read that file.
    """
    return _SERVICE_HEAD.format(
        command=" ".join(quoted(word) for word in command), author=author, description=description, kind=kind,
        environment=environment, reader=reader,
    )  # fmt: skip


def quoted(word: str) -> str:
    """A word of a command line as systemd reads it.

    Examples
    --------
    >>> quoted("data=/mnt/x"), quoted("a b"), quoted("50%")
    ('data=/mnt/x', '"a b"', '50%%')
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(one.isspace() or one in ";'\"" for one in word) else escaped


def program_words() -> list[str]:
    """What starts Assay again: the program on the path, else this interpreter."""
    found = shutil.which("assay")
    return [found] if found else [sys.executable, "-P", "-m", "assay"]


def parse_calendar(text: str, option: str) -> str:
    """A calendar of a timer: `daily`, `weekly`, or an expression with a time of the day, such as `Sun 02:00`.

    Raises
    ------
    UsageError
        It is none.

    Examples
    --------
    >>> parse_calendar("Mon..Fri 02:30", "--repeat")
    'Mon..Fri 02:30'
    """
    if text in NAMED or _CALENDAR.fullmatch(text):
        return text
    raise UsageError(f"{option} {text[:80]!r}: is no calendar of systemd; give daily, weekly or such as 'Sun 02:00'")

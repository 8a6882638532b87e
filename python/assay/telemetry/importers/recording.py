"""What a recording says of itself: what each file of other tools gave. And what the user says of the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.base.errors import UsageError
from assay.base.paths import plain, printable
from assay.base.units import count_of, parse_duration
from assay.targets.files.spec import ROLES
from assay.telemetry.importers.importer import at_text, utc_ns
from assay.telemetry.importers.moments import ORDERS, Order
from assay.telemetry.importers.taken import TakenFile


def recording_of(told: Sequence[tuple[Path, TakenFile]]) -> dict[str, Any]:
    """The manifest's `recording`: what was taken of each file, and what is to be said of all together."""
    files: list[dict[str, Any]] = [
        {
            "path": printable(path),
            "format": taken.format,
            "rows": taken.rows,
            "hosts": [plain(host) for host in taken.hosts],
            "from_utc_ns": taken.from_ns,
            "to_utc_ns": taken.to_ns,
            "counters": {plain(name): metric for name, metric in taken.counters.items()},
            "ignored": {plain(name): reason for name, reason in taken.ignored.items()},
            "not_understood": {plain(name): plain(example) for name, example in taken.unread.items()},
            "values": {
                "taken": taken.values_taken,
                "left_out": taken.values_left_out,
                "not_understood": taken.values_unread,
            },
            "notes": [plain(note) for note in taken.notes],
        }
        for path, taken in told
    ]
    notices = [f"{one['path']}: {note}" for one in files for note in one["notes"]]
    notices += _apart(told)
    begins = [taken.from_ns for _, taken in told if taken.from_ns is not None]
    ends = [taken.to_ns for _, taken in told if taken.to_ns is not None]
    return {
        "files": files,
        "hosts": list(dict.fromkeys(host for one in files for host in one["hosts"])),
        "from_utc_ns": min(begins, default=None),
        "to_utc_ns": max(ends, default=None),
        "rows": sum(taken.rows for _, taken in told),
        "notices": notices,
    }


def _apart(told: Sequence[tuple[Path, TakenFile]]) -> list[str]:
    """Files that share no time: nothing of one explains the other, and often a zone is wrong."""
    notices = []
    for place, (path, taken) in enumerate(told):
        for other_path, other in told[place + 1 :]:
            if None in (taken.from_ns, taken.to_ns, other.from_ns, other.to_ns):
                continue
            if taken.to_ns <= other.from_ns or other.to_ns <= taken.from_ns:  # type: ignore[operator]
                notices.append(
                    f"{printable(path)} and {printable(other_path)} share no time; look at their zones (--zone)"
                )
    return notices


def parse_zone(text: str) -> int:
    """Seconds to add to UTC, of `+02:00` or `UTC-5`.

    Raises
    ------
    UsageError
        It is no offset.

    Examples
    --------
    >>> parse_zone("+02:00"), parse_zone("UTC-5"), parse_zone("Z")
    (7200, -18000, 0)
    """
    match = re.fullmatch(r"(?:UTC)?([+-])(\d{1,2})(?::?([0-5]\d))?", text.strip(), re.ASCII | re.IGNORECASE)
    if text.strip().upper() in ("Z", "UTC"):
        return 0
    if match is None or int(match[2]) > 14:
        raise UsageError(f"--zone {text!r}: accepted: an offset from UTC such as +02:00 or -5")
    seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60
    return -seconds if match[1] == "-" else seconds


def parse_start(text: str) -> int:
    """When a file without times begins, as UTC nanoseconds, of `2026-11-23T19:00:00+01:00`.

    Raises
    ------
    UsageError
        It is no time.

    Examples
    --------
    >>> parse_start("1970-01-01T01:00:10+01:00")
    10000000000
    """
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"--start {text!r}: accepted: a date and time such as 2026-11-23T19:00:00+01:00") from None
    return utc_ns(at if at.tzinfo is not None else at.astimezone())


def parse_interval(text: str) -> int:
    """How far apart the reports of a file without times are, in nanoseconds, of `10s`.

    Raises
    ------
    UsageError
        It is no time span, or none at all.
    """
    interval_ns = parse_duration(text, what="--interval")
    if not 0 < interval_ns <= 86400 * 10**9:
        raise UsageError(f"--interval {text!r}: accepted: from a part of a second to a day, such as 10s")
    return interval_ns


def parse_date_order(text: str) -> Order:
    """The order of day and month.

    Raises
    ------
    UsageError
        It is none.
    """
    found = next((order for order in ORDERS if order == text), None)
    if found is None:
        raise UsageError(f"--date-order {text!r}: accepted: {', '.join(ORDERS)}")
    return found


def parse_roles(texts: Sequence[str]) -> dict[str, str]:
    """Roles by the name of a device, of `data=D:`.

    Raises
    ------
    UsageError
        A role is unknown, or a name is given twice.

    Examples
    --------
    >>> parse_roles(["data=D:", "log=sdb"])
    {'D:': 'data', 'sdb': 'log'}
    """
    roles: dict[str, str] = {}
    for text in texts:
        role, mark, name = text.partition("=")
        if not mark or not name or role not in ROLES:
            raise UsageError(f"--volume {text!r}: accepted: ROLE=NAME, of {', '.join(ROLES)}: data=D:, log=sdb")
        if name in roles:
            raise UsageError(f"--volume {text!r}: {name} has a role already")
        roles[name] = role
    return roles


def lines_of(recording: Mapping[str, Any]) -> list[str]:
    """What a recording took and what it left out, for people."""
    lines = []
    for one in recording["files"]:
        lines.append(f"{one['path']}: {one['format']}: {one['rows']:,} values of {', '.join(one['hosts'])}")
        lines.append(f"  from {_at(one['from_utc_ns'])} to {_at(one['to_utc_ns'])}")
        lines += lines_of_names("counter", one["counters"], one["ignored"], one["not_understood"])
        values = one["values"]
        lines.append(
            f"  of {sum(values.values()):,} values of the file: {values['taken']:,} taken, {values['left_out']:,} left"
            f" out, {values['not_understood']:,} not understood"
        )
    return lines


def lines_of_names(
    noun: str, taken: Mapping[str, str], ignored: Mapping[str, str], unread: Mapping[str, str] | None = None
) -> list[str]:
    """Names of a file that were taken, those that were left out with their reasons, and those not understood."""
    reasons: dict[str, list[str]] = {}
    for name, reason in ignored.items():
        reasons.setdefault(reason, []).append(name)
    found = [f"  took {count_of(len(taken), noun)}: {_some(sorted(taken))}"]
    found += [f"  left out {len(names)}, {reason}: {_some(names)}" for reason, names in reasons.items()]
    if unread:
        shown = [f"{name} ({example!r})" for name, example in unread.items()]
        found.append(f"  did not understand {len(unread)}: {_some(shown)}")
    return found


def _some(names: Sequence[str]) -> str:
    shown = "; ".join(names[:6])
    return shown + (f"; and {len(names) - 6} more" if len(names) > 6 else "")


def _at(t_ns: int | None) -> str:
    return at_text(t_ns) if t_ns is not None else "-"

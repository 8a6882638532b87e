"""What a recording says of itself: what each file of other tools gave. And what the user says of the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.base.errors import UsageError
from assay.base.paths import plain, printable
from assay.base.units import count_of
from assay.targets.files.spec import ROLES
from assay.telemetry.importers.importer import TakenFile, at_text


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
        lines += lines_of_names("counter", one["counters"], one["ignored"])
    return lines


def lines_of_names(noun: str, taken: Mapping[str, str], ignored: Mapping[str, str]) -> list[str]:
    """Names of a file that were taken, and those that were left out with their reasons."""
    reasons: dict[str, list[str]] = {}
    for name, reason in ignored.items():
        reasons.setdefault(reason, []).append(name)
    found = [f"  took {count_of(len(taken), noun)}: {_some(sorted(taken))}"]
    return found + [f"  left out {len(names)}, {reason}: {_some(names)}" for reason, names in reasons.items()]


def _some(names: Sequence[str]) -> str:
    shown = "; ".join(names[:6])
    return shown + (f"; and {len(names) - 6} more" if len(names) > 6 else "")


def _at(t_ns: int | None) -> str:
    return at_text(t_ns) if t_ns is not None else "-"

"""The zone of files that say none."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from assay.telemetry.importers.importer import Options
from assay.telemetry.importers.taken import TakenFile


def zone_assumed(options: Options, taken: TakenFile, why: str = "the file says no time zone") -> timezone:
    """The zone of a file that says none: the one that was given, else this machine's."""
    given = options.zone_s
    if given is not None:
        return timezone(timedelta(seconds=given))
    here = datetime.now().astimezone().utcoffset() or timedelta()
    taken.note(f"{why}; that of this machine is assumed ({zone_text(here)}): say --zone +HH:MM")
    return timezone(here)


def zone_text(offset: timedelta) -> str:
    """An offset as people write it.

    Examples
    --------
    >>> zone_text(timedelta(hours=-5)), zone_text(timedelta(hours=5, minutes=30))
    ('UTC-05:00', 'UTC+05:30')
    """
    minutes = round(offset.total_seconds() / 60)
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"

"""What a drive's health means for a run: what grew while it went on, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from assay.base.units import count_of
from assay.record.drives import Drive, DriveHealth

AMPLIFIED_BYTES = 10 * 10**9
"""Bytes a host has to write before the ratio to those on flash says anything: drives count in units of megabytes."""
STATUSES_NAMED = 3


class DriveNote(NamedTuple):
    """What must be said of drives, and how bad it is."""

    text: str
    tone: Literal["bad", "warn", "plain"]


def grown(before: DriveHealth | None, after: DriveHealth | None, key: str) -> float | int | None:
    """How much a counter grew; None where it is not known, or went back, as at another drive.

    Examples
    --------
    >>> grown({"media_errors": 2}, {"media_errors": 5}, "media_errors"), grown({}, {"media_errors": 5}, "media_errors")
    (3, None)
    """
    was, now = (before or {}).get(key), (after or {}).get(key)
    if not isinstance(was, int | float) or not isinstance(now, int | float):
        return None
    return now - was if now >= was else None


def latest(drive: Drive) -> DriveHealth:
    """The health of a drive when it was looked at last."""
    return drive.get("after") or drive.get("before") or {}


def write_amplification(drive: Drive) -> tuple[float, bool] | None:
    """Bytes written to flash for each one of the host, and whether of the run alone; None where the drive tells none.

    Of a run that wrote little it is that of the drive's life.
    """
    before, after = drive.get("before"), drive.get("after")
    host, flash = (grown(before, after, key) for key in ("host_written_bytes", "nand_written_bytes"))
    if host is not None and flash is not None and host >= AMPLIFIED_BYTES:
        return flash / host, True
    now = latest(drive)
    all_host, all_flash = now.get("host_written_bytes"), now.get("nand_written_bytes")
    if not all_host or not all_flash or all_host < AMPLIFIED_BYTES:
        return None
    return all_flash / all_host, False


def named(drive: Drive) -> str:
    """A drive by its name and model."""
    return f"{drive['name']} ({model})" if (model := drive.get("model")) else drive["name"]


def notes_of(drives: Sequence[Drive]) -> list[DriveNote]:
    """What a reader of a run must know of its drives."""
    found = [note for drive in drives for note in _notes(drive)]
    reasons: dict[str, list[str]] = {}
    for drive in drives:
        if reason := drive.get("unread"):
            reasons.setdefault(reason.replace(drive["name"], "it"), []).append(drive["name"])
    for reason, names in reasons.items():
        found.append(DriveNote(f"health of {', '.join(names)}: not known, since {reason}", "plain"))
    return found


def _notes(drive: Drive) -> Iterator[DriveNote]:
    name, before, after = named(drive), drive.get("before"), drive.get("after")
    yield from _of_heat(drive)
    line = next((f", first: {line}" for line in drive.get("kernel_lines") or []), "")
    if resets := drive.get("resets"):
        times = count_of(resets, "time")
        yield DriveNote(f"{name} was reset or did not answer {times} while it was measured (kernel's log{line})", "bad")
    elif failed := drive.get("io_errors"):
        yield DriveNote(f"{name}: {count_of(failed, 'failed I/O')} while it was measured (kernel's log{line})", "bad")
    if media := grown(before, after, "media_errors"):
        yield DriveNote(f"{name}: {count_of(int(media), 'media error')} while it was measured: it lost data", "bad")
    if logged := grown(before, after, "error_log_entries"):
        statuses = _statuses(drive, before)
        words = f": {statuses}" if statuses else ""
        yield DriveNote(f"{name}: its error log grew by {int(logged):,} while it was measured{words}", "warn")
    if links := grown(before, after, "link_errors"):
        yield DriveNote(f"{name}: {count_of(int(links), 'error')} of its link: see its cable", "warn")
    if warnings := latest(drive).get("critical_warnings"):
        yield DriveNote(f"{name} warns: {', '.join(warnings)}", "bad")


def _of_heat(drive: Drive) -> Iterator[DriveNote]:
    watched = drive.get("points_watched") or []
    throttled, hot = drive.get("points_throttled") or [], drive.get("points_hot") or []
    top, warning = drive.get("temperature_max_celsius"), drive.get("warning_celsius")
    at = f"was at up to {top:.0f} degrees and " if top is not None else ""
    if throttled:
        yield DriveNote(
            f"{named(drive)} {at}throttled in {len(throttled)} of {len(watched)} points ({_ids(throttled)}): these"
            " show it slower than it is when cool",
            "warn",
        )
    elif hot:
        of = f" of {warning:.0f}" if warning is not None else ""
        yield DriveNote(
            f"{named(drive)} {at}above its warning temperature{of} in {len(hot)} of {len(watched)} points"
            f" ({_ids(hot)}): it may have throttled there",
            "warn",
        )


def _ids(points: Sequence[str]) -> str:
    shown = ", ".join(points[:6])
    return f"{shown} and {count_of(len(points) - 6, 'more')}" if len(points) > 6 else shown


def _statuses(drive: Drive, before: DriveHealth | None) -> str:
    """Statuses of the newest entries of the error log, each once."""
    first = (before or {}).get("error_log_entries") or 0
    fresh: Iterable[Mapping[str, object]] = drive.get("errors") or []
    found = dict.fromkeys(
        str(one["status"]) for one in fresh if one.get("status") and _number(one.get("number")) > first
    )
    return ", ".join([*found][:STATUSES_NAMED])


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0

"""Drives beneath the target: what they are, and what they said of their health before a run and after it."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import format_bytes
from assay.document.elements import Block, Cell, Column, Table
from assay.document.text import DASH, percent
from assay.record.drive_health import latest, write_amplification
from assay.record.shapes.drive import Drive, DriveLink


def drive_blocks(drives: Sequence[Drive]) -> list[Block]:
    """Health and facts of drives; nothing where none says anything."""
    if not drives:
        return []
    health = (
        "Drives: health at the end of the run. Temperature: at its beginning and the highest; amplification: bytes"
        " written to flash for each of the host."
    )
    facts = (
        "Drives: what they are. Atomic: bytes that the kernel writes in one piece, and those that the drive keeps whole"
        " at a power cut."
    )
    return [
        Table("drives-health", health, _HEALTH, [_health(drive) for drive in drives]),
        Table("drives", facts, _FACTS, [_facts(drive) for drive in drives]),
    ]


_HEALTH = [
    Column("Drive", weight=1.2), Column("Temperature", number=True, weight=1.3), Column("Throttled in", weight=1.4),
    Column("Wear", number=True, weight=0.8), Column("Spare", number=True, weight=0.8),
    Column("Media errors", number=True, weight=0.9), Column("Error log", number=True, weight=0.8),
    Column("Unsafe shutdowns", number=True, weight=1.4), Column("Written", number=True, weight=1.2),
    Column("Amplification", number=True, weight=1.6), Column("Warnings", weight=1.5),
]  # fmt: skip
_FACTS = [
    Column("Drive", weight=1.2), Column("Model", weight=2.2), Column("Firmware", weight=1.3), Column("Link", weight=2),
    Column("Write cache", weight=1.6), Column("Block", weight=1.5), Column("Atomic", weight=1.5),
    Column("Warns at", number=True, weight=0.9), Column("Told by", weight=1.2),
]  # fmt: skip


def _health(drive: Drive) -> list[Cell]:
    now, watched = latest(drive), drive.get("points_watched") or []
    begun, top = (drive.get("before") or {}).get("temperature_celsius"), drive.get("temperature_max_celsius")
    degrees = [f"{one:.0f}" for one in dict.fromkeys((begun, top)) if one is not None]
    throttled = f"{len(drive.get('points_throttled') or [])} of {len(watched)} points" if watched else DASH
    if now.get("throttles") is None and now.get("throttled_s") is None:
        throttled = DASH
    amplified = write_amplification(drive)
    warnings = now.get("critical_warnings")
    return [
        Cell(drive["name"]),
        Cell(f"{' to '.join(degrees)} C" if degrees else DASH),
        Cell(throttled, "warn" if drive.get("points_throttled") else "plain"),
        Cell(_share(now.get("wear_share"))),
        Cell(_share(now.get("spare_share"))),
        Cell(_count(now.get("media_errors"))),
        Cell(_count(now.get("error_log_entries"))),
        Cell(_count(now.get("unsafe_shutdowns"))),
        Cell(DASH if (written := now.get("host_written_bytes")) is None else format_bytes(written)),
        Cell(DASH if amplified is None else f"{amplified[0]:.2f}{'' if amplified[1] else ' (its life)'}"),
        Cell(DASH if warnings is None else ", ".join(warnings) or "none", "bad" if warnings else "plain"),
    ]


def _facts(drive: Drive) -> list[Cell]:
    used = next((one for one in drive.get("formats") or [] if one.get("in_use")), None)
    others = len(drive.get("formats") or []) - 1
    block = DASH if used is None else format_bytes(used.get("block_bytes") or 0)
    if used is not None and used.get("metadata_bytes"):
        block += f" + {used['metadata_bytes']} bytes"
    atomic = drive.get("atomic_writes") or {}
    whole = [format_bytes(one) for one in (atomic.get("unit_max_bytes"), atomic.get("power_fail_bytes")) if one]
    warning = drive.get("warning_celsius")
    return [
        Cell(drive["name"]),
        Cell(drive.get("model") or DASH),
        Cell(drive.get("firmware") or DASH),
        Cell(link_words(drive.get("link") or {})),
        Cell(cache_words(drive)),
        Cell(block + (f" (of {others + 1} formats)" if used is not None and others > 0 else "")),
        Cell(" / ".join(whole) or DASH),
        Cell(DASH if warning is None else f"{warning:.0f} C"),
        Cell(drive.get("told_by") or DASH),
    ]


def link_words(link: DriveLink) -> str:
    """A link in words, and what the drive can where that is more."""
    return _link(link.get("transfers_per_s"), link.get("lanes")) + (
        f" of {_link(link.get('transfers_per_s_max'), link.get('lanes_max'))}" if is_below(link) else ""
    )


def is_below(link: DriveLink) -> bool:
    """Whether a link runs slower or narrower than the drive can."""
    pairs = ((link.get("transfers_per_s"), link.get("transfers_per_s_max")), (link.get("lanes"), link.get("lanes_max")))
    return any(now is not None and most is not None and now < most for now, most in pairs)


def _link(transfers_per_s: float | None, lanes: int | None) -> str:
    if transfers_per_s is None:
        return DASH
    return f"{transfers_per_s / 1e9:g} GT/s" + (f" x{lanes}" if lanes is not None else "")


def cache_words(drive: Drive) -> str:
    """The write cache of a drive: volatile, protected, or not told."""
    if drive.get("power_loss_protection"):
        return "kept at a power cut"
    volatile = drive.get("volatile_write_cache")
    return DASH if volatile is None else "volatile" if volatile else "off"


def _share(value: float | None) -> str:
    return DASH if value is None else percent(value)


def _count(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"

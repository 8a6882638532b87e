"""Needs and recordings that several tests of sizing use."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.insight.sizing.need import Need, need_of
from assay.record.run_folder import RunFolder
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter

START_NS = 1_800_000_000 * 10**9 // (3600 * 10**9) * 3600 * 10**9
"""The beginning of an hour."""


def need(database: dict[str, Any] | None = None, **others: Any) -> Need:
    """A need of one database, on one array whose sizes go up to six members."""
    table: dict[str, Any] = {
        "years": 0,
        "database": [{"name": "orders", "size": "200GB", "iops": 2000, "log": "10%", **(database or {})}],
        "candidate": [{"array": "ps6100xv", "raid": ["10"], "members": [1, 6]}],
        **others,
    }
    return need_of(table, "test")


def recording(path: Path, *, seconds: int, every_s: int = 60, rate: Callable[[int], float] = lambda _: 1000.0) -> Path:
    """A flight recording of a data disk with a rate by second, and of a log disk with a tenth of its writes."""
    told = {"hosts": ["db1"], "from_utc_ns": START_NS, "to_utc_ns": START_NS + seconds * 10**9, "notices": []}
    manifest = {"recording": told, "parts": [], "answers": [], "verdict": []}
    with (
        RunFolder.create_at(path, "record", manifest) as folder,
        FlightWriter(path, keep_bytes=64 << 20, host="db1") as writer,
    ):
        writer.begin({"host": "db1"})
        for at_s in range(every_s, seconds + 1, every_s):
            ios = rate(at_s) * every_s
            devices = [
                *_device("sda", "data", reads=0.7 * ios, writes=0.3 * ios, size=8192),
                *_device("sdb", "log", reads=0.0, writes=0.1 * ios, size=16384),
            ]
            used = [Reading("/data", "used_bytes", "gauge", 300e9)]
            t_ns = START_NS + at_s * 10**9
            for source, readings in (("block", devices), ("volume", used)):
                writer.add(readings, t_ns=t_ns, interval_ns=every_s * 10**9, tier="storage", source=source)
        writer.commit()
        folder.update(status="done")
    return path


def _device(name: str, role: str, *, reads: float, writes: float, size: int) -> list[Reading]:
    return [
        Reading(name, "read_ios_count", "delta", reads, role),
        Reading(name, "write_ios_count", "delta", writes, role),
        Reading(name, "read_bytes", "delta", reads * size, role),
        Reading(name, "write_bytes", "delta", writes * size, role),
    ]


def of_the_day(at_s: int) -> float:
    """A load that is high from 10 to 12 hours after the beginning of each day, and low otherwise."""
    hour = (at_s - 1) // 3600 % 24
    return (3000.0 if hour in (10, 11) else 200.0) * (1 + 0.05 * math.sin(at_s))

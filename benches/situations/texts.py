"""Texts as engineers attach them to a ticket: iostat, pgbench's progress, Perfmon; made on purpose, with noise."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

Number = float | Callable[[int, random.Random], float]
"""A value, or how it goes with the number of the sample."""

Device = Mapping[str, Number]
"""Values of a device by iostat's columns; those left out are 0."""

BEGIN = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)

COLUMNS = ("r/s", "rkB/s", "rrqm/s", "%rrqm", "r_await", "rareq-sz", "w/s", "wkB/s", "wrqm/s", "%wrqm", "w_await",
           "wareq-sz", "f/s", "f_await", "aqu-sz", "%util")  # fmt: skip

PROCESSORS = ("%user", "%nice", "%system", "%iowait", "%steal", "%idle")

NOISE = 0.05
"""Values vary by this share, as no counter of a real machine stands still."""


def value_of(given: Number, number: int, drawn: random.Random) -> float:
    """A value of a sample, with noise where it is a plain number."""
    if callable(given):
        return given(number, drawn)
    return given * (1 + drawn.uniform(-NOISE, NOISE))


def iostat(
    devices: Mapping[str, Device],
    processors: Mapping[str, Number] | None = None,
    *,
    samples: int = 120,
    step_s: int = 5,
    seed: int = 1,
    begin: datetime = BEGIN,
) -> Callable[[Path], list[str]]:
    """What `S_TIME_FORMAT=ISO iostat -xt STEP` prints."""

    def made(folder: Path) -> list[str]:
        drawn = random.Random(seed)
        lines = ["Linux 6.8.0 (db1) \t11/20/2026 \t_x86_64_\t(8 CPU)", ""]
        for number in range(samples + 1):
            lines.append((begin + timedelta(seconds=number * step_s)).strftime("%Y-%m-%dT%H:%M:%S+0000"))
            shares = {"%user": 8.0, "%system": 2.0} | dict(processors or {})
            told = {name: value_of(shares.get(name, 0.0), number, drawn) for name in PROCESSORS[:-1]}
            told["%idle"] = max(100.0 - sum(told.values()), 0.0)
            lines += ["avg-cpu:  " + " ".join(f"{name:>7}" for name in PROCESSORS)]
            lines += ["          " + " ".join(f"{told[name]:7.2f}" for name in PROCESSORS), ""]
            lines.append(f"{'Device':<16}" + " ".join(f"{name:>9}" for name in COLUMNS))
            for name, columns in devices.items():
                row = {column: value_of(columns.get(column, 0.0), number, drawn) for column in COLUMNS}
                row["%util"] = min(row["%util"], 100.0)
                lines.append(f"{name:<16}" + " ".join(f"{row[column]:9.2f}" for column in COLUMNS))
            lines.append("")
        path = folder / "iostat.txt"
        path.write_text("\n".join(lines) + "\n")
        return [str(path)]

    return made


def progress(tps: Number, latency_ms: Number, *, samples: int = 600, seed: int = 1) -> Callable[[Path], list[str]]:
    """What `pgbench -P 1 --progress-timestamp` prints."""

    def made(folder: Path) -> list[str]:
        drawn, begin_s = random.Random(seed), int(BEGIN.timestamp())
        lines = ["starting vacuum...end."]
        for number in range(samples):
            rate, late = value_of(tps, number, drawn), value_of(latency_ms, number, drawn)
            lines.append(f"progress: {begin_s + number}.0 s, {rate:.1f} tps, lat {late:.3f} ms stddev 1.1, 0 failed")
        path = folder / "pgbench.txt"
        path.write_text("\n".join(lines) + "\n")
        return [str(path)]

    return made


def during(
    bad: float, good: float, *, every: int, length: int, first: int = 0
) -> Callable[[int, random.Random], float]:
    """A value that is bad for `length` samples of `every`, from a sample on."""

    def value(number: int, drawn: random.Random) -> float:
        is_bad = number >= first and (number - first) % every < length
        return (bad if is_bad else good) * (1 + drawn.uniform(-NOISE, NOISE))

    return value


def once(bad: float, good: float, *, begin: int, length: int) -> Callable[[int, random.Random], float]:
    """A value that is bad once."""
    return during(bad, good, every=10**9, length=length, first=begin)


FLASH: Device = {
    "r/s": 900,
    "rkB/s": 7200,
    "r_await": 0.4,
    "w/s": 400,
    "wkB/s": 6400,
    "w_await": 0.6,
    "aqu-sz": 0.6,
    "%util": 22,
}
"""A device that is well."""

SYSTEM_DISK: Device = {"w/s": 4, "wkB/s": 60, "w_await": 1.1, "aqu-sz": 0.01, "%util": 0.4}

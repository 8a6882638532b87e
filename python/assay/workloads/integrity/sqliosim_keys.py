"""Keys of SQLIOSim's configuration file: how each is read, where it goes in a plan, and SQLIOSim's default.

Ratios and percentages are hundredths of a percent, sizes are MB of 2**20 bytes, delays milliseconds, durations seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.base.units import format_bytes, format_duration
from assay.workloads.integrity.plan import DATA_MAX_BYTES

MB = 1 << 20

SettingValue = bool | int | float | str
"""What a key becomes: a flag, a number in plain units, or a text."""


@dataclass(frozen=True)
class Number:
    """A whole number: what is accepted, what it becomes and how that is shown."""

    accepted: str
    least: int
    most: int
    convert: Callable[[int], int | float]
    show: Callable[[Any], str]

    def read(self, text: str) -> int | float:
        """The value in plain units; ValueError with what is accepted."""
        number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None
        if number is None or not self.least <= number <= self.most:
            raise ValueError(f"a whole number, {self.least} to {self.most} ({self.accepted})")
        return self.convert(number)


@dataclass(frozen=True)
class Flag:
    """TRUE or FALSE, in any case."""

    def read(self, text: str) -> bool:
        """The value; ValueError with what is accepted."""
        flags = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        if text.lower() not in flags:
            raise ValueError("TRUE or FALSE")
        return flags[text.lower()]

    def show(self, value: SettingValue) -> str:
        """`yes` or `no`."""
        return "yes" if value else "no"


@dataclass(frozen=True)
class Text:
    """Text that matches a pattern."""

    accepted: str
    pattern: str

    def read(self, text: str) -> str:
        """The text; ValueError with what is accepted."""
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(self.accepted)
        return text

    def show(self, value: SettingValue) -> str:
        """The text."""
        return str(value)


def _shown_seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:g} ms"
    return f"{seconds:g} s" if seconds < 60 or seconds % 1 else format_duration(seconds)


def _count(unit: str, least: int = 0, most: int = 1 << 20) -> Number:
    """A count. SQLIOSim accepts 0 of most; the least that does anything is one."""
    return Number(f"{unit}s", least, most, lambda n: max(n, 1), lambda n: f"{n} {unit}{'' if n == 1 else 's'}")


def _megabytes(least: int, most: int, accepted: str = "MB") -> Number:
    return Number(accepted, least, most, lambda n: n * MB, format_bytes)


_YEAR_S = 366 * 86400
_FLAG = Flag()
_PERCENT = Number(
    "hundredths of a percent: 10000 is 100 %", 0, 10_000, lambda n: n / 10_000, lambda share: f"{share * 100:g} %"
)
_MILLISECONDS = Number("milliseconds", 0, _YEAR_S * 1000, lambda n: n / 1000, _shown_seconds)
_SECONDS = Number("seconds", 0, _YEAR_S, float, _shown_seconds)
_USERS = Number(
    "users, -1 chooses", -1, 10_000, int, lambda n: "by the number of CPUs" if n == -1 else _count("user").show(n)
)
_CYCLES = _count("cycle")
_PAGES = _count("page")
_LOG_BYTES = Number("bytes", 1, 64_000, int, lambda n: f"{n} bytes")
_FILE_SIZE = _megabytes(1, DATA_MAX_BYTES // MB, "MB; 32 TiB at most, as page numbers have 32 bits")
_INCREMENT = _megabytes(0, DATA_MAX_BYTES // MB)
_PLAIN = Number("a number", 0, 10**15, int, str)
_MASK = Text("a mask, decimal or hexadecimal (0x3)", r"0[xX][0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True)
class Setting:
    """A key of a section.

    Parameters
    ----------
    field
        Key of the plan, or empty where it has no effect here.
    kind
        How it is read.
    default
        SQLIOSim's, written as in a configuration; None where there is none, or the plan has its own.
    without_effect
        Why it has none.
    if_missing
        What happens without it, where there is no default.
    """

    field: str
    kind: Number | Flag | Text
    default: str | None = None
    without_effect: str = ""
    if_missing: str = ""


_CPU_WORK = "users imitate I/O, not the work of a CPU"
_STAMPED = "space is reserved when a file grows, and every new page is written before it is read"
_PINNING = "users are not bound to processors; taskset binds the whole command"

SECTIONS: dict[str, dict[str, Setting]] = {
    "CONFIG": {
        "ErrorFile": Setting("", Text("a file name", r".+"), None, "the error log is errors.xml in the run folder"),
        "CPUCount": Setting("", _PLAIN, None, "users share the processors of this machine"),
        "Affinity": Setting("", _MASK, None, _PINNING),
        "IOAffinity": Setting("", _MASK, None, _PINNING),
        "MaxMemoryMB": Setting("memory_bytes", _megabytes(1, 1 << 38), if_missing="a share of the free memory"),
        "StopOnError": Setting("stop_on_error", _FLAG, "TRUE"),
        "TestCycles": Setting(
            "cycles",
            Number(
                "cycles, 0 never ends", 0, 1 << 20, int, lambda n: "until interrupted" if n == 0 else _CYCLES.show(n)
            ),
            "1",
        ),
        "TestCycleDuration": Setting("timing.stress_s", _SECONDS, "300"),
        "CacheHitRatio": Setting("cache_hit_share", _PERCENT, "1000"),
        "NoBuffering": Setting("no_buffering", _FLAG, "TRUE"),
        "WriteThrough": Setting("write_through", _FLAG, "TRUE"),
        "MaxOutstandingIO": Setting(
            "max_outstanding",
            Number("I/Os, 0 chooses", 0, 140_000, int, lambda n: "chosen here" if n == 0 else f"{n} I/Os"),
            "0",
        ),
        "TargetIODuration": Setting(
            "target_io_s", Number("milliseconds", 1, _YEAR_S * 1000, lambda n: n / 1000, _shown_seconds), "100"
        ),
        "AllowIOBursts": Setting("bursts", _FLAG, "TRUE"),
        "UseScatterGather": Setting("scatter_gather", _FLAG, "TRUE"),
        "ForceReadAhead": Setting("force_read_ahead", _FLAG, "TRUE"),
        "DeleteFilesAtStartup": Setting("delete_at_startup", _FLAG, "TRUE"),
        "DeleteFilesAtShutdown": Setting("delete_at_shutdown", _FLAG, "FALSE"),
        "StampFiles": Setting("", _FLAG, None, _STAMPED),
    },
    "RandomUser": {
        "UserCount": Setting("random.users", _USERS, "-1"),
        "JumpToNewRegionPercentage": Setting("random.jump_share", _PERCENT, "500"),
        "MinIOChainLength": Setting("random.chain_min", _PAGES, "1"),
        "MaxIOChainLength": Setting("random.chain_max", _PAGES, "100"),
        "RandomUserReadWriteRatio": Setting("random.update_share", _PERCENT, "9000"),
        "MinLogPerBuffer": Setting("random.log_bytes_min", _LOG_BYTES, "64"),
        "MaxLogPerBuffer": Setting("random.log_bytes_max", _LOG_BYTES, "8192"),
        "RollbackChance": Setting("random.rollback_share", _PERCENT, "100"),
        "SleepAfter": Setting("random.sleep_s", _MILLISECONDS, "5"),
        "YieldPercentage": Setting("", _PERCENT, None, _CPU_WORK),
        "CPUSimulation": Setting("", _FLAG, None, _CPU_WORK),
        "CPUCyclesMin": Setting("", _PLAIN, None, _CPU_WORK),
        "CPUCyclesMax": Setting("", _PLAIN, None, _CPU_WORK),
    },
    "AuditUser": {
        "UserCount": Setting("audit.users", _USERS, "2"),
        "BuffersValidated": Setting("audit.pages", _PAGES, "64"),
        "DelayAfterCycles": Setting("audit.delay_after_cycles", _CYCLES, "2"),
        "AuditDelay": Setting("audit.delay_s", _MILLISECONDS, "200"),
    },
    "ReadAheadUser": {
        "UserCount": Setting("read_ahead.users", _USERS, "2"),
        "BuffersRAMin": Setting("read_ahead.pages_min", _PAGES, "32"),
        "BuffersRAMax": Setting("read_ahead.pages_max", _PAGES, "64"),
        "DelayAfterCycles": Setting("read_ahead.delay_after_cycles", _CYCLES, "2"),
        "RADelay": Setting("read_ahead.delay_s", _MILLISECONDS, "200"),
    },
    "BulkUpdateUser": {
        "UserCount": Setting("bulk_update.users", _USERS, "-1"),
        "BuffersBUMin": Setting("bulk_update.pages_min", _PAGES, "64"),
        "BuffersBUMax": Setting("bulk_update.pages_max", _PAGES, "128"),
        "DelayAfterCycles": Setting("bulk_update.delay_after_cycles", _CYCLES, "2"),
        "BUDelay": Setting("bulk_update.delay_s", _MILLISECONDS, "10"),
    },
    "ShrinkUser": {
        "MinShrinkInterval": Setting("shrink.interval_min_s", _SECONDS, "120"),
        "MaxShrinkInterval": Setting("shrink.interval_max_s", _SECONDS, "600"),
        "MinExtends": Setting("shrink.extents_min", _count("increment"), "1"),
        "MaxExtends": Setting("shrink.extents_max", _count("increment", least=1), "20"),
    },
}

FILE: dict[str, Setting] = {
    "InitialSize": Setting("size_bytes", _FILE_SIZE),
    "MaxSize": Setting("max_bytes", _FILE_SIZE, if_missing="the file never grows beyond InitialSize"),
    "Increment": Setting("increment_bytes", _INCREMENT, "0"),
    "Shrinkable": Setting("shrinkable", _FLAG, "FALSE"),
    "Sparse": Setting("sparse", _FLAG, "FALSE"),
    "LogFile": Setting("log", _FLAG, "FALSE"),
}
"""Keys of `[File1]`, `[File2]`, ... beside `FileName`."""

ALIASES = {"scattergather": "UseScatterGather"}
"""The documentation calls it ScatterGather, the shipped files UseScatterGather."""

ORDERED = (
    ("RandomUser", "MinIOChainLength", "MaxIOChainLength"),
    ("RandomUser", "MinLogPerBuffer", "MaxLogPerBuffer"),
    ("ReadAheadUser", "BuffersRAMin", "BuffersRAMax"),
    ("BulkUpdateUser", "BuffersBUMin", "BuffersBUMax"),
    ("ShrinkUser", "MinShrinkInterval", "MaxShrinkInterval"),
    ("ShrinkUser", "MinExtends", "MaxExtends"),
)
"""Pairs of which the first is not above the second: section, least, most."""

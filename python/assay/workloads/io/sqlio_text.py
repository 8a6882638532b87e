"""The classic text output of `sqlio`, which scripts have parsed for twenty years.

Parsers split a file of many runs on `sqlio v1.5.SG` and find values by the prefixes of the lines, so order, prefixes
and columns are an interface. Numbers follow published outputs: rates and latencies are cut off, not rounded (3,434.19
I/Os of 8 KB per second are printed as 26.82 MBs/sec, and their 16 outstanding, hence 4.66 ms, as 4), and only the
shares of the histogram are rounded, as the readme of version 1.5 says. MB means 2**20 bytes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Protocol

from assay.workloads.io.sqlio import ParamLine, SqlioCommand

if TYPE_CHECKING:
    from assay.record.shapes.point import Point

VERSION_LINE = "sqlio v1.5.SG"
"""First line of every run; parsers split on it."""
HISTOGRAM_COLUMNS = 25
"""0 to 23 ms in steps of 1 ms, and one column for 24 ms and more."""

_BUFFERING_TEXT = {
    "N": "not use file nor disk caches (as is SQL Server)",
    "Y": "use both file and disk caches",
    "H": "use hardware disk cache (but not file cache)",
    "S": "use software file cache (but not disk cache)",
}


class LatencyHistogram(Protocol):
    """The part of `assay._core.Histogram` that the output needs; values in nanoseconds."""

    @property
    def count(self) -> int:
        """Number of I/Os."""

    @property
    def min(self) -> int:
        """Smallest latency."""

    @property
    def mean(self) -> float:
        """Mean latency."""

    @property
    def max(self) -> int:
        """Largest latency."""

    def bins(self) -> list[tuple[int, int]]:
        """Return latency and count of every bin."""


@dataclass(frozen=True)
class FileSize:
    """Size of one file: `grown_from_bytes` is its size before it was laid out, None where it was large enough."""

    path: str
    size_bytes: int
    grown_from_bytes: int | None = None


@dataclass(frozen=True)
class CpuUtilization:
    """Rows of the `-U` table, in percent; None where the system does not count it.

    Every tuple has the mean over all processors first, then (for `-Up`) one value per processor.
    """

    privileged_percent: tuple[float, ...]
    processor_percent: tuple[float, ...]
    user_percent: tuple[float, ...]
    interrupt_percent: tuple[float, ...] | None = None
    interrupts_per_s: tuple[float, ...] | None = None


@dataclass(frozen=True)
class SqlioMeasurements:
    """What was measured for one classic command.

    Parameters
    ----------
    iops, bytes_per_s
        Over the time that really passed, as the classic program does after Ctrl-C.
    latency
        Histogram of all I/Os; None when no I/O completed.
    file_sizes
        One entry per file, in the order of the command.
    counter_hz
        Ticks of the latency clock per second: 10**9 for a nanosecond clock.
    initiation_us
        Smallest, mean and largest time to start an I/O; None where it was not measured.
    cpu
        For `-U`; None where it was not measured.
    """

    iops: float
    bytes_per_s: float
    latency: LatencyHistogram | None
    file_sizes: tuple[FileSize, ...] = ()
    counter_hz: int = 10**9
    initiation_us: tuple[float, float, float] | None = None
    cpu: CpuUtilization | None = None


def measurements_from_point(
    point: Point, *, file_sizes: Sequence[FileSize], cpu: CpuUtilization | None = None
) -> SqlioMeasurements:
    """Take the measurements from one point of a run (see docs/results.md).

    Parameters
    ----------
    point
        A point whose `total` holds all I/Os: classic commands only read or only write.
    file_sizes
        Sizes of the command's files, in its order.
    """
    from assay._core import Histogram

    total = point["total"]
    if total is None:
        return SqlioMeasurements(0.0, 0.0, None, tuple(file_sizes), cpu=cpu)
    text = total["histogram"]
    histogram = Histogram.from_base64(text) if text is not None else None
    return SqlioMeasurements(total["iops"], total["bytes_per_s"], histogram, tuple(file_sizes), cpu=cpu)


def format_sqlio(command: SqlioCommand, measurements: SqlioMeasurements) -> str:
    """Return the classic output of one run, ending with a line feed.

    Raises
    ------
    UsageError
        The command names a parameter file whose lines are not known.
    """
    lines = [VERSION_LINE, *_heading(command, measurements), *_sizes(command, measurements), "initialization done"]
    lines += ["CUMULATIVE DATA:", "throughput metrics:"]
    lines.append(f"IOs/sec: {_cut(measurements.iops, 2):>8}")
    lines.append(f"MBs/sec: {_cut(Decimal(repr(measurements.bytes_per_s)) / 2**20, 2):>8}")
    if command.latency_timer is not None:
        lines += _latency(command, measurements)
    if command.utilization is not None and measurements.cpu is not None:
        lines += _utilization(command, measurements.cpu)
    return "\n".join(lines) + "\n"


def _heading(command: SqlioCommand, measurements: SqlioMeasurements) -> list[str]:
    lines = []
    if command.latency_timer is not None:
        timer = "system" if command.latency_timer == "system" else "processor"
        lines.append(f"using {timer} counter for latency timings, {measurements.counter_hz} counts per second")
    pools = command.pools
    if command.param_file is not None:
        lines.append(f"parameter file used: {command.param_file}")
        lines += _pool_lines(pools)
    threads = sum(pool.threads for pool in pools) if command.param_file is not None else command.threads
    direction = "reading for {} secs from" if command.operation == "read" else "writing for {} secs to"
    lines.append(f"{_threads(threads)} {direction.format(command.duration_s)} {_file_list(pools)}")
    block_kb = command.block_bytes // 1024
    if command.access == "stride":
        stripe_kb = command.stripe_blocks * block_kb
        lines.append(f"\tusing {block_kb}KB IOs over {stripe_kb}KB stripes with {command.ios_per_run} IOs per run")
    else:
        lines.append(f"\tusing {block_kb}KB {command.access} IOs")
    if command.start_block:
        lines.append(f"\tstarting IOs {command.start_block} blocks into file")
    if command.outstanding is not None:
        lines.append(f"\tenabling multiple I/Os per thread with {command.outstanding} outstanding")
    if command.buffering_given:
        lines.append(f"\tbuffering set to {_BUFFERING_TEXT[command.buffering]}")
    return lines


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _pool_lines(pools: Sequence[ParamLine]) -> list[str]:
    lines, first = [], 0
    for pool in pools:
        last = first + pool.threads - 1
        numbers = f"{first}" if first == last else f"{first}-{last}"
        mask = f"0x{pool.mask:x} ({pool.mask})"
        lines.append(f"\tfile {pool.path} with {_threads(pool.threads)} ({numbers}) using mask {mask}")
        first = last + 1
    return lines


def _file_list(pools: Sequence[ParamLine]) -> str:
    paths = list(dict.fromkeys(pool.path for pool in pools))
    if len(paths) == 1:
        return f"file {paths[0]}"
    return f"files {', '.join(paths[:-1])} and {paths[-1]}"


def _sizes(command: SqlioCommand, measurements: SqlioMeasurements) -> list[str]:
    specified = {pool.path for pool in command.pools if pool.size_bytes is not None}
    lines = []
    for file in measurements.file_sizes:
        if file.grown_from_bytes is not None:
            lines += [
                f"size of file {file.path} needs to be: {file.size_bytes} bytes",
                f"current file size:\t{file.grown_from_bytes} bytes",
                f"need to expand by:\t{file.size_bytes - file.grown_from_bytes} bytes",
                f"expanding {file.path} ... done.",
            ]
        # A stride touches a span of its own choice, so the classic program has no size to tell there.
        if command.access != "stride":
            which = "specified" if file.path in specified else "current"
            lines.append(f"using {which} size: {file.size_bytes // 2**20} MB for file: {file.path}")
    return lines


def _latency(command: SqlioCommand, measurements: SqlioMeasurements) -> list[str]:
    lines = ["latency metrics:"]
    if command.initiation_latency and measurements.initiation_us is not None:
        for name, value in zip(("Min", "Avg", "Max"), measurements.initiation_us, strict=True):
            lines.append(f"{name}_Init_Latency(us): {_cut(value, 0)}")
    latency = measurements.latency
    values = (latency.min, latency.mean, latency.max) if latency is not None and latency.count else (0, 0.0, 0)
    for name, value in zip(("Min", "Avg", "Max"), values, strict=True):
        lines.append(f"{name}_Latency(ms): {_cut(Decimal(repr(value)) / 10**6, 0)}")
    titles = [f"{ms:3d}" for ms in range(HISTOGRAM_COLUMNS - 1)] + [" 24+"]
    # The first title is one narrower, so that both rows end in the same column after `ms:` and `%:`.
    lines += ["histogram:", "ms:" + titles[0][1:] + "".join(titles[1:])]
    shares = histogram_percent(latency) if latency is not None else [0] * HISTOGRAM_COLUMNS
    lines.append("%:" + "".join(f"{share:3d}" for share in shares))
    return lines


def histogram_percent(latency: LatencyHistogram) -> list[int]:
    """Return the share of I/Os per millisecond in whole percent, 25 columns; rounding may keep the sum off 100.

    An I/O of 1.9 ms counts in column 1; column 24 takes everything from 24 ms on.
    """
    counts = [0] * HISTOGRAM_COLUMNS
    for latency_ns, count in latency.bins():
        counts[min(latency_ns // 10**6, HISTOGRAM_COLUMNS - 1)] += count
    total = sum(counts)
    if total == 0:
        return counts
    return [int((Decimal(100 * count) / total).quantize(Decimal(1), ROUND_HALF_UP)) for count in counts]


def _utilization(command: SqlioCommand, cpu: CpuUtilization) -> list[str]:
    rows: list[tuple[str, tuple[float, ...] | None]] = [
        ("InterruptTime(%):", cpu.interrupt_percent),
        ("PrivilegedTime(%):", cpu.privileged_percent),
        ("ProcessorTime(%):", cpu.processor_percent),
        ("UserTime(%):", cpu.user_percent),
        ("Interrupts/sec:", cpu.interrupts_per_s),
    ]
    columns = len(cpu.processor_percent) if command.utilization == "per processor" else 1
    names = ["ALL", *map(str, range(columns - 1))]
    lines = [f"{'ProcessorNumber:':<20}" + "".join(f"{name:>9}" for name in names)] if columns > 1 else []
    for title, values in rows:
        if values is not None:
            lines.append(f"{title:<20}" + "".join(f"{value:9.2f}" for value in values[:columns]))
    return lines


def _cut(value: float | Decimal, decimals: int) -> str:
    """Cut a number off after `decimals` digits, in decimal so that 421.88 stays 421.88."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    return str(exact.quantize(Decimal(1).scaleb(-decimals), ROUND_DOWN))

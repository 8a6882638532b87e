"""A line of fio's terse output (`--minimal`, `--output-format=terse`) as a job of the document that its JSON is.

Fields have no names, only places (`stat.c`, `show_thread_status_terse_all`; fio, HOWTO, "Terse output"): five of the
job (four in version 2), 41 of each direction (47 in version 5), then processor time, depths, ranges of latency and
disks. Latencies are microseconds, percentiles whole ones. There are no counts and no options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import amount, whole

SIDE_FIELDS = 41
SIDE_FIELDS_5 = 47
SIDES_MAX = 4

BLOCKS = tuple(2**power for power in range(9, 27))
"""Blocks that are tried against a rate and an amount: 512 bytes to 64 MiB."""

_LINE = re.compile(
    r"(?:(?P<second>2)|(?P<terse>[345]);(?P<version>(?:fio-)?\d[\w.+-]{0,60}));(?P<name>[^;]{0,200});(?P<group>\d{1,9});"
    r"(?P<error>\d{1,9});",
    re.ASCII,
)
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%=(\d{1,18})", re.ASCII)


def is_terse(head: str) -> bool:
    """Whether a text has a line of terse output."""
    return any(_LINE.match(line) is not None and line.count(";") > SIDE_FIELDS for line in head.splitlines()[:1000])


def job_of(line: str, taken: TakenFile) -> tuple[str, dict[str, object]] | None:
    """The version of fio and the job of a line; None for other text."""
    match = _LINE.match(line)
    if match is None or line.count(";") <= SIDE_FIELDS:
        return None
    fields = line[match.end() :].strip().split(";")
    width = SIDE_FIELDS_5 if match["terse"] == "5" else SIDE_FIELDS
    sides: list[Sequence[str]] = []
    while len(sides) < SIDES_MAX and _is_side(fields[:width], width):
        sides.append(fields[:width])
        del fields[:width]
    if not sides:
        return None
    job: dict[str, object] = {
        "jobname": match["name"], "groupid": int(match["group"]), "pid": None, "error": int(match["error"]),
        "job options": None,
    }  # fmt: skip
    for name, side in zip(_names(len(sides), match["terse"]), sides, strict=False):
        job[name] = _side(side, f"{match['name']}: {name}")
        known = sum(not one.startswith("0%") and not one.endswith("%=0") for one in side[12:32])
        if any(one.endswith("%=0") and not one.startswith("0%") for one in side[12:32]) and known:
            taken.note("percentiles below a microsecond are printed as 0 and are left out")
        taken.take("total I/O, IOPS, runtime", "throughput, IOPS, measured_s", 3)
        taken.take("clat, lat mean and max", "mean and longest latency", 4)
        taken.take("percentiles", "percentiles", known)
        taken.ignore("bandwidth", "amount and time say it as well", 1)
        taken.ignore("slat", "submission is part of lat", 4)
        taken.ignore("min, deviation, spread of bandwidth and IOPS", "points have no such figures", width - 12 - known)
    if len(fields) >= 6:
        job |= {"usr_cpu": _share(fields[0]), "sys_cpu": _share(fields[1]), "iodepth_level": {"1": _share(fields[5])}}
        taken.take("cpu usr, sys", "generator.cpu_share", 2)
    taken.ignore("depths, ranges of latency, disks", "points have no such figures", max(len(fields) - 2, 0))
    return (match["version"] or "unknown").removeprefix("fio-"), job


def _is_side(fields: Sequence[str], width: int) -> bool:
    return len(fields) == width and all(_PERCENTILE.fullmatch(one) for one in fields[12:32])


def _names(count: int, version: str | None) -> tuple[str, ...]:
    """Directions of so many groups of fields: with unified_rw_reporting there is one, or one more."""
    if count == 1:
        return ("mixed",)
    if count == 3 and version == "3":
        return ("read", "write", "both")
    return ("read", "write", "trim", "both")[:count]


def _share(text: str) -> float:
    return amount(text.rstrip("%"), "share") or 0.0


def _side(fields: Sequence[str], where: str) -> dict[str, object]:
    timed: dict[str, dict[str, object]] = {}
    for name, first in (("clat", 8), ("lat", 32)):
        timed[name] = {
            key: amount(fields[first + place], f"{where}: {name}") for place, key in enumerate(("min", "max", "mean"))
        }
    found = [_PERCENTILE.fullmatch(one) for one in fields[12:32]]
    timed["clat"]["percentile"] = {
        f"{float(one[1]):.6f}": float(one[2]) for one in found if one is not None and float(one[1]) and int(one[2])
    }
    return {
        "bytes": 1024 * whole(fields[0], f"{where}: total I/O"), "iops": whole(fields[2], f"{where}: IOPS"),
        "runtime": whole(fields[3], f"{where}: runtime"), **timed,
    }  # fmt: skip


def count_ios(job: dict[str, object], block_of: dict[str, int], taken: TakenFile) -> None:
    """Give the directions of a job their counts: amount by block, where one block alone fits the rate.

    Parameters
    ----------
    block_of
        Blocks of directions that are known.
    """
    for name in ("read", "write", "trim", "mixed"):
        side = job.get(name)
        if not isinstance(side, dict):
            continue
        moved, iops, ms = (whole(side[key], name) for key in ("bytes", "iops", "runtime"))
        side["total_ios"] = 0
        if not ms or not moved:
            continue
        side["bw_bytes"] = moved * 1000 / ms
        known = [block_of[name]] if name in block_of else BLOCKS
        fits = [block for block in known if moved % block == 0 and moved // block * 1000 // ms == iops]
        if len(fits) == 1:
            side["total_ios"] = moved // fits[0]
            del side["iops"]
            taken.note(
                f"{job['jobname']}: terse output has no counts; {name}s were counted by blocks of {fits[0]:,} bytes,"
                " which fit amount and rate"
            )
        else:
            side["total_ios"] = round(iops * ms / 1000)
            taken.note(f"{job['jobname']}: terse output has no counts; those of {name}s are from IOPS in whole numbers")

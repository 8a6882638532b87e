"""Configurations of Iometer (`.icf`) as plans (`PageSetup.cpp`, `AccessSpecList.cpp`, `Worker.cpp`; 1998.05.21 to 1.1).

Workers run their first access specifications at once, then their second: each round is a plan, its workers are
activities. Workers alike are workers of one activity. Iometer knows disks of its own hosts, so the target is always
named beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.base.errors import UsageError
from assay.workloads.io.activities import DEEPEST_QUEUE
from assay.workloads.io.foreign.asked import AskedElsewhere, part_names
from assay.workloads.io.importers.iometer import SPEC, Row, access_of
from assay.workloads.io.plan import load_plan

LINES_MAX = 200_000
ROUNDS_MAX = 1000
LEVELS_MAX = 64
WORKERS_MAX = 1024
SECTOR_BYTES = 512
"""What Iometer counts sizes in (`DISK_SECTOR_SIZE` of disks that say no other)."""
LONGEST_S = 10**7

_QUEUES = ("CYCLE_OUTSTANDING_IOS", "CYCLE_OUTSTANDING_IOS_AND_TARGETS")


@dataclass(kw_only=True)
class _Worker:
    """A worker for disks: how hard it asks, of what, and of which targets."""

    name: str
    kind: str = "DISK"
    depth: int = 1
    size_sectors: int = 0
    start_sector: int = 0
    pattern: str = ""
    specs: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class _Setup:
    """What a configuration says."""

    seconds: int | None = None
    ramp_s: int = 0
    description: str = ""
    test: str = "NORMAL"
    depths: tuple[int, int, int, str] = (1, 1, 1, "LINEAR")
    specs: dict[str, list[Row]] = field(default_factory=dict)
    workers: list[_Worker] = field(default_factory=list)


def is_icf(text: str) -> bool:
    """Whether a text is a configuration of Iometer."""
    begins = re.match(r"\ufeff?\s*Version \d", text) is not None
    return begins and re.search(r"^'(TEST SETUP|ACCESS SPECIFICATIONS) ", text, re.MULTILINE) is not None


def icf_plans(text: str, source: str, *, has_target: bool) -> AskedElsewhere:
    """The plans of a configuration.

    Raises
    ------
    UsageError
        It is damaged, asks for nothing of disks, or no target is named beside it.
    """
    setup = _setup(text, source)
    lines: list[str] = []
    workers = [one for one in setup.workers if one.kind == "DISK"]
    lines += [f"worker {one.name}: left out, it is of type {one.kind}" for one in setup.workers if one not in workers]
    if not workers:
        lines.append("no worker is in the file: each access specification runs by itself, with one I/O outstanding")
        workers = [_Worker(name="all", specs=list(setup.specs))]
    targets = list(dict.fromkeys(target for one in workers for target in one.targets))
    if not has_target:
        named = f" ({', '.join(targets[:4])[:80]})" if targets else ""
        raise UsageError(f"{source}: names disks of Iometer's hosts{named}; give the target: PATH")
    if targets:
        lines.append(f"targets: left out, a target is named: {', '.join(targets)[:200]}")
    rounds = list(_rounds(setup, workers, source))
    if not rounds:
        raise UsageError(f"{source}: no worker has an access specification that asks for I/Os")
    depths = _depths(setup)
    if len(rounds) * len(depths) > ROUNDS_MAX:
        raise UsageError(f"{source}: asks for more than {ROUNDS_MAX:,} points one after the other")
    plans = []
    names = part_names(" + ".join(dict.fromkeys(_spec(one, at) for one in found)) for at, found in rounds)
    for name, (at, found) in zip(names, rounds, strict=True):
        for depth in depths:
            activities = [_activity(setup, alike, at, depth, len(targets)) for alike in _alike(found, at)]
            title = name if depth is None else f"{name}-{depth}"
            table = {"name": title, "title": f"Iometer: {title}", "activity": activities, "timing": _timing(setup)}
            sizes = [one.size_sectors * SECTOR_BYTES for one in found if one.size_sectors]
            plans.append(load_plan(table | ({"size": str(max(sizes))} if sizes else {}), source=source))
    used = {_spec(one, at) for at, found in rounds for one in found}
    return AskedElsewhere(plans=plans, lines=[*lines, *_left_out(setup, workers, used)])


def _spec(worker: _Worker, at: int) -> str:
    return worker.specs[at]


def _rounds(setup: _Setup, workers: Sequence[_Worker], source: str) -> Iterator[tuple[int, list[_Worker]]]:
    """Workers that ask for I/Os in each round, and which round it is.

    Raises
    ------
    UsageError
        A worker has an access specification that the file does not have.
    """
    for at in range(max((len(one.specs) for one in workers), default=0)):
        found = []
        for one in workers:
            name = one.specs[at] if at < len(one.specs) else ""
            if name and name.lower() != "idle":
                if not setup.specs.get(name):
                    raise UsageError(f"{source}: has no access specification {name[:60]!r}, which {one.name} is to run")
                found.append(one)
        if found:
            yield at, found


def _alike(workers: Sequence[_Worker], at: int) -> list[list[_Worker]]:
    """Workers that ask for the same."""
    found: dict[tuple[str, int, str], list[_Worker]] = {}
    for one in workers:
        found.setdefault((one.specs[at], one.depth, one.pattern), []).append(one)
    return list(found.values())


def _activity(
    setup: _Setup, alike: Sequence[_Worker], at: int, depth: int | None, targets: int
) -> Mapping[str, object]:
    """Workers alike as an activity: Iometer has so many I/Os outstanding on each target of each worker."""
    first = alike[0]
    access, _, _ = access_of(setup.specs[first.specs[at]], f"access specification {first.specs[at][:60]}")
    if first.pattern == "0" and access["read_share"] < 1:
        # Bytes that repeat.
        access["compressible_share"] = 1.0
    pairs = sum(max(len(one.targets), 1) for one in alike)
    workers = max(round(pairs / max(targets, 1)), 1)
    name = first.name if len(alike) == 1 else f"{first.name} and {len(alike) - 1} more"
    load = {"workers": min(workers, WORKERS_MAX), "queue_depth": min(max(depth or first.depth, 1), DEEPEST_QUEUE)}
    return {"name": name[:80], "io_mode": "direct", **access, **load}


def _depths(setup: _Setup) -> list[int | None]:
    """Outstanding I/Os that the test goes through; None for those of the workers."""
    start, end, step, kind = setup.depths
    if setup.test not in _QUEUES:
        return [None]
    found: list[int | None] = []
    depth = max(start, 1)
    while depth <= end and len(found) < LEVELS_MAX:
        found.append(depth)
        depth = depth * max(step, 2) if kind == "EXPONENTIAL" else depth + max(step, 1)
    return found or [max(start, 1)]


def _timing(setup: _Setup) -> dict[str, int]:
    timing = {"warmup_s": setup.ramp_s}
    return timing | ({"duration_s": setup.seconds} if setup.seconds else {})


def _left_out(setup: _Setup, workers: Sequence[_Worker], used: set[str]) -> list[str]:
    """What no plan can ask for, a line each."""
    lines = []
    if setup.test not in ("NORMAL", *_QUEUES):
        lines.append(f"test type {setup.test}: left out, all workers and targets are used at once")
    elif setup.test == _QUEUES[1]:
        lines.append(
            "test type CYCLE_OUTSTANDING_IOS_AND_TARGETS: all targets are used at once, only the queue goes up"
        )
    if not setup.seconds:
        why = "is not in the file" if setup.seconds is None else "is endless"
        lines.append(f"run time: {why}; a point is measured until it is steady")
    for name in sorted(used):
        _, _, others = access_of(setup.specs[name], f"access specification {name[:60]}")
        for option, value in sorted(others.items()):
            why = (
                "its lines are one mix with their mean shares"
                if option == "lines"
                else "left out, no key of a plan has it"
            )
            lines.append(f"access specification {name[:60]}: {option} {value[:80]}: {why}")
    if any(one.start_sector for one in workers):
        lines.append("starting sector: left out, say --region")
    if any(one.size_sectors for one in workers):
        lines.append("disk maximum size: is that of new files; what exists is used whole, say --region")
    if len(workers) > 1 and any(one.specs != workers[0].specs for one in workers):
        lines.append("workers have access specifications of their own: each round of them is measured together")
    idle = sum(name.lower() == "idle" for one in workers for name in one.specs)
    if idle:
        lines.append("Idle: left out, it asks for nothing")
    return lines


# The file


def _setup(text: str, source: str) -> _Setup:
    """What a configuration says, by its keys, each of which stands before its values."""
    lines = text.removeprefix("\ufeff").splitlines()
    if len(lines) > LINES_MAX:
        raise UsageError(f"{source}: has more than {LINES_MAX:,} lines, which no configuration of Iometer has")
    setup, key, spec = _Setup(), "", ""
    for number, line in enumerate(lines, 1):
        shown = line.strip()
        if shown.startswith("'"):
            # What is set in columns has a title of its own.
            key = key if shown.startswith("'\t") or re.match(r"'\s", shown) else shown[1:].partition(",")[0].lower()
            continue
        if not shown:
            continue
        try:
            if key == "access specification name":
                spec = shown.rpartition(",")[0].strip() or shown
                setup.specs[spec] = []
            elif key == "size":
                row = dict(zip(SPEC, map(str.strip, shown.split(",")), strict=False))
                if len(row) < 4:
                    raise ValueError(shown)
                setup.specs.setdefault(spec, []).append(row)
            elif key == "worker":
                setup.workers.append(_Worker(name=shown[:80]))
            else:
                _take(setup, key, shown)
        except (ValueError, IndexError):
            raise UsageError(f"{source}, line {number}: {shown[:60]!r} is no value of {key!r}") from None
    return setup


def _take(setup: _Setup, key: str, shown: str) -> None:
    """One value of the setup, or of the last worker."""
    fields = [one.strip() for one in re.split(r",|\s{2,}|\t", shown)]
    if key == "run time":
        hours, minutes, seconds = map(_number, fields[:3])
        setup.seconds = min(hours * 3600 + minutes * 60 + seconds, LONGEST_S)
    elif key == "ramp up time (s)":
        setup.ramp_s = min(_number(shown), LONGEST_S)
    elif key == "test type":
        setup.test = shown.upper()[:60]
    elif key == "queue depth cycling":
        setup.depths = (_number(fields[0]), _number(fields[1]), _number(fields[2]), fields[3].upper())
    elif setup.workers:
        _take_worker(setup.workers[-1], key, shown, fields)


def _take_worker(worker: _Worker, key: str, shown: str, fields: Sequence[str]) -> None:
    if key == "worker type":
        worker.kind = fields[0].upper()[:20]
    elif key == "number of outstanding ios":
        worker.depth = _number(fields[0])
    elif key == "disk maximum size":
        worker.size_sectors, worker.start_sector = _number(fields[0]), _number(fields[1])
        worker.pattern = fields[2] if len(fields) > 2 else ""
    elif key == "assigned access specs":
        worker.specs.append(shown)
    elif key == "target":
        worker.targets.append(shown[:200])


def _number(text: str) -> int:
    if re.fullmatch(r"\d{1,15}", text, re.ASCII) is None:
        raise ValueError(text)
    return int(text)

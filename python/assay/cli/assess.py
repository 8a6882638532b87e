"""`assay assess`: the whole examination of the storage under a folder, report included."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from assay.cli import options as opt
from assay.cli.running import start
from assay.cli.verb import Given, measuring
from assay.errors import RefusedTarget, UsageError
from assay.run.request import ONLY_VERIFY, refuse_model
from assay.targets.databases import is_database
from assay.targets.host import memory_bytes
from assay.units import format_bytes, parse_duration
from assay.workloads.integrity.plan import IntegrityTiming, load_integrity_plan, read_integrity_preset
from assay.workloads.io.plan import Plan, fit_bursts, load_plan, read_preset
from assay.workloads.options import TIME
from assay.workloads.tpcc.opening import BYTES_PER_WAREHOUSE
from assay.workloads.tpcc.plan import WARMUP_SHARE, load_tpcc_plan, read_tpcc_preset
from assay.workloads.workload import Part

EXAMPLES = """
Examples:

`assay assess /var/lib/data --quick`

`assay assess /data --budget 1h --limit "read.p99<=5ms"`

`assay assess /data --only oltp,log`
"""

PART_SHARES = {
    "cache-span": 0.06,
    "oltp": 0.42,
    "dss": 0.13,
    "log": 0.13,
    "database": 0.18,
    "integrity": 0.08,
    "transactions": 0.12,
}
"""How the budget is divided; the parts run in this order."""

BUDGET_DEFAULT_S = 30 * 60
BUDGET_QUICK_S = 90
FULL_GRID_FROM_S = 15 * 60
"""Smaller budgets measure the levels that matter most instead of all of them too briefly."""

REDUCED: dict[str, dict[str, Any]] = {
    "oltp": {"block_bytes": ["8K", "64K"], "read_share": [0.7]},
    "dss": {"block_bytes": ["256K"]},
    "log": {"block_bytes": ["512", "8K", "60K"]},
}
INTEGRITY = "integrity"
INTEGRITY_MAX_BYTES, INTEGRITY_REDUCED_BYTES = 2 << 30, 256 << 20
"""Bytes of each volume that the integrity part writes and reads at most, of a full and of a reduced examination."""
INTEGRITY_STRESS_SHARE = 0.7
"""Share of the part's time for stress; the rest is for preparing and the audit."""
POINTS_PER_SEARCH = 18
"""Points a search takes on average: doublings, halvings, repeats until the limit is decided."""

TRANSACTIONS = "transactions"
DATABASE_FOLDER = "assay-postgresql"
"""Folder of the database within the one that is examined; it is kept for the next time, as the file is."""
WAREHOUSES_MIN = 2
DATABASE_FREE_SHARE = 0.25
"""Share of the free space that the database may take."""
LOAD_BUDGET_SHARE = 0.15
"""Time for loading, as a share of the budget, which it comes on top of as layout does."""
LOAD_BYTES_PER_S = 100e6
DATABASE_MEMORY_FACTOR = 1.1
"""Size of a database that no memory holds, as a factor of the memory."""


@measuring(
    "assess",
    Plan,
    on={name: opt.ON_STORAGE[name] for name in ("size", "cache_size", "overwrite")},
    only=("--io-timeout", "--backend", "--seed"),
)
def assess(
    given: Given,
    directory: Annotated[
        str | None, typer.Argument(metavar="DIR", help="A folder on the storage to examine.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="In about two minutes.")] = False,
    budget: Annotated[
        str | None, typer.Option(help="Time to take, layout and report apart (30m).", rich_help_panel=TIME)
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help=f"Only these parts: {','.join(PART_SHARES)}.", rich_help_panel=TIME),
    ] = None,
    skip: Annotated[str | None, typer.Option(help="All but these parts.", rich_help_panel=TIME)] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="Instead of the method's limits, in every part.", rich_help_panel=TIME)
    ] = None,
) -> None:
    """Examine the storage under a folder: I/O of all kinds, integrity, a real database; and write the report."""
    if directory is None:
        raise UsageError("assess: give the folder to examine")
    if directory.startswith("faulty:"):
        raise UsageError(ONLY_VERIFY)
    refuse_model([directory])
    if is_database(directory):
        raise UsageError("assess: examines a folder's storage, with a database of its own in it; give a folder")
    if not os.path.isdir(directory):
        raise RefusedTarget(f"{directory}: is not a folder; make it with: mkdir -p {directory}")
    budget_s = (
        parse_duration(budget, what="--budget") / 1e9 if budget else (BUDGET_QUICK_S if quick else BUDGET_DEFAULT_S)
    )
    if budget_s < 20:
        raise UsageError(f"--budget: {budget} is too short to measure anything; give at least 20s")
    direct = takes_direct(directory)
    parts = plan_parts(
        chosen_parts(only, skip),
        budget_s,
        limits=limit,
        timeout_s=given.values.pop(("timing", "io_timeout_s"), None),
        direct=direct,
        directory=directory,
        other={path[0]: value for path, value in given.values.items()},
    )
    request = given.request([directory])
    if budget_s < FULL_GRID_FROM_S:
        request.size_most_bytes = 1 << 30
    if not direct and request.size is None:
        # Through the page cache only a file twice its size is read from the device.
        request.size = str(2 * memory_bytes())
        given.shown.notices.append(
            f"{directory} takes no direct I/O: measured through the page cache on {format_bytes(2 * memory_bytes())}"
        )
    start("assess", request, parts, given.shown)


def chosen_parts(only: str | None, skip: str | None) -> list[str]:
    """Names of the parts to run.

    Raises
    ------
    UsageError
        A name is unknown, or nothing is left.
    """
    known = list(PART_SHARES)
    for option, text in (("--only", only), ("--skip", skip)):
        unknown = [name for name in (text or "").split(",") if name and name not in known]
        if unknown:
            raise UsageError(f"{option}: unknown part {unknown[0]!r}; known: {', '.join(known)}")
    wanted = only.split(",") if only else known
    left = [name for name in known if name in wanted and name not in (skip or "").split(",")]
    if not left:
        raise UsageError("--only and --skip leave no part")
    return left


def plan_parts(
    names: Sequence[str],
    budget_s: float,
    *,
    limits: list[str] | None,
    timeout_s: float | None,
    direct: bool,
    directory: str,
    other: dict[str, Any],
) -> list[Part[Any]]:
    """The parts with their plans, each fitted to its share of the budget."""
    shares = sum(PART_SHARES[name] for name in names)
    parts = []
    for name in names:
        seconds = budget_s * PART_SHARES[name] / shares
        if name == TRANSACTIONS:
            warehouses = warehouses_of(directory, budget_s)
            # Where nothing else is asked for, it is no part to be left out.
            parts.append(_plan_transactions(directory, warehouses, seconds, limits, other, optional=len(names) > 1))
            continue
        parts.append(_plan_part(name, seconds, budget_s >= FULL_GRID_FROM_S, limits, timeout_s, direct, other))
    return parts


def _plan_part(
    name: str,
    seconds: float,
    full: bool,
    limits: list[str] | None,
    timeout_s: float | None,
    direct: bool,
    other: dict[str, Any],
) -> Part[Any]:
    from assay.workloads.io.cache_span import PART
    from assay.workloads.io.cache_span_plan import cache_span_plan

    if name == INTEGRITY:
        return _plan_integrity(seconds, full, timeout_s, direct, other)
    if name == PART:
        # The spans depend on the size of the file, which is chosen later; see `assay.cli.running.start`.
        return Part(name=name, title="Latency against span", plan=cache_span_plan(1 << 30), planned_s=seconds)
    preset = read_preset(name)
    data = preset.model_dump(mode="json", exclude_unset=True) | other
    activities: list[dict[str, Any]] = list(data["activity"])
    if not full:
        activities[0] = {**activities[0], **REDUCED.get(name, {})}
    if not direct:
        activities = [{**activity, "io_mode": "buffered"} for activity in activities]
    data["activity"] = activities
    if limits:
        data |= {"limits": limits, "user_limits": True}
    data["timing"] = _timing(data, seconds, full)
    if "duration_s" in data["timing"]:
        data["activity"] = fit_bursts(activities, data["timing"]["duration_s"])
    if timeout_s is not None:
        data["timing"]["io_timeout_s"] = timeout_s
    if not full:
        data["search"] = {**data.get("search", {}), "resolution_share": 0.12}
    plan = load_plan(data, source=f"part {name}")
    return Part(name=name, title=plan.title, plan=plan, planned_s=seconds)


def _plan_integrity(
    seconds: float, full: bool, timeout_s: float | None, direct: bool, other: dict[str, Any]
) -> Part[Any]:
    """A short run of all users but the one that changes sizes: the files are the other parts' too."""
    preset = read_integrity_preset("default").model_dump(mode="json", exclude_unset=True)
    timing: dict[str, Any] = {"stress_s": max(seconds * INTEGRITY_STRESS_SHARE, 1.0)}
    if timeout_s is not None:
        timing |= {"io_timeout_s": timeout_s, "long_io_s": min(IntegrityTiming().long_io_s, timeout_s)}
    size = {"most_bytes": INTEGRITY_MAX_BYTES if full else INTEGRITY_REDUCED_BYTES, "shrinkable": False}
    plan = load_integrity_plan(
        preset | other | size | {"timing": timing, "no_buffering": direct}, source=f"part {INTEGRITY}"
    )
    return Part(name=INTEGRITY, title=plan.title, plan=plan, planned_s=seconds)


def _plan_transactions(
    directory: str, warehouses: int, seconds: float, limits: list[str] | None, other: dict[str, Any], *, optional: bool
) -> Part[Any]:
    """A database of its own in the folder, loaded unless an earlier examination left one that is large enough."""
    duration_s = max(seconds / (1 + WARMUP_SHARE), 1.0)
    preset = read_tpcc_preset("hammerdb")
    data = preset.model_dump(mode="json", exclude_unset=True) | {
        # The server is reached through a socket: what is sent again is not sent for it.
        "limits": [text for text in preset.limits if not text.startswith("tcp.")],
        "seed": other.get("seed", 1),
        "warehouses": warehouses,
        "reloads": True,
        # A few users that kept to a warehouse each would work on a part of it all that fits any memory.
        "home": "all",
        "timing": {"duration_s": duration_s},
    }
    if limits:
        data |= {"limits": limits, "user_limits": True}
    return Part(
        name=TRANSACTIONS,
        title="Transactions on PostgreSQL",
        plan=load_tpcc_plan(data, source=f"part {TRANSACTIONS}"),
        planned_s=seconds,
        target_text=f"embedded:{os.path.join(directory, DATABASE_FOLDER)}",
        optional=optional,
    )


def warehouses_of(directory: str, budget_s: float) -> int:
    """Warehouses of the database: so many that no memory holds them, if budget and free space allow.

    A sketch: a warehouse takes about 110 MiB with its indexes and log, and is loaded at about 100 MB/s, 1.2 s each. On
    a machine with 16 GiB reads reach storage from 164 warehouses on, or 18 GiB, which load in 3 minutes and a half: a
    share of the default budget of half an hour. A quick examination is about commits alone: what two warehouses hold
    fits any memory, and is there in seconds.
    """
    if budget_s < FULL_GRID_FROM_S:
        return WAREHOUSES_MIN
    space = os.statvfs(directory)
    wanted_bytes = min(
        DATABASE_MEMORY_FACTOR * memory_bytes(),
        LOAD_BUDGET_SHARE * budget_s * LOAD_BYTES_PER_S,
        DATABASE_FREE_SHARE * space.f_bavail * space.f_frsize,
    )
    return max(int(wanted_bytes / BYTES_PER_WAREHOUSE), WAREHOUSES_MIN)


def _timing(data: dict[str, Any], seconds: float, full: bool) -> dict[str, Any]:
    """Warm-up, least and most time of a point, so that the part takes about its share."""
    draft = load_plan(data, source="part")
    per_workload = 1 if draft.search.axis == "none" else POINTS_PER_SEARCH
    each_s = seconds / (len(draft.workloads()) * per_workload)
    warmup_s = min(max(each_s * 0.15, 0.3), 5.0)
    longest_s = max(each_s - warmup_s, 1.0)
    if draft.timing.duration_s is not None:
        return {"warmup_s": warmup_s, "duration_s": longest_s}
    return {"warmup_s": warmup_s, "min_s": max(longest_s * (0.5 if full else 0.8), 0.8), "max_s": longest_s}


def takes_direct(directory: str) -> bool:
    """Whether files in a folder can be opened past the page cache."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        # Where unnamed files are not known, the open of the real file will tell.
        return error.errno != 22
    os.close(descriptor)
    return True

"""From an integrity plan and the files it runs on to what the compiled core takes, memory included."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from assay import _core
from assay.base.errors import OutOfMemory
from assay.base.units import format_bytes, parse_duration
from assay.targets.files.spec import FAULTS
from assay.targets.files.target import StorageTarget
from assay.targets.host import free_memory_bytes
from assay.workloads.integrity.files import PlacedFile, PlannedFile
from assay.workloads.integrity.plan import USERS_MAX_AUTOMATIC, IntegrityPlan

POOL_SHARE = 0.25
POOL_MIN_BYTES = 1 << 20
OUTSTANDING_DEFAULT = 256
OUTSTANDING_MAX = 16_384
"""What an io_uring of the largest size holds beside the large I/Os, in a power of two."""

REWRITE_AFTER_S, REWRITE_AFTER_SHARE = 1.0, 0.1
"""A page is not written again sooner than this, or than this share of a short stress phase."""

REREADS = 15
REREAD_PAUSE_S = 0.01
LONG_IO_DELAY_DEFAULT = "16s"
STATE_BYTES = 24
"""Expected state of a page or log block (docs/integrity.md)."""

FAULTY_SEED_DEFAULT = 1
BULK_USERS_MAX_AUTOMATIC = 4
USERS_AUTOMATIC = 2
"""Audit and read-ahead, where a plan leaves their number open."""

LONG_TICKS_FROM_S = 3600.0


def tick_s(plan: IntegrityPlan) -> float:
    """Length of a tick: shorter where a second would leave few to see, longer where they would be many."""
    if plan.timing.stress_s >= LONG_TICKS_FROM_S or plan.cycles == 0:
        return 10.0
    return 1.0 if plan.timing.stress_s >= 20 else 0.25


class RandomUsers(TypedDict):
    """Users that change pages here and there."""

    users: int
    jump_share: float
    chain_min: int
    chain_max: int
    update_share: float
    log_bytes_min: int
    log_bytes_max: int
    rollback_share: float
    sleep_ns: int


class AuditUsers(TypedDict):
    """Users that read pages in order."""

    users: int
    pages: int
    delay_after_cycles: int
    delay_ns: int


class BulkUsers(TypedDict):
    """Users that read ahead, or change many pages at once."""

    users: int
    pages_min: int
    pages_max: int
    delay_after_cycles: int
    delay_ns: int


class ShrinkUsers(TypedDict):
    """Users that change the sizes of files."""

    users: int
    interval_min_ns: int
    interval_max_ns: int
    extents_min: int
    extents_max: int


class PlannedUsers(TypedDict):
    """The users of a plan by their kinds."""

    random: RandomUsers
    audit: AuditUsers
    read_ahead: BulkUsers
    bulk_update: BulkUsers
    shrink: ShrinkUsers


class PlannedVerification(PlannedUsers):
    """A plan as the compiled core takes it."""

    files: list[PlannedFile]
    seed: int
    run_id: int
    cycles: int
    stress_ns: int
    pool_bytes: int
    cache_hit_share: float
    max_outstanding: int
    target_io_ns: int
    bursts: bool
    scatter_gather: bool
    write_through: bool
    force_read_ahead: bool
    look_first: bool
    rewrite_after_ns: int
    pages_per_io: int
    rereads: int
    reread_pause_ns: int
    long_io_ns: int
    io_timeout_ns: int
    stop_on_error: bool
    interval_ns: int


def verify_plan(plan: IntegrityPlan, files: Sequence[PlacedFile], *, run_id: int) -> PlannedVerification:
    """The plan as the compiled core takes it (`crates/integrity/src/plan.rs`)."""
    data_bytes = sum(file.size_bytes for file in files if not file.log)
    pool_bytes = plan.memory_bytes or int(free_memory_bytes() * POOL_SHARE)
    timing = plan.timing
    return {
        "files": [file.to_plan(direct=plan.no_buffering) for file in files],
        "seed": plan.seed,
        "run_id": run_id,
        "cycles": plan.cycles,
        "stress_ns": _ns(timing.stress_s),
        "pool_bytes": max(min(pool_bytes, data_bytes), POOL_MIN_BYTES),
        "cache_hit_share": plan.cache_hit_share,
        "max_outstanding": min(plan.max_outstanding or OUTSTANDING_DEFAULT, OUTSTANDING_MAX),
        "target_io_ns": _ns(plan.target_io_s),
        "bursts": plan.bursts,
        "scatter_gather": plan.scatter_gather,
        "write_through": plan.write_through,
        "force_read_ahead": plan.force_read_ahead,
        "look_first": plan.look_first,
        "rewrite_after_ns": _ns(min(REWRITE_AFTER_S, timing.stress_s * REWRITE_AFTER_SHARE)),
        "pages_per_io": plan.pages_per_io,
        "rereads": REREADS,
        "reread_pause_ns": _ns(REREAD_PAUSE_S),
        "long_io_ns": _ns(timing.long_io_s),
        "io_timeout_ns": _ns(timing.io_timeout_s),
        "stop_on_error": plan.stop_on_error,
        "interval_ns": _ns(tick_s(plan)),
        **_users(plan, files),
    }


def run_plan(
    plan: IntegrityPlan, target: StorageTarget, files: Sequence[PlacedFile], *, run_id: int, note: str = ""
) -> str:
    """A whole run as the compiled core takes it (`crates/integrity/src/run.rs`), JSON; a journal keeps the note."""
    asked = {
        "plan": verify_plan(plan, files, run_id=run_id),
        "backend": plan.backend,
        "faulty": faulty_plan(target),
        "journal": None if target.journal is None else str(target.journal),
        "note": note or None,
    }
    return json.dumps(asked)


def _users(plan: IntegrityPlan, files: Sequence[PlacedFile]) -> PlannedUsers:
    cpus = len(os.sched_getaffinity(0))
    pages = most_pages(files)
    random, audit, ahead, bulk, shrink = plan.random, plan.audit, plan.read_ahead, plan.bulk_update, plan.shrink
    return {
        "random": {
            "users": _count(random.users, min(cpus * 2, USERS_MAX_AUTOMATIC)),
            "jump_share": random.jump_share,
            "chain_min": min(random.chain_min, pages),
            "chain_max": min(random.chain_max, pages),
            "update_share": random.update_share,
            "log_bytes_min": random.log_bytes_min,
            "log_bytes_max": random.log_bytes_max,
            "rollback_share": random.rollback_share,
            "sleep_ns": _ns(random.sleep_s),
        },
        "audit": {
            "users": _count(audit.users, USERS_AUTOMATIC),
            "pages": min(audit.pages, pages),
            "delay_after_cycles": audit.delay_after_cycles,
            "delay_ns": _ns(audit.delay_s),
        },
        "read_ahead": {
            "users": _count(ahead.users, USERS_AUTOMATIC),
            "pages_min": min(ahead.pages_min, pages),
            "pages_max": min(ahead.pages_max, pages),
            "delay_after_cycles": ahead.delay_after_cycles,
            "delay_ns": _ns(ahead.delay_s),
        },
        "bulk_update": {
            "users": _count(bulk.users, min(cpus, BULK_USERS_MAX_AUTOMATIC)),
            "pages_min": min(bulk.pages_min, pages),
            "pages_max": min(bulk.pages_max, pages),
            "delay_after_cycles": bulk.delay_after_cycles,
            "delay_ns": _ns(bulk.delay_s),
        },
        "shrink": {
            "users": shrink.users if any(file.can_grow for file in files) else 0,
            "interval_min_ns": _ns(shrink.interval_min_s),
            "interval_max_ns": _ns(shrink.interval_max_s),
            "extents_min": shrink.extents_min,
            "extents_max": shrink.extents_max,
        },
    }


def most_pages(files: Sequence[PlacedFile]) -> int:
    """Most pages a user may ask for at once: what the smallest data file has when it is shrunk to a quarter."""
    return max(min(file.pages for file in files if not file.log) // 4, 1)


def narrowed(plan: IntegrityPlan, files: Sequence[PlacedFile]) -> list[str]:
    """What of the plan does not fit the files and is made smaller, a line each."""
    pages = most_pages(files)
    asked = {
        "chains of the random users": plan.random.chain_max,
        "audits": plan.audit.pages,
        "read-aheads": plan.read_ahead.pages_max,
        "bulk updates": plan.bulk_update.pages_max,
    }
    return [
        f"{what} are of {pages} pages at most, not {most}: the smallest data file has no more than that in a quarter"
        for what, most in asked.items()
        if most > pages
    ]


def faulty_plan(target: StorageTarget) -> dict[str, int | float] | None:
    """Faults to inject by name, as the compiled core takes them, with their seed; None for other targets."""
    options = target.examined[0].spec.options if target.examined[0].spec.kind == "faulty" else None
    if options is None:
        return None
    return {
        "seed": int(options.get("seed", FAULTY_SEED_DEFAULT)),
        **{name: float(options.get(name, 0.0)) for name in FAULTS},
        "long_io_delay_ns": parse_duration(options.get("long_io_delay", LONG_IO_DELAY_DEFAULT)),
    }


def new_run_id() -> int:
    """Identity stamped on every page of a run; no two runs share one."""
    return secrets.randbits(64)


def _count(users: int, automatic: int) -> int:
    return automatic if users < 0 else users


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


# Memory


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a run needs and what there is."""

    needed_bytes: int
    free_bytes: int


def memory_of(plan: IntegrityPlan, files: Sequence[PlacedFile]) -> Memory:
    """Memory the expected state and the buffers need, and what may be had."""
    needed = _core.verify_memory(json.dumps(verify_plan(plan, files, run_id=0)))
    return Memory(needed_bytes=needed, free_bytes=free_memory_bytes())


def check_memory(plan: IntegrityPlan, files: Sequence[PlacedFile]) -> None:
    """Refuse a run whose expected state would not fit into memory, before anything is written.

    Raises
    ------
    OutOfMemory
        The message says how much is needed, how much there is, and which size would fit.
    """
    memory = memory_of(plan, files)
    if memory.needed_bytes <= memory.free_bytes:
        return
    fits = _fitting_bytes(plan, files, memory.free_bytes)
    hint = f"give --size {fits >> 20}M or less" if fits >> 20 else "free some memory, or give a smaller --memory"
    raise OutOfMemory(
        f"the expected state of {format_bytes(sum(file.max_bytes for file in files if not file.log))} of data and the"
        f" buffers need {format_bytes(memory.needed_bytes)} of memory, {format_bytes(memory.free_bytes)} may be had;"
        f" {hint}"
    )


def _fitting_bytes(plan: IntegrityPlan, files: Sequence[PlacedFile], free_bytes: int) -> int:
    """Largest size of a data file that fits, of all data files alike in proportion; 0 if none does."""
    lowest, highest = 0.0, 1.0
    for _ in range(20):
        middle = (lowest + highest) / 2
        needed = _core.verify_memory(json.dumps(verify_plan(plan, _scaled(files, middle), run_id=0)))
        lowest, highest = (middle, highest) if needed <= free_bytes else (lowest, middle)
    return max((file.size_bytes for file in _scaled(files, lowest) if not file.log), default=0) if lowest else 0


def _scaled(files: Sequence[PlacedFile], share: float) -> list[PlacedFile]:
    def scaled(file: PlacedFile) -> PlacedFile:
        page = file.page_bytes
        size, most = (max(int(one * share) // page, 1) * page for one in (file.size_bytes, file.max_bytes))
        return replace(file, size_bytes=size, max_bytes=most)

    return [file if file.log else scaled(file) for file in files]

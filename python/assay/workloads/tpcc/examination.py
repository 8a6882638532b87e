"""What the examination asks of transactions: a database of its own on the storage that is examined."""

from __future__ import annotations

import math
import os

from assay.base.units import format_bytes, format_duration
from assay.targets.host import memory_bytes
from assay.workloads.examination import FULL_FROM_S, Examination
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.registry import workload_named
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.tables import BYTES_PER_WAREHOUSE
from assay.workloads.transactions.plan import WARMUP_SHARE

NAME = "transactions"
FOLDER = "assay-postgresql"
"""Folder of the database within the one that is examined; it is kept for the next time, as the file is."""
WAREHOUSES_MIN = 2
FREE_SHARE = 0.25
"""Share of the free space that the database may take."""
LOAD_BUDGET_SHARE = 0.15
"""Time for loading, as a share of the budget, which it comes on top of as layout does."""
LOAD_BYTES_PER_S = 100e6
MEMORY_FACTOR = 1.1
"""Size of a database that no memory holds, as a factor of the memory."""


TITLE = "Transactions on PostgreSQL"


def _part(asked: Examination) -> Part[TpccPlan]:
    """A database of its own in the folder, loaded unless an earlier examination left one that is large enough."""
    preset = workload_named("tpcc").preset("hammerdb")
    data = preset.model_dump(mode="json", exclude_unset=True) | {
        # The server is reached through a socket: what is sent again is not sent for it.
        "limits": [text for text in preset.limits if not text.startswith("tcp.")],
        "seed": asked.given.get("seed", 1),
        "warehouses": warehouses_of(asked),
        "reloads": True,
        # A few users that kept to a warehouse each would work on a part of it all that fits any memory.
        "home": "all",
        "timing": {"duration_s": max(asked.planned_s / (1 + WARMUP_SHARE), 1.0)},
    }
    return Part(
        name=NAME,
        title=TITLE,
        notice=memory_notice(asked),
        plan=workload_named("tpcc").load_plan(data | asked.own_limits, source=f"part {NAME}"),
        planned_s=asked.planned_s,
        target_text=f"embedded:{os.path.join(asked.directory, FOLDER)}",
        # Where nothing else is asked for, it is no part to be left out.
        optional=not asked.is_alone,
    )


def warehouses_of(asked: Examination) -> int:
    """Warehouses of the database: so many that no memory holds them, if budget and free space allow.

    A sketch: a warehouse takes about 110 MiB with its indexes and log, and is loaded at about 100 MB/s, 1.2 s each. On
    a machine with 16 GiB reads reach storage from 164 warehouses on, or 18 GiB, which load in 3 minutes and a half: a
    share of the default budget of half an hour. A quick examination is about commits alone: what two warehouses hold
    fits any memory, and is there in seconds.
    """
    if not asked.is_full:
        return WAREHOUSES_MIN
    space = os.statvfs(asked.directory)
    wanted_bytes = min(
        MEMORY_FACTOR * memory_bytes(),
        LOAD_BUDGET_SHARE * asked.budget_s * LOAD_BYTES_PER_S,
        FREE_SHARE * space.f_bavail * space.f_frsize,
    )
    return max(int(wanted_bytes / BYTES_PER_WAREHOUSE), WAREHOUSES_MIN)


def memory_notice(asked: Examination) -> str:
    """What says that memory holds the database, and what would ask the storage; empty where it does not hold it."""
    memory, held = memory_bytes(), warehouses_of(asked)
    needed = MEMORY_FACTOR * memory
    if (held + 1) * BYTES_PER_WAREHOUSE > needed:
        return ""
    space = os.statvfs(asked.directory)
    budget_s = max(needed / (LOAD_BUDGET_SHARE * LOAD_BYTES_PER_S), FULL_FROM_S)
    cure = f"--budget {format_duration(math.ceil(budget_s / 60) * 60).replace(' ', '')} loads a larger database"
    if FREE_SHARE * space.f_bavail * space.f_frsize < needed:
        cure = f"that takes {format_bytes(round(needed / FREE_SHARE))} of free space"
    return (
        f"{TITLE}: {held} warehouses fit in the memory of this host ({format_bytes(memory)}), so that reads hardly ask"
        f" the storage, and commits alone do; {cure}"
    )


PARTS = (ExaminationPart(name=NAME, share=0.12, part=_part),)

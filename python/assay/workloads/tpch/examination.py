"""What the examination asks of queries: a row store and a column store of its own on the storage that is examined."""

from __future__ import annotations

import os
from functools import partial

from assay.targets.host import memory_bytes
from assay.workloads.examination import FULL_FROM_S, Examination
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.tables import TABLES

STORES = {
    "queries": ("Queries on DuckDB", "duckdb:{directory}/assay-queries.duckdb"),
    "queries-rows": ("Queries on PostgreSQL", "embedded:{directory}/assay-queries-postgresql"),
}
"""Parts with their titles and targets, which are kept for the next time, as the file is."""

SCALE_QUICK, SCALE_MAX = 0.02, 1.0
MEMORY_SHARE, FREE_SHARE = 0.125, 0.1
"""Shares of memory and of the free space that the larger of the stores may take: it is to fit both."""
BUDGET_PER_SCALE_S = 900.0
"""Time of the whole examination for which scale 1 is not too much: it loads and runs in about two minutes a store."""


IN_MEMORY = (
    f"scale {SCALE_QUICK:g} fits in memory, so that the storage is hardly asked; --budget {FULL_FROM_S // 60}m loads a"
    " larger one, and drops the caches before each query"
)


def _part(asked: Examination, name: str) -> Part[TpchPlan]:
    """A store in the folder, loaded unless an earlier examination left one that is large enough."""
    title, target = STORES[name]
    data = {
        "name": "tpch",
        "scale": scale_of(asked),
        "reloads": True,
        "test": "power",
        "title": title,
        "limits": ["read.mean<=20ms"],
        # Memory holds what so short a time loads: without its caches the storage is asked all the same.
        "cache": "cold" if asked.is_full else "warm",
    }
    return Part(
        name=name,
        title=title,
        plan=TpchPlan.model_validate(data | asked.own_limits),
        planned_s=asked.planned_s,
        notice="" if asked.is_full else f"{title}: {IN_MEMORY}",
        target_text=target.format(directory=asked.directory),
        # Where nothing else is asked for, it is no part to be left out.
        optional=not asked.is_alone,
    )


def scale_of(asked: Examination) -> float:
    """Scale of both stores: one that memory holds, and that budget and free space allow."""
    if not asked.is_full:
        return SCALE_QUICK
    space = os.statvfs(asked.directory)
    room = min(MEMORY_SHARE * memory_bytes(), FREE_SHARE * space.f_bavail * space.f_frsize)
    fits = room / TABLES.size.bytes_each * SCALE_STEP
    return max(round(min(fits, SCALE_MAX, asked.budget_s / BUDGET_PER_SCALE_S), 3), SCALE_QUICK)


PARTS = tuple(ExaminationPart(name=name, share=0.03, part=partial(_part, name=name)) for name in STORES)

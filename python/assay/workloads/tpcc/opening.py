"""Opening databases for transactions: what cannot be done with what is there is refused before anything is written."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from assay.errors import OutOfSpace, UsageError
from assay.targets.databases import Database, SchemaState
from assay.targets.databases.layout import refuse_layout
from assay.targets.databases.refusals import refuse_foreign
from assay.targets.databases.target import DatabaseTarget
from assay.units import count_of, format_bytes
from assay.workloads.tpcc.background import refuse_unknown
from assay.workloads.tpcc.plan import WAREHOUSES_DEFAULT, TpccPlan, shares_of

BYTES_PER_WAREHOUSE = 110 << 20
"""Room a loaded warehouse takes with its indexes, rounded up."""
LOG_BYTES_PER_WAREHOUSE, LOG_MAX_BYTES = 85 << 20, 1 << 30
"""Log that loading one writes, and what servers keep of it at least before they use it again."""

OWN_CONNECTIONS = 2
"""Connections of Assay's beside those of the users: the recorder's, and one for what a point asks meanwhile."""


def prepare(target: DatabaseTarget, plan: TpccPlan, show: Callable[[str], None]) -> TpccPlan:
    """Open the databases and examine them for a plan, unless that was done for this very plan.

    Returns
    -------
    TpccPlan
        As `examine` returns it.

    Raises
    ------
    UsageError, OpenFailed, NotSupported, RefusedTarget, OutOfSpace
        As `open` and `examine` raise them.
    """
    if plan not in target.examined:
        target.open(connections_needed(plan, len(target.databases)), show, plan.layout.directories)
        target.examined = plan, examine(target, plan)
    fitted: TpccPlan = target.examined[-1]
    return fitted


def examine(target: DatabaseTarget, plan: TpccPlan) -> TpccPlan:
    """Refuse what the plan's actions cannot do with what is there, before anything is written.

    Returns
    -------
    TpccPlan
        The plan with a search that ends where the servers' connections do.

    Raises
    ------
    UsageError, RefusedTarget, OutOfSpace
        There is nothing to run on, something else is there, or there is too little of something.
    """
    defaults = shares_of(plan.warehouses or WAREHOUSES_DEFAULT, len(target.databases))
    if not defaults[-1]:
        raise UsageError(f"--warehouses {plan.warehouses}: {len(target.databases)} databases need one each at least")
    for database, share in zip(target.databases, defaults, strict=True):
        _examine_one(target, database, plan, share)
    for option, count in (("users", plan.users), ("connections", plan.connections)):
        if "run" in plan.actions and count is not None and count < len(target.databases):
            raise UsageError(f"--{option} {count}: {len(target.databases)} databases need one each at least")
    return _within_connections(target, plan) if "run" in plan.actions else plan


def _examine_one(target: DatabaseTarget, database: Database, plan: TpccPlan, share: int) -> None:
    there = database.schema()
    if there.kind == "foreign":
        refuse_foreign(database.name, there.tables)
    kind, warehouses, saved = there.kind, there.scale, database.saved()
    # How many the work is on: those that are dropped in the end were there before. A run that goes on may have
    # nothing left to do but its points.
    worked_on = warehouses
    for action in plan.actions:
        if action == "load":
            if plan.reloads and kind == "complete" and (warehouses or 0) >= share:
                continue
            if plan.reloads and not (kind == "partial" and is_part_of(there, share, plan.seed)):
                kind, warehouses = "absent", None
            if kind in ("partial", "complete") and warehouses is not None:
                _refuse_other(database.name, there, plan, share)
            elif kind == "broken":
                _refuse_unloaded(database.name, action, kind)
            else:
                warehouses = share
            if kind != "complete":
                _refuse_without_room(database, warehouses or share)
                database.check_rights()
            kind = "complete"
        elif action == "drop":
            kind, warehouses, saved = "absent", None, None
        elif action == "restore":
            if saved is None:
                raise UsageError(f"{database.name}: there is no saved state; keep one with the action: save")
            kind, warehouses = "complete", saved["warehouses"]
        else:
            _refuse_unloaded(database.name, action, kind)
            if plan.warehouses is not None and not plan.reloads and warehouses != share:
                _refuse_other(database.name, there, plan, share)
            saved = {"warehouses": warehouses} if action == "save" else saved
        worked_on = warehouses or worked_on
    target.scale[database.name] = worked_on or 0
    if "run" in plan.actions:
        refuse_unknown(database, plan.background)
        refuse_layout(
            database,
            places=plan.layout.tablespaces,
            ways=plan.layout.ways_of(worked_on or 0),
            scale=worked_on,
        )


def _refuse_without_room(database: Database, warehouses: int) -> None:
    paths = database.storage_paths()
    directory = paths.get("data")
    if directory is None:
        return
    try:
        space = os.statvfs(directory)
        has_log = "log" in paths and os.stat(paths["log"]).st_dev == os.stat(directory).st_dev
    except OSError:
        # Folders of a server that runs as another user; the server itself says when they are full.
        return
    log_bytes = min(warehouses * LOG_BYTES_PER_WAREHOUSE, LOG_MAX_BYTES) if has_log else 0
    needed_bytes = warehouses * BYTES_PER_WAREHOUSE + log_bytes
    free_bytes = space.f_bavail * space.f_frsize + database.bytes_used()
    if needed_bytes > free_bytes:
        each_bytes = BYTES_PER_WAREHOUSE + (LOG_BYTES_PER_WAREHOUSE if has_log else 0)
        fits = max((free_bytes - log_bytes) // BYTES_PER_WAREHOUSE, free_bytes // each_bytes)
        hint = f"give --warehouses {fits} or fewer" if fits else "free some space"
        raise OutOfSpace(
            f"{database.name}: {count_of(warehouses, 'warehouse')} need about {format_bytes(needed_bytes)},"
            f" and {directory} has {format_bytes(free_bytes)} free; {hint}"
        )


def _within_connections(target: DatabaseTarget, plan: TpccPlan) -> TpccPlan:
    count, facts = len(target.databases), target.facts()
    free = {facts["name"]: facts["connections_free"] for facts in facts["databases"]}
    name = min(free, key=lambda one: free[one] if free[one] is not None else math.inf, default=None)
    least = free[name] if name is not None else None
    if name is None or least is None:
        return plan
    # The recorder and work beside the transactions have connections of their own.
    least = max(least - OWN_CONNECTIONS - len(plan.background), 0)
    of_load = max(math.ceil((plan.connections or plan.users) / count), 1)
    if of_load > least:
        most = next(facts["max_connections"] for facts in facts["databases"] if facts["name"] == name)
        raise UsageError(
            f"{name}: {plan.connections or plan.users} connections for {plan.users} users are more than its server"
            f" takes ({least} are free, max_connections is {most}); give fewer --users, or let them share:"
            f" --connections {least * count}"
        )
    if plan.search.axis != "users" or plan.connections is not None or plan.search.last_load <= least * count:
        return plan
    if plan.search.end is not None:
        raise UsageError(
            f"{name}: a search up to {plan.search.end:.0f} users needs as many connections, and {least} are free;"
            f" give --end {least * count}, or let users share: --connections"
        )
    target.notices.append(f"the search ends at {least * count} users: the server of {name} takes no more connections")
    return plan.model_copy(update={"search": plan.search.model_copy(update={"end": float(least * count)})})


def connections_needed(plan: TpccPlan, databases: int) -> int:
    """Connections to each database that the plan may open at once."""
    users = max(plan.users, int(plan.search.last_load)) if plan.search.axis == "users" else plan.users
    of_run = plan.connections or users
    return max(math.ceil(of_run / databases), load_connections(plan))


def load_connections(plan: TpccPlan) -> int:
    """Connections that load, over all databases."""
    return plan.load_connections or len(os.sched_getaffinity(0))


def is_part_of(there: SchemaState, warehouses: int, seed: int) -> bool:
    """Whether a load that was cut short is one of so many warehouses of this seed."""
    return (there.scale, there.seed) == (warehouses, seed)


def _refuse_other(name: str, there: SchemaState, plan: TpccPlan, share: int) -> None:
    """Refuse what is there with another size or seed."""
    if (plan.warehouses is None or there.scale == share) and there.seed == plan.seed:
        return
    asked = there.scale if plan.warehouses is None else share
    raise UsageError(
        f"{name}: holds {count_of(there.scale or 0, 'warehouse')} of seed {there.seed}, not {asked} of seed"
        f" {plan.seed}; ask for those (warehouses, seed), or remove them first with the action: drop"
    )


def _refuse_unloaded(name: str, action: str, kind: str) -> None:
    """Refuse work on warehouses that are not whole."""
    if kind == "absent":
        raise UsageError(f"{name}: has no warehouses to {action}; load them first with the action: load")
    if kind == "partial":
        raise UsageError(f"{name}: its load was cut short; go on with it first with the action: load")
    if kind == "broken":
        raise UsageError(f"{name}: restoring it was cut short; do it again with the action restore, or drop it")

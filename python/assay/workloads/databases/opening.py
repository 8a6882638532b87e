"""Opening databases: what cannot be done with what is there is refused before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from assay.base.errors import OutOfSpace, UsageError
from assay.base.units import format_bytes
from assay.targets.databases import Database, SchemaState
from assay.targets.databases.common.refusals import refuse_foreign
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.target import Target
from assay.workloads.databases.plan import DatabasesPlan

LOG_MAX_BYTES = 1 << 30
"""Log that servers keep at least before they use it again."""

P = TypeVar("P", bound=DatabasesPlan)


def prepare(
    target: DatabaseTarget,
    plan: P,
    *,
    examine: Callable[[DatabaseTarget, P], P],
    connections: int,
    show: Callable[[str], None],
    folders: tuple[str, ...] = (),
) -> P:
    """Open the databases and examine them for a plan, unless that was done for this very plan.

    Parameters
    ----------
    examine
        Refuses what cannot be done, and gives the plan as it fits.
    connections
        How many each server has to take.
    folders
        Folders of the servers that will be used later.

    Raises
    ------
    UsageError, OpenFailed, NotSupported, RefusedTarget, OutOfSpace
        As `DatabaseTarget.open` and `examine` raise them.
    """
    if plan not in target.examined:
        _refuse_missing(target, plan)
        target.open(connections, show, folders)
        target.examined = plan, examine(target, plan)
    fitted: P = target.examined[-1]
    return fitted


def _refuse_missing(target: DatabaseTarget, plan: DatabasesPlan) -> None:
    """Refuse what begins with a loaded database where there is none: opening it would make one of a mistyped name.

    Raises
    ------
    UsageError
        A database of Assay's own is not there.
    """
    first = next(iter(plan.actions), "load")
    if first == "load" or target.is_open:
        return
    for database in target.databases:
        if is_missing(database.spec):
            raise UsageError(
                f"{database.spec.display}: there is no such database to {first}; check the name, or load one first with"
                " the action: load"
            )


def is_missing(spec: DatabaseSpec) -> bool:
    """Whether the folder, the file or the array's store is not there or empty; of a server only it can tell."""
    place = spec.array.store if spec.array is not None else spec.directory or spec.file
    if place is None:
        return False
    try:
        return not os.listdir(place)
    except FileNotFoundError:
        return True
    except OSError:
        # A file, or what is refused when it is opened.
        return False


def examine_actions(target: DatabaseTarget, plan: DatabasesPlan) -> None:
    """Refuse what the plan's actions cannot do with what is there, and take down how much each database holds.

    Raises
    ------
    UsageError, RefusedTarget, OutOfSpace
        There is nothing to work on, something else is there, or there is too little room.
    """
    for database, share in zip(target.databases, plan.shares(len(target.databases)), strict=True):
        target.scale[database.name] = _examine_one(database, plan, share)
        target.shape[database.name] = shape_of(database, plan)


def _examine_one(database: Database, plan: DatabasesPlan, share: int) -> int:
    there = database.schema()
    if there.kind == "foreign":
        refuse_foreign(database.name, there.tables)
    if plan.takes_others and there.kind == "absent" and "load" not in plan.actions:
        return share
    kind, scale, saved = there.kind, there.scale, database.saved()
    key = database.table_set.scale
    # How many the work is on: those that are dropped in the end were there before. A run that goes on may have
    # nothing left to do but its points.
    worked_on = scale
    for action in plan.actions:
        if action == "load":
            if plan.reloads and kind == "complete" and (scale or 0) >= share:
                continue
            if plan.reloads and not (
                kind == "partial" and is_part_of(there, share, plan.rows_seed, shape_of(database, plan))
            ):
                kind, scale = "absent", None
            if kind in ("partial", "complete") and scale is not None:
                _refuse_other(database, there, plan, share)
            elif kind == "broken":
                _refuse_unloaded(database, action, kind)
            else:
                scale = share
            if kind != "complete":
                _refuse_without_room(database, scale or share, shape_of(database, plan))
                database.check_rights()
            kind = "complete"
        elif action == "drop":
            kind, scale, saved = "absent", None, None
        elif action == "restore":
            if saved is None:
                raise UsageError(f"{database.name}: there is no saved state; keep one with the action: save")
            saved_scale = saved[key]
            kind, scale = "complete", saved_scale if isinstance(saved_scale, int) else None
        else:
            _refuse_unloaded(database, action, kind)
            _refuse_other_shape(database, there, plan)
            if plan.scale_asked is not None and not plan.reloads and scale != share:
                _refuse_other(database, there, plan, share)
            saved = {key: scale} if action == "save" else saved
        worked_on = scale or worked_on
    return worked_on or 0


def loading_words(target: Target, plan: DatabasesPlan) -> str:
    """What the action `load` writes and where; rows that are there already are not loaded again."""
    if "load" not in plan.actions or not isinstance(target, DatabaseTarget):
        return ""
    size = target.databases[0].table_set.size
    rows_bytes = size.bytes_of({**target.databases[0].table_set.shape, **plan.shape_asked})
    total_bytes = sum(target.scale.get(database.name) or share for database, share in
                      zip(target.databases, plan.shares(len(target.databases)), strict=True)) * rows_bytes  # fmt: skip
    names = ", ".join(dict.fromkeys(database.spec.display for database in target.databases))
    return f"loading writes up to about {format_bytes(total_bytes)} to {names}"


def _refuse_without_room(database: Database, scale: int, shape: Mapping[str, int]) -> None:
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
    size = database.table_set.size
    log_bytes = min(scale * size.log_bytes_each, LOG_MAX_BYTES) if has_log else 0
    rows_bytes = size.bytes_of(shape)
    needed_bytes = scale * rows_bytes + log_bytes
    free_bytes = space.f_bavail * space.f_frsize + database.bytes_used()
    if needed_bytes > free_bytes:
        each_bytes = rows_bytes + (size.log_bytes_each if has_log else 0)
        fits = max((free_bytes - log_bytes) // rows_bytes, free_bytes // each_bytes)
        fits -= fits % size.step
        hint = f"give --{size.option} {size.number(fits)} or fewer" if fits else "free some space"
        raise OutOfSpace(
            f"{database.name}: {size.words(scale)} need about {format_bytes(needed_bytes)},"
            f" and {directory} has {format_bytes(free_bytes)} free; {hint}"
        )


def shape_of(database: Database, plan: DatabasesPlan) -> dict[str, int]:
    """Numbers that decide the rows beside scale and seed: as the plan asks, else as loaded, else the defaults."""
    there = database.schema()
    held = there.shape if there.kind in ("partial", "complete") else {}
    return {**database.table_set.shape, **held, **plan.shape_asked}


def is_part_of(there: SchemaState, scale: int, seed: int, shape: Mapping[str, int]) -> bool:
    """Whether a load that was cut short is one of that scale, seed and shape."""
    return (there.scale, there.seed, {**there.shape}) == (scale, seed, {**shape})


def _refuse_other_shape(database: Database, there: SchemaState, plan: DatabasesPlan) -> None:
    for name, number in plan.shape_asked.items():
        if name in there.shape and there.shape[name] != number:
            raise UsageError(
                f"{database.name}: was loaded with {name} {there.shape[name]:,}, not {number:,}; ask for what is there,"
                " or remove it first with the action: drop"
            )


def _refuse_other(database: Database, there: SchemaState, plan: DatabasesPlan, share: int) -> None:
    """Refuse tables that are loaded with another size or seed."""
    _refuse_other_shape(database, there, plan)
    if (plan.scale_asked is None or there.scale == share) and there.seed == plan.rows_seed:
        return
    size = database.table_set.size
    asked = (there.scale if plan.scale_asked is None else share) or 0
    held, wanted, option = size.words(there.scale or 0), size.number(asked), size.option
    if size.is_seeded:
        held, wanted, option = f"{held} of seed {there.seed}", f"{wanted} of seed {plan.rows_seed}", f"{option}, seed"
    raise UsageError(
        f"{database.name}: holds {held}, not {wanted}; ask for what is there ({option}), or remove it first with the"
        " action: drop"
    )


def _refuse_unloaded(database: Database, action: str, kind: str) -> None:
    """Refuse work on tables that are not whole."""
    name = database.name
    if kind == "absent":
        things = database.table_set.size.things
        raise UsageError(f"{name}: has no {things} to {action}; load them first with the action: load")
    if kind == "partial":
        raise UsageError(f"{name}: its load was cut short; go on with it first with the action: load")
    if kind == "broken":
        raise UsageError(f"{name}: restoring it was cut short; do it again with the action restore, or drop it")

"""Databases as the target of a run: opened, examined, refused before anything is written, and described."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, Interrupted, OutOfSpace, UsageError
from assay.targets.databases import Database, SchemaState, open_database, parse_databases
from assay.targets.databases.layout import refuse_layout
from assay.targets.databases.refusals import refuse_foreign
from assay.targets.host import folder_facts
from assay.telemetry.collectors import BlockCollector, database_collectors, devices_by_role, roles_by_device
from assay.units import count_of, format_bytes
from assay.workloads.tpcc.background import refuse_unknown
from assay.workloads.tpcc.plan import WAREHOUSES_DEFAULT, TpccPlan, shares_of

if TYPE_CHECKING:
    from assay.telemetry.recorder import Collector

BYTES_PER_WAREHOUSE = 110 << 20
"""Room a loaded warehouse takes with its indexes, rounded up."""
LOG_BYTES_PER_WAREHOUSE, LOG_MOST_BYTES = 85 << 20, 1 << 30
"""Log that loading one writes, and what servers keep of it at least before they use it again."""

OWN_CONNECTIONS = 2
"""Connections of Assay's beside those of the users: the recorder's, and one for what a point asks meanwhile."""

WAIT_S = 0.5
"""Time between two looks at a server that is away."""

CACHE_NOTICE = "caches of the database, the host and the storage are part of what is measured"


@dataclass(kw_only=True)
class DatabaseRequest:
    """What the user asked of the target, as far as a resumed run needs it again. Holds no secrets."""

    targets: list[str]

    def choose(self, environ: Mapping[str, str] = os.environ) -> DatabaseTarget:
        """The databases, not opened yet.

        Raises
        ------
        UsageError
            A target is not understood.
        """
        specs = parse_databases(self.targets, environ)
        self.targets = [spec.recorded for spec in specs]
        return DatabaseTarget(databases=[open_database(spec) for spec in specs])

    def to_dict(self) -> dict[str, Any]:
        """The request as the manifest keeps it."""
        return {"targets": list(self.targets)}


@dataclass(kw_only=True)
class DatabaseTarget:
    """The databases of a run, which are one system."""

    databases: Sequence[Database]
    warehouses: dict[str, int] = field(default_factory=dict)
    """Warehouses of each database, once `examine` has looked."""
    devices: dict[str, list[str]] = field(default_factory=dict)
    """Block devices under each role; none for servers elsewhere."""
    notices: list[str] = field(default_factory=list)
    array: None = None
    is_open: bool = False
    _facts: dict[str, Any] = field(default_factory=dict)
    _prepared: tuple[TpccPlan, ...] = ()
    """The plan that was examined, as it was asked and as it fits."""

    @property
    def warehouses_total(self) -> int:
        """Warehouses of all databases."""
        return sum(self.warehouses.values())

    def prepare(self, plan: TpccPlan, show: Callable[[str], None]) -> TpccPlan:
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
        if plan not in self._prepared:
            self.open(plan, show)
            self._prepared = plan, self.examine(plan)
        return self._prepared[-1]

    def open(self, plan: TpccPlan, show: Callable[[str], None]) -> None:
        """Start the servers that Assay runs itself, and connect to all; those that are open stay so.

        Raises
        ------
        UsageError, OpenFailed, NotSupported
            A server cannot be started or reached, or is not one that is supported.
        RefusedTarget
            Another run is at work on a database.
        """
        was_open, self.is_open = self.is_open, True
        for database in self.databases:
            if database.spec.kind == "embedded":
                show(f"starting the server of {database.name}")
                database.open(connections=connections_needed(plan, len(self.databases)))
            elif not was_open:
                # Whether it takes as many connections is asked in `examine`, where users may be told to share them.
                show(f"connecting to {database.name}")
                # While another run copies it, a database takes no connections, and only its lock says why.
                database.hold()
                database.open()
        # Folders that a layout will use are recorded from the first point on.
        later = [{f"data:{folder}": folder} for folder in plan.layout.directories if self.has_folder(folder)]
        self.devices = devices_by_role([*(database.storage_paths() for database in self.databases), *later])
        self._facts = self._look()

    def has_folder(self, folder: str) -> bool:
        """Whether a folder of the servers is one of this host."""
        return all(database.is_local for database in self.databases) and os.path.isdir(folder)

    def revive(self) -> None:
        """Start those servers again that Assay runs itself and that ended; the recovery after a crash is waited for.

        Raises
        ------
        OpenFailed, OutOfSpace
            One does not start.
        """
        for database in self.databases:
            if database.revive():
                self.notices.append(f"the server of {database.name} ended during the work, and was started again")

    def wait(self, timeout_s: float, interrupt: threading.Event) -> None:
        """Wait until all servers answer again after one was away.

        Raises
        ------
        Interrupted, AssayError
            One does not answer in so many seconds; it says why.
        """
        deadline = time.monotonic() + timeout_s
        for database in self.databases:
            while True:
                try:
                    self.revive()
                    database.schema()
                    break
                except AssayError:
                    if time.monotonic() > deadline:
                        raise
                if interrupt.wait(WAIT_S):
                    raise Interrupted("interrupted while waiting for a server")

    def hold(self) -> None:
        """Make sure that no other run is at work on the databases, before something is done with them.

        Raises
        ------
        RefusedTarget
            One came in while a server was away.
        """
        for database in self.databases:
            database.hold()

    def close(self) -> None:
        """Leave the databases, and stop the servers that `open` started. Closing twice is harmless.

        Raises
        ------
        AssayError
            A server does not stop; all others were left.
        """
        self.is_open, self._prepared = False, ()
        with ExitStack() as stack:
            for database in self.databases:
                stack.callback(database.close)

    def examine(self, plan: TpccPlan) -> TpccPlan:
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
        defaults = shares_of(plan.warehouses or WAREHOUSES_DEFAULT, len(self.databases))
        if not defaults[-1]:
            raise UsageError(f"--warehouses {plan.warehouses}: {len(self.databases)} databases need one each at least")
        for database, share in zip(self.databases, defaults, strict=True):
            self._examine_one(database, plan, share)
        for option, count in (("users", plan.users), ("connections", plan.connections)):
            if "run" in plan.actions and count is not None and count < len(self.databases):
                raise UsageError(f"--{option} {count}: {len(self.databases)} databases need one each at least")
        return self._within_connections(plan) if "run" in plan.actions else plan

    def _examine_one(self, database: Database, plan: TpccPlan, share: int) -> None:
        there = database.schema()
        if there.kind == "foreign":
            refuse_foreign(database.name, there.tables)
        kind, warehouses, saved = there.kind, there.warehouses, database.saved()
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
                    self._refuse_without_room(database, warehouses or share)
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
        self.warehouses[database.name] = worked_on or 0
        if "run" in plan.actions:
            refuse_unknown(database, plan.background)
            refuse_layout(
                database,
                places=plan.layout.tablespaces,
                ways=plan.layout.ways_of(worked_on or 0),
                warehouses=worked_on,
            )

    def _refuse_without_room(self, database: Database, warehouses: int) -> None:
        paths = database.storage_paths()
        directory = paths.get("data")
        if directory is None:
            return
        try:
            space = os.statvfs(directory)
            has_log = "log" in paths and os.stat(paths["log"]).st_dev == os.stat(directory).st_dev
        except OSError:
            # Folders of a server that runs as somebody else; it will say itself when they are full.
            return
        log_bytes = min(warehouses * LOG_BYTES_PER_WAREHOUSE, LOG_MOST_BYTES) if has_log else 0
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

    def _within_connections(self, plan: TpccPlan) -> TpccPlan:
        count = len(self.databases)
        free = {facts["name"]: facts["connections_free"] for facts in self._facts["databases"]}
        name = min(free, key=lambda one: free[one] if free[one] is not None else math.inf, default=None)
        least = free[name] if name is not None else None
        if name is None or least is None:
            return plan
        # The recorder and work beside the transactions have connections of their own.
        least = max(least - OWN_CONNECTIONS - len(plan.background), 0)
        of_load = max(math.ceil((plan.connections or plan.users) / count), 1)
        if of_load > least:
            most = next(facts["max_connections"] for facts in self._facts["databases"] if facts["name"] == name)
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
        self.notices.append(f"the search ends at {least * count} users: the server of {name} takes no more connections")
        return plan.model_copy(update={"search": plan.search.model_copy(update={"end": float(least * count)})})

    @property
    def all_notices(self) -> list[str]:
        """What is to be said of the databases by now, each once."""
        of_databases = [notice for database in self.databases for notice in database.notices]
        return list(dict.fromkeys([*self.notices, *of_databases]))

    @property
    def is_local(self) -> bool:
        """Whether all servers run on this host, so that its CPU and devices are theirs."""
        return all(facts.get("is_local") for facts in self._facts.get("databases", []))

    def collectors(self, recorded: Collection[str] = ()) -> list[Collector[Any]]:
        """What records the databases, and the devices under them except those that are `recorded` anyway."""
        roles = roles_by_device(self.devices)
        devices = sorted(device for device in roles if device not in recorded)
        block: list[Collector[Any]] = [BlockCollector(devices, roles=roles)] if devices else []
        return [*block, *database_collectors(self.databases)]

    def facts(self) -> dict[str, Any]:
        """The manifest's `target`, as the servers last told."""
        return self._facts or {"databases": [], "volumes": [], "cache_notice": CACHE_NOTICE}

    def refresh(self) -> None:
        """Look again at what may have changed, such as sizes; a server that is away changes nothing."""
        try:
            self._facts = self._look()
        except AssayError:
            return

    def _look(self) -> dict[str, Any]:
        databases = [database.facts() for database in self.databases]
        volumes = [volume for database in self.databases for volume in _volumes(database)]
        return {"databases": databases, "volumes": volumes, "cache_notice": CACHE_NOTICE}


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
    return (there.warehouses, there.seed) == (warehouses, seed)


def _refuse_other(name: str, there: SchemaState, plan: TpccPlan, share: int) -> None:
    """Refuse what is there with another size or seed."""
    if (plan.warehouses is None or there.warehouses == share) and there.seed == plan.seed:
        return
    asked = there.warehouses if plan.warehouses is None else share
    raise UsageError(
        f"{name}: holds {count_of(there.warehouses or 0, 'warehouse')} of seed {there.seed}, not {asked} of seed"
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


def _volumes(database: Database) -> list[dict[str, Any]]:
    """Places where a server on this host stores, in the form of volumes."""
    used_bytes = database.bytes_used()
    volumes = []
    for role, path in database.storage_paths().items():
        try:
            storage = folder_facts(path)
        except OSError as error:
            storage = {"file_system": None, "mount_options": None, "device": None, "device_stack": [], "model": None}
            storage |= {"queue": None, "note": f"cannot be looked at: {error.strerror}"}
        volumes.append(
            {
                "name": f"{database.name}-{role.replace(':', '-')}",
                "path": str(path),
                "kind": "database",
                "role": {"temp": "tempdb"}.get(role, role.partition(":")[0]),
                "size_bytes": used_bytes if role == "data" else 0,
                "state": "unknown",
                "bytes_laid_out": 0,
                "created_by_assay": database.spec.kind == "embedded",
                **storage,
            }
        )
    return volumes

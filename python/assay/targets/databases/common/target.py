"""Databases as a target: one system that is opened, told of, and left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from assay.base.errors import AssayError, Interrupted, UsageError
from assay.base.extras import require
from assay.base.progress import Display
from assay.record.shapes.manifest import Volume
from assay.targets.arrays.live.process import ServedArray, served_array
from assay.targets.databases import Database, open_database, parse_databases
from assay.targets.databases.common.facts import DatabasesShown, DatabasesTold
from assay.targets.databases.common.spec import SPELT, Kind
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.kinds import DRIVERS
from assay.targets.host import devices_by_role, folder_facts

WAIT_S = 0.5
"""Time between two looks at a server that is away."""

CACHE_NOTICE = "caches of the database, the host and the storage are part of what is measured"


@dataclass(kw_only=True)
class DatabaseTarget:
    """The databases of a run, which are one system."""

    databases: Sequence[Database]
    scale: dict[str, int] = field(default_factory=dict)
    shape: dict[str, dict[str, int]] = field(default_factory=dict)
    """What decides the rows of each beside scale and seed, as its table set names it."""
    """How much of its rows a workload has in each database, in units of its own, once it has looked."""
    devices: dict[str, list[str]] = field(default_factory=dict)
    """Block devices under each role; none for servers elsewhere."""
    notices: list[str] = field(default_factory=list)
    is_virtual: bool = False
    is_here: bool = True
    runs_on: Literal["storage", "databases"] = "databases"
    layout_bytes: None = None
    device_names: list[str] = field(default_factory=list)
    """None: the devices under databases are recorded while a part runs on them."""
    is_open: bool = False
    examined: tuple[Any, ...] = ()
    """The plan that was examined, as it was asked and as it fits; forgotten when the databases are left."""
    _facts: DatabasesTold | None = None
    _has_power: bool = True

    @property
    def served(self) -> list[ServedArray]:
        """Arrays that the run serves for its databases."""
        specs = {database.spec.array.folder: database.spec.array for database in self.databases if database.spec.array}
        return [served_array(spec, mounted=True) for spec in specs.values()]

    @property
    def scale_total(self) -> int:
        """That of all databases."""
        return sum(self.scale.values())

    def open(self, connections: int, show: Callable[[str], None], folders: Sequence[str] = ()) -> None:
        """Start the servers that Assay runs itself, and connect to all; those that are open stay so.

        Parameters
        ----------
        connections
            How many each server has to take.
        show
            Told what is being done.
        folders
            Folders of the servers that will be used later, which are recorded from the first point on.

        Raises
        ------
        UsageError, OpenFailed, NotSupported
            A server cannot be started or reached, or is not one that is supported.
        RefusedTarget
            Another run is at work on a database.
        """
        for array in self.served:
            array.start(show)
        was_open, self.is_open = self.is_open, True
        for database in self.databases:
            if database.is_own:
                show(f"opening {database.name}" if database.in_process else f"starting the server of {database.name}")
                database.open(connections=connections)
            elif not was_open:
                # Whether it takes as many connections is asked later, where users may be told to share them.
                show(f"connecting to {database.name}")
                # While another run copies it, a database takes no connections, and only its lock says why.
                database.hold()
                database.open()
        usual = [place for database in self.databases for place in database.usual_places()]
        later = [{f"data:{folder}": folder} for folder in [*folders, *usual] if self.has_folder(folder)]
        self.devices = devices_by_role([*(database.storage_paths() for database in self.databases), *later])
        if self.served:
            # A folder whose volume was unmounted lies on a disk of this host.
            own = {device for array in self.served for device in array.devices().values()}
            self.devices = {role: [one for one in found if one in own] for role, found in self.devices.items()}
        self._facts = self._look()

    def has_folder(self, folder: str) -> bool:
        """Whether a folder of the servers is one of this host."""
        return all(database.is_local for database in self.databases) and os.path.isdir(folder)

    def lose_power(self) -> None:
        """Servers, the host's memory of their file systems, and then their arrays lose power.

        Raises
        ------
        AssayError
            It cannot be done here.
        """
        self._has_power = False
        # Without file systems no commit is acknowledged any more.
        for array in self.served:
            array.shut_down()
        for database in self.databases:
            database.lose_power()
        for array in self.served:
            array.lose_power()

    def regain_power(self) -> None:
        """The power is back: file systems go through their journals, and servers recover.

        Raises
        ------
        AssayError
            A file system or a server does not come back.
        """
        for array in self.served:
            array.regain_power()
        for database in self.databases:
            database.regain_power()
        self._has_power = True

    def revive(self) -> None:
        """Start those servers again that Assay runs itself and that ended; the recovery after a crash is waited for.

        Raises
        ------
        OpenFailed, OutOfSpace
            One does not start.
        """
        if not self._has_power:
            return
        for array in self.served:
            array.refuse_gone()
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
        self.is_open, self.examined = False, ()
        with ExitStack() as stack:
            for database in self.databases:
                if any(array.is_gone or array.lost_volume() or array.cause() for array in self.served):
                    # What it stands on does not answer or takes no writes: it would wait for that for ever.
                    database.lose_power()
                stack.callback(database.close)

    @property
    def all_notices(self) -> list[str]:
        """Notices of the databases so far, each once."""
        of_databases = [notice for database in self.databases for notice in database.notices]
        return list(dict.fromkeys([*self.notices, *of_databases]))

    @property
    def is_local(self) -> bool:
        """Whether all servers run on this host, so that its CPU and devices are theirs."""
        return all(facts.get("is_local") for facts in self.facts()["databases"])

    def begin_run(self, run: str) -> None:
        """Nothing: databases carry marks of their own."""

    def leave(self, display: Display) -> list[str]:
        """Stop the servers that the run started; a notice names one that does not stop; the figures stay."""
        if not self.is_open:
            return []
        display.phase("leaving the databases")
        notices = self.all_notices
        try:
            self.close()
        except AssayError as error:
            notices.append(str(error))
        return notices

    def settle(self) -> None:
        """Nothing: databases carry marks of their own."""

    def permissions_again(self, yes_destroy: Collection[str]) -> list[str]:
        """None: a run on databases overwrites nothing of others."""
        return []

    def lines(self) -> list[str]:
        """The databases in words."""
        return [f"database {database.name}: {database.spec.display}" for database in self.databases]

    def document(self) -> DatabasesShown:
        """The databases, for `--dry-run --json`."""
        return {
            "databases": [
                {"name": database.name, "target": database.spec.display, "kind": database.spec.kind}
                for database in self.databases
            ]
        }

    def facts(self) -> DatabasesTold:
        """The manifest's `target`, as the servers last told."""
        return self._facts or {"databases": [], "volumes": [], "cache_notice": CACHE_NOTICE}

    def refresh(self) -> None:
        """Look again at what may have changed, such as sizes; a server that is away changes nothing."""
        try:
            self._facts = self._look()
        except AssayError:
            return

    def _look(self) -> DatabasesTold:
        databases = [database.facts() for database in self.databases]
        volumes = [volume for database in self.databases for volume in _volumes(database)]
        found: DatabasesTold = {"databases": databases, "volumes": volumes, "cache_notice": CACHE_NOTICE}
        if self.served:
            found["served"] = [array.facts() for array in self.served]
        return found


def _volumes(database: Database) -> list[Volume]:
    """Places where a server on this host stores, in the form of volumes."""
    used_bytes = database.bytes_used()
    volumes: list[Volume] = []
    for role, path in database.storage_paths().items():
        try:
            storage = folder_facts(path)
        except OSError as error:
            storage = {"file_system": None, "mount_options": None, "device": None, "device_stack": [], "model": None}
            storage |= {"queue": None, "note": f"cannot be looked at: {error.strerror}"}
        own: Volume = {
            "name": f"{database.name}-{role.replace(':', '-')}",
            "path": str(path),
            "kind": "database",
            "role": {"temp": "tempdb"}.get(role, role.partition(":")[0]),
            "size_bytes": used_bytes if role == "data" else 0,
            "state": "unknown",
            "bytes_laid_out": 0,
            "created_by_assay": database.is_own,
        }
        volumes.append(cast(Volume, {**own, **storage}))
    return volumes


def choose_databases(
    texts: Sequence[str],
    table_set: TableSet,
    kinds: Sequence[Kind] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    modules: Sequence[str] = (),
) -> DatabaseTarget:
    """The databases that a command names, not opened yet, for a workload's tables.

    Parameters
    ----------
    kinds
        Those that the workload runs on; none: all.
    modules
        What the workload needs besides the drivers (`assay.base.extras.PACKAGES`).

    Raises
    ------
    UsageError
        A target is not understood, or of a kind that the workload does not run on.
    NotSupported
        A package is not installed.
    """
    specs = parse_databases(texts, environ)
    for spec in specs:
        if kinds and spec.kind not in kinds:
            accepted = ", ".join(SPELT[kind] for kind in kinds)
            raise UsageError(f"target {spec.display}: this workload does not run on {spec.kind}; accepted: {accepted}")
        require(spec.display, *DRIVERS[spec.kind], *modules)
    return DatabaseTarget(databases=[open_database(spec, table_set) for spec in specs])

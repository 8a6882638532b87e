"""Sources of telemetry, one file each; `assay.telemetry.recorder.Collector` is what they implement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.base.errors import UsageError
from assay.record.served_names import prefixes
from assay.targets.host import roles_by_device
from assay.telemetry.collectors.activity import ServerActivity, activity, hottest
from assay.telemetry.collectors.block import BlockCollector
from assay.telemetry.collectors.cpu import CpuCollector
from assay.telemetry.collectors.duckdb import DuckdbCollector
from assay.telemetry.collectors.ebs import EbsCollector, ebs_devices
from assay.telemetry.collectors.mariadb import MariadbCollector
from assay.telemetry.collectors.memory import MemoryCollector
from assay.telemetry.collectors.mssql import MssqlCollector
from assay.telemetry.collectors.net import NetCollector
from assay.telemetry.collectors.paging import PagingCollector
from assay.telemetry.collectors.postgresql import PostgresqlCollector
from assay.telemetry.collectors.psi import PsiCollector
from assay.telemetry.collectors.run_queue import RunQueueCollector
from assay.telemetry.collectors.served_array import ServedArrayCollector
from assay.telemetry.collectors.storage_net import StorageNetCollector
from assay.telemetry.collectors.tcp_recovery import TcpRecoveryCollector

if TYPE_CHECKING:
    from assay.targets.databases import Database
    from assay.targets.target import Target
    from assay.telemetry.collectors.database import DatabaseCollector, ObserverSession
    from assay.telemetry.recorder import Collector

__all__ = [
    "BlockCollector",
    "CpuCollector",
    "DuckdbCollector",
    "MariadbCollector",
    "MemoryCollector",
    "MssqlCollector",
    "NetCollector",
    "PagingCollector",
    "PostgresqlCollector",
    "PsiCollector",
    "RunQueueCollector",
    "ServedArrayCollector",
    "ServerActivity",
    "StorageNetCollector",
    "TcpRecoveryCollector",
    "activity",
    "database_collectors",
    "host_collectors",
    "hottest",
    "target_collectors",
]


def host_collectors(devices: Sequence[str] = (), *, roles: Mapping[str, str] | None = None) -> list[Collector[Any]]:
    """Collectors of everything this host can tell about a point: CPU, memory, pressure, devices, TCP.

    Parameters
    ----------
    devices
        Block devices under the target by kernel name, such as `vda`; none for targets without a device.
    roles
        Role of a device where it has one, such as `{"vdb": "log"}`.
    """
    host: list[Collector[Any]] = [
        CpuCollector(),
        MemoryCollector(),
        PsiCollector(),
        PagingCollector(),
        RunQueueCollector(),
        NetCollector(),
        TcpRecoveryCollector(),
        StorageNetCollector(),
    ]
    return [*host, *block_collectors(devices, roles=roles)]


def block_collectors(
    devices: Sequence[str], *, roles: Mapping[str, str] | None = None, totals: bool = False
) -> list[Collector[Any]]:
    """Collectors of block devices: the kernel's counters, and those that volumes of EBS have of their limits."""
    found: list[Collector[Any]] = [BlockCollector(devices, roles=roles, totals=totals)] if devices else []
    volumes = ebs_devices(devices)
    return [*found, EbsCollector(volumes)] if volumes else found


def database_collectors(databases: Sequence[Database], *, beside: bool = True) -> list[Collector[Any]]:
    """Collectors of the servers of databases that are open: one for each server, on a connection of its own.

    Parameters
    ----------
    databases
        The databases under load; those on one server share its collector.
    beside
        Whether to connect to another database of a server, as one in use can be neither saved nor restored. In its own
        the names of tables are known.
    """
    kinds: dict[str, type[DatabaseCollector]] = {
        "postgresql": PostgresqlCollector,
        "mssql": MssqlCollector,
        "duckdb": DuckdbCollector,
    }
    servers: dict[tuple[object, ...], list[Database]] = {}
    for database in databases:
        if database.dialect == "spark":
            # It counts no reads and writes: what its storage does is seen at the devices.
            continue
        servers.setdefault(database.server, []).append(database)
    return [
        kinds.get(group[0].dialect, MariadbCollector)(
            partial(_session_beside, group[0]) if beside else group[0].new_session,
            {database.spec.database: database.name for database in group},
        )
        for group in servers.values()
    ]


def _session_beside(database: Database) -> ObserverSession:
    """Connect for observing; on PostgreSQL to another database, since one in use cannot be saved or restored."""
    if database.dialect == "postgresql":
        from assay.targets.databases.postgresql.database import Postgresql

        assert isinstance(database, Postgresql)
        try:
            return database.new_session("postgres")
        except UsageError:
            # That database is missing or closed to this user.
            return database.new_session()
    return database.new_session()


def target_collectors(target: Target, recorded: Collection[str] = ()) -> list[Collector[Any]]:
    """What records a target while a part runs: databases, devices except those `recorded` anyway, served arrays."""
    roles = roles_by_device(target.devices)
    devices = sorted(device for device in roles if device not in recorded)
    prefix = prefixes(str(array.folder) for array in target.served)
    arrays = [
        ServedArrayCollector(
            array.ask, {name: role for name, role, _ in array.spec.volumes()}, prefix=prefix[str(array.folder)]
        )
        for array in target.served
    ]
    block = block_collectors(devices, roles=roles)
    return [*block, *(database_collectors(target.databases) if target.databases else ()), *arrays]

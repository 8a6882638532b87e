"""The load of several servers on one target, as a level of a study."""

from __future__ import annotations

from typing import Any

from assay.base.errors import UsageError
from assay.base.tables import Record, TableValue
from assay.workloads.capabilities import OfServers
from assay.workloads.workload import Workload

SERVERS_MAX = 64
"""Servers whose loads are laid over each other."""


def load_of_servers(workload: Workload[Any], data: Record, servers: TableValue, where: str) -> dict[str, TableValue]:
    """The plan of a load with that of so many servers.

    Raises
    ------
    UsageError
        The level is no number of servers, or the load is none that several servers have.
    """
    if not isinstance(servers, int) or not 1 <= servers <= SERVERS_MAX:
        raise UsageError(f"{where}: a level of load is a number of servers from 1 to {SERVERS_MAX} (given {servers})")
    if not isinstance(workload, OfServers):
        raise UsageError(f"{where}: a {workload.kind} workload has no load of several servers")
    return workload.of_servers(data, servers, source=where)

"""Sources of telemetry, one file each; `assay.telemetry.recorder.Collector` is what they implement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.telemetry.collectors.block import BlockCollector
from assay.telemetry.collectors.cpu import CpuCollector
from assay.telemetry.collectors.memory import MemoryCollector
from assay.telemetry.collectors.net import NetCollector
from assay.telemetry.collectors.psi import PsiCollector

if TYPE_CHECKING:
    from assay.telemetry.recorder import Collector

__all__ = ["BlockCollector", "CpuCollector", "MemoryCollector", "NetCollector", "PsiCollector", "host_collectors"]


def host_collectors(devices: Sequence[str] = (), *, roles: Mapping[str, str] | None = None) -> list[Collector[Any]]:
    """Collectors of everything this host can tell about a point: CPU, memory, pressure, devices, TCP.

    Parameters
    ----------
    devices
        Block devices under the target by kernel name, such as `vda`; none for targets without a device.
    roles
        Role of a device where it has one, such as `{"vdb": "log"}`.
    """
    host: list[Collector[Any]] = [CpuCollector(), MemoryCollector(), PsiCollector(), NetCollector()]
    return [*host, BlockCollector(devices, roles=roles)] if devices else host

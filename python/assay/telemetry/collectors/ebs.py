"""Counters that Amazon EBS volumes have of their limits: how long more was asked for than volume or instance may do.

Source: log page 0xD0 of the volumes' NVMe controllers, as nvme-cli's `amzn stats` reads it (plugins/amzn/amzn-nvme.c);
Amazon EBS detailed performance statistics. It is read by NVME_IOCTL_ADMIN_CMD (linux/nvme_ioctl.h) with Get Log Page
alone: nothing is written.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.base.paths import open_without_links
from assay.targets.kernel import read_text
from assay.targets.nvme import admin_command
from assay.telemetry.columns import Reading

MODEL = "Amazon Elastic Block Store"
MAGIC = 0x3C23B510
LOG_PAGE = 0xD0
PAGE_BYTES = 4096
"""The page without the histograms by size of I/O, which later versions append."""
_HEAD = struct.Struct("<II11Q")
"""Magic, version, and the counters in the order of `EbsCounters`."""
_GET_LOG_PAGE = 0x02
_NAMESPACE = 1
_TIMEOUT_MS = 1000


class EbsCounters(NamedTuple):
    """Counters since the volume was attached; times in microseconds."""

    read_ops: int
    write_ops: int
    read_bytes: int
    write_bytes: int
    read_us: int
    write_us: int
    volume_iops_exceeded_us: int
    volume_throughput_exceeded_us: int
    instance_iops_exceeded_us: int
    instance_throughput_exceeded_us: int
    queue_length: int


def parse_page(page: bytes) -> EbsCounters | None:
    """The counters of a log page; None where it is none of an EBS volume."""
    if len(page) < _HEAD.size:
        return None
    magic, _version, *counters = _HEAD.unpack_from(page)
    return EbsCounters(*counters) if magic == MAGIC else None


def read_page(device: str) -> bytes:
    """The log page of a device.

    Raises
    ------
    OSError
        It cannot be opened, or does not have the page.
    """
    descriptor = open_without_links(f"/dev/{device}", os.O_RDONLY)
    try:
        return admin_command(
            descriptor,
            _GET_LOG_PAGE,
            namespace=_NAMESPACE,
            words=(LOG_PAGE | (PAGE_BYTES // 4 - 1) << 16,),
            timeout_ms=_TIMEOUT_MS,
            answer_bytes=PAGE_BYTES,
        )
    finally:
        os.close(descriptor)


def ebs_devices(names: Sequence[str], folder: str | Path = "/sys/block") -> list[str]:
    """Those of the devices that are EBS volumes of an instance with NVMe."""
    return [
        name
        for name in names
        if name.startswith("nvme") and (read_text(Path(folder) / name / "device/model") or "").strip() == MODEL
    ]


class EbsCollector:
    """Counters of each volume.

    Parameters
    ----------
    devices
        Names of the block devices.
    read
        Reads the log page of a device.
    """

    name = "ebs"
    tier = "storage"
    source = "block"

    def __init__(self, devices: Sequence[str], read: Callable[[str], bytes] = read_page) -> None:
        self._devices, self._read = devices, read

    def sample(self) -> dict[str, EbsCounters]:
        """Ask each volume.

        Raises
        ------
        NotSupported
            None can be asked.
        """
        found, reason = {}, "there is no volume of EBS"
        for device in self._devices:
            try:
                counters = parse_page(self._read(device))
            except OSError as error:
                reason = f"{device}: its statistics cannot be read: {error.strerror or error}"
                continue
            if counters is None:
                reason = f"{device}: answers with another page; EBS statistics need an instance with Nitro"
                continue
            found[device] = counters
        if not found:
            raise NotSupported(reason)
        return found

    def readings(
        self, before: Mapping[str, EbsCounters], after: Mapping[str, EbsCounters], interval_ns: int
    ) -> Iterator[Reading]:
        """Share of the interval in which more was asked for than a limit allows, of each volume and of the instance."""
        instance: dict[str, float] = {}
        for device, new in after.items():
            old = before.get(device)
            if old is None or new.read_ops < old.read_ops:
                # Attached anew.
                continue
            for limit in ("iops", "throughput"):
                metric = "iops_exceeded_share" if limit == "iops" else "bandwidth_exceeded_share"
                yield Reading(device, metric, "gauge", _share(old, new, f"volume_{limit}_exceeded_us", interval_ns))
                of_instance = _share(old, new, f"instance_{limit}_exceeded_us", interval_ns)
                instance[metric] = max(instance.get(metric, 0.0), of_instance)
        for metric, share in instance.items():
            yield Reading("ebs", metric, "gauge", share)

    def close(self) -> None:
        """Nothing is held."""


def _share(old: EbsCounters, new: EbsCounters, name: str, interval_ns: int) -> float:
    grown_us = getattr(new, name) - getattr(old, name)
    return float(min(max(grown_us * 1000 / interval_ns, 0.0), 1.0))

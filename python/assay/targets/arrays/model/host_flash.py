"""An array whose hosts have the flash, as it is asked for: hosts, data nodes, volumes; and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from assay.base.errors import UsageError
from assay.targets.arrays.model.group import FILL_USUAL, VOLUMES_USUAL, Configuration, size_text
from assay.targets.arrays.model.model_file import ModelParameter
from assay.targets.arrays.model.options import HOST_FLASH_OPTIONS, HOST_FLASH_REPLACED_BY, read_whole
from assay.targets.arrays.model.plan import ArrayPlan, FlashHostPlan, NodePlan, check_rising, disk_plan

LIVE_MOST = 0.95
"""Largest live share of the space in which reclamation works, as in crates/array-model/src/host_flash/plan.rs."""
READ_LATE = ("mode", "reclamation", "snapshots", "start", "seed")


@dataclass(frozen=True)
class HostFlash(Configuration):
    """Hosts with flash over data nodes, and the volumes dealt out to them. Everything is checked when it is made."""

    known_options: ClassVar[Mapping[str, str]] = HOST_FLASH_OPTIONS
    replaced_by: ClassVar[Mapping[str, str]] = HOST_FLASH_REPLACED_BY

    @property
    def hosts(self) -> int:
        """Hosts that volumes are dealt out to."""
        return read_whole("hosts", self.options.get("hosts", "1"), 1, int(self.value("host.most")))

    @property
    def nodes(self) -> int:
        """Data nodes whose disks are one pool."""
        return read_whole("nodes", self.options.get("nodes", "1"), 1, int(self.value("node.most")))

    # What an array of members is asked too

    @cached_property
    def pools(self) -> tuple[Configuration, ...]:
        """Itself: all disks are one pool."""
        return (self,)

    @cached_property
    def policy(self) -> str:
        """Pieces of data and of parity of a container."""
        return f"{self.value('log.data_pieces')}+{self.value('log.parity_pieces')}"

    @property
    def policies(self) -> list[str]:
        """The pool's policy, the only one."""
        return [self.policy]

    @property
    def raid(self) -> str:
        """Pieces of data and of parity of a container."""
        return self.policy

    @cached_property
    def protocol(self) -> str:
        """The pool's own protocol: hosts cannot choose another."""
        return "own"

    @property
    def members(self) -> int:
        """The data nodes."""
        return self.nodes

    @property
    def host_ports(self) -> int:
        """Ports of each host."""
        return int(self.value("host.ports"))

    @property
    def controllers(self) -> tuple[int, int]:
        """The active controller of a data node, and its ports."""
        return 1, int(self.value("node.ports"))

    @property
    def read_realloc(self) -> bool:
        """No: a log has no scattered blocks to write again."""
        return False

    @property
    def label(self) -> str:
        """The array in a few words."""
        words = [self.model.title.partition(",")[0], _counted(self.hosts, "host"), _counted(self.nodes, "data node")]
        words += ["Insane mode"] if self.option("mode", "normal") == "insane" else []
        words += ["reclamation"] if self.option("reclamation", False) else []
        words += [_counted(self.snapshots, "snapshot")] if self.snapshots else []
        return ", ".join(words)

    def _in_force(self, dotted: str) -> ModelParameter:
        return self._changed.get(dotted) or self.model.parameters[dotted]

    # Room

    @property
    def reduction(self) -> float:
        """How many times smaller data are in flash and on disks."""
        return float(self.value("log.deduplication") * self.value("log.compression"))

    @property
    def snapshots(self) -> int:
        """Snapshots of the chain."""
        return int(self.option("snapshots", 0))

    @cached_property
    def stored_bytes(self) -> int:
        """What the pool stores, parity taken off."""
        data, parity = self.value("log.data_pieces"), self.value("log.parity_pieces")
        disks = self.nodes * (self.value("disks.count") - self.value("disks.spares"))
        raw_bytes = disks * self.value("disk.capacity") * self.value("disk.usable")
        return int(raw_bytes * data / (data + parity))

    @cached_property
    def usable_bytes(self) -> int:
        """Bytes of volumes that the pool holds, reduced as stated, what is kept free included."""
        return int(self.stored_bytes * self.reduction)

    @property
    def kept_bytes(self) -> int:
        """Where reclamation works: what lies beyond it, and a little within."""
        return int(self.usable_bytes * (1 - self.value("log.occupied") * LIVE_MOST))

    def _count_and_size(self, size_bytes: int) -> tuple[int, int]:
        if "fill" in self.options:
            return super()._count_and_size(size_bytes)
        fitting = int((self.usable_bytes - self.kept_bytes) * FILL_USUAL)
        count = max(VOLUMES_USUAL, self.hosts)
        if "volume_size" in self.options or fitting // size_bytes >= count:
            return count, size_bytes
        return count, max(fitting // count, 1 << 20) // 4096 * 4096

    @property
    def notices(self) -> list[str]:
        """What a reader of the figures should know of the options."""
        found = super().notices
        if len(self.volumes) < self.hosts:
            idle = self.hosts - len(self.volumes)
            found.append(f"{_counted(len(self.volumes), 'volume')}, so that {idle} of {self.hosts} hosts do nothing")
        return found

    # Checks

    def _check_values(self) -> None:
        check_rising(self.value)
        disks, spares = self.value("disks.count"), self.value("disks.spares")
        if spares >= disks:
            raise UsageError(f"model: disks.spares of {spares} leave none of the {disks} disks for data")
        pieces = self.value("log.data_pieces")
        if self.value("log.container") % (pieces * 4096):
            raise UsageError(
                f"model: log.container of {self.value('log.container')} bytes is no multiple of {pieces} pieces of"
                " 4 KiB"
            )

    def _check_structure(self) -> None:
        for key in READ_LATE:
            self.option(key, None)
        disks = self.nodes * (self.value("disks.count") - self.value("disks.spares"))
        if disks < (pieces := self.value("log.data_pieces") + self.value("log.parity_pieces")):
            raise UsageError(
                f"model: {disks} disks do not carry containers of {pieces} pieces; give more nodes or disks"
            )
        if "snapshot_change" in self.options and not self.snapshots:
            raise UsageError("model: snapshot_change: there are no snapshots; give snapshots=N too")

    def _check_room(self) -> None:
        room_bytes = int(self.usable_bytes * self.value("log.occupied"))
        if self.used_bytes > room_bytes * LIVE_MOST:
            raise UsageError(
                f"model: {self._volumes_text} are {size_text(self.used_bytes)}, and {self.label} reclaims within"
                f" {size_text(room_bytes)}, of which {LIVE_MOST:.0%} may be live; give fewer or smaller volumes, or"
                " more nodes"
            )
        held = self.snapshots * self.value("log.snapshot_change")
        live = self.used_bytes * (1 + held)
        if live > room_bytes * LIVE_MOST:
            raise UsageError(
                f"model: snapshots={self.options['snapshots']}: volumes and snapshots may come to {size_text(live)},"
                f" and {self.label} reclaims within {size_text(room_bytes)}, of which {LIVE_MOST:.0%} may be live; give"
                " fewer snapshots or volumes, or more nodes"
            )

    # Output

    @cached_property
    def _node_plan(self) -> NodePlan:
        """A data node, as `DataNodePlan` of crates/array-model/src/host_flash/plan.rs."""
        value = self.value
        return {
            "count": self.nodes,
            "disks": value("disks.count") - value("disks.spares"),
            "disk": disk_plan(value, self.model.disk_kind),
            "cores": value("node.cores"),
            "cpu_per_io_ns": value("node.cpu_per_io"),
            "write_bytes_per_s": value("node.write_rate"),
            "nvram_bytes": value("node.nvram"),
            "nvram_ns": value("node.nvram_time"),
            "network_bytes_per_s": value("node.ports") * value("node.port_rate") * value("network.payload"),
            "containers_under_way": value("node.containers_under_way"),
            "read_preference_ns": value("node.read_preference"),
        }

    @cached_property
    def _host_plan(self) -> FlashHostPlan:
        value, mode = self.value, "fast" if self.option("mode", "normal") == "insane" else "normal"
        return {
            "count": self.hosts,
            "cores": max(round(value("host.cores") * value(f"host.share_{mode}")), 1),
            "cpu_per_io_ns": value("host.cpu_per_io"),
            "cpu_bytes_per_s": value("host.cpu_rate"),
            "read_bytes_per_s": value("host.read_rate"),
            "memory_bytes": value("host.memory"),
            "memory_ns": value("host.memory_time"),
            "flash_bytes": value("host.flash"),
            "flash_channels": value("host.flash_channels"),
            "flash_page_bytes": value("host.flash_page"),
            "flash_read_ns": value("host.flash_read_time"),
            "flash_program_ns": value("host.flash_program_time"),
            "network_bytes_per_s": value("host.ports") * value("host.port_rate") * value("network.payload"),
        }

    def plan(self) -> ArrayPlan:
        """The `HostFlashPlan` of crates/array-model/src/host_flash/plan.rs as JSON data."""
        value = self.value
        return {
            "host_flash": {
                "seed": self.option("seed", 1),
                "volumes": [{"name": name, "bytes": size_bytes} for name, size_bytes in self.volumes],
                "host": self._host_plan,
                "node": self._node_plan,
                "log": {
                    "container_bytes": value("log.container"),
                    "data_pieces": value("log.data_pieces"),
                    "parity_pieces": value("log.parity_pieces"),
                    "deduplication": value("log.deduplication"),
                    "compression": value("log.compression"),
                    "room_bytes": int(self.stored_bytes * value("log.occupied")),
                    "reclaims": bool(self.option("reclamation", False)),
                    "snapshots": self.snapshots,
                    "snapshot_change": value("log.snapshot_change"),
                    "snapshot_entry_bytes": value("log.snapshot_entry"),
                },
                "network_ns": value("network.latency"),
            }
        }


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""The request of a served array, and its plan for the compiled server (crates/array-live)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from assay.base.errors import UsageError
from assay.base.units import parse_bytes
from assay.targets.arrays.live.events import Event, TimedCommand
from assay.targets.arrays.live.iscsi import IscsiPlan, IscsiRequest
from assay.targets.arrays.live.nbd import NbdPlan, NbdRequest
from assay.targets.arrays.model.configuration import FAILOVER_NS, Configuration, configure
from assay.targets.arrays.model.model_file import ModelFile, load_model
from assay.targets.arrays.model.options import parse_model_target
from assay.targets.arrays.model.plan import ArrayPlan

Durability = Literal["battery", "volatile", "lying"]
DURABILITIES: tuple[Durability, ...] = ("battery", "volatile", "lying")
"""What a power cut leaves of acknowledged writes: all; those flushed or destaged; those destaged."""

REFUSED = ("state", "fault", "hosts", "slow_path", "packet_loss")
"""Options of a model that commands to a served array stand for, or that one host has no use for."""
REFUSED_HOST_FLASH = ("reclamation", "snapshots", "snapshot_change")
"""The same for hosts with flash: what is written decides what they stand for."""
UNBOUNDED_BYTES_PER_S = 1e12
"""A rate that bounds nothing."""
REBUILD_DEPTH = 4
"""Rows that a rebuild has under way, as `model:` targets with `state=rebuilding` have; pieces of containers that each
data node restores at the same time: assumed."""
REBALANCE_DEPTH = 4
"""Chunks that move onto a new member at the same time: assumed, as of a rebuild."""


class ServePlan(TypedDict):
    """The plan for the compiled server; `room_bytes` is None for as much as there is."""

    array: ArrayPlan
    folder: str
    store: str
    durability: Durability
    sums: bool
    realtime: bool
    rebuild_depth: int
    rebalance_depth: int
    members_most: int
    failover_ns: float
    room_bytes: int | None
    events: list[TimedCommand]
    iscsi: IscsiPlan | None
    nbd: NotRequired[NbdPlan]


@dataclass(frozen=True)
class ServeRequest:
    """An array to serve, and how.

    Attributes
    ----------
    size_bytes
        Of all volumes together; they share it evenly.
    room_bytes
        Most that the store may take; none: as much as there is.
    """

    target: str
    folder: Path
    store: Path
    size_bytes: int | None = None
    durability: Durability = "battery"
    sums: bool | None = None
    realtime: bool = False
    rebuild_depth: int = REBUILD_DEPTH
    rebalance_depth: int = REBALANCE_DEPTH
    room_bytes: int | None = None
    events: tuple[Event, ...] = field(default=())
    iscsi: IscsiRequest | None = None
    nbd: NbdRequest | None = None

    def configuration(self) -> Configuration:
        """The array and its volumes.

        Raises
        ------
        UsageError
            The array is unknown or impossible, or has an option that is none of a served one.
        """
        name, options = parse_model_target(re.sub(r"(?i)^array:", "", self.target))
        model = load_model(name)
        has_flash_in_hosts = model.structure == "host-flash"
        for option in REFUSED_HOST_FLASH if has_flash_in_hosts else REFUSED:
            if option in options:
                raise UsageError(f"array: option {option!r}: is no option of a served array; {_instead(option)}")
        if self.size_bytes is not None:
            if "volume_size" in options or "fill" in options:
                raise UsageError("--size: the array has volume_size or fill already; give one of them")
            count = len(configure(name, {**options, "volume_size": _least(model, "1MiB")}).volumes)
            options = {**options, "volume_size": str(self.size_bytes // count // 4096 * 4096)}
        elif not {"volume_size", "fill"} & options.keys():
            options = {**options, "volume_size": _least(model, "1GiB")}
        if has_flash_in_hosts and self.sums is not None:
            raise UsageError("sums: blocks of hosts with flash are known by their fingerprints; leave sums out")
        return configure(name, options)

    def plan(self) -> ServePlan:
        """The plan for the compiled server.

        Raises
        ------
        UsageError
            As `configuration`.
        """
        array = self.configuration()
        plan = array.plan()
        if self.iscsi is not None and (links := plan.get("links")):
            # The way from the host to a portal is a real one: the model has the array's own ports alone.
            links["latency_ns"] = 0
            links["hosts"]["port_bytes_per_s"] = UNBOUNDED_BYTES_PER_S
        keeps_sums = any(pool["member"]["layout"]["kind"] == "write-anywhere" for pool in plan.get("pools", ()))
        members_most, failover_ns = 1, FAILOVER_NS
        if array.model.structure == "group":
            members_most = int(array.value("group.members"))
            failover_ns = array.option("failover", FAILOVER_NS)
        served: ServePlan = {
            "array": plan,
            "folder": str(self.folder),
            "store": str(self.store),
            "durability": self.durability,
            # Arrays that write anywhere keep a sum with each block; those that write in place are modelled without.
            "sums": keeps_sums if self.sums is None else self.sums,
            "realtime": self.realtime,
            "rebuild_depth": self.rebuild_depth,
            "rebalance_depth": self.rebalance_depth,
            "members_most": members_most,
            "failover_ns": failover_ns,
            "room_bytes": self.room_bytes,
            "events": [event.for_server() for event in self.events],
            "iscsi": self._iscsi([name for name, _ in array.volumes]),
        }
        return served if self.nbd is None else {**served, "nbd": self.nbd.plan()}

    def _iscsi(self, volumes: list[str]) -> IscsiPlan | None:
        if self.iscsi is None:
            return None
        name, _ = parse_model_target(re.sub(r"(?i)^array:", "", self.target))
        return self.iscsi.plan(Path(name).stem, self.store, volumes)


def _least(model: ModelFile, size: str) -> str:
    """A size, or the smallest that a cloud offers where that is more."""
    least = model.parameters.get("volume.least")
    return size if least is None else f"{max(parse_bytes(size), int(least.value))}B"


def _instead(option: str) -> str:
    commands = {
        "state": "pull a disk with `assay array pull`",
        "fault": "use `assay array fail-path` or `fail-controller`",
        "slow_path": "use `assay array slow path0 x10`",
        "reclamation": "give the store a --room, within which space is reclaimed",
        "snapshots": "use `assay array snapshot NAME`",
        "snapshot_change": "use `assay array snapshot NAME`",
    }
    return commands.get(option, "leave it out")

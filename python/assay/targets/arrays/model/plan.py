"""Parameters in force to the plan of a member, whose names are those of crates/array-model/src/plan.rs."""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypedDict

from assay.base.errors import UsageError
from assay.targets.arrays.model.flash import SolidStateDisk, Value, flash_disk
from assay.targets.arrays.model.kinds import show_value
from assay.targets.arrays.model.options import DiskState
from assay.targets.arrays.model.parameters import KIB, PARAMETERS


class MechanicalDisk(TypedDict):
    """A disk that turns; sizes in bytes, times in nanoseconds."""

    kind: Literal["mechanical"]
    capacity_bytes: int
    revolution_ns: float
    seek_track_ns: float
    seek_average_ns: float
    seek_full_ns: float
    write_settle_ns: float
    rate_outer_bytes_per_s: float
    rate_inner_bytes_per_s: float
    command_overhead_ns: float
    queue_depth: int
    reorder_weight: float
    age_credit: float
    read_ahead_bytes: int
    interface_bytes_per_s: float


class StationDisk(TypedDict):
    """Servers that each take an I/O at a time; sizes in bytes, times in nanoseconds."""

    kind: Literal["station"]
    capacity_bytes: int
    channels: int
    read_ns: float
    program_ns: float
    command_overhead_ns: float
    interface_bytes_per_s: float
    write_buffer_bytes: int
    queue_depth: int


DiskPlan = MechanicalDisk | SolidStateDisk | StationDisk


class RaidPlan(TypedDict):
    """How data lie on the disks of a member."""

    policy: str
    set_disks: int
    chunk_bytes: int
    partial_write: str
    misalign_bytes: int


class ControllerPlan(TypedDict):
    """The controllers of a member, and the ports of each."""

    cpu_per_io_ns: float
    cpu_bytes_per_s: float
    cores: int
    count: int
    ports: int


class CachePlan(TypedDict):
    """The cache of a member; shares are of its bytes."""

    bytes: int
    write_back: bool
    dirty_low: float
    dirty_high: float
    dirty_most: float
    destage_depth: int
    read_preference_ns: float
    keep_reads: bool
    sequential_after: int
    prefetch_bytes: int
    starts_warm: bool


class SpacePlan(TypedDict):
    """What a layout that writes anywhere keeps and wins back; changes are a share of the blocks."""

    snapshots: int
    snapshot_change: float
    reclaims: bool


class LayoutPlan(TypedDict, total=False):
    """Where blocks are written: all but `kind` is for layouts that write anywhere."""

    kind: Required[str]
    block_bytes: int
    run_blocks: int
    read_realloc: bool
    reduction: float
    space: SpacePlan


class StatePlan(TypedDict, total=False):
    """How a member is; `depth` is of a rebuild."""

    kind: Required[str]
    depth: int


class OthersPlan(TypedDict):
    """The last disks of a member, where they are of another kind or age."""

    count: int
    disk: DiskPlan


class SoftwarePlan(TypedDict):
    """RAID in the host's software; sizes in bytes, times in nanoseconds."""

    bitmap_bytes: int
    bitmap_clear_ns: float
    log: str
    stripes: int


class MemberPlan(TypedDict):
    """A member, as `MemberPlan` of crates/array-model/src/plan.rs."""

    disks: int
    spares: int
    disk: DiskPlan
    raid: RaidPlan
    controller: ControllerPlan
    cache: CachePlan
    layout: LayoutPlan
    state: StatePlan
    others: NotRequired[OthersPlan]
    software: NotRequired[SoftwarePlan]
    rebuild_bytes_per_s: NotRequired[float]


class VolumePlan(TypedDict):
    """A volume and its size in bytes."""

    name: str
    bytes: int


class PoolPlan(TypedDict):
    """Equal members and the volumes on them."""

    members: int
    member: MemberPlan
    volumes: list[VolumePlan]


class HostsPlan(TypedDict):
    """The hosts of an array; rates in bytes per second, times in nanoseconds."""

    count: int
    ports: int
    port_bytes_per_s: float
    first_port_share: float
    first_port_loss: float
    commands_most: int
    path_timeout_ns: float


class FaultPlan(TypedDict):
    """A part that fails, when, and how long the others need to take over its ports; in nanoseconds."""

    lost: str
    at_ns: float
    failover_ns: float


class LinksPlan(TypedDict):
    """The links between hosts and members."""

    hosts: HostsPlan
    policy: str
    port_bytes_per_s: float
    overhead_bytes: int
    latency_ns: float
    max_transfer_bytes: int
    fault: FaultPlan | None


class NodePlan(TypedDict):
    """Data nodes, as `DataNodePlan` of crates/array-model/src/host_flash/plan.rs."""

    count: int
    disks: int
    disk: DiskPlan
    cores: int
    cpu_per_io_ns: float
    write_bytes_per_s: float
    nvram_bytes: int
    nvram_ns: float
    network_bytes_per_s: float
    containers_under_way: int
    read_preference_ns: float


class FlashHostPlan(TypedDict):
    """Hosts with flash; sizes in bytes, times in nanoseconds."""

    count: int
    cores: int
    cpu_per_io_ns: float
    cpu_bytes_per_s: float
    read_bytes_per_s: float
    memory_bytes: int
    memory_ns: float
    flash_bytes: int
    flash_channels: int
    flash_page_bytes: int
    flash_read_ns: float
    flash_program_ns: float
    network_bytes_per_s: float


class LogPlan(TypedDict):
    """The log that data nodes keep, and what is won back of it."""

    container_bytes: int
    data_pieces: int
    parity_pieces: int
    deduplication: float
    compression: float
    room_bytes: int
    reclaims: bool
    snapshots: int
    snapshot_change: float
    snapshot_entry_bytes: int


class HostFlashPlan(TypedDict):
    """Hosts with flash over data nodes, as crates/array-model/src/host_flash/plan.rs has them."""

    seed: int
    volumes: list[VolumePlan]
    host: FlashHostPlan
    node: NodePlan
    log: LogPlan
    network_ns: float


class LimitPlan(TypedDict):
    """A limit of a cloud's volume or machine: tokens a second, those of its burst, and credits."""

    per_s: float
    burst_per_s: float
    credits: int
    start_share: float
    window_ns: float


class AccountingPlan(TypedDict):
    """How I/Os are counted."""

    unit_bytes: int
    merges: bool
    whole_units: bool


class LatencyPlan(TypedDict):
    """Time of an I/O that no limit holds back; in nanoseconds."""

    read_ns: float
    write_ns: float
    flush_ns: float
    varying_share: float


class SnapshotPlan(TypedDict):
    """How a volume loads what it was made of."""

    block_bytes: int
    latency_ns: float
    bytes_per_s: float
    background_bytes_per_s: float


class CloudVolumePlan(TypedDict):
    """A volume of a cloud."""

    name: str
    bytes: int
    operations: LimitPlan
    transfer: LimitPlan
    accounting: AccountingPlan
    latency: LatencyPlan
    snapshot: SnapshotPlan | None


class MachinePlan(TypedDict):
    """What all volumes of a machine may do together."""

    operations: LimitPlan
    transfer: LimitPlan


class CloudPlan(TypedDict):
    """Volumes of a machine, as crates/array-model/src/cloud/plan.rs has them."""

    seed: int
    volumes: list[CloudVolumePlan]
    machine: MachinePlan | None


class ArrayPlan(TypedDict, total=False):
    """An array: seed, pages, pools and links of a group of members, or `host_flash` or `cloud` alone."""

    seed: int
    page_bytes: int
    pools: list[PoolPlan]
    links: LinksPlan
    host_flash: HostFlashPlan
    cloud: CloudPlan


_RISING = (
    ("disk.seek_track", "disk.seek_average"),
    ("disk.seek_average", "disk.seek_full"),
    ("disk.rate_inner", "disk.rate_outer"),
    ("cache.dirty_low", "cache.dirty_high"),
    ("cache.dirty_high", "cache.dirty_most"),
    ("links.paths", "links.ports"),
    ("host.share_normal", "host.share_fast"),
)
"""Pairs of which the first may not be above the second."""


def check_rising(value: Value) -> None:
    """Refuse pairs of parameters of which the first is above the second.

    Raises
    ------
    UsageError
        There is one.
    """
    for low, high in _RISING:
        try:
            values = value(low), value(high)
        except KeyError:
            continue
        if values[0] > values[1]:
            shown = [show_value(PARAMETERS[name].kind, one) for name, one in zip((low, high), values, strict=True)]
            raise UsageError(f"model: {low} of {shown[0]} is above {high} of {shown[1]}")


def disk_plan(value: Value, kind: str, flash_state: str = "") -> DiskPlan:
    """The `DiskPlan` of each disk.

    Raises
    ------
    UsageError
        A state of flash is given for disks of another kind.
    """
    if flash_state and kind != "solid-state":
        raise UsageError(f"model: state={flash_state} is for drives of flash; these disks are of kind {kind}")
    if kind == "mechanical":
        return {
            "kind": "mechanical",
            "capacity_bytes": value("disk.capacity"),
            "revolution_ns": value("disk.revolution"),
            "seek_track_ns": value("disk.seek_track"),
            "seek_average_ns": value("disk.seek_average"),
            "seek_full_ns": value("disk.seek_full"),
            "write_settle_ns": value("disk.write_settle"),
            "rate_outer_bytes_per_s": value("disk.rate_outer"),
            "rate_inner_bytes_per_s": value("disk.rate_inner"),
            "command_overhead_ns": value("disk.command_overhead"),
            "queue_depth": value("disk.queue_depth"),
            "reorder_weight": value("disk.reorder_weight"),
            "age_credit": value("disk.age_credit"),
            "read_ahead_bytes": value("disk.read_ahead"),
            "interface_bytes_per_s": value("disk.interface_rate"),
        }
    if kind == "station":
        return {
            "kind": "station",
            "capacity_bytes": value("disk.capacity"),
            "channels": value("disk.channels"),
            "read_ns": value("disk.read_time"),
            "program_ns": value("disk.program_time"),
            "command_overhead_ns": value("disk.command_overhead"),
            "interface_bytes_per_s": value("disk.interface_rate"),
            "write_buffer_bytes": value("disk.write_buffer"),
            "queue_depth": value("disk.queue_depth"),
        }
    return flash_disk(value, flash_state or "steady")


def check_consistency(value: Value) -> None:
    """Refuse parameters that contradict each other.

    Raises
    ------
    UsageError
        Two do.
    """
    check_rising(value)
    disks, spares = value("disks.count"), value("disks.spares")
    if spares >= disks:
        raise UsageError(f"model: disks.spares of {spares} leave none of the {disks} disks for data")
    chunk_bytes, misaligned = value("raid.chunk"), value("raid.misalignment")
    if chunk_bytes & (chunk_bytes - 1):
        raise UsageError(f"model: raid.chunk of {chunk_bytes} bytes is no power of two")
    if misaligned and (misaligned % 512 or chunk_bytes % misaligned):
        raise UsageError(
            f"model: raid.misalignment of {misaligned} bytes is no multiple of 512 that divides raid.chunk of"
            f" {chunk_bytes}"
        )
    if value("group.page") % (4 * KIB):
        raise UsageError(f"model: group.page of {value('group.page')} bytes is no multiple of 4 KiB")


def member_plan(
    value: Value,
    *,
    policy: str,
    disk_kind: str,
    layout_kind: str,
    state: DiskState,
    starts_warm: bool,
    ports: tuple[int, int],
) -> MemberPlan:
    """The `MemberPlan` of one array; `ports` are its controllers and the ports of each."""
    return {
        "disks": value("disks.count"),
        "spares": value("disks.spares"),
        "disk": disk_plan(value, disk_kind, state.flash),
        "raid": _raid(value, policy),
        "controller": {
            "cpu_per_io_ns": value("controller.cpu_per_io"),
            "cpu_bytes_per_s": value("controller.cpu_rate"),
            "cores": value("controller.cores"),
            "count": ports[0],
            "ports": ports[1],
        },
        "cache": {
            "bytes": value("cache.size"),
            "write_back": value("cache.write_back") or value("raid.journal") == "write-back",
            "dirty_low": value("cache.dirty_low"),
            "dirty_high": value("cache.dirty_high"),
            "dirty_most": value("cache.dirty_most"),
            "destage_depth": value("cache.destage_depth"),
            "read_preference_ns": value("cache.read_preference"),
            "keep_reads": value("cache.keep_reads"),
            "sequential_after": value("cache.sequential_after"),
            "prefetch_bytes": value("cache.prefetch"),
            "starts_warm": starts_warm,
        },
        "layout": _layout(value, layout_kind),
        "state": _state(value, state.disks),
    }


def _state(value: Value, kind: str) -> StatePlan:
    return {"kind": kind, "depth": value("rebuild.depth")} if kind == "rebuilding" else {"kind": kind}


def _layout(value: Value, kind: str) -> LayoutPlan:
    if kind == "in-place":
        return {"kind": kind}
    plan: LayoutPlan = {
        "kind": kind,
        "block_bytes": value("layout.block"),
        "run_blocks": value("layout.write_run"),
        "read_realloc": value("layout.read_realloc"),
    }
    if (reduction := value("layout.reduction")) != 1:
        plan["reduction"] = reduction
    return plan


def _raid(value: Value, policy: str) -> RaidPlan:
    active, in_set = value("disks.count") - value("disks.spares"), value("raid.set_disks")
    # Some makers call several sets RAID 5 or 6 as well; what lies on the disks is RAID 50 or 60.
    laid_out = f"{policy}0" if policy in ("5", "6") and 0 < in_set < active else policy
    return {
        "policy": laid_out,
        "set_disks": in_set or active,
        "chunk_bytes": value("raid.chunk"),
        "partial_write": value("raid.partial_write"),
        "misalign_bytes": value("raid.misalignment"),
    }


def port_bytes_per_s(value: Value, line_rate: float) -> float:
    """Payload that a port of a line rate carries in each direction."""
    return line_rate * float(value("links.payload"))

"""What the server of an array says of itself: the answer to `status` (docs/arrays-served.md)."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from assay.record.shapes.point import ServedEvent


class MemberDisk(TypedDict):
    """A disk of a member; `rebuilt_share` is there while it is rebuilt."""

    name: str
    state: str
    rebuilt_share: NotRequired[float]


class MemberStatus(TypedDict):
    """A member with its disks, or a data node; bytes that wait to be written, chunks and blocks."""

    name: str
    disks: list[MemberDisk]
    dirty_bytes: int
    raid: NotRequired[str]
    spares: NotRequired[int]
    lost_chunks: NotRequired[int]
    healed_blocks: NotRequired[int]


class HostReads(TypedDict):
    """Reads of a host with flash, and how many its levels answered."""

    name: str
    reads: int
    memory_hits: int
    flash_hits: int
    remote_hits: int


class GateLimit(TypedDict):
    """A limit: what passed, how long more was asked for, and the share of its credits that is left; None: no burst."""

    passed: int
    exceeded_ns: int
    balance_share: float | None


class GateStatus(TypedDict):
    """The limits of a cloud's volume, or of the machine."""

    name: str
    iops: GateLimit
    bandwidth: GateLimit


class PoolStatus(TypedDict):
    """A log-structured pool: containers, bytes, ratios, and what was moved, lost or healed."""

    containers: int
    containers_most: int
    live_share: float
    used_bytes: int
    stored_bytes: int
    deduplication: float
    compression: float
    reclaimed_containers: int
    moved_bytes: int
    missing_pieces: int
    restored_pieces: int
    lost_blocks: int
    healed_blocks: int


class RebalanceStatus(TypedDict):
    """Chunks that move onto a member, and what that waits for."""

    member: str
    moved_share: float
    waits: str | None


class AnswerLateness(TypedDict):
    """How late answers left; nanoseconds."""

    count: int
    mean_ns: float
    p99_ns: float
    max_ns: float
    overdriven: bool
    overdriven_s: float


class VolumeStatus(TypedDict):
    """A volume that is served."""

    name: str
    bytes: int


class ServedSecond(TypedDict):
    """A second with I/Os: how many, how many of them left late, and how late all were together, nanoseconds."""

    at_s: int
    reads: int
    writes: int
    late: int
    late_ns: int
    overdriven: bool


class ArrayStatus(TypedDict):
    """What the compiled server answers to `status`: of a group `members`, of hosts with flash `pool` and `hosts`."""

    cache: str
    seconds: list[ServedSecond]
    events: list[ServedEvent]
    members: NotRequired[list[MemberStatus]]
    pool: NotRequired[PoolStatus]
    hosts: NotRequired[list[HostReads]]
    gates: NotRequired[list[GateStatus]]

    volumes: list[VolumeStatus]
    most_iops_one_at_a_time: float
    floor_ns: float
    scheduling: str
    lateness: AnswerLateness

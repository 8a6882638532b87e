"""Parameters in force to the plan of a drive of flash, whose names are those of crates/array-model/src/plan.rs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict

Value = Callable[[str], Any]
"""Value of a parameter in force by its dotted name, in base units."""


class FlashPlan(TypedDict):
    """The flash of a drive."""

    dies: int
    planes: int
    channels: int
    channel_bytes_per_s: float
    page_bytes: int
    cell_bits: int
    pages_per_block: int
    read_ns: float
    program_ns: float
    erase_ns: float
    programming_dies: int


class ReadsPlan(TypedDict):
    """Reads that come while their die programs or erases."""

    priority: str
    suspend_ns: float
    suspends: int
    late_ns: float
    resume_ns: float


class SlcPlan(TypedDict):
    """Cells that are used with one bit each."""

    bytes: int
    empty_bytes: int
    program_ns: float
    fold_bytes_per_s: float


class HeatPlan(TypedDict):
    """When a drive throttles."""

    bytes: int
    cooling_bytes_per_s: float
    throttled_share: float


class SolidStateDisk(TypedDict):
    """A drive of flash; sizes in bytes, times in nanoseconds."""

    kind: Literal["solid-state"]
    capacity_bytes: int
    flash: FlashPlan
    reads: ReadsPlan
    slc: SlcPlan
    heat: HeatPlan
    unit_bytes: int
    over_provisioning: float
    metadata_share: float
    trimmed_share: float
    age: str
    command_overhead_ns: float
    command_ns: float
    interface_bytes_per_s: float
    queue_depth: int
    write_buffer_bytes: int
    power_loss_protection: bool


def flash_disk(value: Value, age: str) -> SolidStateDisk:
    """The plan of a drive that begins `fresh`, `written` or `steady`."""
    return {
        "kind": "solid-state",
        "capacity_bytes": value("disk.capacity"),
        "flash": {
            "dies": value("disk.dies"),
            "planes": value("disk.planes"),
            "channels": value("disk.channels"),
            "channel_bytes_per_s": value("disk.channel_rate"),
            "page_bytes": value("disk.page"),
            "cell_bits": value("disk.cell_bits"),
            "pages_per_block": value("disk.pages_per_block"),
            "read_ns": value("disk.read_time"),
            "program_ns": value("disk.program_time"),
            "erase_ns": value("disk.erase_time"),
            "programming_dies": value("disk.programming_dies"),
        },
        "reads": {
            "priority": value("disk.read_priority"),
            "suspend_ns": value("disk.suspend_time"),
            "suspends": value("disk.suspends"),
            "late_ns": value("disk.suspend_late"),
            "resume_ns": value("disk.resume_time"),
        },
        "slc": {
            "bytes": value("disk.slc"),
            "empty_bytes": value("disk.slc_empty"),
            "program_ns": value("disk.slc_program_time"),
            "fold_bytes_per_s": value("disk.slc_fold_rate"),
        },
        "heat": {
            "bytes": value("disk.heat"),
            "cooling_bytes_per_s": value("disk.cooling_rate"),
            "throttled_share": value("disk.throttled"),
        },
        "unit_bytes": value("disk.unit"),
        "over_provisioning": value("disk.over_provisioning"),
        "metadata_share": value("disk.metadata"),
        "trimmed_share": value("disk.trimmed"),
        "age": age,
        "command_overhead_ns": value("disk.command_overhead"),
        "command_ns": value("disk.command_time"),
        "interface_bytes_per_s": value("disk.interface_rate"),
        "queue_depth": value("disk.queue_depth"),
        "write_buffer_bytes": value("disk.write_buffer"),
        "power_loss_protection": value("disk.power_loss_protection"),
    }


def program_bytes_per_s(flash: FlashPlan) -> float:
    """Rate at which all dies program."""
    together = flash["dies"] * flash["planes"] * flash["cell_bits"] * flash["page_bytes"]
    return together / (flash["program_ns"] * 1e-9)

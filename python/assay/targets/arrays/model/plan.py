"""Parameters in force to the plan of a member, whose names are those of crates/array-model/src/plan.rs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.base.errors import UsageError
from assay.targets.arrays.model.kinds import show_value
from assay.targets.arrays.model.parameters import KIB, PARAMETERS

Value = Callable[[str], Any]
"""Value of a parameter in force by its dotted name, in base units."""

_MECHANICAL = {
    "capacity_bytes": "disk.capacity",
    "revolution_ns": "disk.revolution",
    "seek_track_ns": "disk.seek_track",
    "seek_average_ns": "disk.seek_average",
    "seek_full_ns": "disk.seek_full",
    "write_settle_ns": "disk.write_settle",
    "rate_outer_bytes_per_s": "disk.rate_outer",
    "rate_inner_bytes_per_s": "disk.rate_inner",
    "command_overhead_ns": "disk.command_overhead",
    "queue_depth": "disk.queue_depth",
    "reorder_weight": "disk.reorder_weight",
    "age_credit": "disk.age_credit",
    "read_ahead_bytes": "disk.read_ahead",
    "interface_bytes_per_s": "disk.interface_rate",
}
_SOLID_STATE = {
    "capacity_bytes": "disk.capacity",
    "channels": "disk.channels",
    "page_bytes": "disk.page",
    "read_ns": "disk.read_time",
    "program_ns": "disk.program_time",
    "erase_ns": "disk.erase_time",
    "pages_per_block": "disk.pages_per_block",
    "over_provisioning": "disk.over_provisioning",
    "command_overhead_ns": "disk.command_overhead",
    "interface_bytes_per_s": "disk.interface_rate",
    "write_buffer_bytes": "disk.write_buffer",
    "queue_depth": "disk.queue_depth",
}
_CONTROLLER = {
    "cpu_per_io_ns": "controller.cpu_per_io",
    "cpu_bytes_per_s": "controller.cpu_rate",
    "cores": "controller.cores",
}
_CACHE = {
    "bytes": "cache.size",
    "write_back": "cache.write_back",
    "dirty_low": "cache.dirty_low",
    "dirty_high": "cache.dirty_high",
    "dirty_most": "cache.dirty_most",
    "destage_depth": "cache.destage_depth",
    "read_preference_ns": "cache.read_preference",
    "keep_reads": "cache.keep_reads",
    "sequential_after": "cache.sequential_after",
    "prefetch_bytes": "cache.prefetch",
}
_WRITE_ANYWHERE = {
    "block_bytes": "layout.block",
    "run_blocks": "layout.write_run",
    "read_realloc": "layout.read_realloc",
}
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


def disk_plan(value: Value, kind: str) -> dict[str, Any]:
    """The `DiskPlan` of each disk."""
    return {"kind": kind, **_values(value, _MECHANICAL if kind == "mechanical" else _SOLID_STATE)}


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
    state: str,
    starts_warm: bool,
    ports: tuple[int, int],
) -> dict[str, Any]:
    """The `MemberPlan` of one array; `ports` are its controllers and the ports of each."""
    in_place = layout_kind == "in-place"
    return {
        "disks": value("disks.count"),
        "spares": value("disks.spares"),
        "disk": disk_plan(value, disk_kind),
        "raid": _raid(value, policy),
        "controller": _values(value, _CONTROLLER) | {"count": ports[0], "ports": ports[1]},
        "cache": _values(value, _CACHE) | {"starts_warm": starts_warm},
        "layout": {"kind": layout_kind} | ({} if in_place else _values(value, _WRITE_ANYWHERE)),
        "state": {"kind": state} | ({"depth": value("rebuild.depth")} if state == "rebuilding" else {}),
    }


def _raid(value: Value, policy: str) -> dict[str, Any]:
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


def _values(value: Value, names: dict[str, str]) -> dict[str, Any]:
    return {key: value(dotted) for key, dotted in names.items()}

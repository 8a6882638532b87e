"""What some members have beside disks behind a controller: RAID in software, disks of two kinds, snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.base.errors import UsageError
from assay.targets.arrays.model.flash import Value
from assay.targets.arrays.model.model_file import load_model, refuse_other_structures
from assay.targets.arrays.model.options import FLASH_STATES
from assay.targets.arrays.model.plan import MemberPlan, disk_plan

_LOGS = {"none": "none", "ppl": "ppl", "write-through": "journal", "write-back": "journal-write-back"}
"""Words of `raid.journal`, and those of the plan."""
SPACE_OPTIONS = ("reclamation", "snapshots", "snapshot_change")
"""What layouts that write anywhere keep and win back."""
_SNAPSHOT_CHANGE = 0.01
"""Share of the blocks that is written from one snapshot to the next: assumed, as of hosts with flash."""


def add_space(plan: MemberPlan, option: Callable[[str, Any], Any]) -> None:
    """Snapshots and reclamation of a member that writes anywhere, as options ask for them."""
    plan["layout"]["space"] = {
        "snapshots": option("snapshots", 0),
        "snapshot_change": option("snapshot_change", _SNAPSHOT_CHANGE),
        "reclaims": option("reclamation", False),
    }


def add_others(plan: MemberPlan, value: Value, mixed: tuple[int, str] | None, kind: str, flash_state: str) -> None:
    """The disks of a member that are not like the rest: of another model, or in another state of flash.

    Raises
    ------
    UsageError
        There is no such model, or its disks are no flash that could be in such a state.
    """
    if mixed is None:
        return
    count, name = mixed
    if count >= value("disks.count") - value("disks.spares"):
        raise UsageError(f"model: mixed={count}:{name} leaves none of the array's own disks; give fewer")
    if name in FLASH_STATES:
        plan["others"] = {"count": count, "disk": disk_plan(value, kind, name)}
        return
    other = load_model(name)
    refuse_other_structures(other, f"model: mixed={count}:{name}")
    parameters = other.parameters
    state = flash_state if other.disk_kind == "solid-state" else ""
    own = disk_plan(lambda dotted: parameters[dotted].value, other.disk_kind, state)
    plan["others"] = {"count": count, "disk": own}


def add_software(plan: MemberPlan, value: Value, policy: str) -> None:
    """Bitmap, log and stripes of RAID in software, and the rate of a rebuild, where a file or target states them.

    Raises
    ------
    UsageError
        Two of them, or one of them and the policy, do not go together.
    """
    if rate := value("rebuild.rate"):
        plan["rebuild_bytes_per_s"] = rate
    bitmap, journal, stripes = value("raid.bitmap"), value("raid.journal"), value("raid.stripe_cache")
    if not bitmap and journal == "none" and not stripes:
        return
    has_parity, has_one = policy in ("5", "50", "6", "60", "dp"), policy in ("5", "50")
    for wrong, why in (
        (bitmap and policy == "0", "raid.bitmap: RAID 0 has nothing to synchronise; give raid.bitmap=0B"),
        (journal != "none" and not has_parity, f"raid.journal: RAID {policy} has no parity"),
        (journal == "ppl" and not has_one, "raid.journal=ppl is for RAID 5, whose stripes have one parity"),
        (journal != "none" and bitmap, "raid.journal takes the place of the bitmap; give raid.bitmap=0B too"),
        (value("cache.write_back"), "cache.write_back: RAID in software has no memory that survives a power cut;"
         " raid.journal=write-back acknowledges writes from a journal"),
    ):  # fmt: skip
        if wrong:
            raise UsageError(f"model: {why}")
    plan["software"] = {
        "bitmap_bytes": bitmap,
        "bitmap_clear_ns": value("raid.bitmap_clear"),
        "log": _LOGS[journal],
        "stripes": stripes,
    }

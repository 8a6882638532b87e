"""How much data the disks of a member hold under a RAID policy."""

from __future__ import annotations

import json

from assay import _core
from assay.base.errors import UsageError
from assay.targets.arrays.model.plan import MemberPlan


def usable_bytes(member: MemberPlan) -> int:
    """Data bytes that a member's active disks hold together, from a `MemberPlan`.

    The layout is that of the model (crates/array-model/src/geometry.rs).

    Raises
    ------
    UsageError
        The disks cannot carry the policy.
    """
    active = member["disks"] - member["spares"]
    try:
        return _core.array_usable_bytes(json.dumps(member["raid"]), active, member["disk"]["capacity_bytes"])
    except UsageError as error:
        raise UsageError(f"model: {error}") from None

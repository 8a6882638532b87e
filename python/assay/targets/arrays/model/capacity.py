"""How much data the disks of a member hold under a RAID policy."""

from __future__ import annotations

import json
from collections.abc import Iterable

from assay import _core
from assay.base.errors import UsageError
from assay.targets.arrays.model.plan import MemberPlan

_SURVIVED = {"0": 0, "1": 1, "10": 1, "5": 1, "50": 1, "6": 2, "60": 2, "dp": 2}
"""Disks of a group that may fail, by policy: its parity disks or further copies (crates/array-model/src/raid.rs)."""


def survived_failures(policies: Iterable[str]) -> int | None:
    """How many disks of a group may fail under the weakest of these policies; None where a layout is of its own kind.

    Examples
    --------
    >>> survived_failures(["6"]), survived_failures(["10", "6"]), survived_failures(["24+2"])
    (2, 1, None)
    """
    found = [_SURVIVED.get(policy) for policy in policies]
    return min((one for one in found if one is not None), default=None) if None not in found else None


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

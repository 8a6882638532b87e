"""What was written to the drives of a modelled array before: known of flash, and changed by a purge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from assay.targets.arrays.model.group import Configuration
from assay.targets.arrays.model.options import FLASH_STATES

STATES = {"fresh": "purged", "written": "filled", "steady": "steady"}
"""States of targets (`assay.record.state`) by the ages of modelled drives."""


def age_of(array: Configuration) -> str:
    """The age in which the array's drives of flash begin; empty where it has others, or several."""
    pools = cast("list[Mapping[str, object]]", cast("Mapping[str, object]", array.plan()).get("pools") or [])
    disks = [cast("Mapping[str, Mapping[str, object]]", pool["member"]).get("disk") or {} for pool in pools]
    ages = {str(disk.get("age") or "") for disk in disks}
    return ages.pop() if len(ages) == 1 else ""


def purged(array: Configuration) -> Configuration:
    """The array with drives to which nothing was written; the same one where it has no drives of flash."""
    if not age_of(array):
        return array
    others = [word for word in str(array.options.get("state", "")).split("+") if word and word not in FLASH_STATES]
    return replace(array, options={**array.options, "state": "+".join([*others, FLASH_STATES[0]])})

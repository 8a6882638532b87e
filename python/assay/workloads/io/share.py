"""The share of one host in a plan of I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.base.errors import UsageError
from assay.base.units import parse_bytes
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.spread import Share


def shared_plan(plan: IoPlan, share: Share) -> IoPlan:
    """The plan of one host of several.

    What is asked in total is spread: outstanding I/Os, rates, bytes of checkpoints. What is asked of each worker is
    asked of each worker on every host. Points last as long on all of them.

    Raises
    ------
    UsageError
        There is less than one outstanding I/O for each host.
    """
    if plan.precondition.is_asked:
        raise UsageError(
            "--precondition: each host would end its fills and rounds in its own time; precondition the target from one"
            " host first, then measure over hosts without it"
        )
    data = plan.model_dump(mode="json", exclude_unset=True)
    timing = plan.timing
    data["timing"] = data.get("timing", {}) | {"duration_s": timing.duration_s or timing.max_s}
    apart = share.shared and any(workload.writes for workload in plan.workloads())
    for key in ("activity", "case"):
        if key in data:
            data[key] = [_activity(table, share, apart=apart and key == "activity") for table in data[key]]
    if apart and "activity" not in data:
        data["activity"] = [{"region": list(share.region(0.0, 1.0))}]
    if plan.search.axis == "rate":
        data["search"] = data["search"] | {
            "start": share.rate(plan.search.first_load),
            "end": share.rate(plan.search.last_load),
        }
    if share.shared:
        # Hosts that read the same places at the same time would show their common cache.
        data["seed"] = plan.seed + share.place
    return load_plan(data, source="the plan's share of a host")


def _activity(table: Mapping[str, Any], share: Share, *, apart: bool) -> dict[str, Any]:
    spread: dict[str, Callable[[Any], Any]] = {
        "outstanding": lambda value: share.whole(int(value), "--outstanding"),
        "rate": lambda value: share.rate(float(value)),
        "burst_bytes": lambda value: int(parse_bytes(value)) // share.hosts,
    }
    made = dict(table)
    for key, part in spread.items():
        value = made.get(key)
        if value is not None:
            made[key] = [part(level) for level in value] if isinstance(value, list) else part(value)
    if apart:
        start, end = made.get("region", (0.0, 1.0))
        made["region"] = list(share.region(float(start), float(end)))
    return made

"""A finished phase of an integrity run with the keys of a point (docs/results.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.results.standstill import judged
from assay.telemetry.summary import summarise
from assay.telemetry.ticks import batches
from assay.workloads.integrity.core_plan import tick_s
from assay.workloads.integrity.plan import PAGE_BYTES, IntegrityPlan

if TYPE_CHECKING:
    import pyarrow as pa


def phase_facts(plan: IntegrityPlan, name: str, cycle: int) -> dict[str, Any]:
    """What a point says of its workload."""
    return {
        "kind": "integrity",
        "name": name if plan.cycles == 1 else f"{name}, cycle {cycle}",
        "phase": name,
        "cycle": cycle,
        "page_bytes": PAGE_BYTES,
        "io_mode": "direct" if plan.no_buffering else "buffered",
        "sync": "dsync" if plan.write_through else "none",
    }


def phase_figures(
    plan: IntegrityPlan,
    phase: Mapping[str, Any],
    measured: dict[str, Any],
    *,
    started_ns: int,
    ticks: Sequence[Mapping[str, Any]],
    telemetry: Sequence[pa.RecordBatch],
    devices: Collection[str],
) -> dict[str, Any]:
    """What a point says of a phase.

    Parameters
    ----------
    phase
        The phase as the compiled core reports it, its times from the begin of the run.
    measured
        The core's figures over it; changed in place.
    started_ns
        Begin of the run, UTC.
    ticks, telemetry
        Those of the run so far.
    devices
        Block devices beneath the target.
    """
    from_ns, to_ns = phase["from_ns"], phase["to_ns"]
    start_ns, end_ns, seconds = started_ns + from_ns, started_ns + to_ns, (to_ns - from_ns) / 1e9
    interval_s = tick_s(plan)
    # Ticks that lie in the phase as a whole.
    from_tick = -int(-from_ns // (interval_s * 1e9))
    to_tick = max(int(to_ns // (interval_s * 1e9)), from_tick + 1)
    return {
        "started_utc_ns": start_ns,
        "measured_from_utc_ns": start_ns,
        "measured_to_utc_ns": end_ns,
        "warmup_s": 0.0,
        "measured_s": seconds,
        **measured,
        "offered": None,
        "outside_window": {"count": 0, "longest_ns": 0},
        "steady": {"reached": False, "window_s": seconds, "slope_share": None, "half_width_share": None},
        # One thread verifies and issues: it asks as hard as it can verify, and its speed is no figure of the storage.
        "generator": {
            "cpu_share": None,
            "fullest_worker_share": None,
            "schedule_lag_p99_ns": None,
            "clock_ns": None,
            "gaps": measured["generator"]["gaps"],
            **judged(measured["generator"]["gaps"], False),
        },
        "batches": batches(ticks, from_tick, to_tick, interval_s),
        "telemetry": summarise(telemetry, start_ns, end_ns, devices=devices),
    }

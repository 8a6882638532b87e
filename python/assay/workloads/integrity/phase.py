"""A finished phase of an integrity run with the keys of a point (docs/results.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from assay.measure import judge
from assay.measure.point import measured_point
from assay.measure.window import Window
from assay.telemetry.summary import summarise
from assay.workloads.integrity.core_report import EndedPhase, VerifiedTick
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.shapes import PhaseAsked

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreFigures
    from assay.record.rows import Rows
    from assay.record.shapes.point import Engine


def phase_facts(plan: IntegrityPlan, name: str, cycle: int) -> PhaseAsked:
    """What a point says of its workload."""
    return {
        "kind": "integrity",
        "name": name if plan.cycles == 1 else f"{name}, cycle {cycle}",
        "phase": name,
        "cycle": cycle,
        "page_bytes": plan.page_bytes,
        "io_mode": "direct" if plan.no_buffering else "buffered",
        "sync": "dsync" if plan.write_through else "none",
    }


def phase_window(phase: EndedPhase, *, started_ns: int, interval_s: float, ended_by: str) -> Window:
    """The window of a phase: all of it, whether it was steady or not.

    Parameters
    ----------
    phase
        The phase as the compiled core reports it, its times from the begin of the run.
    started_ns
        Begin of the run, UTC.
    """
    from_ns, to_ns = phase["from_ns"], phase["to_ns"]
    # Ticks that lie in the phase as a whole.
    from_tick = -int(-from_ns // (interval_s * 1e9))
    return Window(
        started_ns=started_ns,
        interval_s=interval_s,
        from_tick=from_tick,
        to_tick=max(int(to_ns // (interval_s * 1e9)), from_tick + 1),
        ended_by=ended_by,
        exact_ns=(from_ns, to_ns),
    )


def phase_figures(
    figures: CoreFigures,
    engine: Engine,
    window: Window,
    *,
    ticks: Sequence[VerifiedTick],
    telemetry: Sequence[Rows],
    devices: Collection[str],
) -> dict[str, Any]:
    """What a point says of a phase.

    Parameters
    ----------
    figures, engine
        The core's figures over the phase, and what did the I/O.
    ticks, telemetry
        Those of the run so far.
    devices
        Block devices beneath the target.
    """
    # One thread verifies and issues: it asks as hard as it can verify, and its speed is no figure of the storage.
    gaps = figures.pop("generator")["gaps"]
    measured = measured_point(
        window,
        {**figures, "engine": engine},
        generator=judge.generator({"gaps": gaps}, saturated=False),
        batches=window.batches(ticks),
        telemetry=summarise(telemetry, window.start_ns, window.end_ns, devices=devices),
    )
    return measured | {"started_utc_ns": window.start_ns}

"""A plan on a modelled array without a run folder: what calibration and error bands ask many times."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import cast

from assay import _core
from assay.base.errors import Interrupted
from assay.base.progress import SILENT, Display
from assay.record.run_folder import RunFolder
from assay.record.shapes.point import Answer, Point
from assay.run.nowhere import Nowhere
from assay.run.points import PointLoop
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.files.spec import VolumeSpec
from assay.targets.files.volume import OpenVolume
from assay.telemetry.recorder import Recorder
from assay.workloads.io.job import IoJob
from assay.workloads.io.measurement import SETTLING_MAX_S
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.io.session import modelled_bytes_per_s
from assay.workloads.io.ticks import tick_length_s
from assay.workloads.job import PartContext
from assay.workloads.modelled import ModelRun
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.replay.plan import ReplayPlan


def model_volumes(configuration: Configuration) -> list[OpenVolume]:
    """The volumes of a configuration, ready for load."""
    return [
        OpenVolume(
            spec=VolumeSpec(name=name, kind="model", path=None, size_bytes=size_bytes, array=configuration),
            roles=(role or "data",),
            size_bytes=size_bytes,
            sector_bytes=512,
        )
        for (name, size_bytes), role in zip(configuration.volumes, configuration.roles, strict=True)
    ]


def simulate(
    configuration: Configuration,
    plan: IoPlan,
    *,
    interrupt: threading.Event | None = None,
    warm: _core.WarmCaches | None = None,
    display: Display = SILENT,
) -> tuple[Sequence[Point], Sequence[Answer]]:
    """Run a plan on a model; returns its points and its answers, as a run folder would hold them.

    Parameters
    ----------
    warm
        Warm caches shared by several such runs.
    display
        Where progress goes.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    UsageError
        The plan does not fit the volumes.
    """
    part = Part(name=plan.name, title=plan.title, plan=plan)
    context = _context(display, interrupt)
    loop = PointLoop(
        context=context,
        workload=workload_of(plan),
        opened=IoJob(part, context, volumes=model_volumes(configuration), array=configuration, warm=warm),
        part=part,
        numbers=itertools.count(1),
    )
    loop.run()
    return loop.points, loop.answers


def simulate_replay(configuration: Configuration, plan: ReplayPlan) -> Point:
    """The point of a replay on a model.

    Raises
    ------
    UsageError
        The trace is damaged, or does not fit the volumes.
    """
    from assay.workloads.replay.job import ReplayJob

    part = Part(name="replay", title=plan.title, plan=plan)
    context = _context(SILENT, None)
    loop = PointLoop(
        context=context,
        workload=workload_of(plan),
        opened=ReplayJob(part, context, volumes=model_volumes(configuration), array=configuration),
        part=part,
        numbers=itertools.count(1),
    )
    loop.run()
    points: Sequence[Point] = loop.points
    return points[0]


def _context(display: Display, interrupt: threading.Event | None) -> PartContext:
    """The surroundings of a part whose results stay in memory."""
    return PartContext(
        folder=cast(RunFolder, Nowhere()),
        recorder=Recorder([]),
        display=display,
        interrupt=interrupt or threading.Event(),
        keeps_series=False,
    )


def simulate_bytes_per_s(
    configuration: Configuration,
    plan: IoPlan,
    *,
    interrupt: threading.Event | None = None,
    warm: _core.WarmCaches | None = None,
) -> float:
    """Bytes per second of a plan's only point of a given duration, as `simulate` finds them, at half its cost.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    UsageError
        The plan does not fit the volumes.
    """
    if interrupt is not None and interrupt.is_set():
        raise Interrupted("interrupted")
    assert plan.timing.duration_s is not None
    (workload,) = plan.workloads()
    return modelled_bytes_per_s(
        ModelRun(configuration=configuration, epoch_ns=0, warm=warm),
        workload,
        model_volumes(configuration),
        interval_s=tick_length_s(plan.timing),
        warmup_s=plan.timing.warmup_s,
        settling_s=SETTLING_MAX_S,
        duration_s=plan.timing.duration_s,
        seed=plan.seed,
    )


def simulate_load(
    configuration: Configuration,
    activities: Sequence[Mapping[str, object]],
    *,
    warmup_s: float,
    duration_s: float,
    seed: int | None = None,
    interrupt: threading.Event | None = None,
    warm: _core.WarmCaches | None = None,
    display: Display = SILENT,
) -> Point:
    """One point of activities that run at once on a model, each at the load it names.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    UsageError
        An activity is wrong, or does not fit the volumes.
    """
    table = {
        "name": "load",
        "timing": {"warmup_s": warmup_s, "duration_s": duration_s},
        "activity": [dict(activity) for activity in activities],
    }
    plan = load_plan(table | ({} if seed is None else {"seed": seed}), source="load")
    points, _ = simulate(configuration, plan, interrupt=interrupt, warm=warm, display=display)
    return points[0]


def search_rate(
    configuration: Configuration,
    activity: Mapping[str, object],
    limits: Sequence[str],
    *,
    start: float,
    end: float,
    warm: _core.WarmCaches | None = None,
    interrupt: threading.Event | None = None,
    display: Display = SILENT,
) -> tuple[Answer, Sequence[Point]]:
    """The answer and the points of a search, without repeats, for the most I/Os a second of one activity within limits.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    UsageError
        The activity is wrong, or does not fit the volumes.
    """
    table = {
        "name": "search",
        "limits": list(limits),
        "timing": {"warmup_s": 2, "min_s": 2, "max_s": 6},
        # A model's band is far wider than the spread of its repeats.
        "search": {"axis": "rate", "start": start, "end": end, "repeats": 0},
        "activity": [dict(activity)],
    }
    plan = load_plan(table, source="search")
    points, answers = simulate(configuration, plan, interrupt=interrupt, warm=warm, display=display)
    return answers[0], points

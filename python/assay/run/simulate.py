"""A plan on a modelled array without a run folder: what calibration and error bands ask many times."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, cast

from assay.results.limits import parse_limits
from assay.results.run_folder import RunFolder
from assay.targets.arrays.configuration import Configuration
from assay.targets.storage.spec import VolumeSpec
from assay.targets.storage.volume import Volume
from assay.telemetry.recorder import Recorder
from assay.workloads.io.modelled import ModelRun
from assay.workloads.io.plan import Plan
from assay.workloads.io.runner import Runner


class _Nowhere:
    """A run folder that keeps nothing."""

    def append_point(self, point: dict[str, Any]) -> None:
        """Forget a point."""

    def series_writer(self) -> _Nowhere:
        """Give itself."""
        return self

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Forget rows."""

    def close_segment(self, name: str) -> None:
        """Do nothing."""


def model_volumes(configuration: Configuration) -> list[Volume]:
    """The volumes of a configuration, ready for load."""
    return [
        Volume(
            spec=VolumeSpec(name=name, kind="model", path=None, size_bytes=size_bytes, array=configuration),
            roles=("data",),
            size_bytes=size_bytes,
            sector_bytes=512,
        )
        for name, size_bytes in configuration.volumes
    ]


def simulate(
    configuration: Configuration, plan: Plan, *, interrupt: threading.Event | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run a plan on a model; returns its points and its answers, as a run folder would hold them.

    Raises
    ------
    Interrupted
        `interrupt` was set.
    UsageError
        The plan does not fit the volumes.
    """
    runner = Runner(
        folder=cast(RunFolder, _Nowhere()),
        recorder=Recorder([]),
        volumes=model_volumes(configuration),
        devices=[],
        plan=plan,
        part=plan.name,
        limits=parse_limits(plan.limits),
        interrupt=interrupt or threading.Event(),
        show=lambda _progress: None,
        done=lambda _point: None,
        finished={},
        numbers=itertools.count(1),
        model=ModelRun(configuration=configuration, epoch_ns=0),
    )
    answers = runner.run()
    return runner.points, answers

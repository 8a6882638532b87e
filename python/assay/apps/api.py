"""Measuring from Python."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.apps.service import execution
from assay.base.progress import SILENT
from assay.record.load import Run, load
from assay.run.execute import new_folder
from assay.run.request import TargetRequest
from assay.targets.arrays.live.process import arrays_of_run
from assay.workloads.plan import AnyPlan, Part
from assay.workloads.registry import DEFAULT_KIND, workload_named

__all__ = ["Run", "load", "profile"]


def profile(
    *paths: str | Path,
    preset: str | None = None,
    plan: dict[str, Any] | AnyPlan | None = None,
    size: str | int | None = None,
    overwrite: Sequence[str] = (),
    create: bool = False,
    output: str | Path = "assay-results",
    report: bool = False,
    **activity: Any,
) -> Run:
    """Find how much load files or devices hold within limits, as `assay profile` does.

    Parameters
    ----------
    *paths
        Files, folders, devices, or `null:`.
    preset
        Name of a preset; `oltp` unless a plan or an activity is given.
    plan
        A plan, or a dictionary in the form of a plan file.
    size
        Size of each file: `"10G"` or bytes.
    overwrite
        Existing files or devices that may be written to.
    create
        Whether a file may be made whose name has no suffix.
    output
        Where the run folder is made.
    report
        Whether to write report.html and report.pdf.
    **activity
        Keys of one activity (`block_bytes`, `read_share`, `queue_depth`, ...), lists for several levels.

    Returns
    -------
    Run
        The finished run; `points`, `answers` and `series` are polars frames.

    Raises
    ------
    AssayError
        What the command line would report; what was measured until then is in the run folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> timing = {"warmup_s": 0.1, "duration_s": 0.3}
    >>> plan = {"timing": timing, "activity": [{"queue_depth": [1, 2]}]}
    >>> run = profile("null:?latency=1ms", plan=plan, output=folder)
    >>> run.points["queue_depth"].to_list()
    [1, 2]
    """
    chosen = _plan(preset, plan, activity)
    parts = [Part(name=chosen.name, title=chosen.title or "Custom profile", plan=chosen)]
    request = TargetRequest(
        paths=[str(path) for path in paths],
        size=str(size) if size is not None else chosen.size,
        overwrite=list(overwrite),
        create=create,
    )
    with arrays_of_run():
        return _measured(request, parts, output, report=report)


def _measured(request: TargetRequest, parts: list[Part[Any]], output: str | Path, *, report: bool) -> Run:
    target = request.choose(parts)
    with new_folder(Path(output), "profile", ["profile", *request.paths], request.to_dict(), parts) as folder:
        run = execution(folder, target, parts, display=SILENT, interrupt=threading.Event(), with_report=report)
        run.run()
        if run.error is not None:
            raise run.error
        return load(folder.path)


def _plan(preset: str | None, plan: dict[str, Any] | AnyPlan | None, activity: dict[str, Any]) -> Any:
    if isinstance(plan, AnyPlan):
        return plan
    workload = workload_named(DEFAULT_KIND)
    if plan is not None:
        return workload.load_plan(plan, source="plan")
    if activity and preset is None:
        return workload.load_plan({"activity": [activity]}, source="activity")
    name = preset or workload.preset_default
    base = workload.preset(name).model_dump(mode="json", exclude_unset=True)
    base["activity"] = [{**base["activity"][0], **activity}, *base["activity"][1:]]
    return workload.load_plan(base, source=f"preset {name}")

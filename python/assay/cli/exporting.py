"""Exports on the command line: tried before the run, written after it, none of them at the cost of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.cli.console import say
from assay.errors import AssayError, ExitCode
from assay.results.points import current_points
from assay.results.run_folder import RunFolder
from assay.run.part import Part
from assay.workloads.io.activities import load_facts
from assay.workloads.io.plan import Plan
from assay.workloads.tpcc.plan import TpccPlan


def rehearse_exports(names: Sequence[str], parts: Sequence[Part]) -> None:
    """Try the exports on points of the shapes that the plans of the parts will give.

    Raises
    ------
    UsageError
        A format cannot express one of them; nothing was measured yet.
    """
    if not names:
        return
    from assay.results.exports import rehearse
    from assay.results.exports.rehearsal import expected_point

    rehearse(names, [expected_point(number, *shape) for number, shape in enumerate(_shapes(parts), start=1)])


def _shapes(parts: Sequence[Part]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Workload and load of the points that the parts will measure."""
    for part in parts:
        if isinstance(part.plan, Plan):
            for workload in part.plan.workloads():
                mixed = len(workload.activities) > 1
                yield workload.facts(), {"kind": "mixed"} if mixed else load_facts(workload.activities[0], 1)
        elif isinstance(part.plan, TpccPlan):
            yield part.plan.facts(part.plan.warehouses or 1), part.plan.load_facts()
        else:
            yield {"kind": "integrity", "name": "stress", "phase": "stress", "cycle": 1}, {"kind": "integrity"}


def _tell(path: Path) -> None:
    say(f"exported {path}")


def export_all(
    names: Sequence[str], folder: RunFolder, code: ExitCode, tell: Callable[[Path], None] = _tell
) -> ExitCode:
    """Write a run in each of the formats, say what was written and what failed.

    Parameters
    ----------
    names
        Formats.
    folder
        The run.
    code
        Exit code of the run without its exports.
    tell
        Told each file that was written.

    Returns
    -------
    ExitCode
        `code`, or `TARGET_FAILED` where an export failed and the run itself did not.
    """
    from assay.results.exports import left_out, save_export

    if not names:
        return code
    points = current_points(folder.points())
    for name in names:
        try:
            for path in save_export(name, folder.manifest, points, folder.path):
                tell(path)
        except AssayError as error:
            say(f"assay: {error}")
            code = ExitCode.TARGET_FAILED if code in (ExitCode.DONE, ExitCode.LIMIT_MISSED) else code
        else:
            if count := left_out(name, points):
                say(f"{name}: {count} points of transactions or of verifying are no jobs of fio")
    return code

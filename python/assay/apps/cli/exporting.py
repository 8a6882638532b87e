"""Exports on the command line: tried before the run, written after it, none of them at the cost of another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.apps.cli.console import say
from assay.apps.cli.taken import command_words
from assay.base.errors import ANSWERS, AssayError, ExitCode
from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.workloads.capabilities import Foreseen
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of

if TYPE_CHECKING:
    from assay.record.shapes.point import Workload
    from assay.record.types import Load, Manifest


def rehearse_exports(names: Sequence[str], parts: Sequence[Part[Any]]) -> None:
    """Try the exports on points of the shapes that the plans of the parts will give.

    Raises
    ------
    UsageError
        A format cannot express one of them; nothing was measured yet.
    """
    if not names:
        return
    from assay.report.exports import rehearse
    from assay.report.exports.rehearsal import expected_point

    foreseen = [(one, part.plan) for part in parts if isinstance(one := workload_of(part.plan), Foreseen)]
    shapes = [shape for one, plan in foreseen for shape in one.expected_points(plan)]
    asked = cast("list[tuple[Workload, Load]]", shapes)
    rehearse(names, [expected_point(number, *one) for number, one in enumerate(asked, start=1)])


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
    from assay.report.exports import left_out, save_export

    if not names:
        return code
    manifest, points = cast("Manifest", folder.manifest), current_points(folder.points())
    for name in names:
        try:
            for path in save_export(name, manifest, points, folder.path):
                tell(path)
        except AssayError as error:
            say(f"assay: {error}")
            code = ExitCode.TARGET_FAILED if code in ANSWERS else code
        else:
            if count := left_out(name, points):
                say(f"{name}: {count} points of transactions or of verifying are no jobs of fio")
    return code


def keep_answer(
    verb: str, key: str, answer: Mapping[str, Any], output: Path, *, report: bool, title: str | None
) -> Path:
    """Write an answer that was worked out, not measured, into a run folder of its own."""
    from assay import _core

    manifest = {"command": command_words(), "build": _core.build_info(), key: answer, "parts": [], "answers": [],
                "verdict": [], "notices": answer["notices"]}  # fmt: skip
    manifest |= {"title": title} if title else {}
    with RunFolder.create(output, verb, manifest) as folder:
        if report:
            from assay.report.write import write_report

            write_report(folder.path)
        folder.update(status="done", ended_utc_ns=time.time_ns())
        return folder.path

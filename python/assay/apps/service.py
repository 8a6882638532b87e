"""The pipeline as a service: what the command line, `assay.apps.api` and a server start a run with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from assay.base.paths import printable
from assay.base.progress import SILENT, Display
from assay.record.run_folder import RunFolder
from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.point import Answer, Point
from assay.run.above import Above
from assay.run.execute import Execution, Raising
from assay.targets.target import Target
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.workload import workload_at


class _Bands:
    """Error bands of models; calibration is loaded when the first is asked for.

    A cloud's volume has none: its limits are stated, not estimated, and a notice says which latency is assumed.
    """

    def band_of_answer(
        self, configuration: Any, answer: Answer, points: Sequence[Point], *, interrupt: threading.Event
    ) -> Any:
        if configuration.model.offer is not None:
            return None
        from assay.insight.calibration.bands import band_of_answer

        return band_of_answer(configuration, answer, points, interrupt=interrupt)

    def band_of_point(self, configuration: Any, point: Mapping[str, Any], *, interrupt: threading.Event) -> Any:
        if configuration.model.offer is not None:
            return None
        from assay.insight.calibration.bands import band_of_point

        return band_of_point(configuration, cast(Point, point), interrupt=interrupt)


def _study_findings(*facts: Any) -> dict[str, Any]:
    from assay.insight.studies.findings import study_findings

    return dict(study_findings(*facts))


def _judge_contract(*facts: Any) -> AcceptanceTest:
    from assay.insight.contracts.acceptance import judged_test

    return judged_test(*facts)


def _writes(*, report: bool, paper: bool) -> Callable[[Path], object] | None:
    """What is written of a run when it has ended; None for nothing."""

    def write(path: Path) -> None:
        if report:
            from assay.report import write_report

            write_report(path)
        if paper:
            from assay.report.paper.write import PaperOptions, write_paper

            write_paper(PaperOptions(runs=[path], folder=path, command=["assay", "report", "--paper", printable(path)]))

    return write if report or paper else None


def execution(
    folder: RunFolder,
    target: Target,
    parts: Sequence[Part[Any]],
    *,
    display: Display,
    interrupt: threading.Event,
    with_report: bool = True,
    with_paper: bool = False,
    keeps_interrupted: bool = False,
    uninterruptible: Raising | None = None,
    yes_destroy: Sequence[str] = (),
) -> Execution:
    """A run that is ready to begin, or to go on: `Execution.run` does it.

    Parameters
    ----------
    folder
        Its run folder.
    target, parts
        As `assay.run.targets.choose_targets` gives them.
    display
        Told of its progress.
    interrupt
        Ends it when set.
    with_report, with_paper
        Whether to write the report and the paper.
    keeps_interrupted, uninterruptible, yes_destroy
        See `Execution`.
    """
    return Execution(
        folder=folder,
        target=target,
        parts=parts,
        display=display,
        interrupt=interrupt,
        above=Above(
            bands=_Bands(),
            study_findings=_study_findings,
            judge_contract=_judge_contract,
            write_report=_writes(report=with_report, paper=with_paper),
        ),
        keeps_interrupted=keeps_interrupted,
        uninterruptible=uninterruptible,
        yes_destroy=yes_destroy,
    )


@contextmanager
def first_examined(target: Target, first: Part[Any], manifest: Mapping[str, Any], display: Display) -> Iterator[None]:
    """Open and examine the target of the part that runs first, so that what is refused leaves no run folder.

    A part that may be left out is not opened before its time.

    Raises
    ------
    AssayError
        The part cannot run there.
    """
    chosen = first.target or target
    try:
        if not first.optional:
            workload_at(workload_of(first.plan), chosen).examine(first, chosen, manifest, display)
        yield
    finally:
        chosen.leave(SILENT)

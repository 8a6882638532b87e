"""Parts on models that run ahead of their turn: at once, and with the same run folder on any number of cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.apps.service import execution
from assay.base.errors import ExitCode, IoFailed
from assay.base.progress import SILENT, Silent
from assay.insight.studies.parts import study_parts
from assay.insight.studies.study import load_study
from assay.record.run_folder import RunFolder
from assay.run import ahead
from assay.run.execute import Execution, new_folder
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets
from assay.workloads.io.job import IoJob
from assay.workloads.steps import Ask, Measured

STUDY = {
    "name": "small", "title": "Small", "question": "?", "targets": ["model"], "repeats": 2,
    "plan": {
        "timing": {"warmup_s": 1, "duration_s": 2}, "limits": ["read.mean<=14ms"],
        "search": {"axis": "queue-depth", "end": 8}, "activity": [{"block_bytes": "8K"}],
    },
    "factor": [{"name": "raid", "title": "RAID policy", "levels": ["10", "5"]}],
}  # fmt: skip
ARRAY = "model:ps6100xv?disks.count=6&disks.spares=0&cache=64M&volumes=2&volume_size=20GB"

MAILBOXES = {
    "name": "mailboxes", "title": "Mailboxes", "question": "?", "targets": ["model"],
    "plan": {
        "kind": "mailbox", "mailboxes": 20, "mailbox_size_bytes": "4M", "databases": 1,
        "timing": {"warmup_s": 1, "duration_s": 5},
    },
    "factor": [{"name": "raid", "title": "RAID policy", "levels": ["10", "5"]}],
}  # fmt: skip

Begin = Callable[..., Execution]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """A study that is ready to run on so many cores."""

    def ready(cores: int, asked: Mapping[str, Any] = STUDY) -> Execution:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(cores))
        parts, study = study_parts(load_study(asked, source="test"), target=ARRAY)
        request = TargetRequest(paths=[ARRAY])
        target, chosen = choose_targets(request, parts)
        folder = new_folder(tmp_path, "study", [], request.to_dict(), chosen, study)
        return execution(folder, target, chosen, display=SILENT, interrupt=threading.Event(), with_report=False)

    return ready


def held(folder: RunFolder) -> Any:
    """All that was measured, with times that count from the beginning of the run."""
    began = folder.manifest["started_utc_ns"]
    times = ("started_utc_ns", "measured_from_utc_ns", "measured_to_utc_ns")
    points: list[Any] = [dict(point) for point in folder.points()]
    points = [point | {key: point[key] - began for key in times} for point in points]
    rows = [row | {"t_ns": row["t_ns"] - began} for row in folder.series().records()]
    return points, folder.manifest["answers"], rows


@pytest.mark.slow(reason="the quick tests here measure ahead on two cores")
def test_any_number_of_cores_gives_the_same_folder(begin: Begin) -> None:
    runs = [begin(cores) for cores in (1, 3)]

    assert {run.run() for run in runs} <= {ExitCode.DONE, ExitCode.LIMIT_MISSED}
    one, three = (held(run.folder) for run in runs)
    assert one == three
    points, answers, rows = three
    assert [point["id"] for point in points] == [f"p{number:04d}" for number in range(1, len(points) + 1)]
    assert [point["started_utc_ns"] for point in points] == sorted({point["started_utc_ns"] for point in points})
    assert len(answers) == 4
    assert all(answer["band_90"] for answer in answers)
    assert rows


def test_levels_are_measured_at_once(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    both, measure = threading.Barrier(2), IoJob.measure
    waited: set[str] = set()

    def meeting(self: IoJob, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        if self.context.for_study and self.part.name not in waited:
            waited.add(self.part.name)
            both.wait(timeout=60)
        return measure(self, ask, repeat=repeat, point_id=point_id)

    monkeypatch.setattr(IoJob, "measure", meeting)

    assert begin(2).run() in (ExitCode.DONE, ExitCode.LIMIT_MISSED)
    assert len(waited) == 4


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_failure_ends_the_run_at_its_turn(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    run, measure = begin(3), IoJob.measure
    failing = run.study["order"][1] if run.study is not None else ""

    def failed(self: IoJob, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        if self.part.name == failing:
            raise IoFailed("out of order")
        return measure(self, ask, repeat=repeat, point_id=point_id)

    monkeypatch.setattr(IoJob, "measure", failed)

    assert run.run() is ExitCode.TARGET_FAILED
    assert (str(run.error), run.folder.manifest["status"]) == ("out of order", "failed")
    assert {point["part"] for point in run.folder.points()} == {run.folder.manifest["study"]["order"][0]}


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_an_interrupted_run_goes_on_to_the_same_points(begin: Begin) -> None:
    whole, broken = begin(3), begin(3)
    whole.run()

    class Impatient(Silent):
        def point_done(self, point: Mapping[str, Any]) -> None:
            del point
            broken.interrupt.set()

    broken.display = Impatient()
    assert broken.run() is ExitCode.INTERRUPTED
    kept = len(broken.folder.points())
    assert 0 < kept < len(whole.folder.points())
    again = execution(
        broken.folder, broken.target, broken.parts, display=SILENT, interrupt=threading.Event(), with_report=False
    )
    again.run()
    figures = [[(point["key"], point["total"]) for point in run.folder.points()] for run in (whole, again)]
    assert figures[0] == figures[1]


def test_a_run_goes_on_though_mailboxes_of_a_part_were_measured_before(begin: Begin) -> None:
    run = begin(2, MAILBOXES)
    ended = run.run()
    told = run.folder.manifest["mailbox"]
    run.folder.update(status="interrupted")
    again = execution(run.folder, run.target, run.parts, display=SILENT, interrupt=threading.Event(), with_report=False)
    assert again.run() is ended
    assert len(run.folder.points()) == 2
    assert run.folder.manifest["mailbox"] == told


def test_an_interrupt_ends_a_simulation_whose_end_a_part_waits_for() -> None:
    stop, interrupt = threading.Event(), threading.Event()
    with ahead._Stream(stop).passing_on(interrupt):
        assert not stop.is_set()
        interrupt.set()
        assert stop.wait(30)
    calm = threading.Event()
    with ahead._Stream(calm).passing_on(threading.Event()):
        pass
    assert not calm.is_set()

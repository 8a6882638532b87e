"""Parts of both kinds in one run on one target, with the real core."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from assay.base.errors import ExitCode
from assay.base.progress import Shown
from assay.record.run_folder import RunFolder
from assay.run.execute import Execution, new_folder, run_document
from assay.run.part import part_report
from assay.run.request import TargetRequest
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.io.plan import load_plan
from assay.workloads.plan import Part
from assay.workloads.registry import load_plan_of_any_kind, workload_named

PHASES = ["prepare", "stress", "checkpoint", "audit"]


class Silent:
    def layout(self, name: str, done_bytes: float, total_bytes: float) -> None: ...
    def point(self, progress: Shown) -> None: ...
    def status(self, status: Any) -> None: ...

    def tell(self, text: str) -> None: ...
    def phase(self, text: str) -> None: ...
    def point_done(self, point: dict[str, Any]) -> None: ...


def parts() -> list[Part]:
    timing = {"warmup_s": 0, "duration_s": 0.2}
    reads = load_plan({"timing": timing, "activity": [{"queue_depth": 1}]}, source="plan")
    stress = workload_named("integrity").load_plan({"timing": {"stress_s": 0.3}}, source="plan")
    return [
        Part(name="reads", title="Reads", plan=reads),
        Part(name="integrity", title="Integrity", plan=stress),
        Part(name="again", title="Reads again", plan=reads),
    ]


def execution(folder: RunFolder, request: TargetRequest, chosen: list[Part]) -> Execution:
    return Execution(folder=folder, target=request.choose(chosen), parts=chosen, display=Silent(),
                     interrupt=threading.Event())  # fmt: skip


def test_an_integrity_part_runs_between_others_on_the_file_they_use(tmp_path: Path) -> None:
    request = TargetRequest(paths=[str(tmp_path)], size="32M")
    with new_folder(tmp_path / "runs", "assess", ["assess"], request.to_dict(), parts()) as folder:
        run = execution(folder, request, parts())

        assert run.run() is ExitCode.DONE

        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["assay.dat"]
        assert (tmp_path / "assay.dat").stat().st_size == 32 << 20
        assert [point["part"] for point in run.points] == ["reads", *["integrity"] * 4, "again"]
        document = run_document(folder)
        assert document["integrity"]["passed"]
        questions = [line["question"] for line in document["verdict"]]
        assert questions[0] == "integrity findings"
        assert {name.partition(": ")[0] for name in questions[1:]} == {"Reads", "Reads again"}
        assert not set(questions) & set(PHASES)
        assert run.can_go_on
        # Every byte of the file has been written, so reads after it reach the device.
        assert request.choose(parts()).examined[0].fully_allocated


def test_when_it_goes_on_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    request = TargetRequest(paths=[str(tmp_path)], size="32M")
    with new_folder(tmp_path / "runs", "assess", ["assess"], request.to_dict(), parts()) as folder:
        execution(folder, request, parts()).run()
        before = folder.points()
        folder.update(status="interrupted")
        again = execution(folder, request, parts())

        assert again.run() is ExitCode.DONE
        assert folder.points() == before
        assert again.told["integrity"] == folder.manifest["integrity"]


def test_plans_of_both_kinds_come_back_from_a_run() -> None:
    for part in parts():
        plan = load_plan_of_any_kind(part_report(part)["plan"], source="run")

        assert plan == part.plan
        assert isinstance(plan, IntegrityPlan) == (part.name == "integrity")

"""A workload in one file: search, resume, comparison, study, document, exports and report come from the pipeline."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from assay.fields import Strict
from assay.progress import SILENT
from assay.report.assemble import assemble
from assay.report.exports import EXPORTS
from assay.report.facts import load_facts
from assay.results.figures import Figure
from assay.results.run_folder import RunFolder
from assay.run.execute import new_folder, run_document
from assay.run.request import Request
from assay.run.targets import choose_targets
from assay.service import execution
from assay.studies.parts import study_parts
from assay.studies.study import load_study
from assay.workloads import registry
from assay.workloads import workload as seam

CAPACITY = 100.0
"""What the desk serves a second."""


class DeskSearch(Strict):
    axis: Literal["none", "clients"] = "none"
    end: float = 200.0
    repeats: Annotated[int, Field(ge=0)] = 1


class DeskPlan(seam.AnyPlan):
    kind: Literal["desk"] = "desk"
    name: str = "desk"
    title: str = "Clients at a desk"
    clients: Annotated[int, Field(ge=1)] = 10
    search: DeskSearch = DeskSearch()


class OpenDesk(seam.OpenWorkload):
    """Clients at a desk, on a clock of their own so that a test does not wait."""

    def __init__(self, plan: DeskPlan) -> None:
        self.plan = plan

    def steps(self) -> seam.Steps:
        search = self.plan.search
        if search.axis == "none":
            yield seam.Measure(ask=self.ask(self.plan.clients))
            return
        axis = seam.Axis(name="clients", start=1, end=search.end, whole=True)
        yield seam.Search(axis=axis, ask=self.ask, workload=self.ask(0).workload, repeats=search.repeats)

    def ask(self, clients: float) -> seam.Ask:
        workload = {"kind": "desk", "name": self.plan.title}
        return seam.Ask(key={"clients": clients}, workload=workload, load={"clients": int(clients)}, what=clients)

    def measure(self, ask: seam.Ask, *, repeat: int, point_id: str) -> seam.Measured:
        served = min(ask.what * 10.0, CAPACITY) * (1 + repeat / 1000)
        figures = {"served_per_s": served, "wait_ns": 1e9 * ask.what / served}
        return seam.Measured(figures={"measured_s": 1.0, "desk": figures})


class Desk(seam.Workload[DeskPlan]):
    kind, plan_type = "desk", DeskPlan
    figures = (
        Figure(name="served_per_s", unit="count", title="Served per s", better="higher",
               value=lambda point: point["desk"]["served_per_s"], words=lambda value: f"{value:,.0f} served per s",
               batches=lambda point: [point["desk"]["served_per_s"]] * 8, in_answers=True),
        Figure(name="wait_ns", unit="ns", title="Wait", better="lower",
               value=lambda point: point["desk"]["wait_ns"], words=lambda value: f"{value / 1e6:.0f} ms", limit="wait"),
    )  # fmt: skip

    def estimate_s(self, plan: DeskPlan) -> tuple[float, float]:
        return 1.0, 1.0

    def open(self, part: seam.Part[DeskPlan], target: Any, context: seam.RunContext) -> OpenDesk:
        return OpenDesk(part.plan)


# The tests


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", registry._KINDS.copy())
    registry.register(Desk())


def run(folder: Path | RunFolder, parts: list[seam.Part[Any]], study: dict[str, Any] | None = None) -> dict[str, Any]:
    request = Request(paths=["null:"])
    target, chosen = choose_targets(request, parts)
    kept = new_folder(folder, "desk", [], request.to_dict(), chosen, study) if isinstance(folder, Path) else folder
    execution(kept, target, chosen, display=SILENT, interrupt=threading.Event(), with_report=False).run()
    return run_document(kept)


def part(**plan: Any) -> seam.Part[Any]:
    made = registry.load_plan_of_any_kind({"kind": "desk", **plan}, source="plan")
    return seam.Part(name="desk", title="Desk", plan=made)


def test_it_is_searched(tmp_path: Path) -> None:
    (answer,) = run(tmp_path, [part(search={"axis": "clients"})])["answers"]

    assert (answer["limited_by"], answer["axis"]) == ("saturation", "clients")
    assert answer["max"]["served_per_s"] == pytest.approx(100, rel=0.01)
    low, high = answer["interval_95"]
    assert low < answer["max"]["served_per_s"] < high


def test_what_is_there_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = run(tmp_path, [part(search={"axis": "clients"})])
    monkeypatch.delattr(OpenDesk, "measure")

    again = run(RunFolder.open(Path(document["run_folder"])), [part(search={"axis": "clients"})])

    assert again["points"] == document["points"]
    assert again["answers"] == document["answers"]


def test_a_study_varies_it(tmp_path: Path) -> None:
    levels = [{"label": "few", "value": 2}, {"label": "many", "value": 9}]
    study = load_study(
        {"name": "s", "title": "S", "question": "Q?", "targets": ["file"], "plan": {"kind": "desk"},
         "factor": [{"name": "clients", "title": "Clients", "of": "plan", "levels": levels}]},
        source="study",
    )  # fmt: skip
    parts, facts = study_parts(study, target="null:")

    document = run(tmp_path, parts, facts)

    assert sorted(point["desk"]["served_per_s"] for point in document["points"]) == [20, 90]


def test_it_has_a_report_and_exports(tmp_path: Path) -> None:
    document = run(tmp_path, [part(search={"axis": "clients"})])

    report = assemble(load_facts(Path(document["run_folder"])))
    texts = {name: export(document, document["points"]) for name, export in EXPORTS.items()}

    assert report.title.startswith("Desk report: ")
    said = getattr(report.sections[0].blocks[1], "text", "")
    assert said.startswith("Holds 100 served per s of Clients at a desk")
    own = report.sections[1]
    assert [block.kind for block in own.blocks] == ["paragraph", "figure", "table"]
    assert [len(block.rows) for block in own.blocks if block.kind == "table"] == [len(document["points"])]
    assert ",served_per_s,wait_ns," in texts["csv"]["points.csv"]
    assert "assay_wait_seconds{" in texts["openmetrics"]["openmetrics.txt"]

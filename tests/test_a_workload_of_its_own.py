"""A workload in one file: search, resume, comparison, study, document, exports and report come from the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.base.errors import UsageError
from assay.record.figures import Figure
from assay.workloads import registry
from assay.workloads.job import Job
from assay.workloads.options import Option
from assay.workloads.plan import AnyPlan, SearchPlan
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps
from assay.workloads.workload import Workload

CAPACITY = 100.0
"""What the desk serves a second."""


class DeskSearch(SearchPlan):
    axes: ClassVar = {"clients": (1.0, 200.0)}
    axis: Literal["none", "clients"] = "none"


class DeskPlan(AnyPlan):
    kind: Literal["desk"] = "desk"
    name: str = "desk"
    title: str = "Clients at a desk"
    clients: Annotated[int, Field(ge=1), Option("--clients", help="How many come.")] = 10
    search: DeskSearch = DeskSearch()


class DeskJob(Job):
    """Clients at a desk, on a clock of their own so that a test does not wait."""

    def steps(self) -> Steps:
        search = self.plan.search
        if search.axis == "none":
            yield Measure(ask=self.ask(self.plan.clients))
            return
        axis = Axis(name="clients", start=search.first_load, end=search.last_load, whole=True)
        yield Search(axis=axis, ask=self.ask, workload=self.ask(0).workload, repeats=search.repeats)

    def ask(self, clients: float) -> Ask:
        workload = {"kind": "desk", "name": self.plan.title}
        return Ask(key={"clients": clients}, workload=workload, load={"clients": int(clients)}, what=clients)

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        served = min(ask.what * 10.0, CAPACITY) * (1 + repeat / 1000)
        figures = {"served_per_s": served, "wait_ns": 1e9 * ask.what / served}
        return Measured(figures={"measured_s": 1.0, "desk": figures})


class Desk(Workload[DeskPlan]):
    kind, plan_type, job = "desk", DeskPlan, DeskJob
    figures = (
        Figure(name="served_per_s", unit="count", title="Served per s", better="higher",
               value=lambda point: point["desk"]["served_per_s"], words=lambda value: f"{value:,.0f} served per s",
               batches=lambda point: [point["desk"]["served_per_s"]] * 8, in_answers=True, study="served_per_s"),
        Figure(name="wait_ns", unit="ns", title="Wait", better="lower",
               value=lambda point: point["desk"]["wait_ns"], words=lambda value: f"{value / 1e6:.0f} ms", limit="wait"),
    )  # fmt: skip

    def estimate_s(self, plan: DeskPlan) -> tuple[float, float]:
        return 1.0, 1.0


# The tests


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", registry._KINDS.copy())
    registry.register(Desk())


def assay(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def document(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(assay(*words, "--json", "--quiet"))
    return found


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    return document(
        "desk", "null:", "--search", "clients", "--limit", "wait<=150ms", "-o", tmp_path, "--export", "csv,openmetrics"
    )


def test_it_is_searched_within_limits(found: dict[str, Any]) -> None:
    (answer,) = found["answers"]
    assert (answer["axis"], answer["max"]["clients"], answer["limited_by"]) == ("clients", 15, "wait<=150ms")
    assert answer["max"]["served_per_s"] == pytest.approx(100, rel=0.01)
    low, high = answer["interval_95"]
    assert low <= answer["max"]["served_per_s"] <= high
    (line,) = found["verdict"]
    assert "holds 100 served per s with 15 clients" in line["meaning"]


def test_it_goes_on_without_measuring_again(found: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Path(found["run_folder"]) / "run.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "interrupted"}))
    monkeypatch.delattr(DeskJob, "measure")

    again = document("desk", "--resume", found["run_folder"])

    assert (again["points"], again["answers"], again["status"]) == (found["points"], found["answers"], "done")


def test_two_runs_are_compared(tmp_path: Path) -> None:
    other = document("desk", "null:", "--search", "clients", "-o", tmp_path)
    same = document("desk", "null:", "--search", "clients", "-o", tmp_path)

    compared = json.loads(assay("compare", other["run_folder"], same["run_folder"], "--json"))

    statuses = {row["metric"]: row["status"] for row in compared["differences"]}
    assert statuses["served_per_s"] == "not changed"
    assert set(statuses.values()) <= {"not changed", "cannot tell"}


def test_a_study_varies_it(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        """name = "crowds"\ntitle = "Crowds"\nquestion = "How many?"\ntargets = ["file"]\nplan = {kind = "desk"}
        [[factor]]\nname = "clients"\ntitle = "Clients"\nof = "plan"\nlevels = [2, 9]
        [comparison]\nfigure = "served_per_s"\nby = "clients"\nbaseline = "2"
        """
    )
    found = document("study", "run", file, "null:", "--quick", "-o", tmp_path)

    assert sorted(point["desk"]["served_per_s"] for point in found["points"]) == [20, 90]
    assert found["study"]["comparisons"]


def test_it_is_exported_and_reported(found: dict[str, Any]) -> None:
    folder = Path(found["run_folder"])
    assert "served_per_s" in (folder / "points.csv").read_text().splitlines()[0]
    assert "served_per_s" in "".join(path.read_text() for path in folder.glob("*metrics*"))
    page = (folder / "report.html").read_text()
    assert "Served per s" in page
    assert "Clients at a desk" in page


def test_a_capability_that_it_does_not_name_is_refused() -> None:
    with pytest.raises(UsageError, match="a desk workload cannot be spread over hosts"):
        assay("desk", "null:", "--hosts", "local,local")

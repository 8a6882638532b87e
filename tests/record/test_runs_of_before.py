"""Real run folders that an earlier Assay wrote (`tests/fixtures/runs`): today's reads, compares and shows them all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.insight.compare import compare_runs
from assay.insight.differences import ComparedRun
from assay.record.load import load
from assay.record.run_folder import RunFolder
from assay.report import write_report
from assay.report.exports import EXPORTS, save_export
from assay.workloads.registry import figures_of, workloads
from assay_command import Bench

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
KINDS = {"profile": "io", "verify": "integrity", "oltp": "tpcc"}
VERBS = {"profile": ("profile",), "oltp": ("oltp", "tpcc")}
"""Verbs that show a finished run again; what `verify` expects is gone when it ends."""


SINCE = {"brokerage", "mailbox", "replay", "sql", "sqllog", "tpch"}
"""Kinds that came later: no run of theirs is older than the shapes."""


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run folder of each kind, to be written into."""
    return Path(shutil.copytree(RUNS / request.param, tmp_path / request.param))


def test_there_is_one_of_every_kind() -> None:
    kinds = {name: load(RUNS / name).points_raw[0]["workload"]["kind"] for name in KINDS}
    assert kinds == KINDS
    assert {workload.kind for workload in workloads()} == {*KINDS.values()} | SINCE


def test_it_loads_with_points_answers_verdict_and_series(run: Path) -> None:
    loaded = load(run)
    assert loaded.points.height == len(loaded.points_raw) > 0
    assert loaded.answers.height == len(loaded.manifest["answers"])
    assert loaded.verdict.height > 0
    assert set(loaded.series["host"].unique()) == {"testhost"}
    RunFolder.open(run).check_goes_on()


def test_every_figure_of_its_kind_reads_it(run: Path) -> None:
    for point in load(run).points_raw:
        values = {figure.name: figure.value(point) for figure in figures_of(point)}
        assert values[figures_of(point)[0].name], point["id"]
        assert not [name for name, value in values.items() if value is not None and value < 0]


def test_compared_with_itself_nothing_differs(run: Path) -> None:
    with RunFolder.open(run) as folder:
        compared = ComparedRun(folder.manifest, folder.whole_points())
    comparison = compare_runs([compared, compared])
    assert {row.status for row in (*comparison.compared, *comparison.answers)} == {"not changed"}
    assert not comparison.sentence.startswith("Nothing can be compared")
    assert len(comparison.answers) == len(compared.manifest["answers"])
    json.dumps(comparison.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", EXPORTS)
def test_it_is_exported(run: Path, name: str, tmp_path: Path) -> None:
    with RunFolder.open(run) as folder:
        paths = save_export(name, folder.manifest, folder.whole_points(), tmp_path / "exports")
    assert paths
    assert all(path.stat().st_size for path in paths)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_its_report_is_written_again(run: Path) -> None:
    (page,) = write_report(run, pdf=False)
    assert load(run).manifest["run_id"] in page.read_text()


@pytest.mark.parametrize("name", VERBS)
def test_a_finished_one_is_shown_again_and_stays_as_it_is(name: str, bench: Bench, tmp_path: Path) -> None:
    run = Path(shutil.copytree(RUNS / name, tmp_path / name))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    outcome = bench.assay(*VERBS[name], "--resume", run, "--no-report", "--json")

    assert outcome.code == 0, outcome.stderr
    shown: dict[str, Any] = outcome.document
    assert shown["points"] == load(run).points_raw
    assert shown["verdict"] == load(run).manifest["verdict"]
    assert "finished: nothing was measured again" in outcome.stderr
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"} == before

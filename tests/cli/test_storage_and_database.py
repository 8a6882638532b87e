"""Runs with parts on storage and on a database of Assay's own: `assess`, and the raw profile beside the database."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.targets.host import memory_bytes
from assay.workloads.examination import Examination
from assay.workloads.plan import Part
from assay.workloads.tpcc import examination as tpcc_examination
from assay.workloads.tpcc.examination import warehouses_of
from assay.workloads.tpch import examination as tpch_examination
from assay_command import ANSWERED, Bench, Outcome

PARTS = ("--only", "log,transactions", "--budget", "20s", "--size", "64M")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for anything."""
    made = Path(tempfile.mkdtemp(prefix="assay-mixed-"))
    yield made
    shutil.rmtree(made)


def assess(bench: Bench, folder: Path, *arguments: str) -> Outcome:
    return bench.assay("assess", folder, *PARTS, *arguments, "-o", bench.results, timeout_s=200)


@pytest.mark.slow(reason="make test-packaging runs the examination of the README")
def test_an_examination_ends_with_transactions(bench: Bench, folder: Path) -> None:
    outcome = assess(bench, folder, "--json")

    assert outcome.code in ANSWERED, outcome.stderr
    document = outcome.document
    assert [part["name"] for part in document["parts"]] == ["log", "transactions"]
    assert [volume["kind"] for volume in document["target"]["volumes"][:2]] == ["file", "database"]
    assert document["oltp"]["warehouses"] == 2
    assert document["oltp"]["load"]["rows"] > 1_000_000
    assert all(condition["met"] for condition in document["oltp"]["conditions"])
    assert not (folder / "assay-postgresql/data-1/postmaster.pid").exists(), "the server was stopped"
    report = (bench.run / "report.html").read_text()
    titles = ["Scans, log, database mix and cache", "Transactions", "The run over time"]
    places = [report.index(f"{title}</h2>") for title in titles]
    assert places == sorted(places)


@pytest.mark.slow(reason="`oltp` finds a database that was loaded before, in tests/cli/test_oltp_databases.py")
def test_the_database_is_kept_for_the_next_examination(bench: Bench, folder: Path) -> None:
    for loaded_before in (False, True):
        outcome = assess(bench, folder, "--no-report")

        assert outcome.code in ANSWERED, outcome.stderr
        assert ("2 warehouses had been loaded before" in outcome.stdout) == loaded_before


@pytest.mark.slow(reason="takes its budget; tests/run/test_part_targets.py leaves out a part without a command")
def test_where_there_can_be_no_database_the_rest_goes_on(bench: Bench, folder: Path) -> None:
    (folder / "assay-postgresql").mkdir()
    (folder / "assay-postgresql/diary").write_text("mine")

    outcome = assess(bench, folder, "--no-report", "--json", "--limit", "write.mean<=1h")

    assert outcome.code in ANSWERED, outcome.stderr
    left_out = [notice for notice in outcome.document["notices"] if "left out" in notice]
    assert len(left_out) == 1
    assert left_out[0].startswith("Transactions on PostgreSQL: left out: embedded:")
    assert "is not empty and holds no database of Assay" in left_out[0]
    assert {point["part"] for point in outcome.document["points"]} == {"log"}
    assert (folder / "assay-postgresql/diary").read_text() == "mine"


def test_asked_for_alone_transactions_are_not_left_out(bench: Bench, folder: Path) -> None:
    (folder / "assay-postgresql").write_text("mine")

    outcome = bench.assay("assess", folder, "--only", "transactions", "--budget", "20s", "-o", bench.results)

    assert outcome.code == 2
    assert "assay-postgresql is not a folder" in outcome.stderr
    assert not bench.runs


def test_the_plan_of_an_examination_names_the_database(bench: Bench, folder: Path) -> None:
    outcome = assess(bench, folder, "--dry-run")

    assert outcome.code == 0
    assert f"part transactions: Transactions on PostgreSQL; warehouses: 2; load, then run, then check; target: embedded:{folder}/assay-postgresql" in outcome.stdout  # fmt: skip # noqa: E501
    assert list(folder.iterdir()) == []


def test_a_longer_examination_loads_more(folder: Path) -> None:
    def warehouses(budget_s: float) -> int:
        return warehouses_of(Examination(directory=str(folder), budget_s=budget_s, planned_s=0))

    short, half_an_hour, day = map(warehouses, (90, 1800, 86_400))

    assert short == 2
    assert 2 <= half_an_hour <= day <= 1.1 * memory_bytes() / (110 << 20)


def test_an_examination_says_where_its_time_does_not_let_a_database_ask_the_storage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts(budget_s: float, memory: int) -> dict[str, Part[Any]]:
        for module in (tpcc_examination, tpch_examination):
            monkeypatch.setattr(module, "memory_bytes", lambda: memory)
        asked = Examination(directory=str(folder), budget_s=budget_s, planned_s=60)
        own = (*tpcc_examination.PARTS, *tpch_examination.PARTS)
        return {one.name: one.part(asked) for one in own}

    space = os.statvfs(folder)
    small = int(0.1 * space.f_bavail * space.f_frsize)
    quick, full = parts(90, small), parts(86_400, small)
    assert "2 warehouses fit in the memory of this host" in quick["transactions"].notice
    assert "; --budget " in quick["transactions"].notice
    assert all("scale 0.02 fits in memory" in quick[name].notice for name in ("queries", "queries-rows"))
    assert {name: part.notice for name, part in full.items()} == {"transactions": "", "queries": "", "queries-rows": ""}
    # What memory holds is read from storage all the same: each query begins without caches.
    assert [full[name].plan.cache for name in ("queries", "queries-rows")] == ["cold", "cold"]
    assert "of free space" in parts(86_400, 1 << 50)["transactions"].notice


# The raw profile beside the database


def small_study(bench: Bench) -> Path:
    """The preset with points of a moment."""
    study = json.loads(bench.assay("study", "show", "raw-vs-database", "--json").stdout)
    study["plan"] |= {"warehouses": 1, "users": 2, "timing": {"duration_s": 2, "warmup_s": 0.5}}
    raw = study["case"][1]["plan"]
    raw["timing"] = {"warmup_s": 0.1, "duration_s": 0.3}
    raw["search"] |= {"start": 1, "end": 4, "repeats": 0}
    path = bench.folder / "small.json"
    path.write_text(json.dumps(study))
    return path


@pytest.mark.slow(reason="a database and a profile beside it")
def test_the_raw_profile_has_the_load_that_the_database_gave_its_storage(bench: Bench, folder: Path) -> None:
    arguments = ("study", "run", small_study(bench), f"embedded:{folder}/pg", "--size", "64M", "--repeats", "1")
    outcome = bench.assay(*arguments, "-o", bench.results, "--no-report", "--json", timeout_s=200)

    assert outcome.code in ANSWERED, outcome.stderr
    document = outcome.document
    study = document["study"]
    assert study["order"] == ["database", "raw"]
    (gap,) = study["gaps"]
    assert study["sentences"] == gap["sentences"]
    raw = [point for point in document["points"] if point["part"] == "raw"]
    assert {point["workload"]["block_bytes"] for point in raw} == {gap["block_bytes"]}
    assert gap["database_iops"] > 0
    assert {part["name"]: part.get("target") for part in document["parts"]} == {
        "database": None, "raw": f"{folder}/pg-raw.dat",
    }  # fmt: skip
    (bench.run / "run.json").write_text(
        (bench.run / "run.json").read_text().replace('"status": "done"', '"status": "interrupted"')
    )

    again = bench.assay("study", "run", "--resume", bench.run, "--no-report", "--json", timeout_s=200)

    assert again.code == outcome.code, again.stderr
    assert [point["id"] for point in again.document["points"]] == [point["id"] for point in document["points"]]
    assert again.document["study"]["gaps"] == study["gaps"]


def test_a_server_of_ones_own_needs_a_place_for_the_raw_profile(bench: Bench) -> None:
    outcome = bench.assay("study", "run", "raw-vs-database", "postgresql://tester@127.0.0.1:1/tpcc", "--dry-run")

    assert outcome.code == 2
    assert "--set raw=PATH" in outcome.complaint

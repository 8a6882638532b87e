"""`assay study run` on queries: levels on other databases, a load beside another, settings that a server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_command import Bench, Outcome
from servers.process import folder_of_files

SMALL = ("--set", "scale=0.004", "--set", "queries=1,6,14")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Folder of one embedded server for all studies, and of what is beside it."""
    with folder_of_files("assay-dss-study-") as path:
        yield Path(path)


def study(bench: Bench, *arguments: str | Path) -> Outcome:
    once = () if "--repeats" in arguments else ("--repeats", "1")
    return bench.assay("study", "run", *arguments, *once, "--json", "--no-report", "-o", bench.results, timeout_s=300)


def by_part(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {point["part"]: point for point in document["points"]}


@pytest.mark.slow(reason="two databases are loaded, and each is measured alone and together")
def test_queries_beside_transactions_are_measured_alone_and_together(bench: Bench, folder: Path) -> None:
    outcome = study(
        bench, "interference", f"embedded:{folder}/oltp", "--set", "warehouses=1", "--set", "users=2", "--set",
        "duration=2s", "--set", "warmup=0.5s", "--set", "beside.scale=0.004", "--set", "beside.streams=1", "--set",
        "beside.queries=1,6,14", "--set", f"apart=embedded:{folder}/apart", "--seed", "3",
    )  # fmt: skip

    assert outcome.code in (0, 1, 5), outcome.stderr
    points = by_part(outcome.document)
    assert set(points) == {"queries=none", "queries=same", "queries=apart"}
    assert "beside" not in points["queries=none"]
    for name, place in (("queries=same", "oltp-beside"), ("queries=apart", "apart")):
        told = points[name]["beside"]
        assert told["target"] == [f"embedded:{folder}/{place}"]
        assert told["alone"]["queries"] == 3
        assert told["together"]["queries"] >= 3
        assert told["slowdown"] > 0
        # The transactions were measured all the same.
        assert points[name]["oltp"]["nopm"] > 0
    found = outcome.document["study"]
    assert [one["part"] for one in found["beside"]] == ["queries=same", "queries=apart"]
    assert any("eparating the storage brings" in sentence for sentence in found["sentences"])
    again = bench.assay("study", "run", "--resume", outcome.document["run_folder"], "--json", "--no-report")
    assert [point["id"] for point in again.document["points"]] == [point["id"] for point in outcome.document["points"]]


def test_without_other_storage_its_level_is_left_out_and_said(bench: Bench, folder: Path) -> None:
    outcome = bench.assay(
        "study", "run", "interference", f"embedded:{folder}/oltp", "--dry-run", "--json", "--set", "beside.scale=0.004"
    )

    assert outcome.code == 0, outcome.stderr
    assert "queries=apart" not in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("interference", "postgresql://nobody@127.0.0.1:1/x"), "--set same=TARGET"),
        (("interference", "embedded:/x", "--set", "beside.scales=1"), "did you mean 'beside.scale'?"),
        (("interference", "embedded:/x", "--set", "beside.streams=0"), "--set beside.streams"),
        (("streams", "embedded:/x", "--set", "apart=embedded:/y"), "--set apart: unknown"),
        (("columnstore", "duckdb:/x"), "makes no sense on 'duckdb:...'"),
    ],
)
def test_places_and_plans_that_cannot_be_are_refused(bench: Bench, arguments: tuple[str, ...], message: str) -> None:
    outcome = study(bench, *arguments)
    assert outcome.code == 2
    assert message in outcome.stderr
    assert len(outcome.stderr.strip().splitlines()) == 1


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_the_password_of_a_place_is_nowhere(bench: Bench) -> None:
    url = "postgresql://someone:topsecret@127.0.0.1:1"
    for more in (["--dry-run"], []):
        outcome = study(bench, "interference", f"{url}/x", "--set", f"same={url}/y", *more)
        assert "topsecret" not in outcome.stdout + outcome.stderr
    assert not any("topsecret" in path.read_text(errors="replace") for path in bench.folder.rglob("*.json*"))


@pytest.mark.slow(reason="other studies on databases run by default")
def test_streams_share_one_database_or_two(bench: Bench, folder: Path) -> None:
    outcome = study(bench, "streams", f"embedded:{folder}/pg-d", "--levels", "streams=1,2", *SMALL)

    assert outcome.code == 0, outcome.stderr
    used = {
        part: {query["database"] for query in point["dss"]["queries"]}
        for part, point in by_part(outcome.document).items()
    }
    assert used["streams=2, databases=given"] == {"pg-d"}
    assert used["streams=2, databases=given+second"] == {"pg-d", "pg-d-second"}
    # What more streams bring is said of each.
    assert sum("queries an hour" in sentence for sentence in outcome.document["study"]["sentences"]) == 2


@pytest.mark.slow(reason="tests/study compares levels of engines")
def test_an_engine_by_rows_stands_beside_one_by_columns(bench: Bench, folder: Path) -> None:
    outcome = study(bench, "columnstore", f"embedded:{folder}/pg", *SMALL, "--set", "test=throughput", "--repeats", "2")

    assert outcome.code == 0, outcome.stderr
    databases = {point["part"]: point["dss"]["queries"][0]["database"] for point in outcome.document["points"]}
    assert databases["engine=given"] == "pg"
    assert databases["engine=column"] == "pg-column"
    assert {one["kind"] for one in outcome.document["target"]["databases"]} == {"embedded", "duckdb"}
    (compared,) = outcome.document["study"]["comparisons"]
    assert compared["figure"] == "completion"
    # Two repeats give an interval.
    assert compared["interval_95"] is not None


def test_a_setting_that_the_server_refuses_is_left_out(bench: Bench, folder: Path) -> None:
    mine = bench.folder / "mine.toml"
    mine.write_text(SETTINGS)
    outcome = study(bench, mine, f"embedded:{folder}/pg", *SMALL)

    assert outcome.code == 0, outcome.stderr
    assert set(by_part(outcome.document)) == {"setting=as it is", "setting=work_mem"}
    assert any("strange: left out" in notice for notice in outcome.document["notices"])
    (compared,) = outcome.document["study"]["comparisons"]
    # Three of the queries have no score, and all the same they take a time.
    assert compared["value"] > 0
    assert "no query was answered" not in compared["reason"]


SETTINGS = """
title = "Settings"
question = "Which?"
targets = ["database"]
plan = { kind = "tpch", name = "tpch", test = "power", restores = "possible" }
comparison = { by = "setting", baseline = "as it is", figure = "completion" }

[[factor]]
name = "setting"
title = "setting"
ordered = false
levels = [
    { label = "as it is", set = { "set.work_mem" = "auto" } },
    { label = "work_mem", set = { "set.work_mem" = "8MB" } },
    { label = "strange", set = { "set.io_method" = "strange" } },
]
"""


@pytest.mark.slow(reason="the search of the profile takes half a minute; tests/run/test_seen.py has its sentences")
def test_a_sequential_profile_stands_beside_scans_in_bytes_per_second(bench: Bench, folder: Path) -> None:
    larger = f"embedded:{folder}/pg-larger"
    outcome = study(bench, "dss-profile-vs-database", larger, "--set", "scale=0.1", "--set", "streams=1")

    assert outcome.code in (0, 1, 5), outcome.stderr
    (gap,) = outcome.document["study"]["gaps"]
    assert gap["sequential"] is True
    assert gap["read_share"] == 1
    assert gap["database_bytes_per_s"] > 0
    # On a machine that is busy with other things the generator may be what limits every point: then there is no answer.
    assert (gap["raw_bytes_per_s"] is None) == (outcome.code in (1, 5))

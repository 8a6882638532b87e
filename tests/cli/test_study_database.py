"""`assay study run` on databases: every level starts from the same saved state, in a layout of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_command import Bench, Outcome
from servers.process import PASSWORD, ServerProcess, folder_of_files

SHORT = ("--set", "duration=1s", "--set", "warmup=0.3s", "--set", "users=4", "--set", "trace=1s")

WAYS = """
title = "Ways"
question = "What do two partitions bring?"
targets = ["database"]

[plan]
kind = "tpcc"
name = "hammerdb"
warehouses = 2
restores = "always"
layout = { partition_table = "hottest" }

[[factor]]
name = "ways"
title = "partitions"
of = "layout"
key = "partition_ways"
levels = [1, 2]

[comparison]
by = "ways"
baseline = "1"
figure = "nopm"
"""


@pytest.fixture(scope="module")
def embedded_target() -> Iterator[str]:
    """One database for all studies: they bring its saved state back."""
    with folder_of_files("assay-study-") as folder:
        yield f"embedded:{folder}/pg"


def study(bench: Bench, *arguments: str | Path) -> Outcome:
    words = ("study", "run", *arguments, *SHORT, "--repeats", "1", "--json", "--no-report", "-o", bench.results)
    return bench.assay(*words, timeout_s=300)


def of_part(document: dict[str, Any], name: str) -> dict[str, Any]:
    (point,) = [point for point in document["points"] if point["part"] == name]
    found: dict[str, Any] = point["oltp"]
    return found


def holds(document: dict[str, Any]) -> bool:
    conditions = document["oltp"]["conditions"]
    return {one["id"] for one in conditions} == set(range(1, 13)) - {11} and all(one["met"] for one in conditions)


PARTITIONED = "tests/targets/test_databases_layout.py partitions its tables without a command, in far less time"


@pytest.mark.parametrize(
    "server",
    ["postgresql15", "postgresql18", pytest.param("mariadb", marks=pytest.mark.slow(reason=PARTITIONED))],
    indirect=True,
)
@pytest.mark.slow(reason="tests/targets partitions on each server")
def test_the_hottest_table_is_found_partitioned_and_whole_again_after_a_restore(
    bench: Bench, server: ServerProcess
) -> None:
    mine, url = bench.folder / "ways.toml", server.fresh_database()
    mine.write_text(WAYS)

    outcome = study(bench, mine, url)

    assert outcome.code == 0, outcome.stderr
    assert holds(outcome.document)
    hottest = outcome.document["oltp"]["hottest"]
    assert any(hottest["table"] in sentence for sentence in outcome.document["study"]["sentences"])
    assert of_part(outcome.document, "ways=1")["layout"] is None
    layout = of_part(outcome.document, "ways=2")["layout"]
    assert (
        layout["databases"][0]["partition"] | {"table": hottest["table"], "first_keys": [2]}
        == (layout["databases"][0]["partition"])
    )
    assert len(outcome.document["study"]["comparisons"]) == 1
    assert PASSWORD not in outcome.stdout + (bench.run / "run.json").read_text()

    again = bench.assay("study", "run", "--resume", bench.run, "--json")
    assert (again.code, "nothing was measured again" in again.stderr) == (0, True)

    actions = ("restore", "check", "--json", "--no-report", "-o", bench.results)
    restored = bench.assay("oltp", "tpcc", url, *actions, timeout_s=200)
    # The eleventh holds only where nothing has run.
    assert [one["met"] for one in restored.document["oltp"]["conditions"]] == [True] * 12


@pytest.mark.slow(reason="tests/targets spreads tables on each server")
def test_a_database_is_spread_over_tablespaces(bench: Bench, embedded_target: str) -> None:
    chosen = ("--levels", "tablespaces=1,3", "--set", "warehouses=1")

    outcome = study(bench, "oltp-layout", embedded_target, *chosen)

    assert outcome.code == 0, outcome.stderr
    assert holds(outcome.document)
    (laid_out,) = of_part(outcome.document, "tablespaces=3")["layout"]["databases"]
    bytes_held = [place["bytes"] for place in laid_out["places"]]
    assert len(bytes_held) == 3
    assert max(bytes_held) < 1.5 * min(bytes_held)
    relations = [name for place in laid_out["places"] for name in place["relations"]]
    assert {"stock", "stock_pkey", "customer_name", "history"} <= set(relations)
    assert len(relations) == len(set(relations))
    named = {figure for result in outcome.document["study"]["results"] for figure in result["values"]}
    assert {"nopm", "tpm", "nopm_lowest", "response_p90", "log_write_latency"} <= named


@pytest.mark.slow(
    reason="the same study with folders that are given, which tests/targets/test_databases_layout.py makes"
)
def test_directories_hold_the_tablespaces(bench: Bench, embedded_target: str) -> None:
    folders = [bench.folder / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    given = ("--levels", "tablespaces=1,4", "--set", "warehouses=1", "--set", f"directories={folders[0]},{folders[1]}")

    outcome = study(bench, "oltp-layout", embedded_target, *given)

    assert outcome.code == 0, outcome.stderr
    layouts = {name: of_part(outcome.document, f"tablespaces={name}")["layout"]["databases"][0] for name in "14"}
    for name, count in (("1", 1), ("4", 4)):
        places = [Path(place["directory"]) for place in layouts[name]["places"]]
        assert len(places) == count
        assert all(folders[at % 2] in place.parents for at, place in enumerate(places))


@pytest.mark.slow(reason="tests/run/test_oltp_background.py tests it without a server")
def test_work_goes_on_beside_the_transactions(bench: Bench, embedded_target: str) -> None:
    chosen = ("--levels", "beside=quiet,all together", "--set", "warehouses=1")

    outcome = study(bench, "steady-state", embedded_target, *chosen)

    assert outcome.code == 0, outcome.stderr
    assert holds(outcome.document)
    assert of_part(outcome.document, "beside=quiet")["background"] == []
    done = {one["kind"]: one for one in of_part(outcome.document, "beside=all together")["background"]}
    assert set(done) == {"checkpoint", "vacuum", "backup"}
    assert done["vacuum"]["seconds"] > 0
    assert done["backup"]["seconds"] > 0


@pytest.mark.slow(reason="a study of a database is run anyway")
def test_settings_of_the_server_are_levels(bench: Bench, embedded_target: str) -> None:
    outcome = study(bench, "cache-size", embedded_target, "--levels", "cache=32MB,128MB", "--set", "warehouses=1")

    assert outcome.code == 0, outcome.stderr
    found = {
        size: of_part(outcome.document, f"cache={size}")["databases"][0]["settings"]["shared_buffers"]
        for size in ("32MB", "128MB")
    }
    assert found == {size: size for size in found}
    assert outcome.document["study"]["title"] == "Buffer cache"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("oltp-layout", "--levels", "tablespaces=1,3"), "has no tablespaces to spread over"),
        (("steady-state", "--levels", "beside=quiet,vacuum"), "have no statements for"),
    ],
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_what_a_kind_of_server_cannot_do_is_refused(
    bench: Bench, mariadb: ServerProcess, arguments: tuple[str, ...], words: str
) -> None:
    name, *options = arguments

    outcome = study(bench, name, mariadb.fresh_database(), "--set", "warehouses=1", *options)

    assert (outcome.code, words in outcome.stderr.splitlines()[-1]) == (3, True), outcome.stderr
    assert PASSWORD not in outcome.stderr


def test_too_few_warehouses_are_refused_at_once(bench: Bench) -> None:
    outcome = study(bench, "oltp-partition", f"embedded:{bench.folder}/pg", "--set", "warehouses=2")

    assert (outcome.code, "give --set warehouses=4" in outcome.complaint) == (2, True)
    assert not (bench.folder / "pg").exists()

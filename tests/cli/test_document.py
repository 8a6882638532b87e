"""`--json`: exactly one document on standard output, as docs/results.md has it, and the exit code it implies."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from document_contract import check_document

from assay_command import SHORT, command

if TYPE_CHECKING:
    from assay_command import Bench

SLOW = "null:?latency=1ms&servers=4"
"""A device of 4 servers that each take 1 ms: it holds 4,000 I/Os per second, and latency rises beyond 4 outstanding."""

MODEL = "model:ps6100xv?raid=10&disks.count=6&disks.spares=0&cache=64M&volumes=1&volume_size=20GB"
"""A modelled array, whose answer no other program on this machine changes."""

CLOSED = ("--queue-depth", "1,2")
SEARCH = ("--search", "queue-depth", "--block", "8K", "--read", "70")


@pytest.mark.parametrize(
    ("target", "options"),
    [
        pytest.param("file", CLOSED, id="closed loop"),
        pytest.param("file", ("--rate", "300", "--arrivals", "poisson"), id="open loop"),
        pytest.param(SLOW, (*SEARCH, "--limit", "read.mean<=2.5ms"), id="search"),
        pytest.param("file", ("--block", "4K:80+64K:20", "--queue-depth", "2", "--workers", "2"), id="mix of blocks"),
        pytest.param("file", ("--preset", "dss", "--block", "64K", "--queue-depth", "4"), id="dss"),
        pytest.param("file", ("--preset", "log", "--block", "512", "--workers", "1"), id="log"),
        pytest.param("file", ("--preset", "database"), id="database"),
    ],
)
def test_the_document_is_as_documented(bench: Bench, target: str, options: Sequence[str]) -> None:
    name = bench.target if target == "file" else target

    outcome = bench.measure(name, "--size", "32M", *options)

    check_document(outcome.document)
    # On a busy machine the load generator may be the limit of a search: then what storage holds is unknown.
    unknown = any(line["asked"] and line["met"] is None for line in outcome.document["verdict"])
    assert (outcome.code, outcome.document["status"]) == (5 if unknown else 0, "done")
    assert outcome.document["points"] == [json.loads(line) for line in bench.point_lines()]
    assert outcome.document["run_folder"] == str(bench.run)
    assert "assay:" not in outcome.stderr


def test_a_run_of_one_point_ends_with_two_lines_and_the_path(bench: Bench) -> None:
    outcome = bench.profile(MODEL, "--queue-depth", "1", "--duration", "2s", "--limit", "read.mean<=5s")

    assert outcome.code == 0
    measured, judged, *notes, path = outcome.stdout.splitlines()
    assert re.match(r"8 KiB random .*: [0-9,]+ IOPS, ", measured)
    assert "read.mean<=5s is met: " in judged
    assert [note.split(":")[0] for note in notes] == ["note"] * (len(notes) - 2) + ["next"] * 2
    assert path == f"run folder: {bench.run}"


def test_quiet_prints_the_answer_alone(bench: Bench) -> None:
    outcome = bench.measure(SLOW, *CLOSED, "--quiet")

    assert (outcome.code, outcome.stderr) == (0, "")


class TestExitCodes:
    def test_1_when_a_limit_the_user_gave_is_missed(self, bench: Bench) -> None:
        outcome = bench.profile(MODEL, *CLOSED, "--duration", "2s", "--limit", "read.mean<=10us", "--json")

        assert outcome.code == 1
        assert {verdict["met"] for verdict in outcome.document["verdict"]} == {False}

    def test_0_when_only_the_methods_own_limits_are_missed(self, bench: Bench) -> None:
        heavy = ("--preset", "oltp", "--block", "8K", "--read", "70", "--queue-depth", "256")
        outcome = bench.profile(MODEL, *heavy, "--duration", "2s", "--json")

        assert outcome.code == 0
        assert ("read.mean<=20ms", False) in {(line["limit"], line["met"]) for line in outcome.document["verdict"]}

    @pytest.mark.parametrize(
        ("target", "limit", "said"),
        [
            (MODEL, "write.mean<=1us", "unknown: the load has no writes; measure a load that has them"),
            (MODEL, "read.p99.99<=1s", "samples, 29,956 are the least; measure longer points"),
            (MODEL, "cpu<80%", "unknown: cpu was not recorded; leave the limit out"),
            ("null:", "read.iops>=1000000000", "unknown: the load generator was the bottleneck; give the generator"),
        ],
    )
    def test_5_when_a_limit_the_user_gave_cannot_be_judged(
        self, bench: Bench, target: str, limit: str, said: str
    ) -> None:
        outcome = bench.profile(target, "--read", "100", "--queue-depth", "4", "--duration", "2s", "--limit", limit,
                                "--json")  # fmt: skip

        assert outcome.code == 5
        (line,) = [line for line in outcome.document["verdict"] if line["limit"]]
        assert (line["met"], line["asked"], said in line["meaning"]) == (None, True, True), line
        assert outcome.document["points"][0]["met"] is None

    def test_0_when_a_limit_concerns_one_load_of_a_grid(self, bench: Bench) -> None:
        shares = ("--read", "0,100", "--queue-depth", "1", "--limit", "read.mean<=1h")
        outcome = bench.profile(MODEL, *shares, "--duration", "2s", "--json")

        assert outcome.code == 0
        assert {line["met"] for line in outcome.document["verdict"] if line["limit"]} == {True}

    def test_1_when_a_search_finds_no_load(self, bench: Bench) -> None:
        outcome = bench.profile(MODEL, *SEARCH, "--limit", "read.mean<=10us", "--duration", "2s", "--json")

        assert outcome.code == 1
        (answer,) = outcome.document["answers"]
        assert (answer["max"], answer["limited_by"]) == (None, "read.mean<=10us")
        check_document(outcome.document)

    def test_0_when_a_search_finds_one(self, bench: Bench) -> None:
        outcome = bench.profile(MODEL, *SEARCH, "--limit", "read.mean<=14ms", "--duration", "2s", "--json")

        (answer,) = outcome.document["answers"]
        assert (outcome.code, answer["limited_by"]) == (0, "read.mean<=14ms")
        assert 0 < answer["max"]["outstanding"] < answer["first_failing"]["outstanding"]

    def test_the_load_generator_is_never_an_answer(self, bench: Bench) -> None:
        outcome = bench.measure("null:", *SEARCH)

        assert outcome.code == 5
        assert all(point["generator"]["saturated"] for point in outcome.document["points"])
        (answer,) = outcome.document["answers"]
        assert (answer["max"], answer["limited_by"]) == (None, "generator")
        assert any("load generator was the bottleneck" in notice for notice in outcome.document["notices"])


def test_exports_lie_in_the_run_folder(bench: Bench) -> None:
    own = {"run.json", "log.jsonl", "points.jsonl", "series.parquet", ".lock"}

    outcome = bench.measure(SLOW, *CLOSED, "--export", "csv,fio-json", "--export", "openmetrics")

    made = {path for path in bench.run.rglob("*") if path.is_file() and path.name not in own}
    assert outcome.code == 0
    assert {"points.csv", "fio.json", "openmetrics.txt"} <= {path.name for path in made}
    said = {Path(line.removeprefix("exported ")) for line in outcome.stderr.splitlines() if line.startswith("exported")}
    assert said == made
    check_document(outcome.document)


def test_a_reader_that_goes_away_is_no_failure(bench: Bench) -> None:
    line = [*command("profile", SLOW, *CLOSED, *SHORT, "--no-report", "--json", "--quiet", "-o", bench.results)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()

    assert (process.wait(60), said) == (0, b"")
    assert bench.manifest()["status"] == "done"

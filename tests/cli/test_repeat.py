"""Commands that are done several times, and on two targets in turns."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

DEVICE, SLOWER = "null:?latency=1ms", "null:?latency=4ms"
LOAD = ("--queue-depth", "2", "--warmup", "0s", "--duration", "0.5s", "--no-report")


def group_of(bench: Bench) -> Path:
    (group,) = bench.results.iterdir()
    return group


def runs_below(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/run.json"))]


def repeated(bench: Bench, *words: str | Path) -> Outcome:
    return bench.assay("profile", *words, *LOAD, "-o", bench.results)


def test_repeats_are_runs_in_one_folder_that_compare_takes(bench: Bench) -> None:
    outcome = repeated(bench, DEVICE, "--repeat", "2", "--json")
    group = group_of(bench)
    runs = runs_below(group)

    assert outcome.code == 0
    assert [run["status"] for run in runs] == ["done", "done"]
    assert outcome.document["repeats"] == 2
    assert outcome.document["comparison"] is None
    for row in outcome.document["results"]:
        assert len(row["values"]) == 2
        assert row["interval_95"][0] <= row["mean"] <= row["interval_95"][1]
    shutil.copytree(group, bench.results / "after")
    compared = bench.assay("compare", group, bench.results / "after", "--json").document
    assert {tuple(row["repeats"]) for row in compared["differences"]} == {(2, 2)}


def test_the_time_of_all_runs_is_told_before(bench: Bench) -> None:
    outcome = repeated(bench, DEVICE, "--repeat", "2")

    assert "2 runs, each at least 1 point; 1 s" in outcome.stderr
    assert outcome.stderr.count("results in") == 1
    assert bench.assay("profile", DEVICE, *LOAD, "--repeat", "2", "--dry-run").stdout.count("runs: 2") == 1


def test_two_targets_are_measured_in_turns_and_compared_in_pairs(bench: Bench) -> None:
    outcome = repeated(bench, DEVICE, SLOWER, "--paired", "--repeat", "2", "--json")
    group = group_of(bench)
    turns = {side: [run["started_utc_ns"] for run in runs_below(group / side)] for side in ("A", "B")}

    assert outcome.code == 0
    a, b = turns["A"], turns["B"]
    assert a[0] < b[0] < a[1] < b[1]
    assert [runs_below(group / side)[0]["request"]["paths"] for side in ("A", "B")] == [[DEVICE], [SLOWER]]
    assert {tuple(row["repeats"]) for row in outcome.document["comparison"]["differences"]} == {(2, 2)}


def test_repeats_go_on_where_they_ended(bench: Bench) -> None:
    repeated(bench, DEVICE, SLOWER, "--paired", "--repeat", "2")
    group = group_of(bench)
    last = sorted((group / "B").iterdir())[-1]
    kept = {path: path.read_bytes() for path in group.rglob("*") if path.is_file() and last not in path.parents}
    shutil.rmtree(last)
    outcome = bench.assay("profile", "--resume", group, "--no-report", "--json")

    assert outcome.code == 0
    assert [run["request"]["paths"] for run in runs_below(group / "B")] == [[SLOWER], [SLOWER]]
    assert {path: path.read_bytes() for path in kept} == kept
    assert outcome.document["comparison"]["differences"]


def test_an_interrupt_ends_all_repeats_and_says_how_to_go_on(bench: Bench) -> None:
    words = ("profile", DEVICE, "--queue-depth", "2", "--warmup", "0s", "--duration", "20s", "--no-report")
    with bench.started(*words, "--repeat", "2", "-o", bench.results) as running:
        running.wait_until(lambda: list(bench.results.glob("*/*/live.json")))
        running.process.send_signal(signal.SIGINT)
        outcome = running.end()

    assert outcome.code == 130
    assert len(runs_below(group_of(bench))) == 1
    assert f"--resume {group_of(bench)}" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("model:nvme-mirror", "--repeat", "2"), "answers the same every time"),
        ((DEVICE, "--paired"), "give two targets"),
        ((DEVICE, SLOWER, "--paired", "--repeat", "1"), "one run each is no pair"),
    ],
)
def test_what_cannot_be_repeated_is_refused(bench: Bench, words: tuple[str, ...], told: str) -> None:
    outcome = repeated(bench, *words)

    assert (outcome.code, told in outcome.complaint) == (2, True)
    assert not bench.results.exists()


def test_a_folder_of_repeats_of_another_verb_is_refused(bench: Bench) -> None:
    repeated(bench, DEVICE, "--repeat", "2")
    outcome = bench.assay("assess", "--resume", group_of(bench), "--no-report")

    assert (outcome.code, "cannot go on" in outcome.complaint) == (2, True)

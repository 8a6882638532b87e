"""Going on with a run: what is finished stays byte for byte, whatever ended the run."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

LOADS = ("--size", "16M", "--queue-depth", "1,2,3,4", "--warmup", "0s", "--duration", "0.4s")


def resume(bench: Bench, run: Path | str, *more: str) -> Outcome:
    return bench.assay("profile", "--resume", run, "--no-report", "--json", *more)


class TestRefused:
    def test_a_folder_that_is_no_run(self, bench: Bench) -> None:
        outcome = resume(bench, bench.target.parent)

        assert (outcome.code, "not a run folder" in outcome.complaint) == (2, True)
        assert bench.made() == []

    def test_what_the_run_does_not_bear(self, bench: Bench) -> None:
        bench.measure("null:?latency=1ms", "--queue-depth", "1")
        decided = [["f"], ["--queue-depth", "9"], ["--limit", "read.mean<=1ms"], ["-o", "x"]]
        asked = [(resume(bench, bench.run, *option), "leave out") for option in decided]
        asked.append((resume(bench, bench.results), str(bench.run)))
        asked.append((resume(bench, "nowhere"), "does not exist"))
        asked.append((bench.assay("assess", "--resume", bench.run, "--no-report"), "'profile'"))

        for outcome, words in asked:
            assert (outcome.code, words in outcome.complaint) == (2, True), words

    def test_a_run_that_goes_on_elsewhere(self, bench: Bench) -> None:
        with bench.started("profile", "null:?latency=1ms", "--queue-depth", "1", "--warmup", "0s", "--duration", "20s",
                           "--no-report", "-o", bench.results) as running:  # fmt: skip
            running.wait_until(lambda: bench.runs and (bench.run / "run.json").exists())
            outcome = resume(bench, bench.run)

        assert (outcome.code, "in use by" in outcome.complaint) == (2, True)


def test_a_finished_run_is_shown_again_and_stays_as_it_is(bench: Bench) -> None:
    model = "model:ps6100xv?raid=10&volumes=1&volume_size=20GB"
    first = bench.measure(model, "--queue-depth", "1,2", "--limit", "read.mean<=1us")
    before = {path: path.read_bytes() for path in bench.run.rglob("*") if path.is_file()}

    again = resume(bench, bench.run)

    assert first.code == again.code == 1
    assert again.document == first.document
    assert "finished: nothing was measured again" in again.complaint
    assert {path: path.read_bytes() for path in bench.run.rglob("*") if path.is_file()} == before


def test_a_line_cut_off_by_a_crash_is_measured_again_and_by_a_dry_run_nothing(bench: Bench) -> None:
    bench.measure("null:?latency=1ms", "--queue-depth", "1,2,3")
    make_unfinished(bench, keep=1, torn=True)
    (kept,) = bench.point_lines()

    shown = resume(bench, bench.run, "--dry-run")
    assert (shown.code, shown.document["plan"]["activity"][0]["queue_depth"]) == (0, [1, 2, 3])
    assert bench.point_lines() == [kept]
    outcome = resume(bench, bench.run)

    assert outcome.code == 0
    assert bench.point_lines()[0] == kept
    assert [point["load"]["queue_depth"] for point in outcome.document["points"]] == [1, 2, 3]
    assert [point["id"] for point in outcome.document["points"]] == ["p0001", "p0002", "p0003"]
    assert outcome.document["status"] == "done"


def test_a_point_that_did_not_end_well_is_measured_again_under_a_number_of_its_own(bench: Bench) -> None:
    bench.measure("null:?latency=1ms", "--queue-depth", "1,2")
    good, bad = (json.loads(line) for line in bench.point_lines())
    bad |= {"ended_by": "not-answering", "key": bad["key"]}
    (bench.run / "points.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    mark_unfinished(bench)

    points = resume(bench, bench.run).document["points"]

    assert [(point["id"], point["load"]["queue_depth"], point["ended_by"]) for point in points] == [
        ("p0001", 1, "time"),
        ("p0002", 2, "not-answering"),
        ("p0003", 2, "time"),
    ]


def test_a_search_takes_up_the_curve_it_has(bench: Bench) -> None:
    search = ("--block", "8K", "--read", "100", "--search", "queue-depth", "--limit", "read.mean<=14ms")
    # In virtual time: what other programs do changes nothing.
    model = "model:ps6100xv?raid=10&disks.count=6&disks.spares=0&cache=64M&volumes=1&volume_size=20GB"
    first = bench.profile(model, *search, "--warmup", "0s", "--duration", "2s", "--json")
    make_unfinished(bench, keep=2)
    kept = bench.point_lines()

    again = resume(bench, bench.run)

    assert first.code == again.code == 0
    assert bench.point_lines()[:2] == kept
    answers = [outcome.document["answers"][0] for outcome in (first, again)]
    assert answers[0]["max"]["outstanding"] == answers[1]["max"]["outstanding"] > 1
    assert len({point["key"] for point in again.document["points"]}) == len(again.document["points"])


def test_a_killed_run_loses_no_finished_point(bench: Bench) -> None:
    chance = random.Random(7)
    arguments: tuple[str | Path, ...] = ("profile", bench.target, *LOADS, "--no-report", "-o", bench.results)
    kept: list[bytes] = []
    for _ in range(3):
        with bench.started(*arguments) as running:
            running.wait_until(lambda: bench.runs and (bench.run / "run.json").exists())
            time.sleep(chance.uniform(0.1, 1.5))
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()
        survived = bench.point_lines()
        assert survived[: len(kept)] == kept
        kept = survived
        arguments = ("profile", "--resume", bench.run, "--no-report")

    outcome = resume(bench, bench.run)

    assert outcome.code == 0
    assert bench.point_lines()[: len(kept)] == kept
    assert [point["load"]["queue_depth"] for point in outcome.document["points"]] == [1, 2, 3, 4]
    assert len({point["id"] for point in outcome.document["points"]}) == 4


def mark_unfinished(bench: Bench) -> None:
    """Leave the manifest as a crash would."""
    manifest = bench.manifest() | {"status": "running", "ended_utc_ns": None}
    (bench.run / "run.json").write_text(json.dumps(manifest))


def make_unfinished(bench: Bench, *, keep: int, torn: bool = False) -> None:
    """Make of a finished run one that crashed after its first points, perhaps while the next was written."""
    lines = bench.point_lines()
    rest = lines[keep][: len(lines[keep]) // 2] if torn else b""
    (bench.run / "points.jsonl").write_bytes(b"".join(lines[:keep]) + rest)
    mark_unfinished(bench)

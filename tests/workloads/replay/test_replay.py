"""`assay replay` from trace to answer, on models and on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay_command import ANSWERED, Bench
from made_traces import poisson_trace

MODEL = "model:ps6100xv?raid=10"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def replayed(bench: Bench, *words: str | Path, codes: tuple[int, ...] = ANSWERED) -> dict[str, Any]:
    done = bench.assay("replay", *words, "--json", "--quiet", "--no-report", "-o", bench.results)
    assert done.code in codes, done.stderr
    return done.document


def the_point(document: dict[str, Any]) -> dict[str, Any]:
    (point,) = document["points"]
    return dict(point)


# On models, whose clock is exact.


def test_every_io_of_the_trace_is_asked_for_at_its_time(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=500, seconds=4)
    point = the_point(replayed(bench, trace, MODEL))
    done, outside = point["total"]["count"], point["outside_window"]["count"]
    assert done + outside == 2000
    assert point["measured_s"] == pytest.approx(point["replay"]["traces"][0]["seconds"], rel=1e-6)
    assert point["offered"]["sustained"]
    assert point["replay"]["times_recorded"] == pytest.approx(1.0, abs=0.01)
    assert point["replay"]["lateness"]["p99_ns"] == 0
    assert point["replay"]["is_replay"] is True
    recorded = point["replay"]["traces"][0]["read"]["latency_ns"]
    assert recorded["mean"] == pytest.approx(2e6, rel=0.1)


def test_twice_as_fast_is_twice_the_rate_in_half_the_time(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=500, seconds=4)
    once, twice = (the_point(replayed(bench, trace, MODEL, "--speed", speed)) for speed in ("1", "2"))
    assert twice["measured_s"] == pytest.approx(once["measured_s"] / 2, rel=0.01)
    assert twice["total"]["iops"] == pytest.approx(2 * once["total"]["iops"], rel=0.02)
    assert twice["load"]["speed"] == 2


def test_a_replay_is_the_same_each_time(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace")
    first, second = (the_point(replayed(bench, trace, MODEL)) for _ in range(2))
    assert first["total"] == second["total"]


def test_a_search_says_how_many_times_the_load_is_held(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=500, seconds=12)
    document = replayed(bench, trace, MODEL, "--search", "speed", "--limit", "read.mean<=2.5ms", "--repeats", "0")
    (answer,) = document["answers"]
    assert answer["axis"] == "speed"
    best = answer["max"]
    assert best["speed"] > 2
    assert best["times_recorded"] == pytest.approx(best["speed"], rel=0.05)
    assert answer["interval_95"]
    (line,) = document["verdict"]
    assert "times your load" in line["meaning"]
    # Beyond it the limit is missed.
    assert answer["first_failing"]["speed"] > best["speed"]


def test_a_closed_replay_does_all_ios_and_keeps_no_times(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=100, seconds=4, response_ns=30_000_000)
    point = the_point(replayed(bench, trace, MODEL, "--closed"))
    assert point["total"]["count"] == 400
    assert point["replay"]["lateness"] is None
    assert point["offered"] is None
    deeper = the_point(replayed(bench, trace, MODEL, "--closed", "--queue-depth", "32"))
    assert deeper["total"]["count"] == 400
    assert deeper["total"]["latency_ns"]["mean"] > point["total"]["latency_ns"]["mean"]


def test_pauses_are_kept_and_a_faster_array_ends_sooner(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=50, seconds=8, response_ns=60_000_000)
    kept, timed = (the_point(replayed(bench, trace, MODEL, *words)) for words in (["--think"], []))
    assert kept["total"]["count"] == 400
    # Every response of the array is some 50 ms shorter than the recorded one, and the chains are shorter by that.
    assert kept["measured_s"] < 0.9 * timed["measured_s"]


def test_traces_are_laid_over_each_other(bench: Bench) -> None:
    first = poisson_trace(bench.folder / "a.trace", iops=200, seconds=3)
    second = poisson_trace(bench.folder / "b.trace", iops=300, seconds=3, seed=2)
    point = the_point(replayed(bench, first, MODEL, "--with", f"{second}@2s"))
    assert point["measured_s"] == pytest.approx(5, rel=0.02)
    counts = {one["name"]: one["total"]["count"] for one in point["activities"]}
    assert counts["a"] == pytest.approx(600, abs=10)
    assert counts["b"] == pytest.approx(900, abs=10)
    assert [one["at_s"] for one in point["replay"]["traces"]] == [0, 2]


def test_each_device_has_a_volume_of_its_own(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "two.trace", devices=("sda", "sdb"))
    point = the_point(replayed(bench, trace, f"{MODEL}&volumes=2", "--map", "volume"))
    counts = [one["total"]["count"] for one in point["volumes"]]
    assert len(counts) == 2
    assert sum(counts) + point["outside_window"]["count"] == 2000
    assert min(counts) > 900


def test_flushes_are_asked_for_again(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", flush_every=10)
    point = the_point(replayed(bench, trace, MODEL))
    assert point["flush"]["count"] == pytest.approx(200, abs=2)


def test_the_first_part_is_not_measured(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=500, seconds=4)
    point = the_point(replayed(bench, trace, MODEL, "--warmup", "1s"))
    assert point["warmup_s"] == pytest.approx(1, rel=0.05)
    assert point["total"]["count"] == pytest.approx(1500, rel=0.1)
    assert point["total"]["iops"] == pytest.approx(500, rel=0.1)


# On files.


def test_a_file_is_laid_out_as_large_as_the_trace_reaches(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=300, seconds=1, span_bytes=8 << 20)
    document = replayed(bench, trace, bench.target)
    point = the_point(document)
    assert bench.target.stat().st_size == 8 << 20
    # How many begin in time depends on the machine; none is lost.
    unfinished = point["offered"]["unfinished"]
    assert point["total"]["count"] + point["outside_window"]["count"] + unfinished == 300
    assert point["replay"]["lateness"]["count"] + unfinished == 300
    again = bench.assay(
        "replay", trace, bench.target, "--closed", "--json", "--quiet", "--no-report", "-o", bench.results
    )
    assert again.code == 0, again.stderr
    assert the_point(again.document)["total"]["count"] == 300


def test_a_smaller_file_is_refused_unless_places_are_mapped(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=200, seconds=1, span_bytes=64 << 20)
    refused = bench.assay("replay", trace, bench.target, "--size", "8M", "--no-report", "-o", bench.results)
    assert refused.code == 2
    assert "give --map fold or --map scale" in refused.complaint
    for fit in ("fold", "scale"):
        point = the_point(replayed(bench, trace, bench.target, "--size", "8M", "--map", fit, "--closed"))
        assert point["total"]["count"] == 200
        assert point["errors"]["count"] == 0
        assert point["replay"]["fit_note"]
    assert bench.target.stat().st_size == 8 << 20


def test_what_is_not_assays_is_not_written_to(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", seconds=1, span_bytes=1 << 20)
    bench.target.write_bytes(b"mine" * (1 << 18))
    refused = bench.assay("replay", trace, bench.target, "--no-report", "-o", bench.results)
    assert refused.code == 2
    assert "--overwrite" in refused.complaint
    assert bench.target.read_bytes() == b"mine" * (1 << 18)


def test_a_dry_run_says_what_is_written_and_how_long_it_takes(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=500, seconds=4)
    done = bench.assay("replay", trace, bench.target, "--size", "64M", "--dry-run", "--speed", "2")
    assert done.code == 0, done.stderr
    assert "2,000 I/Os" in done.stdout
    assert "the replay writes" in done.stdout
    assert not bench.target.exists()
    told = json.loads(bench.assay("replay", trace, bench.target, "--dry-run", "--json").stdout)
    assert "written_bytes" in json.dumps(told)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--closed", "--speed", "2"), "keeps no times"),
        (("--search", "speed", "--speed", "2"), "the search chooses it"),
        (("--window", "yesterday"), "is no window"),
        (("--window", "1h-2h"), "no I/O then"),
        (("--map", "volume"), "give as many volumes as devices"),
        (("--closed", "--think"), "exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(bench: Bench, words: tuple[str, ...], complaint: str) -> None:
    trace = poisson_trace(bench.folder / "two.trace", seconds=1, iops=50, devices=("sda", "sdb"))
    refused = bench.assay("replay", trace, MODEL, *words, "--no-report", "-o", bench.results)
    assert refused.code == 2
    assert complaint in refused.complaint


@pytest.mark.parametrize(("pace", "complaint"), [("--think", "does not tell when"), ("--closed", "--queue-depth N")])
def test_a_pace_needs_times_that_the_trace_tells(bench: Bench, pace: str, complaint: str) -> None:
    trace = poisson_trace(bench.folder / "one.trace", seconds=1, iops=50, tells_times=False)
    refused = bench.assay("replay", trace, MODEL, pace, "--no-report", "-o", bench.results)
    assert refused.code == 2
    assert complaint in refused.complaint


@pytest.mark.parametrize("words", [(), ("nowhere.trace", MODEL), ("f.dat", MODEL)])
def test_without_a_trace_nothing_is_done(bench: Bench, words: tuple[str, ...]) -> None:
    (bench.folder / "f.dat").write_text("no trace")
    assert bench.assay("replay", *words).code == 2


# The run.


def test_a_run_goes_on_without_replaying_again_and_is_reported(bench: Bench) -> None:
    trace = poisson_trace(bench.folder / "orders.trace", iops=300, seconds=2)
    done = bench.assay("replay", trace, MODEL, "--json", "--quiet", "-o", bench.results)
    assert done.code == 0, done.stderr
    run = Path(done.document["run_folder"])
    page = (run / "report.html").read_text()
    for words in ("What was replayed", "recorded", "Traces, and when each began"):
        assert words in page
    manifest = run / "run.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "interrupted"}))
    again = bench.assay("replay", "--resume", run, "--json", "--quiet", "--no-report")
    assert again.code == 0, again.stderr
    assert again.document["points"] == done.document["points"]
    compared = bench.assay("compare", run, run, "--json")
    assert compared.code == 0, compared.stderr

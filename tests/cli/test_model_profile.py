"""`assay profile` on a model as on a file: the same flags, the same document, virtual time, resuming, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from document_contract import check_document

from assay.record.series import read_series
from assay.targets.arrays.model.model_file import load_model

if TYPE_CHECKING:
    from assay_command import Bench

MODEL = "model:ps6100xv?disks.count=6&disks.spares=0&cache=64M&volumes=2&volume_size=20GB"
"""Six disks, quick to simulate."""
TIMES = ("--warmup", "0.5s", "--duration", "0.5s")
REAL_TIMES = ("--size", "16M", "--warmup", "0s", "--duration", "0.3s")

FLAGS = {
    "mix, shares, levels": ("--block", "4K:80+64K:20", "--read", "100,50", "--random", "50", "--queue-depth", "2"),
    "skew, region, limit that is missed": (
        "--skew", "zipf:0.9", "--region", "0-50", "--queue-depth", "1,3", "--limit", "read.p99<=1us", "--seed", "4",
    ),
    "streams, compressible, duplicate": (
        "--random", "0", "--streams", "4", "--block", "64K", "--workers", "2", "--queue-depth", "2", "--read", "50",
        "--compressible", "50", "--duplicate", "20",
    ),
    "constant rate": ("--rate", "150", "--arrivals", "constant", "--read", "50"),
    "poisson rate": ("--rate", "150", "--arrivals", "poisson", "--align", "64K"),
}  # fmt: skip


def sure(bench: Bench) -> str:
    """The array from a file that is sure of all but its fitted value, so that a band takes a few simulations."""
    text = load_model("ps6100xv").text
    text = re.sub(r"(unit = .*?)(?:, plus_minus = [0-9.]+)? }", r"\1, plus_minus = 0 }", text)
    (bench.folder / "sure.toml").write_text(text)
    return MODEL.replace("ps6100xv", "./sure.toml")


def keys(value: Any) -> Any:
    """The keys of a document, as deep as they go; the first element of a list stands for all."""
    if isinstance(value, Mapping):
        return {key: keys(inner) for key, inner in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], Mapping) else None


def same_keys(real: Mapping[str, Any], modelled: Mapping[str, Any]) -> None:
    """Everything a document of a file has is in that of a model, key by key."""
    assert set(real) == set(modelled)
    ours, theirs = modelled["points"][0], real["points"][0]
    assert set(ours) - set(theirs) == {"array"}
    assert set(theirs) <= set(ours)
    for key in ("workload", "load", "total", "steady", "generator", "telemetry", "batches", "errors", "outside_window"):
        # A virtual clock has no generator that could stand still.
        measured = theirs[key] | {"gaps": None} if key == "generator" else theirs[key]
        assert keys(ours[key]) == keys(measured)
    assert keys(modelled["verdict"]) == keys(real["verdict"])


@pytest.mark.parametrize("name", FLAGS)
def test_the_same_flags_on_a_file_and_on_a_model(bench: Bench, name: str) -> None:
    flags = FLAGS[name]

    real = bench.profile(bench.target, *REAL_TIMES, *flags, "--json")
    modelled = bench.profile(MODEL, *TIMES, *flags, "--json")

    # A busy machine's load generator may be the bottleneck: then a limit is unknown.
    codes = (1, 5) if "--limit" in flags else (0,)
    assert (modelled.code, real.code in codes) == (codes[0], True), real.stderr + modelled.stderr
    check_document(real.document)
    check_document(modelled.document)
    same_keys(real.document, modelled.document)
    for ours, theirs in zip(modelled.document["points"], real.document["points"], strict=True):
        assert ours["workload"] == theirs["workload"] | {"stride_bytes": ours["workload"]["stride_bytes"]}
        assert ours["load"].keys() == theirs["load"].keys()
        assert {limit["limit"] for limit in ours["limits"]} == {limit["limit"] for limit in theirs["limits"]}
        assert (ours["clock"], theirs["clock"]) == ("virtual", "wall")
        if "rate" in ours["load"]:
            assert ours["total"]["iops"] == pytest.approx(150, rel=0.5)
            assert ours["offered"]["rate"] == theirs["offered"]["rate"] == 150


class TestDocument:
    def test_what_only_a_model_says(self, bench: Bench) -> None:
        document = bench.profile(MODEL, "--queue-depth", "4", "--read", "70", "--duration", "2s", "--json").document

        (point,) = document["points"]
        generator = ("cpu_share", "fullest_worker_share", "schedule_lag_p99_ns")
        assert [point["generator"][key] for key in generator] == [None] * 3
        assert point["generator"]["saturated"] is False
        assert point["engine"] == {"backend": "model", "features": [], "degraded": []}
        assert set(point["telemetry"].values()) == {None}
        array = point["array"]
        assert 0 < array["disk_busy_share"] <= array["fullest_disk_busy_share"] <= 1
        assert 0 <= array["read_hit_share"] <= 1
        assert array["dirty_bytes"] > 0
        assert array["rebuilt_bytes"] is None
        assert (point["measured_to_utc_ns"] - point["measured_from_utc_ns"]) / 1e9 == point["measured_s"] == 2
        facts = document["target"]["array"]
        assert (facts["name"], facts["raid"], facts["members"]) == ("ps6100xv", "10", 1)
        assert [volume["kind"] for volume in document["target"]["volumes"]] == ["model"] * 2
        assert "band_90" not in point

    def test_a_search_answers_with_its_error_band(self, bench: Bench) -> None:
        search = ("--search", "queue-depth", "--read", "70", "--repeats", "0", "--limit", "read.mean<=20ms")
        outcome = bench.profile(sure(bench), *search, *TIMES, "--json")

        check_document(outcome.document)
        (answer,) = outcome.document["answers"]
        low, high = answer["band_90"]
        assert 0 < low < answer["max"]["iops"] < high
        assert answer["band_basis"].startswith("calibrated to 4 points of published.toml")
        assert answer["limited_by"] == "read.mean<=20ms"

    def test_a_search_on_the_rate(self, bench: Bench) -> None:
        search = ("--search", "rate", "--rate", "100", "--repeats", "0", "--limit", "read.mean<=15ms")
        outcome = bench.profile(sure(bench), *search, "--read", "100", *TIMES, "--json")

        (answer,) = outcome.document["answers"]
        assert (answer["axis"], answer["limited_by"] in ("read.mean<=15ms", "rate not sustained")) == ("rate", True)
        assert 200 < answer["max"]["rate"] < answer["first_failing"]["rate"] < 5000

    def test_the_series_is_in_virtual_time_and_points_do_not_overlap(self, bench: Bench) -> None:
        document = bench.profile(MODEL, "--queue-depth", "1,2,4", "--duration", "2s", "--json").document

        rows = read_series(bench.run).records()
        assert {row["clock"] for row in rows} == {"virtual"}
        assert "model" in {row["source"] for row in rows}
        assert {row["tier"] for row in rows if row["source"] == "model"} == {"storage"}
        points = document["points"]
        for before, after in pairwise(points):
            assert before["started_utc_ns"] < before["measured_to_utc_ns"] <= after["started_utc_ns"]
        times = [row["t_ns"] for row in rows]
        assert points[0]["started_utc_ns"] <= min(times)
        assert max(times) < points[-1]["measured_to_utc_ns"] + 2 * 10**9
        for point in points:
            window = range(point["measured_from_utc_ns"] + 1, point["measured_to_utc_ns"] + 1)
            inside = [row for row in rows if row["metric"] == "busy_share" and row["t_ns"] in window]
            assert inside, "every point has telemetry of the array"

    def test_the_same_command_gives_the_same_figures_to_the_last_digit(self, bench: Bench) -> None:
        command = (MODEL, "--read", "70", "--rate", "200", "--arrivals", "poisson", *TIMES, "--json")
        first, second = (bench.profile(*command).document["points"] for _ in range(2))
        other = bench.profile(*command, "--seed", "2").document["points"]

        for ours, theirs in zip(first, second, strict=True):
            figures = ("read", "write", "total", "volumes", "batches", "array", "offered", "outside_window", "key")
            assert {key: ours[key] for key in figures} == {key: theirs[key] for key in figures}
        assert first[0]["total"]["histogram"] != other[0]["total"]["histogram"]
        assert first[0]["key"] != other[0]["key"]


class TestResume:
    def unfinished(self, bench: Bench, keep: int) -> list[bytes]:
        """Leave the only run as a crash after its first points would."""
        lines = bench.point_lines()
        (bench.run / "points.jsonl").write_bytes(b"".join(lines[:keep]))
        manifest = bench.manifest() | {"status": "running", "ended_utc_ns": None}
        (bench.run / "run.json").write_text(json.dumps(manifest))
        return lines

    def resumed(self, bench: Bench) -> Any:
        return bench.assay("profile", "--resume", bench.run, "--no-report", "--json")

    def test_finished_points_are_taken_and_the_others_come_out_the_same(self, bench: Bench) -> None:
        bench.profile(MODEL, "--queue-depth", "1,2,3", *TIMES)
        before = self.unfinished(bench, keep=2)

        again = self.resumed(bench)

        assert again.code == 0, again.stderr
        assert bench.point_lines()[:2] == before[:2]
        points, known = again.document["points"], [json.loads(line) for line in before]
        assert [point["id"] for point in points] == ["p0001", "p0002", "p0003"]
        assert [point["total"] for point in points] == [point["total"] for point in known]
        assert [point["key"] for point in points] == [point["key"] for point in known]

    def test_a_file_changed_since_is_noticed(self, bench: Bench) -> None:
        file = bench.folder / "mine.toml"
        text = bench.assay("model", "show", "ps6100xv", "--toml").stdout
        file.write_text(text)
        target = MODEL.replace("ps6100xv", "./mine.toml")
        bench.profile(target, "--queue-depth", "1,2", *TIMES)
        before = [json.loads(line) for line in self.unfinished(bench, keep=1)]
        file.write_text(text.replace("revolution = { value = 4,", "revolution = { value = 6,"))
        assert file.read_text() != text

        again = self.resumed(bench)

        assert again.code == 0, again.stderr
        kept, *points = again.document["points"]
        # The point of the other array is not this array's: both loads are measured on the file as it is.
        assert kept["key"] == before[0]["key"]
        assert not {point["key"] for point in points} & {point["key"] for point in before}
        for ours, theirs in zip(points, before, strict=True):
            assert ours["load"] == theirs["load"]
            assert ours["total"]["iops"] < 0.95 * theirs["total"]["iops"]

    def test_a_file_that_went_away_is_said(self, bench: Bench) -> None:
        file = bench.folder / "mine.toml"
        file.write_text(bench.assay("model", "show", "ps6100xv", "--toml").stdout)
        bench.profile(MODEL.replace("ps6100xv", "./mine.toml"), "--queue-depth", "1,2", *TIMES)
        self.unfinished(bench, keep=1)
        file.unlink()

        again = self.resumed(bench)

        assert (again.code, "no such file" in again.complaint) == (2, True)


def test_ctrl_c_ends_a_long_point_cleanly(bench: Bench) -> None:
    # Hours of virtual time, which are minutes.
    with bench.started(
        "profile", MODEL, "--queue-depth", "64", "--duration", "9000s", "--no-report", "--json", "-o", bench.results
    ) as running:
        running.wait_until(lambda: bench.runs and "measuring" in running.stderr)
        running.process.send_signal(signal.SIGINT)
        outcome = running.end(20)

    complaints = [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")]
    assert outcome.code == 130
    assert "Traceback" not in outcome.stderr
    assert complaints[0].startswith("assay: interrupted")
    assert complaints[1].endswith(f"--resume {bench.run}")
    assert outcome.document["status"] == bench.manifest()["status"] == "interrupted"


IN_A_BAND = """
import os, pathlib, signal, sys, time
from assay.insight.calibration import bands

simulate, asked = bands.simulate, []

def written():
    return sum(path.read_bytes().count(b"\\n") for path in pathlib.Path(sys.argv[-1]).glob("*/points.jsonl"))

def interrupted(*arguments, **options):
    if not asked:
        # Points are simulated ahead of the thread that writes them.
        deadline = time.monotonic() + 60
        while written() <= 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    asked.append(1)
    return simulate(*arguments, **options)

bands.simulate = interrupted
sys.argv[0] = "assay"
from assay.apps.cli import main
main()
"""


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_an_interrupt_while_a_band_is_computed_keeps_the_points(bench: Bench) -> None:
    search = ("--search", "queue-depth", "--read", "70", "--repeats", "0", "--limit", "read.mean<=20ms")
    command = ("profile", MODEL, *search, *TIMES, "--no-report", "-o", bench.results)
    done = subprocess.run(
        [sys.executable, "-c", IN_A_BAND, *map(str, command)], cwd=bench.folder, capture_output=True, text=True
    )

    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert bench.manifest()["status"] == "interrupted"
    assert len(bench.point_lines()) > 3

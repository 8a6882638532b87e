"""`assay model calibrate` from end to end: from a run to a file that answers, and what is refused."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from assay.insight.calibration.observations import observations_of_run
from assay.targets.arrays.model.configuration import configure
from assay.targets.arrays.model.model_file import load_model

if TYPE_CHECKING:
    from pathlib import Path

    from assay_command import Bench, Outcome

OPTIONS = "raid=10&disks.count=6&disks.spares=0&raid.policy.50.set_disks=3&raid.policy.6.set_disks=6&cache=64M"
VOLUMES = "volumes=2&volume_size=20GB"
OVERHEAD = "disk.command_overhead"
TIMES = ("--warmup", "0.5s", "--duration", "1s")
LOAD = ("--block", "8K,64K", "--read", "70,100", "--queue-depth", "4")


def structure(bench: Bench) -> str:
    """A file like ps6100xv whose values are sure but for one."""
    text = load_model("ps6100xv").text.partition("[calibration]")[0]
    text = re.sub(r"(unit = .*?)(?:, plus_minus = [0-9.]+)? }", r"\1, plus_minus = 0 }", text)
    text = re.sub(r"(command_overhead = .*)plus_minus = 0 }", r"\1plus_minus = 0.5 }", text)
    (bench.folder / "base.toml").write_text(text)
    return f"./base.toml?{OPTIONS}"


def measure(bench: Bench, target: str, *arguments: str) -> Path:
    """A run on a target; its load generator counts as having kept up, however busy the machine."""
    outcome = bench.profile(target, *(arguments or LOAD), *TIMES, "--json")
    assert outcome.code == 0, outcome.stderr
    points = [json.loads(line) for line in bench.point_lines()]
    for point in points:
        point["generator"]["saturated"] = False
    (bench.run / "points.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    return bench.run


def calibrate(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("model", "calibrate", *arguments)


def test_from_a_run_to_answers_under_another_policy(bench: Bench) -> None:
    start = structure(bench)
    run = measure(bench, f"model:{start}&{VOLUMES}&{OVERHEAD}=0.9ms")

    done = calibrate(bench, "mine.toml", "--from", run, "--structure", start, "--json", "--quiet")

    assert done.code == 0, done.stderr
    document = done.document
    (fitted,) = document["parameters"]
    assert fitted["name"] == OVERHEAD
    assert fitted["start"] == 567_723
    assert fitted["value"] == pytest.approx(900_000, rel=2 * fitted["plus_minus"])
    assert fitted["plus_minus"] < 0.15
    calibration = document["calibration"]
    assert (calibration["points"], calibration["raid"], calibration["members"]) == (4, ["10"], [1])
    assert calibration["error_share"] < 0.05
    assert "volumes=2" in calibration["structure"]
    asked_again = 'assay profile "model:./mine.toml?volumes=2&volume_size=20000000000&members=2"'
    assert done.stderr.splitlines() == ["model file: mine.toml", f"ask it: {asked_again}"]

    valid = bench.assay("model", "validate", "mine.toml")
    assert (valid.code, valid.stderr) == (0, "")
    search = ("--search", "queue-depth", "--read", "70", "--repeats", "0", "--limit", "read.mean<=20ms")
    bands = []
    for raid in ("10", "6"):
        asked = bench.profile(f"model:./mine.toml?{VOLUMES}&raid={raid}", *search, *TIMES, "--json")
        assert asked.code == 0, asked.stderr
        (answer,) = asked.document["answers"]
        bands.append((answer["band_90"][1] / answer["band_90"][0], answer["band_basis"]))
        assert asked.document["target"]["array"]["parameters"]["disks.count"]["value"] == 6
    assert bands[1][0] > 1.15 * bands[0][0]
    assert "none of them under RAID 6" in bands[1][1]
    assert "none of them" not in bands[0][1]

    before = (bench.folder / "mine.toml").read_bytes()
    again = calibrate(bench, "mine.toml", "--from", run, "--structure", start)
    assert (again.code, "mine.toml: exists; nothing is overwritten" in again.complaint) == (2, True)
    assert (bench.folder / "mine.toml").read_bytes() == before


def test_tables_say_what_was_fitted(bench: Bench) -> None:
    start = structure(bench)
    run = measure(bench, f"model:{start}&{VOLUMES}", "--queue-depth", "2,4")

    done = calibrate(bench, "mine.toml", "--from", run, "--structure", start, "--free", OVERHEAD)

    assert done.code == 0, done.stderr
    for words in (OVERHEAD, "0.567723 ms", "8 KiB random 70/30, load 4", "error of prediction (leave one out)"):
        assert words in done.stdout
    assert "simulation 1, 1 of 2 points" in done.stderr


def test_a_black_box_answers_but_not_about_raid(bench: Bench) -> None:
    run = measure(bench, "null:?latency=2ms&servers=4", "--queue-depth", "1,4", "--read", "100")

    done = calibrate(bench, "box.toml", "--from", run, "--free", "links.latency", "--quiet")
    refused = bench.profile("model:./box.toml?raid=10", "--queue-depth", "4", *TIMES)
    asked = bench.profile("model:./box.toml?volumes=1&volume_size=1G", "--queue-depth", "4", *TIMES, "--json")

    assert done.code == 0, done.stderr
    assert refused.code == 2
    for words in ("is a black box, whose RAID is not known", "--structure NAME"):
        assert words in refused.complaint
    assert asked.code == 0, asked.stderr
    # Four at once that take 2 ms each: 2,000 a second.
    assert asked.document["points"][0]["total"]["iops"] == pytest.approx(2000, rel=0.3)


def test_points_of_a_file_are_observations(bench: Bench) -> None:
    run = measure(bench, str(bench.target), "--size", "16M", "--queue-depth", "1,4", "--read", "70")

    found = observations_of_run(run, configure("black-box"))

    assert [each.label for each in found] == ["8 KiB random 70/30, load 1", "8 KiB random 70/30, load 4"]
    assert found[0].configuration.volumes == [("v01", 16 << 20)]
    measured = [json.loads(line)["total"]["iops"] for line in bench.point_lines()]
    assert [each.figures["iops"] for each in found] == pytest.approx(measured)


class TestRefused:
    def refused(self, bench: Bench, *arguments: str | Path) -> str:
        before = sorted(bench.folder.rglob("*"))
        done = calibrate(bench, *arguments, "--quiet")
        assert (done.code, done.stdout) == (2, "")
        assert sorted(bench.folder.rglob("*")) == before
        return done.complaint

    def test_what_the_run_does_not_bear(self, bench: Bench) -> None:
        run = measure(bench, f"model:ps6100xv?{OPTIONS}&{VOLUMES}", "--queue-depth", "2")
        start = ("--structure", f"ps6100xv?{OPTIONS}")
        (line,) = bench.point_lines()
        point: dict[str, Any] = json.loads(line)
        point["total"]["iops"] *= 2
        points = run / "points.jsonl"

        assert "1 point is too few; one parameter needs" in self.refused(bench, "m.toml", "--from", run, *start)
        points.write_bytes(line + json.dumps(point | {"id": "p0002", "key": "another"}).encode() + b"\n")
        assert "points contradict each other" in self.refused(bench, "m.toml", "--from", run, *start)
        points.write_text("")
        assert "no point of one activity" in self.refused(bench, "m.toml", "--from", run, *start)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("mine.toml", "--from", "nowhere"), "nowhere does not exist"),
            (("mine.toml", "--from", "none.toml"), "none.toml: cannot be read"),
            (("mine", "--from", "r"), "a file to write ends in .toml"),
            (("none/mine.toml", "--from", "r"), "there is no folder none"),
            (("ps6100xv", "--from", "r", "--structure", "ps6100xv"), "is the structure already"),
            (("mine.toml", "--from", "r", "--to", "x.toml"), "--to: FILE is the file to write"),
            (("mine.toml", "--from", "r", "--structure", "ps61"), "unknown array 'ps61'"),
            (("m.toml", "--from", "r", "--structure", "ps6100xv?raid=6&disks.count=5"), "RAID 6 of 3 disks"),
            (("mine.toml", "--from", "r", "--structure", "ps6100xv?raid=7"), "unknown RAID policy '7'"),
            (("ps6110x", "--from", "published.toml"), "no point of ps6110x is marked fit = true"),
            (
                ("ps6100xv", "--from", "published.toml", "--free", "disk.seek_full,cache.size,cache.dirty_low"),
                "3 parameters need at least 6 points, and there are 4",
            ),
            (
                ("ps6100xv", "--from", "published.toml", "--free", "disk.command_overhed"),
                "did you mean 'disk.command_overhead'?",
            ),
        ],
    )
    def test_what_is_asked(self, bench: Bench, arguments: tuple[str, ...], words: str) -> None:
        assert words in self.refused(bench, *arguments)

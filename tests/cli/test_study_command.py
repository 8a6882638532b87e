"""`assay study` as a user runs it: list, show, run, resume, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from document_contract import check_document
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.apps.cli.study import DEFAULT_TARGETS
from assay.insight.studies.files import study_names, study_variants
from assay.insight.studies.study import DatabaseKind
from assay.insight.studies.targets import Kind

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

PRESETS = Path(__file__).parents[2] / "python" / "assay" / "insight" / "studies" / "presets"
LATENCY = """
title = "Latency"
question = "What does a slower device hold?"
targets = ["file"]
target = "null:?servers=2"

[plan.timing]
warmup_s = 0
duration_s = 0.5

[[plan.activity]]
block_bytes = "8K"
queue_depth = 2

[[factor]]
name = "latency"
title = "latency"
levels = ["2ms", "4ms", { value = "8ms", label = "slow" }]

[comparison]
by = "latency"
baseline = "2ms"
"""


@pytest.fixture
def mine(bench: Bench) -> Path:
    path = bench.folder / "mine.toml"
    path.write_text(LATENCY)
    return path


def run(bench: Bench, *arguments: str | Path) -> Outcome:
    once = () if {"--repeats", "--quick"} & {*arguments} else ("--repeats", "1")
    return bench.assay("study", "run", *arguments, *once, "--no-report", "-o", bench.results)


def test_a_study_runs_and_says_what_it_found(bench: Bench, mine: Path) -> None:
    outcome = run(bench, mine, "--json", "--quiet", "--seed", "2")

    assert (outcome.code, outcome.stderr) == (0, "")
    check_document(outcome.document)
    study = outcome.document["study"]
    assert outcome.document["verb"] == "study"
    # Two servers of 2, 4 and 8 ms hold 1,000, 500 and 250 per second, and fewer where the host gives them no turn.
    held = [result["values"]["iops"]["value"] for result in study["results"]]
    assert all(0 < value < 1.05 * most for value, most in zip(held, (1000, 500, 250), strict=True))
    assert held == sorted(held, reverse=True)
    by = [value / held[0] for value in held[1:]]
    assert [one["ratio"] for one in study["comparisons"]] == pytest.approx(by, rel=0.01)
    for one in study["comparisons"]:
        # On a busy host nothing is concluded from these points, and that is said.
        assert one["differs"] or "the load generator was the bottleneck" in one["reason"]
    assert len(study["sentences"]) >= 2
    # Parts are listed by level, and run in the order drawn.
    parts = outcome.document["parts"]
    names = [part["name"] for part in parts]
    assert names == ["latency=2ms", "latency=4ms", "latency=8ms"]
    assert parts[0]["target"] == "null:?servers=2&latency=2ms"
    assert [point["part"] for point in outcome.document["points"]] == study["order"]
    assert sorted(study["order"]) == names
    assert study["order"] != names
    assert [line["question"].split(":")[0] for line in outcome.document["verdict"]] == ["2ms", "4ms", "slow"]


def test_the_sentences_are_printed_before_the_table(bench: Bench, mine: Path) -> None:
    outcome = run(bench, mine, "--levels", "latency=2ms,slow")

    assert outcome.code == 0
    assert "What does a slower device hold?" in outcome.stdout
    sentence = bench.manifest()["study"]["sentences"][0]
    assert outcome.stdout.index(sentence[:20]) < outcome.stdout.index("against baseline")
    assert outcome.stdout.splitlines()[-1] == f"run folder: {bench.run}"
    assert "4ms" not in outcome.stdout


def test_repeats_are_parts_of_their_own(bench: Bench, mine: Path) -> None:
    document = run(bench, mine, "--json", "--repeats", "2", "--levels", "latency=2ms,4ms").document

    assert len(document["parts"]) == 4
    assert len(document["study"]["results"]) == 2
    assert [len(result["point_ids"]) for result in document["study"]["results"]] == [2, 2]


@pytest.mark.parametrize(
    ("target", "options", "repeats"),
    [("null:", (), 3), ("null:", ("--quick",), 1), ("null:", ("--repeats", "2"), 2), ("model:nvme-mirror", (), 1)],
)
def test_real_targets_are_measured_three_times_unless_said_otherwise(
    bench: Bench, target: str, options: tuple[str, ...], repeats: int
) -> None:
    own = bench.folder / "depth.toml"
    own.write_text(LATENCY.replace('["file"]', '["file", "model"]').replace(
        'name = "latency"', 'name = "latency"\nof = "activity"\nkey = "queue_depth"'
    ).replace('["2ms", "4ms", { value = "8ms", label = "slow" }]', "[2, 4]").replace('"2ms"', '"2"'))  # fmt: skip
    document = bench.assay("study", "run", own, target, *options, "--dry-run", "--json").document

    assert document["study"]["repeats"] == repeats
    assert len(document["parts"]) == 2 * repeats


def test_quick_says_what_it_gives_up_and_takes_no_repeats(bench: Bench, mine: Path) -> None:
    assert run(bench, mine, "--quick", "--levels", "latency=2ms,4ms").code == 0
    assert any("what varies between runs" in notice for notice in bench.manifest()["notices"])
    assert "leave out --quick" in run(bench, mine, "--quick", "--repeats", "2").complaint


def test_a_study_goes_on_where_it_was_left(bench: Bench, mine: Path) -> None:
    first = run(bench, mine, "--json").document
    folder = bench.run
    points = folder / "points.jsonl"
    points.write_bytes(b"".join(points.read_bytes().splitlines(keepends=True)[:1]))
    kept = points.read_bytes()
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(manifest | {"status": "interrupted"}))

    outcome = bench.assay("study", "run", "--resume", folder, "--no-report", "--json")

    assert (outcome.code, points.read_bytes().startswith(kept)) == (0, True)
    assert outcome.document["study"]["order"] == first["study"]["order"]
    assert [len(outcome.document[key]) for key in ("points", "parts")] == [3, 3]
    assert len(outcome.document["study"]["comparisons"]) == 2


def test_an_interrupted_study_says_how_to_go_on(bench: Bench, mine: Path) -> None:
    mine.write_text(LATENCY.replace("duration_s = 0.5", "duration_s = 30"))
    with bench.started("study", "run", mine, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        running.process.terminate()
        outcome = running.end()

    assert outcome.code == 130
    assert f"assay study run --resume {bench.run}" in outcome.stderr


def test_a_dry_run_shows_every_part_with_its_target(bench: Bench, mine: Path) -> None:
    words = run(bench, mine, "--dry-run")
    document = run(bench, mine, "--dry-run", "--json").document

    assert (words.code, bench.runs) == (0, [])
    assert "part latency=8ms: slow; limits: none; search: none; target: null:?servers=2&latency=8ms" in words.stdout
    assert [part["target"] for part in document["parts"]][1] == "null:?servers=2&latency=4ms"
    assert document["study"]["question"] == "What does a slower device hold?"


def test_a_file_says_that_its_state_carries_over(bench: Bench, mine: Path) -> None:
    on_file = LATENCY.replace('key = "latency"', "").replace('name = "latency"', 'name = "read_share"\nof = "activity"')
    on_file = on_file.replace('["2ms", "4ms", { value = "8ms", label = "slow" }]', "[1, 0.5]")
    mine.write_text(on_file.replace('by = "latency"\nbaseline = "2ms"', 'by = "read_share"\nbaseline = "1"'))

    document = run(bench, mine, bench.target, "--size", "16M", "--json").document

    assert document["status"] == "done"
    assert any("its state carries over" in notice for notice in document["notices"])
    assert [part.get("target") for part in document["parts"]] == [None, None]


def test_another_level_is_the_baseline(bench: Bench, mine: Path) -> None:
    document = run(bench, mine, "--levels", "latency=4ms,8ms", "--baseline", "slow", "--json").document

    assert [(one["level"], one["baseline"]) for one in document["study"]["comparisons"]] == [("4ms", "slow")]
    again = CliRunner().invoke(app, ["study", "compare", str(bench.run), "--baseline", "4ms", "--json"])
    (one,) = json.loads(again.stdout)["study"]["comparisons"]
    assert (one["level"], one["baseline"]) == ("slow", "4ms")


def test_one_level_says_that_nothing_is_compared(bench: Bench, mine: Path) -> None:
    document = run(bench, mine, "--levels", "latency=4ms", "--json").document

    assert document["study"]["comparisons"] == []
    assert "latency has one level here: nothing is compared" in document["notices"]


def test_every_study_is_shown(bench: Bench) -> None:
    for name in sorted({path.name.partition(".")[0] for path in PRESETS.glob("*.toml")}):
        shown = bench.assay("study", "show", name)
        assert shown.code == 0, shown.stderr
        assert shown.stdout.startswith(f"{name}: ")


STAND_INS = {"database": "embedded:pg", "file": "f.dat", "array": "embedded+array:ps6100xv?volumes=data:1,log:1",
             "mssql": "mssql://sa@127.0.0.1:1/x", "mariadb": "mariadb://sa@127.0.0.1:1/x",
             "embedded": "embedded:pg", "postgresql": "postgresql://sa@127.0.0.1:1/x",
             "duckdb": "duckdb:x.duckdb", "flash": "model:nvme-raid"}  # fmt: skip


@pytest.mark.parametrize("name", study_names())
def test_every_study_is_planned_whole_and_by_two_levels_of_each_factor(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for study in study_variants(name):
        assert study.comparison is None or study.comparison.answer
        for kind in study.targets:
            own = study.published or (study.target and kind in ("model", "array"))
            line = ["study", "run", name, *([] if own else [STAND_INS[kind]]), "--dry-run"]
            line += ["--size", "64M"] if kind == "file" else []
            asked = [line]
            for factor in study.factor:
                compared = study.comparison is not None and study.comparison.by == factor.name
                first = (
                    factor.level(study.comparison.baseline, "") if study.comparison and compared else factor.levels[0]
                )
                other = next(level for level in factor.levels if level is not first)
                asked.append([*line, "--levels", f"{factor.name}={first.key},{other.key}"])
                if compared:
                    asked.append([*asked[-1], "--baseline", other.name])
            for one in asked:
                planned = CliRunner().invoke(app, one)
                assert planned.exit_code == 0, (one, planned.exception)


@pytest.mark.parametrize("kind", [*get_args(Kind), *get_args(DatabaseKind)])
def test_every_kind_of_target_has_a_stand_in(kind: str) -> None:
    assert kind in DEFAULT_TARGETS


def test_list_and_show(bench: Bench) -> None:
    listed = bench.assay("study", "list", "--json").document
    shown = bench.assay("study", "show", "raid-policy")
    preset = bench.assay("study", "show", "raid-policy", "--json")

    assert "raid-policy" in [study["name"] for study in listed["studies"]]
    assert all(word in shown.stdout for word in ("RAID 50", "baseline 50", "model:ps6100xv?volumes=12", "model's time"))
    own = bench.folder / "own.json"
    own.write_text(preset.stdout)
    assert bench.assay("study", "show", own, "--json").document == preset.document


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["raid-polcy"], "did you mean 'raid-policy'"),
        ([], "give a study"),
        (["raid-policy", "f"], "makes no sense on 'f'"),
        (["published", "f"], "leave out 'f'"),
        (["raid-policy", "model:ps6100xv?raid=10&raid=50"], "given twice"),
        (["raid-policy", "model:ps6100xv?raid=10"], "choose among them with --levels"),
        (["raid-policy", "--levels", "raid=10,6"], "add it: raid=50,10,6"),
        (["raid-policy", "--levels", "rad=10"], "did you mean 'raid'"),
        (["raid-policy", "--levels", "raid=11"], "no level '11'"),
        (["raid-policy", "--levels", "raid"], "KEY=VALUE"),
        (["raid-policy", "--levels", "raid=,"], "names no level"),
        (["raid-policy", "--set", "raid=6"], "choose among them with --levels"),
        (["raid-policy", "--set", "a=1", "--set", "a=2"], "given twice"),
        (["raid-policy", "--repeats", "0"], "repeats"),
        (["queue-depth", "f", "--set", "raid=6"], "--set changes options"),
        (["nowhere.toml"], "cannot be read"),
    ],
)
def test_what_is_refused_is_said_in_one_line(bench: Bench, arguments: list[str], words: str) -> None:
    outcome = run(bench, *arguments)

    assert outcome.code == 2
    assert words in outcome.complaint
    assert bench.made() == []


@pytest.mark.parametrize("verb", [[], ["list"], ["show"], ["run"]])
def test_help_shows_examples(bench: Bench, verb: list[str]) -> None:
    outcome = bench.assay("study", *verb, "--help")

    assert outcome.code == 0
    assert "assay study" in outcome.stdout


CHAIN = """
title = "Chain"
question = "What does a scan leave in the cache?"
targets = ["model"]
target = "model:fas3070?volumes=1&volume_size=2GB&start=cold"

[plan.timing]
warmup_s = 0
duration_s = 2

[[plan.activity]]
block_bytes = "8K"
queue_depth = 4

[[factor]]
name = "reads"
title = "random reads"
ordered = false
levels = [{ label = "at first", set = { seed = 1 } }, { label = "after all was read", set = { seed = 1 } }]

[[case]]
levels = { reads = "at first" }

[[case]]
label = "reading all"
activity = { block_bytes = "64K", random_share = 0 }
timing = { duration_s = 8 }
continues = true

[[case]]
levels = { reads = "after all was read" }
continues = true

[comparison]
figure = "bytes_per_s"
by = "reads"
baseline = "at first"
"""


SMALL_CACHE = ("--set", "cache=64M")
"""Filled in no time; a band of an answer takes dozens of simulations."""


class TestModels:
    """The same on models of the catalogue, in virtual time."""

    def test_levels_of_a_model_are_compared(self, bench: Bench) -> None:
        options = ("--levels", "raid=50,6", "--set", "volumes=6", *SMALL_CACHE)
        document = run(bench, "raid-policy", *options, "--json").document

        assert document["status"] == "done"
        assert [part["target"].partition("?")[2] for part in document["parts"]] == [
            "volumes=6&cache=64M&raid=50", "volumes=6&cache=64M&raid=6",
        ]  # fmt: skip
        single, double = (result["values"]["iops"]["value"] for result in document["study"]["results"])
        # Double parity reads and writes six times for what single parity does with four.
        assert single > 1.1 * double

    @pytest.mark.slow(reason="tests/cli/test_model_profile.py compares a model's figures to the last digit")
    def test_the_same_seed_gives_the_same_figures(self, bench: Bench) -> None:
        options = ("--levels", "fill=40 % full", *SMALL_CACHE)
        first, second = (run(bench, "fill", *options, "--json").document for _ in range(2))

        assert first["study"]["results"] == second["study"]["results"]

    @pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
    def test_parts_that_continue_find_the_state_the_one_before_left(self, bench: Bench, mine: Path) -> None:
        mine.write_text(CHAIN)

        chained = run(bench, mine, "--json").document["study"]
        mine.write_text(CHAIN.replace("continues = true", ""))
        apart = run(bench, mine, "--json").document["study"]

        def held(study: dict[str, Any]) -> list[float]:
            return [result["values"]["iops"]["value"] for result in study["results"] if result["levels"]]

        # Empty at first, the cache holds all of the volume once it was read; a model that begins afresh has none of it.
        assert held(chained)[1] > 2 * held(chained)[0]
        assert held(apart)[1] == held(apart)[0]

    def test_a_chain_that_was_cut_is_measured_as_a_whole(self, bench: Bench, mine: Path) -> None:
        mine.write_text(CHAIN)
        first = run(bench, mine, "--json").document
        points = bench.run / "points.jsonl"
        points.write_bytes(b"".join(points.read_bytes().splitlines(keepends=True)[:2]))
        manifest = json.loads((bench.run / "run.json").read_text())
        (bench.run / "run.json").write_text(json.dumps(manifest | {"status": "interrupted"}))

        again = bench.assay("study", "run", "--resume", bench.run, "--no-report", "--json").document

        def values(document: dict[str, Any]) -> list[dict[str, Any]]:
            return [result["values"] for result in document["study"]["results"]]

        assert values(again) == values(first)
        # The two that were measured before are in the folder still, and told once.
        assert [point["id"] for point in again["points"]] == ["p0003", "p0004", "p0005"]
        assert len(points.read_text().splitlines()) == 5

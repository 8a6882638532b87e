"""Baselines, and limits of change that fail only where the interval lies beyond them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from past_runs import past_folder, point

from assay.base.errors import ExitCode, UsageError
from assay.insight.history.baseline import (
    newest_comparable,
    open_baseline,
    parse_last,
    runs_given,
    set_baseline,
)
from assay.insight.history.gate import GateResult, judge_changes, parse_limit
from assay.insight.history.gate_outputs import format_of, gate_document, gate_text
from assay.insight.sides import read_sides

ROOT = Path(__file__).parents[2]


def runs(results: Path, *iops: float, first: int = 0) -> list[Path]:
    return [past_folder(results, first + day, [point(value)]) for day, value in enumerate(iops)]


def judged(before: list[Path], after: list[Path], *limits: str) -> GateResult:
    read = read_sides([*before, *after])
    return judge_changes(read.sides[0], read.sides[1], [parse_limit(text) for text in limits])


BEFORE = (1000.0, 1010.0, 990.0, 1005.0, 995.0)


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ((900.0, 905.0, 895.0), ExitCode.WORSE),
        ((1000.0, 1004.0, 996.0), ExitCode.DONE),
        ((950.0, 956.0, 944.0), ExitCode.LIMIT_UNKNOWN),
        ((1200.0, 1210.0, 1190.0), ExitCode.DONE),
    ],
)
def test_a_limit_is_broken_only_where_the_interval_lies_beyond_it(
    tmp_path: Path, after: tuple[float, ...], code: ExitCode
) -> None:
    found = judged(runs(tmp_path / "a", *BEFORE), runs(tmp_path / "b", *after), "iops<-5%")
    assert found.exit_code == code
    assert [one.standing == "unknown" for one in found.judged] == [code == ExitCode.LIMIT_UNKNOWN]


def test_sides_are_compared_by_their_medians(tmp_path: Path) -> None:
    (one,) = judged(runs(tmp_path / "a", *BEFORE), runs(tmp_path / "b", 100.0, 1000.0, 1001.0), "iops<-5%").judged
    assert one.share == pytest.approx(0.0, abs=1e-9)


def test_figures_that_follow_from_others_are_judged_on_their_own(tmp_path: Path) -> None:
    found = judged(runs(tmp_path / "a", *BEFORE), runs(tmp_path / "b", 800.0, 805.0, 795.0), "read.mean>+10%")
    assert found.exit_code == ExitCode.WORSE


def of_generator(iops: float, cpu_ns: float, unit_ns: float = 10.0) -> dict[str, Any]:
    generator = {"saturated": True, "cpu_ns_per_io": cpu_ns, "cpu_unit_ns": unit_ns}
    return {**point(iops), "generator": generator}


def of_null(results: Path, *cpu_ns: float, unit_ns: float = 10.0) -> list[Path]:
    return [past_folder(results, day, [of_generator(1000.0, one, unit_ns)]) for day, one in enumerate(cpu_ns)]


@pytest.mark.parametrize(
    ("after", "unit_ns", "code"),
    [
        ((15.0, 15.1, 14.9), 10.0, ExitCode.DONE),
        ((20.0, 20.1, 19.9), 10.0, ExitCode.WORSE),
        ((30.0, 30.2, 29.8), 20.0, ExitCode.DONE),
        ((15.0, 15.1, 14.9), 5.0, ExitCode.WORSE),
    ],
)
def test_the_generators_cpu_is_judged_though_it_was_the_bottleneck(
    tmp_path: Path, after: tuple[float, ...], unit_ns: float, code: ExitCode
) -> None:
    before, later = of_null(tmp_path / "a", 15.0, 15.2, 14.8), of_null(tmp_path / "b", *after, unit_ns=unit_ns)
    assert judged(before, later, "generator.cpu_units_per_io>+20%").exit_code == code
    assert judged(before, later, "iops<-5%").exit_code == ExitCode.LIMIT_UNKNOWN


def test_the_generators_cpu_is_no_figure_of_the_target(tmp_path: Path) -> None:
    folders = [*of_null(tmp_path / "a", 15.0, 15.2), *of_null(tmp_path / "b", 30.0, 30.2)]
    names = {row.figure.name for row in read_sides(folders).compared().differences}
    assert "iops" in names
    assert not any("generator" in name for name in names)


def test_runs_of_the_generator_alone_are_kept_as_a_baseline(tmp_path: Path) -> None:
    kept = set_baseline(of_null(tmp_path / "a", 15.0, 15.2), "null", tmp_path / "baselines")
    assert [run.loads for run in kept.runs] == [(), ()]


TWICE_THE_CPU = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*known)(clockid_t, struct timespec *);
    if (!known) known = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int found = known(clock, time);
    if (found == 0 && clock == CLOCK_THREAD_CPUTIME_ID && gettid() != getpid()) {
        long long twice = 2 * (time->tv_sec * 1000000000LL + time->tv_nsec);
        time->tv_sec = twice / 1000000000LL, time->tv_nsec = twice % 1000000000LL;
    }
    return found;
}
"""
"""CPU time of all threads but the first, which measures the unit, seems twice as long: a generator half as fast."""


@pytest.mark.slow(reason="measures nine runs of null: with the gate of the project")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_slower_generator_fails_the_gate_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "clock.c").write_text(TWICE_THE_CPU)
    library = tmp_path / "clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c", "-ldl"], check=True)

    def gate(*words: str, **environment: str) -> int:
        command = [sys.executable, ROOT / "benches/gate.py", "--baselines", tmp_path / "kept", "--repeats", "3", *words]
        return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode

    assert gate("--renew") == ExitCode.DONE
    assert "hostname" not in (tmp_path / "kept/null/000/run.json").read_text()
    assert gate() == ExitCode.DONE
    assert gate(LD_PRELOAD=str(library)) == ExitCode.WORSE


def test_one_run_each_is_unknown_rather_than_broken(tmp_path: Path) -> None:
    found = judged(runs(tmp_path / "a", 1000.0), runs(tmp_path / "b", 900.0), "iops<-5%")
    assert found.exit_code == ExitCode.LIMIT_UNKNOWN
    assert found.judged[0].reason


def test_a_figure_that_was_not_measured_is_unknown_and_a_misspelt_one_is_refused(tmp_path: Path) -> None:
    sides = runs(tmp_path / "a", *BEFORE), runs(tmp_path / "b", *BEFORE)
    assert judged(*sides, "write.p99>+10%").exit_code == ExitCode.LIMIT_UNKNOWN
    with pytest.raises(UsageError, match=r"unknown metric iop; known: iops"):
        judged(*sides, "iop<-5%")


@pytest.mark.parametrize("text", ["iops", "iops<5", "iops=5%", "<5%", "iops<-5%%", "iops<nan%", "IOPS<-5%", "a" * 99])
def test_limits_of_change_have_one_form(text: str) -> None:
    with pytest.raises(UsageError, match="accepted: a figure"):
        parse_limit(text)


def test_the_outputs_say_the_same(tmp_path: Path) -> None:
    found = judged(
        runs(tmp_path / "a", *BEFORE), runs(tmp_path / "b", 900.0, 905.0, 895.0), "iops<-5%", "read.mean>+500%",
        "write.p99>+5%",
    )  # fmt: skip
    assert gate_document(found)["exit_code"] == 6
    suite = ElementTree.fromstring(gate_text(found, "junit"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    (log,) = json.loads(gate_text(found, "sarif"))["runs"]
    assert [(one["ruleId"], one["level"]) for one in log["results"]] == [
        ("iops<-5%", "error"), ("write.p99>+5%", "note")]  # fmt: skip
    lines = gate_text(found, "markdown").splitlines()
    assert lines[0].startswith("**Worse than the baseline allows: 1 of 3 limits broken, 1 unknown.")
    assert sum(line.startswith("| **broken** |") for line in lines) == 1
    assert json.loads(gate_text(found, "json")) == json.loads(json.dumps(gate_document(found)))


def test_text_of_others_is_no_markup_in_a_pull_request(tmp_path: Path) -> None:
    odd = {**point(1000.0), "workload": {**point(1000.0)["workload"], "name": "a | <img> @all `x`\n# b"}}
    sides = [[past_folder(tmp_path / side, day, [odd]) for day in range(2)] for side in ("a", "b")]
    text = gate_text(judged(*sides, "iops<-5%"), "markdown")
    assert "<img>" not in text
    assert "@all" not in text
    assert "\n# b" not in text
    ElementTree.fromstring(gate_text(judged(*sides, "iops<-5%"), "junit"))


def test_a_baseline_outlives_its_runs_and_is_replaced(tmp_path: Path) -> None:
    results, baselines = tmp_path / "results", tmp_path / "baselines"
    made = runs(results, *BEFORE)
    set_baseline(made[:1], "main", baselines)
    kept = set_baseline(newest_comparable([results], 3), "main", baselines)
    assert [run.run_id for run in kept.runs] == [path.name for path in made[-3:]]
    for path in made:
        (path / "run.json").unlink()
    assert len(open_baseline("main", baselines).runs) == 3
    assert [one.name for one in baselines.iterdir()] == ["main"]


def test_only_a_baseline_is_replaced(tmp_path: Path) -> None:
    (path,) = runs(tmp_path / "results", 1000.0)
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "precious").touch()
    with pytest.raises(UsageError, match="not what assay baseline wrote"):
        set_baseline([path], "main", tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "main")
    with pytest.raises(UsageError, match="not what assay baseline wrote"):
        set_baseline([path], "linked", tmp_path)
    assert (tmp_path / "main" / "precious").exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 64])
def test_names_of_baselines_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    (path,) = runs(tmp_path, 1000.0)
    with pytest.raises(UsageError, match="accepted: letters"):
        set_baseline([path], name, tmp_path)


def test_what_is_no_baseline_and_no_run_is_refused(tmp_path: Path) -> None:
    runs(tmp_path, 1000.0)
    with pytest.raises(UsageError, match="there is no such baseline"):
        open_baseline("nothing", tmp_path)
    with pytest.raises(UsageError, match="has 1 comparable run of"):
        newest_comparable([tmp_path], 2)
    with pytest.raises(UsageError, match="not a run folder"):
        runs_given([tmp_path / "nothing"])
    for text in ("last", "last:1", "last:101", "5", "last:-3"):
        with pytest.raises(UsageError, match="accepted: last:N"):
            parse_last(text)
    with pytest.raises(UsageError, match="names that end in"):
        format_of(Path("result.txt"))


def test_the_step_of_pipelines_keeps_a_baseline_and_fails_where_a_run_is_worse(
    tmp_path: Path,
) -> None:
    """`packaging/ci/gate.sh` as a pipeline runs it, on a model whose disk becomes slow."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    disk = (ROOT / "python/assay/targets/arrays/model/catalogue/d7-p5520-1920.toml").read_text()
    (tmp_path / "disk.toml").write_text(disk)
    model = "model:disk.toml"
    quick = "--block 8K --read 100 --queue-depth 1 --duration 1s --warmup 100ms --search none --no-report --quiet"

    def step(target: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": programs,
            "ASSAY_MEASURE": f"profile {target} {quick}",
            "ASSAY_LIMITS": "iops<-5%",
            **more,
        }
        return subprocess.run(
            [ROOT / "packaging/ci/gate.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    first = step(model, ASSAY_SET_BASELINE="true")
    assert (first.returncode, "no baseline yet" in first.stdout) == (0, True), first.stderr
    same = step(model)
    assert same.returncode == 0, same.stdout + same.stderr
    (tmp_path / "disk.toml").write_text(disk.replace("read_time = { value = 57,", "read_time = { value = 90,"))
    slow = step(model, ASSAY_SET_BASELINE="true")
    assert slow.returncode == 6, slow.stdout + slow.stderr
    assert ElementTree.parse(tmp_path / "assay-reports/assay.xml").getroot().get("failures") == "1"
    assert "Worse than the baseline allows" in (tmp_path / "assay-reports/assay.md").read_text()
    # What is worse does not become the baseline.
    assert len(open_baseline("baseline", tmp_path / "assay-baselines").runs) == 1
    assert step("nothing-of-that-name:").returncode == 2


def test_the_templates_call_the_step_that_is_tested() -> None:
    folder = ROOT / "packaging/ci"
    action, gitlab, script = ((folder / name).read_text() for name in ("action.yml", "gitlab.yml", "gate.sh"))
    assert """run: '"$GITHUB_ACTION_PATH/gate.sh"'""" in action
    assert '    - sh "$ASSAY_GATE"\n' in gitlab
    assert "ASSAY_GATE: packaging/ci/gate.sh\n" in gitlab
    assert (folder / "gate.sh").stat().st_mode & 0o100
    told = {*re.findall(r"(ASSAY_[A-Z_]+):", action + gitlab)} - {"ASSAY_GATE", "ASSAY_CACHE_POLICY"}
    assert all(name in script for name in told)

"""`assay run`: a plan of any kind once, or units of systemd that run it again and again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from assay.apps.cli.run import service_text, timer_text, verb_words
from assay.base.errors import UsageError
from assay.base.systemd import parse_calendar
from assay_command import Bench

PLAN = """
name = "nightly"
title = "Nightly"
[timing]
warmup_s = 0.0
duration_s = 0.2
[[activity]]
queue_depth = 2
"""
TARGET = "null:?latency=1ms"


def plan(bench: Bench, text: str = PLAN) -> Path:
    path = bench.folder / "My nightly plan.toml"
    path.write_text(text)
    return path


def test_a_plan_runs_as_its_verb_does(bench: Bench) -> None:
    ended = bench.assay("run", plan(bench), TARGET, "--", "--no-report", "-o", bench.results)
    assert ended.code == 0, ended.stderr
    assert (bench.manifest()["verb"], bench.manifest()["parts"][0]["name"]) == ("profile", "nightly")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["profile"]), ('kind = "integrity"', ["verify"]), ('kind = "tpcc"', ["oltp", "tpcc"]),
        ('kind = "tpch"', ["dss", "tpch"]), ('kind = "mailbox"', ["mailbox"]),
    ],
)  # fmt: skip
def test_the_kind_of_a_plan_says_its_verb(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    assert verb_words(path) == words


def test_the_exit_code_is_that_of_the_verb(bench: Bench) -> None:
    missed = plan(bench, 'limits = ["read.mean<=1us"]\nuser_limits = true\n' + PLAN)
    assert bench.assay("run", missed, TARGET, "--", "--no-report", "-o", bench.results).code in (1, 5)


def test_a_timer_is_shown_and_written_and_nothing_runs(bench: Bench) -> None:
    timer = bench.folder / "night.timer"
    ended = bench.assay("run", plan(bench), TARGET, "--repeat", "daily", "--unit", timer, "--", "-o", bench.results)
    assert ended.code == 0, ended.stderr
    assert not bench.runs
    service = timer.with_suffix(".service").read_text()
    assert timer.read_text() in ended.stdout
    assert service in ended.stdout
    assert "enable --now night.timer" in ended.stdout
    assert f'profile --plan "{bench.folder}/My nightly plan.toml" {TARGET} -o {bench.results}' in service
    again = bench.assay("run", plan(bench), TARGET, "--repeat", "daily", "--unit", timer)
    assert (again.code, "is there already" in again.stderr) == (2, True)
    assert bench.assay("run", plan(bench), TARGET, "--repeat", "weekly", "--unit", timer, "--overwrite").code == 0
    assert "OnCalendar=weekly" in timer.read_text()


def test_printing_writes_nothing(bench: Bench) -> None:
    timer = bench.folder / "night.timer"
    ended = bench.assay("run", plan(bench), TARGET, "--repeat", "daily", "--unit", timer, "--print")
    assert ("OnCalendar=daily" in ended.stdout, timer.exists()) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((TARGET, "--repeat", "every day\nUser=root"), "is no calendar"),
        ((TARGET, "--repeat", "-h"), "is no calendar"),
        ((TARGET, "--print"), "give --repeat daily, too"),
        (("nulx:", "--repeat", "daily"), "unknown kind"),
        ((TARGET, "--repeat", "daily", "--unit", "night.service"), "is no timer"),
        (("postgresql://u:secret@h/d", "--repeat", "daily"), "leave the password out"),
    ],
)
def test_what_cannot_run_every_night_is_refused_before_anything_is_written(
    bench: Bench, arguments: tuple[str, ...], said: str
) -> None:
    ended = bench.assay("run", plan(bench), *arguments)
    assert ended.code == 2
    assert said in ended.stderr
    assert "secret" not in ended.stderr
    assert not [*bench.folder.glob("*.service")]


def test_a_plan_of_no_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('kind = "nothing"')
    with pytest.raises(UsageError, match="nothing"):
        verb_words(path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("user", [False, True])
def test_systemd_takes_the_units_as_they_are(tmp_path: Path, user: bool) -> None:
    units = [tmp_path / "night.timer", tmp_path / "night.service"]
    words = ["profile", "--plan", str(tmp_path / "a b.toml"), TARGET, "--title", "50% of $HOME; 'x'"]
    for path, text in zip(
        units, (timer_text("night", "Sun 02:00"), service_text("night", words, user=user)), strict=True
    ):
        path.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", *map(str, units)], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "night." in line]) == (0, [])


CALENDARS = [
    "daily",
    "weekly",
    "02:00",
    "Sun 02:00",
    "Mon..Fri 02:30:15",
    "Mon,Thu 2026-*-01 4:00 UTC",
    "*-*-01 00/6:00",
]


@pytest.mark.parametrize("text", CALENDARS)
def test_calendars_are_those_of_systemd(text: str) -> None:
    assert parse_calendar(text, "--repeat") == text
    if (program := shutil.which("systemd-analyze")) is not None:
        assert subprocess.run([program, "calendar", text], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", ["", "tomorrow noon", "every day", "daily\nUser=root", "-h", "Sun", "0" * 300 + ":00"])
def test_what_is_no_calendar_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no calendar"):
        parse_calendar(text, "--repeat")

"""States after a crash: their promises, a program that keeps its word and one that does not, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.apps.cli.app import app
from assay.base.errors import AssayError, ExitCode, UsageError
from assay.insight.crash.promises import Promises

RECORDS = Path(__file__).parents[1] / "fixtures/crash/records.py"
LEDGER = Path(__file__).parents[1] / "fixtures/crash/sqlite_ledger.py"

has_fuse = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK) or (os.geteuid() != 0 and shutil.which("fusermount3") is None),
    reason="needs FUSE",
)
has_loop = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists() or shutil.which("mkfs.ext4") is None,
    reason="needs root, loop devices and mkfs.ext4",
)


def crash(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["crash", *arguments])


def records(at: Path, *how: str, states: int = 12) -> Result:
    load = " ".join((sys.executable, "-S", str(RECORDS), "load", "{}", *how))
    check = f"{sys.executable} -S {RECORDS} check {{}}"
    options = ("--fs", "none", "--size", "1M", "--jobs", "2", "--states", str(states), "--json")
    return crash("run", load, "--check", check, "--at", str(at), *options)


def test_promises_are_withdrawn_by_name() -> None:
    assert not Promises().without(["flush"]).flush
    assert Promises().without(["discard"]).deterministic_discard is False
    with pytest.raises(UsageError, match="'sync' is no promise; accepted: flush, fua, discard"):
        Promises().without(["sync"])


@has_fuse
def test_a_program_that_flushes_before_it_acknowledges_passes_and_goes_on_where_it_was(tmp_path: Path) -> None:
    found = records(tmp_path / "at")
    assert found.exit_code == 0, found.output
    (row,) = json.loads(found.stdout)["rows"]
    asked, control = row["tried"]
    assert (asked["outcome"]["failed"], asked["outcome"]["tried"]) == (0, 12)
    assert control["must_fail"]
    assert control["outcome"]["failed"] >= 1
    assert row["counts"]["flushes"] == row["counts"]["marks"] == 24
    kept = (tmp_path / "at/row-0/results.jsonl").read_text()
    assert records(tmp_path / "at").exit_code == 0
    assert (tmp_path / "at/row-0/results.jsonl").read_text() == kept


@has_fuse
def test_a_program_that_does_not_flush_is_found_out_and_the_lost_write_is_named(tmp_path: Path) -> None:
    found = records(tmp_path / "at", "nosync")
    assert found.exit_code == 4, found.output
    (row,) = json.loads(found.stdout)["rows"]
    outcome = row["tried"][0]["outcome"]
    assert outcome["failed"] > 6
    assert outcome["kinds"] == {"check": outcome["failed"]}
    assert outcome["failure"]["is_smallest"]
    assert len(outcome["failure"]["lost"]) == 1
    assert "acknowledged and is not there" in (tmp_path / "at/crash.html").read_text()


@has_fuse
@has_loop
@pytest.mark.slow(reason="minutes of mounts; a program without a file system is tried in every run")
def test_sqlite_loses_its_last_commit_unless_it_syncs_the_folder(tmp_path: Path) -> None:
    for pragma, code in (("synchronous=FULL", 4), ("synchronous=EXTRA", 0)):
        python = f"{sys.executable} -S {LEDGER}"
        arguments = ("--prepare", f"{python} prepare {{}}", "--check", f"{python} check {{}}", "--states", "100")
        at = tmp_path / pragma
        found = crash("run", f"{python} load {{}} {pragma}", *arguments, "--size", "32M", "--at", str(at))
        assert found.exit_code == code, found.output
        assert not [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(at) in line]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "true", "--at", "x"], "a command needs --check"),
        (["run", "true", "--check", "'", "--at", "x", "--fs", "none"], "quote it as for a shell"),
        (["run", "true", "--check", "true", "--at", "x", "--fs", "fat"], "accepted: ext4, none"),
        (["run", "true", "--check", "true", "--at", "x", "--size", "1K"], "accepted: 1M to 64G"),
        (["run", "true", "--check", "true", "--at", "x", "--atomic", "3K"], "accepted: 512 B, 4 KiB"),
        (["run", "postgresql", "--at", "x", "--fs", "none"], "needs a file system"),
        (["run", "postgresql", "--at", "x", "--set", "fsync"], "accepted: NAME=VALUE"),
        (["show", "1:2:all", "--at", "nowhere"], "is no row of an examination"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = crash(*arguments)
    assert isinstance(found.exception, AssayError)
    assert found.exception.exit_code == ExitCode.USAGE
    assert words in str(found.exception)

"""The Makefile explains itself, and `make assess` takes both of Assay's answers for success."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def text(root: Path) -> str:
    return (root / "Makefile").read_text()


def phony(text: str) -> list[str]:
    (line,) = re.findall(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)
    return line.split()


@pytest.mark.parametrize("arguments", [[], ["help"]])
def test_help_lists_every_target_with_its_text(root: Path, text: str, execute, arguments: list[str]) -> None:
    shown = execute(["make", "--no-print-directory", *arguments], folder=root)
    assert shown.returncode == 0
    lines = dict(re.findall(r"^make ([a-z-]+) +(\S.*)$", shown.stdout, flags=re.MULTILINE))
    assert sorted(lines) == sorted(phony(text))


def test_contributing_names_only_targets_that_exist(root: Path, text: str) -> None:
    named = re.findall(r"make ([a-z][a-z-]+)\b", (root / "CONTRIBUTING.md").read_text())
    assert named
    assert set(named) <= set(phony(text))


def assess(execute, root: Path, folder: Path, exit_code: int):
    """Run the recipe of `make assess` with a program that ends with this exit code in place of assay."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "assay"
    program.write_text(f'#!/bin/sh\necho "called: $@"\nexit {exit_code}\n')
    program.chmod(0o755)
    (folder / "crates").mkdir()
    (folder / "built").touch()
    overrides = [f"BIN={programs}", "BUILT=built", "--assume-old=built", "RUST_SOURCES="]
    return execute(["make", "-f", root / "Makefile", "assess", *overrides], folder=folder)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_assess_succeeds_when_assay_has_an_answer(execute, root: Path, tmp_path: Path, exit_code: int) -> None:
    done = assess(execute, root, tmp_path, exit_code)
    assert done.returncode == 0, done.stderr
    assert "called: assess ./assay-data --quick" in done.stdout
    assert (tmp_path / "assay-data").is_dir()


@pytest.mark.parametrize("exit_code", [2, 3, 4, 130])
def test_assess_fails_when_assay_could_not_measure(execute, root: Path, tmp_path: Path, exit_code: int) -> None:
    done = assess(execute, root, tmp_path, exit_code)
    assert done.returncode != 0
    assert f"Error {exit_code}" in done.stderr


def test_the_build_goes_into_the_folder_whatever_environment_is_active(root: Path) -> None:
    environment = {**os.environ, "VIRTUAL_ENV": "/elsewhere"}
    told = subprocess.run(
        ["make", "--print-data-base", "--question", "help"], cwd=root, env=environment, capture_output=True, text=True,
        check=False,
    ).stdout  # fmt: skip
    assert f"VIRTUAL_ENV := {root}/.venv" in told.splitlines()

"""What shells complete: words from the table, names from folders, and nothing that a shell would execute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.apps.cli.completing import MODELS, SCHEMES, STUDIES, TABLE, completed, words_of
from assay.apps.cli.completion import SHELLS
from assay.apps.cli.reference import completion_table
from assay.base.errors import UsageError
from assay.insight.studies.files import study_names
from assay.targets.arrays.model.model_file import catalogue_names


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run folders where they usually are; one name is a command to a shell, one folder holds no run."""
    monkeypatch.chdir(tmp_path)
    for name in ("20260101-000000-profile-a1", "20260102-000000-assess-b2", "$(touch bitten)", "empty"):
        folder = Path("assay-results") / name
        folder.mkdir(parents=True)
        if name != "empty":
            (folder / "run.json").touch()
    return ["assay-results/20260102-000000-assess-b2", "assay-results/20260101-000000-profile-a1"]


def words(line: str) -> list[str]:
    return [word for word, _ in completed(words_of(f"assay {line}")[1:])[1]]


def test_the_table_is_up_to_date() -> None:
    written = Path(TABLE).read_text(encoding="utf-8")
    assert written == completion_table(), "write it again with: python -m assay.apps.cli.reference docs"


def test_names_are_those_that_verbs_know() -> None:
    assert words("model show ") == sorted(catalogue_names())
    assert words("study show ") == sorted(study_names())
    assert os.path.isdir(MODELS)
    assert os.path.isdir(STUDIES)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pro", ["profile"]),
        ("help dia", ["diagnose"]),
        ("study sh", ["show"]),
        ("profile --queue", ["--queue-depth"]),
        ("profile --sync fd", ["fdatasync"]),
        ("profile --search=q", ["--search=queue-depth"]),
        ("profile --preset lo", ["log"]),
        ("profile /data --quick --back", ["--backend"]),
        ("profile model:ps61", ["model:ps6100xv", "model:ps6110x"]),
        ("verify n", ["null:"]),
        ("oltp tpcc embedded:x lo", ["load"]),
        ("record rec --ke", ["--keep"]),
        ("record sh", ["show"]),
        ("record sho", ["show"]),
        ("schema ma", ["manifest"]),
        ("completion z", ["zsh"]),
        ("nothing of this ", []),
    ],
)
def test_a_word_is_completed(line: str, found: list[str]) -> None:
    assert words(line) == found


def test_targets_are_files_too_and_urls_are_none() -> None:
    assert completed(["profile", ""]) == (True, [(scheme, "") for scheme in SCHEMES["storage"]])
    assert completed(["oltp", "tpcc", "postgresql://l"]) == (False, [])
    assert completed(["profile", "--plan", "x"]) == (True, [])


def test_run_folders_are_completed_the_newest_first(runs: list[str]) -> None:
    assert words("report ") == runs
    assert words("compare assay-results/20260101") == runs[1:]
    assert words("profile --resume ") == runs


def in_bash(line: str, folder: Path) -> list[str]:
    """What bash would offer for a line."""
    program = folder / "bin" / "assay"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m assay "$@"\n')
    program.chmod(0o700)
    script = f"""
        {SHELLS["bash"].replace("CALL", "__complete")}
        compopt() {{ :; }}
        COMP_LINE=$1 COMP_POINT=${{#1}} COMP_WORDS=("$2" x "$3") COMP_CWORD=2
        _assay
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    current = line.rpartition(" ")[2].rpartition(":")[2]
    call = ["bash", "-c", script, "bash", line, program, current]
    done = subprocess.run(call, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_bash_replaces_what_follows_a_colon_and_quotes_names(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "$(touch bitten)").touch()
    assert in_bash("assay profile model:fas", tmp_path) == ["fas2040", "fas3070"]
    assert in_bash('assay profile "model:fas2', tmp_path) == ["model:fas2040"]
    assert [r"\$\(touch\ bitten\)", *runs][0] in in_bash("assay report ", tmp_path)
    assert not (tmp_path / "bitten").exists()


def test_a_shell_that_is_not_known_is_refused() -> None:
    refused = CliRunner().invoke(app, ["completion", "fsh"]).exception
    assert isinstance(refused, UsageError)
    assert str(refused) == "'fsh' is no shell that is known; did you mean 'fish'? accepted: bash, zsh, fish"

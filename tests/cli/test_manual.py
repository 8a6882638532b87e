"""Pages for `man`: one a verb, all options in them, in a language that groff understands."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import typer

from assay.apps.cli.app import app
from assay.apps.cli.completing import TABLE
from assay.apps.cli.manual import manual
from assay.apps.cli.verbs import verbs
from assay.base.errors import ExitCode


@cache
def pages() -> dict[str, str]:
    return manual(typer.main.get_command(app))


def test_there_is_a_page_a_verb_and_the_same_at_each_call() -> None:
    shown = [name for name, command in verbs().items() if not command.hidden]
    assert {*pages()} == {"assay.1", *(f"assay-{name}.1" for name in shown)}
    assert manual(typer.main.get_command(app)) == pages()


def test_all_options_are_in_the_pages() -> None:
    for row in Path(TABLE).read_text(encoding="utf-8").splitlines():
        verb, name, *_ = row.split("\t")
        if name.startswith("-") and not name.startswith("--help"):
            page = pages()[f"assay-{verb.split(' ')[0]}.1".replace("assay-.1", "assay.1")]
            assert rf"\fB{name.replace('-', chr(92) + '-')}\fP" in page, (verb, name)


def test_the_page_of_assay_has_all_exit_codes() -> None:
    assert [f".TP\n{code.value}\n" in pages()["assay.1"] for code in ExitCode] == [True] * len(ExitCode)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff on this machine")
def test_groff_finds_nothing_to_warn_of() -> None:
    text = "\n".join(pages().values())
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

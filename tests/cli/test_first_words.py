"""What `assay` says first: questions, verbs by what they are for, and a help for each verb that fits a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.apps.cli.commands import EXAMPLES_SHOWN, USUAL_MAX
from assay.apps.cli.declared import SECTIONS
from assay.apps.cli.verbs import verbs

LINES_MAX = 42
"""A screen of 40 lines, and the empty ones around the text."""

SHOWN = [name for name, command in verbs().items() if not command.hidden]


def printed(*words: str) -> str:
    done = CliRunner().invoke(app, words, env={"COLUMNS": "80"}, prog_name="assay")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def commands(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    """A verb and the commands within it."""
    command = getattr(command, "loaded", command)
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands([*words, name], inner)


def flags(params: list[Any]) -> set[str]:
    return {name for one in params if not getattr(one, "hidden", False) for name in one.opts if name[:2] == "--"}


def test_assay_alone_answers_questions_with_verbs() -> None:
    questions = re.findall(r"^(.*\?) +assay (\S+)", printed(), flags=re.MULTILINE)
    assert len(questions) == 5
    assert {verb for _, verb in questions} <= {*SHOWN}
    assert max(map(len, printed().splitlines())) <= 80


def test_verbs_are_listed_by_what_they_are_for() -> None:
    lines = printed("--help").splitlines()
    headings = [line.strip("╭─╮ ") for line in lines if line.startswith("╭")]
    assert [one for one in headings if one != "Options"] == [one for one in SECTIONS if one in headings]
    assert {"Measure", "Ask models", "Watch and diagnose", "Results"} <= {*headings}
    listed = lines[next(number for number, line in enumerate(lines) if line.startswith("╭─ Measure")) :]
    assert [line.split()[1] for line in listed if line.startswith("│")] == SHOWN, "each on one line"


@pytest.mark.parametrize("verb", SHOWN)
def test_help_of_a_verb_fits_a_screen_and_the_rest_is_in_help_all(verb: str) -> None:
    for words, command in commands([verb], verbs()[verb]):
        short, whole = printed(*words, "--help"), printed(*words, "--help-all")
        lines = short.splitlines()
        assert len(lines) <= LINES_MAX or "commands" in vars(command), (words, len(lines))
        usual = getattr(command.callback, "usual", ())
        assert len(usual) <= USUAL_MAX
        assert {*usual} <= {name for one in command.params for name in one.opts}
        known = flags([one for one in command.params if isinstance(one, typer.core.TyperOption)])
        assert {name for name in known if name not in whole} == set()
        examples = [line for line in lines if line.startswith(" assay ")]
        assert len(examples) <= EXAMPLES_SHOWN
        rest = {name for name in known if name not in short} or whole.count(" assay ") > short.count(" assay ")
        assert bool(rest) == ("--help-all" in short)


def test_help_names_values_as_users_do() -> None:
    shown = printed("profile", "--help-all")
    assert not re.search(r"<(bool|str|list|int|float|path)", shown)
    assert re.search(r"--repeat +N \[1<=x<=100\]", shown)

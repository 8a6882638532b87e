"""Options of other tools are answered with what they are called here, and what they are called exists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer

from assay.apps.cli.app import app
from assay.apps.cli.other_tools import DISKSPD, FIO, HAMMERDB, PGBENCH
from assay_command import Bench

VERBS = {"fio": (FIO, ["profile"]), "DiskSpd": (DISKSPD, ["profile"]),
         "pgbench": (PGBENCH, ["oltp", "tpcc"]), "HammerDB": (HAMMERDB, ["oltp", "tpcc"])}  # fmt: skip


def options_of(words: list[str]) -> set[str]:
    command = typer.main.get_command(app)
    for word in words:
        inner = command.commands[word]  # type: ignore[attr-defined]
        command = getattr(inner, "loaded", inner)
    return {name for one in command.params for name in one.opts}


@pytest.mark.parametrize("tool", VERBS)
def test_what_a_word_is_called_here_is_an_option(tool: str) -> None:
    words, verb = VERBS[tool]
    known = options_of(verb)
    named = {option for meant in words.values() for option in re.findall(r"--[a-z-]+", meant)}
    assert named
    assert named <= known | {"--help"}


def typed() -> Iterator[tuple[list[str], str]]:
    yield from (
        (["profile", "f.dat", f"{word}=1"], f"fio's {word} is {meant}")
        for word, meant in FIO.items()
        if word != "--name"
    )
    yield ["profile", "f.dat", "-b8K", "-w30"], "DiskSpd's -b is --block here"
    yield ["oltp", "tpcc", "postgresql://localhost/x", "run", "-c", "8", "-j", "2"], "pgbench's -c is --users here"
    yield ["vuset", "vu", "8"], "HammerDB's vuset is --users here"


def test_a_word_of_another_tool_is_answered_with_ours(bench: Bench) -> None:
    for words, told in typed():
        outcome = bench.assay(*words)
        assert (outcome.code, outcome.stdout) == (2, "")
        assert told in outcome.complaint
    assert bench.made() == []


@pytest.mark.parametrize("words", [["-h"], ["help"], ["profile", "-h"], ["help", "profile"], ["help", "oltp", "tpcc"]])
def test_help_is_where_people_look_for_it(bench: Bench, words: list[str]) -> None:
    verb = [word for word in words if word not in ("-h", "help")]
    asked = bench.assay(*verb, "--help")
    assert asked.code == 0
    assert (bench.assay(*words).code, bench.assay(*words).stdout) == (0, asked.stdout)

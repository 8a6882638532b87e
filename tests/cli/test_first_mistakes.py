"""What people type first is answered in one line that says what to type instead, and nothing is made."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from assay.apps.cli.app import app
from assay.apps.cli.commands import print_help
from assay_command import Bench

MISTAKES: dict[str, str] = {
    "check nosuchhost": "ssh nosuchhost assay check",
    "record taken.txt": "is no folder; a recording goes into one",
    "record full": "holds files that are no recording; give an empty or new folder",
    "record postgresql://me:secret@db1/x": "give it as --database",
    "diagnose postgresql://me:secret@db1/x": "assay diagnose --live 60s --database postgresql://...",
    "profile null: --limit p99<20ms": "did you mean 'read.p99'?",
    "profile null: --limit latency<20ms": "did you mean 'read.mean'?",
    "oltp tpcc embedded:pg --limit p90<2s": "did you mean 'read.p90'?",
    "profile oracle:x": "that take one: postgresql://",
    "profile postgresql://me:secret@db1/x": "`assay --help` lists the verbs that take one",
    "profile 10G": "a size is given as --size 10G",
    "profile full --block 8": "8K is 8 KiB",
    "profile full --block 8KB": "8K is 8 KiB",
    "assess taken.txt": "`assay profile taken.txt`",
    "assess postgresql://me:secret@db1/x": "the verbs that take a server",
    "report full": "name one, such as assay-results/",
    "oltp tpcc embedded:pg lod": "did you mean 'load'?",
    "oltp tpcc embedded:pg frob": "actions: load, run, check",
    "oltp tpcc me:secret@db1/x": "postgresql://me@db1/x",
    "oltp tpcc //db1/x": "postgresql://USER@HOST/DATABASE",
    "dss frob": "accepted: tpch",
    "fio job.fio": "write assay profile",
    "run": "Missing argument 'PLAN'",
    "version": "write assay --version",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_first_mistake_is_answered_with_what_to_type(bench: Bench, typed: str) -> None:
    (bench.folder / "taken.txt").write_text("mine")
    (bench.folder / "full").mkdir()
    (bench.folder / "full" / "note.txt").write_text("mine")
    before = sorted(bench.folder.rglob("*"))

    outcome = bench.assay(*typed.split())

    assert (outcome.code, outcome.stdout) == (2, "")
    assert MISTAKES[typed] in outcome.complaint
    assert "secret" not in outcome.complaint
    assert sorted(bench.folder.rglob("*")) == before


def helps(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
    """Help texts of a command and its subcommands, by the words that call each."""
    command = getattr(command, "loaded", command)
    context = command.context_class(command, info_name=name, parent=parent)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        print_help(command, context, whole=True)
    yield context.command_path, printed.getvalue()
    for inner, one in getattr(command, "commands", {}).items():
        yield from helps(one, context, inner)


def test_no_help_loses_a_fact_on_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = dict(helps(typer.main.get_command(app), None, "assay"))
    assert "--queue-depth" in found["assay profile"]
    assert {name: line for name, text in found.items() for line in text.splitlines() if "…" in line} == {}
    assert "not get steady (20s)." in " ".join(found["assay profile"].replace("│", " ").split())

"""What programs read: Markdown instead of drawn tables, errors as JSON, points as they end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from assay.apps.cli.app import app
from assay.apps.cli.completing import TABLE
from assay.base.audience import problem
from assay.record.schemas import SCHEMAS
from assay_command import Bench

MODEL = ("model:ps6100xv?raid=50", "--queue-depth", "1,2", "--block", "8K", "--warmup", "0s", "--duration", "1s")


def complaint(stderr: str) -> dict[str, Any]:
    (line,) = stderr.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert {*found} == {"code", "message", "option", "value", "accepted"}
    return found


def test_an_answer_is_markdown_and_there_is_no_progress(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    person = bench.profile(*MODEL)
    monkeypatch.setenv("CLAUDECODE", "1")
    program = bench.profile(*MODEL)
    monkeypatch.delenv("CLAUDECODE")
    monkeypatch.setenv("AI_AGENT", "1")

    assert (person.code, program.code) == (0, 0)
    told = [line for line in program.stdout.splitlines() if line]
    assert told[:2] == person.stdout.splitlines()[:2]
    assert "p0001" in person.stderr
    assert "p0001" not in program.stderr
    assert "\n|---|" in bench.assay("model", "list").stdout


def test_the_option_says_it_wherever_it_stands(bench: Bench) -> None:
    first, last = bench.assay("--agent", "model", "list"), bench.assay("model", "list", "--agent")
    assert first.stdout == last.stdout
    assert "\n|---|" in first.stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("profile", "null:", "--export", "xml"), ("--export", "xml", ["csv", "fio-json", "openmetrics"])),
        (("profile", "null:", "--backend", "uring"), ("--backend", "uring", ["auto", "io-uring", "threads"])),
        (("profile", "null:", "--iodepth", "4"), ("--iodepth", None, None)),
        (("schema", "pony"), (None, "pony", [*SCHEMAS, "plan"])),
        (("check", "--format", "xml"), ("--format", "xml", ["text", "json", "junit", "sarif"])),
        (("compare", "nowhere", "there"), (None, None, None)),
    ],
)
def test_an_error_is_one_line_of_json(bench: Bench, words: tuple[str, ...], found: tuple[Any, ...]) -> None:
    outcome = bench.assay(*words, "--agent")
    told = complaint(outcome.stderr)
    assert outcome.code == told["code"] == 2
    assert (told["option"], told["value"], told["accepted"]) == found
    assert bench.assay(*words).complaint == f"assay: {told['message']}"


def test_help_is_a_line_an_option(bench: Bench) -> None:
    shown = bench.assay("profile", "--help", "--agent").stdout.splitlines()
    assert "- `--json`: Exactly one JSON document on standard output." in shown
    assert "- `--help, -h`: Show this message and exit; --help-all shows all options and examples." in shown
    assert "─" not in "".join(shown)
    assert bench.assay("--agent").stdout == bench.assay().stdout
    told = complaint(bench.assay("study", "--agent").stderr)
    assert (told["code"], told["accepted"]) == (2, ["list", "show", "compare", "run"])


def test_parts_of_a_message() -> None:
    told = problem(2, "Invalid value for '--repeat': 500 is not in the range 1<=x<=100; see assay profile --help")
    assert (told["option"], told["value"]) == ("--repeat", None)
    assert problem(3, "/data: No space left on device") == {
        "code": 3, "message": "/data: No space left on device", "option": None, "value": None, "accepted": None,
    }  # fmt: skip


def test_points_are_printed_as_they_end_and_then_the_run(bench: Bench) -> None:
    outcome = bench.profile(*MODEL, "--json-stream")
    events = [json.loads(line) for line in outcome.stdout.splitlines()]

    assert outcome.code == 0
    assert [event["event"] for event in events] == ["point", "point", "end"]
    points = [json.loads(line) for line in bench.point_lines()]
    assert [event["point"] for event in events[:2]] == points
    assert events[2]["document"]["points"] == []
    known = Registry().with_resources(
        (made["$id"], Resource.from_contents(made)) for made in (SCHEMAS[name]() for name in ("point", "document"))
    )
    for event in events:
        assert list(Draft202012Validator(SCHEMAS["event"](), registry=known).iter_errors(event)) == []


@pytest.mark.parametrize("other", ["--json", "--dry-run"])
def test_a_stream_is_no_document(bench: Bench, other: str) -> None:
    assert "exclude each other" in bench.profile(*MODEL, "--json-stream", other).complaint
    assert bench.made() == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_has_a_name_that_stays(name: str) -> None:
    assert SCHEMAS[name]()["$id"] == f"urn:assay:schema:{name}:1"


def test_what_programs_are_told_exists() -> None:
    root = Path(__file__).parents[2]
    text = (root / "AGENTS.md").read_text() + (root / "llms.txt").read_text()
    known = typer.main.get_command(app)
    told = re.findall(r"`assay ([a-z]+)([^`]*)`", text)
    assert len(told) > 10
    options = {row.split("\t")[1] for row in Path(TABLE).read_text().splitlines()}
    for verb, rest in told:
        assert verb in known.commands  # type: ignore[attr-defined]
        assert {*re.findall(r"--[a-z-]+", rest)} <= options, (verb, rest)

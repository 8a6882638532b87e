"""The JSON Schemas that `assay schema` prints: real documents meet them, and what no run holds does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from assay.apps.cli.schema import NAMES
from assay.record.run_folder import RunFolder
from assay.record.schemas import SCHEMAS
from assay.run.execute import run_document
from assay_command import Bench

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "fixtures" / "runs"


def faults(error: ValidationError) -> Iterator[str]:
    """Where a document breaks a rule, and each of the alternatives that it meets none of."""
    yield f"{error.json_path}: {error.message}"
    for each in error.context:
        yield from faults(each)


@cache
def schema(name: str) -> dict[str, Any]:
    return SCHEMAS[name]()


def broken(document: dict[str, Any], name: str) -> list[str]:
    """What is wrong with a document by a schema."""
    errors = Draft202012Validator(schema(name)).iter_errors(document)
    return [fault for error in errors for fault in faults(error)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_command_prints_each(bench: Bench, name: str) -> None:
    printed = bench.assay("schema", name)
    assert printed.code == 0, printed.stderr
    Draft202012Validator.check_schema(json.loads(printed.stdout))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pony",), "'pony' has no schema; known: document"),
        (("point", "--kind", "io"), "only plans are of a kind"),
        (("plan", "--kind", "pony"), "unknown kind 'pony'"),
    ],
)
def test_what_has_none_is_refused(bench: Bench, arguments: tuple[str, ...], said: str) -> None:
    printed = bench.assay("schema", *arguments)
    assert (printed.code, said in printed.stderr) == (2, True), printed.stderr


@pytest.mark.parametrize("name", ["profile", "verify", "oltp"])
def test_runs_of_before_meet_them(name: str) -> None:
    with RunFolder.open(RUNS / name) as folder:
        assert broken(folder.manifest, "manifest") == []
        assert [fault for point in folder.points() for fault in broken(dict(point), "point")] == []
        assert broken(run_document(folder), "document") == []


@pytest.mark.parametrize(
    "asked",
    [
        ("profile", "null:?latency=1ms", "--queue-depth", "1", "--block", "8K"),
        ("profile", "model:ps6100xv?raid=50", "--queue-depth", "1", "--block", "8K"),
        ("verify", "target/f.dat", "--size", "4M"),
    ],
)
def test_runs_of_today_meet_them(bench: Bench, asked: tuple[str, ...]) -> None:
    outcome = bench.assay(*asked, "--duration", "0.3s", "--no-report", "--json", "-o", bench.results)

    assert outcome.code == 0, outcome.stderr
    assert outcome.document["points"]
    assert broken(outcome.document, "document") == []
    assert broken(bench.manifest(), "manifest") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.pop("points"), "'points' is a required property"),
        (lambda document: document["points"][0].update(id="../p0001"), ".points[0].id"),
        (lambda document: document["points"][0]["oltp"].update(nopm="many"), ".points[0].oltp.nopm"),
        (lambda document: document["points"][0]["workload"].update(warehouses=-1), ".points[0].workload.warehouses"),
        (lambda document: document["oltp"]["conditions"][0].pop("violations"), "'violations' is a required property"),
        (lambda document: document["verdict"][0].update(met="yes"), ".verdict[0].met"),
    ],
)
def test_what_no_run_holds_breaks_them(change: Any, said: str) -> None:
    with RunFolder.open(RUNS / "oltp") as folder:
        document = copy.deepcopy(run_document(folder))
    change(document)
    assert any(said in fault for fault in broken(document, "document"))

"""The committed JSON Schemas: they follow from the types, real documents meet them, and what no run holds does not."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.results.run_folder import RunFolder
from assay.run.execute import run_document
from assay.workloads.schemas import SCHEMAS, schema_texts
from assay_command import Bench

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schemas"
RUNS = ROOT / "tests" / "fixtures" / "runs"
AGAIN = "python -m assay.workloads.schemas docs/schemas"
TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
    "null": type(None),
}  # fmt: skip
KNOWN = {
    "$defs", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum",
    "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maxLength", "maximum", "minItems", "minimum",
    "pattern", "patternProperties", "properties", "required", "title", "type",
}  # fmt: skip
"""Keywords that `faults` understands."""


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def faults(value: Any, rule: dict[str, Any], root: dict[str, Any], where: str = "") -> Iterator[str]:
    """Where a value breaks a JSON Schema (2020-12), as far as the schemas of results go."""
    assert set(rule) <= KNOWN, set(rule) - KNOWN
    if "$ref" in rule:
        yield from faults(value, root["$defs"][rule["$ref"].rpartition("/")[2]], root, where)
    for each in rule.get("allOf", ()):
        yield from faults(value, each, root, where)
    if "anyOf" in rule and all(any(faults(value, each, root)) for each in rule["anyOf"]):
        yield f"{where}: {value!r:.60} is none of what is allowed"
        for each in rule["anyOf"]:
            yield from faults(value, each, root, where)
    if "type" in rule and (
        not isinstance(value, TYPES[rule["type"]]) or (isinstance(value, bool) and rule["type"] != "boolean")
    ):
        yield f"{where}: {value!r:.60} is no {rule['type']}"
        return
    if value not in rule.get("enum", [rule.get("const", value)]):
        yield f"{where}: {value!r:.60} is not one of those named"
    if isinstance(value, str) and not re.search(rule.get("pattern", ""), value):
        yield f"{where}: {value!r:.60} does not match"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = rule.get("minimum", value), rule.get("maximum", value)
        if not low <= value <= high or value <= rule.get("exclusiveMinimum", value - 1):
            yield f"{where}: {value} is out of bounds"
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            yield f"{where}: {len(value)} items"
        for at, item in enumerate(value if "items" in rule else ()):
            yield from faults(item, rule["items"], root, f"{where}[{at}]")
    if isinstance(value, dict):
        yield from (f"{where}: {key} is missing" for key in rule.get("required", ()) if key not in value)
        for key, item in value.items():
            others = [each for pattern, each in rule.get("patternProperties", {}).items() if re.search(pattern, key)]
            more = rule.get("additionalProperties", True)
            found = rule.get("properties", {}).get(key) or (others[0] if others else more)
            if isinstance(found, dict):
                yield from faults(item, found, root, f"{where}.{key}")


def broken(document: dict[str, Any], name: str) -> list[str]:
    """What is wrong with a document by the committed schema."""
    root = schema(name)
    return list(faults(document, root, root))


def test_they_are_those_of_the_types() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(SCHEMAS)
    changed = [name for name, text in schema_texts().items() if (FOLDER / name).read_text() != text]
    assert changed == [], f"the types of results changed; write their schemas again: {AGAIN}"


@pytest.mark.parametrize("name", ["profile", "verify", "oltp"])
def test_runs_of_before_meet_them(name: str) -> None:
    with RunFolder.open(RUNS / name) as folder:
        assert broken(folder.manifest, "manifest.schema.json") == []
        assert broken(run_document(folder), "document.schema.json") == []


@pytest.mark.parametrize("target", ["null:?latency=1ms", "model:ps6100xv?raid=50"])
def test_runs_of_today_meet_them(bench: Bench, target: str) -> None:
    outcome = bench.measure(target, "--queue-depth", "1", "--block", "8K")

    assert outcome.code == 0, outcome.stderr
    assert outcome.document["points"]
    assert broken(outcome.document, "document.schema.json") == []
    assert broken(bench.manifest(), "manifest.schema.json") == []


def test_a_run_that_verifies_today_meets_them(bench: Bench) -> None:
    outcome = bench.verify(bench.target, "--size", "4M", "--duration", "0.5s", "--json")

    assert outcome.code == 0, outcome.stderr
    assert broken(outcome.document, "document.schema.json") == []
    assert broken(bench.manifest(), "manifest.schema.json") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.pop("points"), "points is missing"),
        (lambda document: document["points"][0].update(id="../p0001"), ".points[0].id"),
        (lambda document: document["points"][0]["oltp"].update(nopm="many"), ".points[0].oltp.nopm"),
        (lambda document: document["points"][0]["workload"].update(warehouses=-1), ".points[0].workload.warehouses"),
        (lambda document: document["oltp"]["conditions"][0].pop("violations"), "violations is missing"),
        (lambda document: document["verdict"][0].update(met="yes"), ".verdict[0].met"),
    ],
)
def test_what_no_run_holds_breaks_them(change: Any, said: str) -> None:
    with RunFolder.open(RUNS / "oltp") as folder:
        document = copy.deepcopy(run_document(folder))
    change(document)
    assert any(said in fault for fault in broken(document, "document.schema.json"))

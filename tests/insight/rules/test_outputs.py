"""What comes of a check: the JSON document, SARIF as its schema demands, JUnit as parsers read it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from assay.insight.rules.outputs import document, junit, sarif
from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import Fact, Findings, Subject, check

ODD = 'a<b>&"\x00\n]]>'
"""A name that no file format takes as it is."""


@pytest.fixture
def told() -> Findings:
    """Findings of each kind of anchor, passes, gaps, and a name that needs escaping."""
    subjects = []
    for name, anchor in (("db1", ""), ("run", "/srv/run 1/run.json"), ("other", "runs/x/run.json")):
        facts = {"vm.swappiness": 60, "swap_bytes": 1 << 30, "clock_source": "tsc"}
        subjects.append(
            Subject("host", name, anchor=anchor, facts={key: Fact(value, "/proc") for key, value in facts.items()})
        )
    subjects.append(
        Subject("database", "postgresql://u@h/db", engine="postgresql", anchor="postgresql://u@h/db",
                facts={"fsync": Fact("off", "pg_settings")})
    )  # fmt: skip
    return check(
        [*subjects, Subject("device", ODD), Subject("mount", "/", facts={"free_share": Fact(0.01, "x")})], RULES
    )


# SARIF 2.1.0: what its schema calls required, its enumerations, and that indices lead where they say.

LEVELS = {"none", "note", "warning", "error"}


def has(thing: Any, *names: str) -> None:
    assert isinstance(thing, dict)
    assert set(names) <= set(thing)


def is_message(thing: Any) -> None:
    has(thing, "text")
    assert isinstance(thing["text"], str)
    assert thing["text"]


def test_sarif_is_what_its_schema_demands(told: Findings) -> None:
    log = json.loads(sarif(told, RULES))

    has(log, "$schema", "version", "runs")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    has(run, "tool", "results", "invocations")
    driver = run["tool"]["driver"]
    has(driver, "name", "rules", "version")
    assert urlsplit(driver["informationUri"]).scheme == "https"
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    names = [rule["id"] for rule in driver["rules"]]
    assert names == [rule.id for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in driver["rules"]:
        is_message(rule["shortDescription"])
        is_message(rule["fullDescription"])
        is_message(rule["help"])
        assert rule["defaultConfiguration"]["level"] in LEVELS
        assert all(isinstance(tag, str) for tag in rule["properties"]["tags"])
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True


def test_sarif_has_a_place_and_a_mark_of_its_own_for_each_result(told: Findings) -> None:
    (run,) = json.loads(sarif(told, RULES))["runs"]
    results = run["results"]

    assert len(results) == len(told.findings) == 6
    for result in results:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in LEVELS
        is_message(result["message"])
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert uri
        assert not any(one.isspace() for one in uri)
        assert urlsplit(uri).scheme in ("", "file")
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    marks = [json.dumps(result["partialFingerprints"]) for result in results]
    assert len(set(marks)) == len(marks)


def test_sarif_says_what_is_not_checked(told: Findings) -> None:
    (run,) = json.loads(sarif(told, RULES))["runs"]
    notices = run["invocations"][0]["toolExecutionNotifications"]

    assert len(notices) == len(told.not_checked) > 0
    for notice in notices:
        is_message(notice["message"])
        rule = notice["associatedRule"]
        assert run["tool"]["driver"]["rules"][rule["index"]]["id"] == rule["id"]


def test_a_run_is_a_file_and_a_server_is_none(told: Findings) -> None:
    (run,) = json.loads(sarif(told, RULES))["runs"]
    uris = {
        result["locations"][0]["logicalLocations"][0]["name"]: result["locations"][0]["physicalLocation"][
            "artifactLocation"
        ]["uri"]
        for result in run["results"]
    }

    assert uris["run"] == "file:///srv/run%201/run.json"
    assert uris["other"] == "runs/x/run.json"
    assert uris["db1"] == "host/db1"
    assert uris["postgresql://u@h/db"] == "database/postgresql/u%40h/db"
    assert uris["/"] == "mount"


# JUnit


def test_junit_is_read_by_a_parser_and_counts_what_it_holds(told: Findings) -> None:
    suites = ElementTree.fromstring(junit(told))

    assert suites.tag == "testsuites"
    (suite,) = suites.findall("testsuite")
    cases = suite.findall("testcase")
    for element in (suites, suite):
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == len(suite.findall("testcase/failure")) == len(told.findings)
        assert int(element.attrib["skipped"]) == len(suite.findall("testcase/skipped")) == len(told.not_checked)
        assert element.attrib["errors"] == "0"
    assert len(cases) == len(told.findings) + len(told.passed) + len(told.not_checked)
    assert all(case.attrib["classname"] and case.attrib["name"] for case in cases)
    assert all(failure.attrib["message"] and failure.text for failure in suite.iter("failure"))
    assert any('a<b>&"' in case.attrib["name"] for case in cases)


# JSON


def test_the_document_has_all_four_lists_and_no_object_of_pythons(told: Findings) -> None:
    made = document(told, ["host"], ["a notice"])

    assert json.loads(json.dumps(made, allow_nan=False)) == made
    counts = (told.findings, told.passed, told.not_checked, told.not_applicable)
    names = ("findings", "passed", "not_checked", "not_applicable")
    assert [len(made[name]) for name in names] == [len(one) for one in counts]
    assert made["verb"] == "check"
    for finding in made["findings"]:
        assert all(finding[key] for key in ("rule", "family", "title", "severity", "subject", "found", "wanted"))
        assert all(finding[key] for key in ("why", "fix", "source", "origin"))
    assert all(one["reason"] for one in made["not_checked"])

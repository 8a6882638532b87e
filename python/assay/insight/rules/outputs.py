"""What came of a check, as text, JSON, JUnit and SARIF.

Sources: SARIF 2.1.0 (OASIS); the JUnit format as Jenkins and GitLab read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from assay import _core
from assay.insight.rules.registry import family_of
from assay.insight.rules.rule import BrokenRule, Findings, NotChecked, PracticeRule
from assay.record.shapes.manifest import CheckedRule

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}

INFORMATION = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html"


class CheckDocument(TypedDict):
    """The JSON document of a check."""

    schema_version: int
    verb: str
    targets: list[str]
    findings: list[CheckedRule]
    passed: list[CheckedRule]
    not_checked: list[CheckedRule]
    not_applicable: list[str]
    notices: list[str]


class SarifRule(TypedDict):
    """A rule that a notification is of, by its id and its place among all."""

    id: str
    index: int


class SarifNotification(TypedDict):
    """That a rule said nothing; its message has a `text`."""

    level: str
    message: dict[str, str]
    associatedRule: SarifRule


class SarifDescriptor(TypedDict):
    """A rule with its help, in texts and Markdown."""

    id: str
    name: str
    shortDescription: dict[str, str]
    fullDescription: dict[str, str]
    help: dict[str, str]
    defaultConfiguration: dict[str, str]
    properties: dict[str, list[str]]


def document(told: Findings, targets: Sequence[str], notices: Sequence[str]) -> CheckDocument:
    """The JSON document."""
    return {
        "schema_version": 1,
        "verb": "check",
        "targets": list(targets),
        "findings": [record(one) for one in told.findings],
        "passed": [{"rule": rule.id, "subject": subject.name} for rule, subject in told.passed],
        "not_checked": [
            {"rule": one.rule.id, "subject": one.subject.name if one.subject else None, "reason": one.reason}
            for one in told.not_checked
        ],
        "not_applicable": [rule.id for rule in told.not_applicable],
        "notices": list(notices),
    }


def record(one: BrokenRule) -> CheckedRule:
    """A finding for scripts."""
    rule = one.rule
    return {
        "rule": rule.id,
        "family": family_of(rule),
        "title": rule.title,
        "severity": rule.severity,
        "subject": one.subject.name,
        "found": one.found,
        "wanted": rule.wanted,
        "why": rule.why,
        "fix": rule.fix,
        "source": rule.source,
        "origin": one.origin,
    }


def junit(told: Findings) -> str:
    """A test case for each rule and subject: what is broken failed, what is not known is skipped."""
    cases = []
    for rule, subject in told.passed:
        cases.append(
            f"    <testcase classname={_attribute(family_of(rule))} name={_attribute(_name(rule, subject.name))}/>"
        )
    for one in told.findings:
        message = f"{one.rule.title}: {one.found}; wanted: {one.rule.wanted}"
        body = escape(_clean(f"{one.rule.why} {one.rule.fix} ({one.rule.source})"))
        cases.append(
            f"    <testcase classname={_attribute(family_of(one.rule))}"
            f" name={_attribute(_name(one.rule, one.subject.name))}>"
            f"<failure type={_attribute(one.rule.severity)} message={_attribute(message)}>{body}</failure></testcase>"
        )
    for gap in told.not_checked:
        name = _name(gap.rule, gap.subject.name if gap.subject else "")
        cases.append(
            f"    <testcase classname={_attribute(family_of(gap.rule))} name={_attribute(name)}>"
            f"<skipped message={_attribute(gap.reason)}/></testcase>"
        )
    counts = f'tests="{len(cases)}" failures="{len(told.findings)}" skipped="{len(told.not_checked)}" errors="0"'
    body = "\n".join(cases)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n'
        f'  <testsuite name="assay check" {counts}>\n{body}\n  </testsuite>\n</testsuites>\n'
    )


def _name(rule: PracticeRule, subject: str) -> str:
    return f"{rule.id} {subject}".strip()


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Text without what XML may not hold."""
    return "".join(one if one.isprintable() else " " for one in text)


def sarif(told: Findings, rules: Sequence[PracticeRule]) -> str:
    """A SARIF log: every rule with its help, a result for each finding, and a notification for what is not checked.

    A result is anchored at a file, as viewers demand.
    """
    places = {rule.id: place for place, rule in enumerate(rules)}
    results = [
        {
            "ruleId": one.rule.id,
            "ruleIndex": places[one.rule.id],
            "level": _LEVELS[one.rule.severity],
            "message": {
                "text": f"{one.subject.name}: {one.rule.title}. Found: {one.found}. Wanted: {one.rule.wanted}."
                f" {one.rule.fix}"
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(one)},
                        "region": {"startLine": 1},
                    },
                    "logicalLocations": [{"name": one.subject.name, "kind": "resource"}],
                }
            ],
            "partialFingerprints": {"assay/v1": f"{one.rule.id}:{one.subject.name}"},
        }
        for one in told.findings
    ]
    driver = {
        "name": "assay",
        "informationUri": INFORMATION,
        "version": _core.build_info()["version"],
        "rules": [_described(rule) for rule in rules],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [_notification(gap, places) for gap in told.not_checked],
                    }
                ],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=1)


def _notification(gap: NotChecked, places: Mapping[str, int]) -> SarifNotification:
    """That a rule said nothing, and why: what is not known never passes."""
    subject = f"{gap.subject.name}: " if gap.subject is not None else ""
    return {
        "level": "note",
        "message": {"text": f"{subject}{gap.rule.id} is not checked: {gap.reason}"},
        "associatedRule": {"id": gap.rule.id, "index": places[gap.rule.id]},
    }


def _described(rule: PracticeRule) -> SarifDescriptor:
    text = f"{rule.why} Wanted: {rule.wanted}. {rule.fix} Source: {rule.source}."
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": text, "markdown": f"**{rule.title}**\n\n{text}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [family_of(rule)]},
    }


def _uri(one: BrokenRule) -> str:
    """File that a finding is shown at; where there is none, a name made of what it is about."""
    anchor = one.subject.anchor
    if anchor.startswith("/"):
        return Path(anchor).as_uri()
    if anchor and "://" not in anchor:
        return quote(anchor)
    name = f"{one.subject.kind}/{one.subject.name}".replace("://", "/").replace("//", "/")
    return quote(name.rstrip("/"), safe="/")

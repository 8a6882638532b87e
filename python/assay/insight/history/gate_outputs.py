"""What a gate says, as JSON, JUnit, SARIF and Markdown.

Sources: SARIF 2.1.0 (OASIS); the JUnit format as Jenkins and GitLab read it; GitHub Flavored Markdown.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict
from xml.sax.saxutils import escape, quoteattr

from assay import _core
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.insight.history.gate import GateResult, JudgedChange, limit_words

FORMATS = ("text", "json", "junit", "sarif", "markdown")
_LEVELS = {"broken": "error", "unknown": "note"}
_MARKS = {"held": "held", "broken": "**broken**", "unknown": "unknown"}


_ENDINGS = {".json": "json", ".xml": "junit", ".sarif": "sarif", ".md": "markdown"}


def format_of(path: Path) -> str:
    """The format that the name of a file stands for.

    Raises
    ------
    UsageError
        It stands for none.
    """
    if path.suffix not in _ENDINGS:
        raise UsageError(f"--output {printable(path)}: accepted: names that end in {', '.join(_ENDINGS)}")
    return _ENDINGS[path.suffix]


class JudgedDocument(TypedDict):
    """A limit of change at one load."""

    limit: str
    load: str
    figure: str
    before: str
    after: str
    share: float | None
    interval_95: tuple[float, float] | None
    standing: str
    reason: str


class GateDocument(TypedDict):
    """The JSON document of a gate."""

    schema_version: int
    verb: str
    sentence: str
    standing: str
    exit_code: int
    baseline: str
    run: str
    limits: list[JudgedDocument]
    notes: list[str]


def gate_document(result: GateResult) -> GateDocument:
    """The JSON document."""
    return {
        "schema_version": 1,
        "verb": "compare",
        "sentence": result.sentence,
        "standing": result.standing,
        "exit_code": int(result.exit_code),
        "baseline": result.baseline,
        "run": result.run,
        "limits": [
            {
                "limit": one.limit.text,
                "load": one.load,
                "figure": one.title,
                "before": one.before,
                "after": one.after,
                "share": one.share,
                "interval_95": one.interval_95,
                "standing": one.standing,
                "reason": one.reason,
            }
            for one in result.judged
        ],
        "notes": [*result.notes],
    }


def gate_text(result: GateResult, form: str) -> str:
    """A gate in one of `FORMATS` but text."""
    made = {"json": _json, "junit": junit, "sarif": sarif, "markdown": markdown}[form](result)
    return made if made.endswith("\n") else made + "\n"


def _json(result: GateResult) -> str:
    return json.dumps(gate_document(result), indent=1, allow_nan=False)


def junit(result: GateResult) -> str:
    """A test case for each limit and load: what is broken failed, what is unknown is skipped."""
    cases = [_case(one) for one in result.judged]
    counts = (
        f'tests="{len(cases)}" failures="{len(result.having("broken"))}" skipped="{len(result.having("unknown"))}"'
        ' errors="0"'
    )
    body = "\n".join(cases)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n'
        f'  <testsuite name="assay compare" {counts}>\n{body}\n  </testsuite>\n</testsuites>\n'
    )


def _case(one: JudgedChange) -> str:
    head = f"    <testcase classname={_attribute(one.load)} name={_attribute(f'{one.title}: {one.limit.text}')}"
    words = _clean(one.words)
    if one.standing == "held":
        return f"{head}/>"
    if one.standing == "unknown":
        return f"{head}><skipped message={quoteattr(words)}/></testcase>"
    return f'{head}><failure type="worse" message={quoteattr(words)}>{escape(words)}</failure></testcase>'


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Text without what XML may not hold."""
    return "".join(one if one.isprintable() else " " for one in text)


def sarif(result: GateResult) -> str:
    """A SARIF log: a rule for each limit, a result for each that is broken or unknown, at the run's manifest."""
    limits = list(dict.fromkeys(one.limit for one in result.judged))
    rules = [
        {
            "id": limit.text,
            "name": "ChangeOfAFigure",
            "shortDescription": {"text": f"A run is worse than its baseline: {limit_words(limit)}"},
            "defaultConfiguration": {"level": "error"},
        }
        for limit in limits
    ]
    results = [
        {
            "ruleId": one.limit.text,
            "ruleIndex": limits.index(one.limit),
            "level": _LEVELS[one.standing],
            "message": {"text": _clean(f"{one.load}: {one.title} {one.words}")},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": "run.json"}, "region": {"startLine": 1}},
                    "logicalLocations": [{"name": _clean(one.load), "kind": "resource"}],
                }
            ],
            "partialFingerprints": {"assay/v1": f"{one.limit.text}:{_clean(one.load)}"},
        }
        for one in result.judged
        if one.standing != "held"
    ]
    driver = {"name": "assay", "version": _core.build_info()["version"], "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [{"executionSuccessful": True, "exitCode": int(result.exit_code)}],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=1)


def markdown(result: GateResult) -> str:
    """A comment of a pull request: the sentence, a row for each limit and load, the worst first."""
    order = {"broken": 0, "unknown": 1, "held": 2}
    lines = [
        f"**{_cell(result.sentence)}**",
        "",
        f"Baseline: {_cell(result.baseline)}. Run: {_cell(result.run)}.",
        "",
        "| | load | figure | limit | baseline | run | change | 95 % interval |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(result.judged, key=lambda one: order[one.standing]):
        change, interval = _change(one)
        cells = (one.load, one.title, one.limit.text, one.before or "-", one.after or "-", change, interval)
        lines.append(f"| {_MARKS[one.standing]} | {' | '.join(map(_cell, cells))} |")
    reasons = [f"- {one.load}, {one.title}: {one.reason}" for one in result.judged if one.reason]
    lines += ["", *map(_cell, dict.fromkeys(reasons))] if reasons else []
    lines += ["", *(f"- {_cell(note)}" for note in result.notes)] if result.notes else []
    return "\n".join(lines) + "\n"


def _change(one: JudgedChange) -> tuple[str, str]:
    from assay.insight.differences import signed_percent

    interval = one.interval_95
    return signed_percent(one.share), (
        f"{signed_percent(interval[0])} to {signed_percent(interval[1])}" if interval else "-"
    )


def _cell(text: str) -> str:
    """Text that neither ends a cell nor becomes markup or a mention."""
    plain = printable(text)
    for mark in "\\`*_[]<>|@#":
        plain = plain.replace(
            mark, f"\\{mark}" if mark not in "<>@" else {"<": "&lt;", ">": "&gt;", "@": "&#64;"}[mark]
        )
    return plain

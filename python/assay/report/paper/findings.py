"""Findings of best practice that `assay check` wrote to a file, as a source of a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.reading import read_text
from assay.record.source import RunFacts
from assay.report.facts import facts_of


class _Subject(BaseModel):
    rule: str
    subject: str | None


class _Finding(_Subject):
    title: str
    severity: str
    found: str
    wanted: str
    why: str
    fix: str
    source: str


class _Gap(_Subject):
    reason: str


class _Findings(BaseModel):
    schema_version: int
    targets: list[str]
    findings: list[_Finding]
    passed: list[_Subject]
    not_checked: list[_Gap]
    notices: list[str]


def read_findings(path: Path) -> RunFacts:
    """The findings of a file, as a run would carry them.

    Raises
    ------
    UsageError
        It cannot be read, or is not what `assay check --format json` writes.
    """
    option = f"--check {printable(path)}"
    text = read_text(path, option)
    try:
        found: Any = json.loads(text)
        known = isinstance(found, dict) and found.get("verb") == "check"
        told = _Findings.model_validate(found).model_dump() if known else None
    except (ValueError, RecursionError, ValidationError):
        told = None
    if told is None:
        raise UsageError(f"{option}: holds no findings; `assay check --format json -o FILE` writes them")
    return facts_of({"verb": "check", "check": told, "command": ["check", *told["targets"]]})

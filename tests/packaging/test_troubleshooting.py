"""Messages that the page on troubleshooting explains are in the program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRIES = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/troubleshooting.md").read_text(), flags=re.MULTILINE)


@cache
def texts() -> str:
    """Every text of the program, with a mark where a value is put in."""
    found: list[str] = []
    for path in (ROOT / "python/assay").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(one.value) if isinstance(one, ast.Constant) else "\0" for one in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_there_are_entries() -> None:
    assert len(ENTRIES) > 25


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_explained_is_said(entry: str) -> None:
    assert entry in texts()

"""The words that people read: help texts, headings, the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from assay.apps.cli.app import app

PRONOUNS = re.compile(
    r"\b(so many|so much|somebody|nobody|whoever|of what|what is|what was|those that|those of|one that|as it is"
    r"|as they are|that of|the one)\b",
    flags=re.IGNORECASE,
)
"""Words that stand where a noun belongs."""
ROOT = Path(__file__).parents[2]


def help_texts(command: Any, words: str = "assay") -> Iterator[tuple[str, str]]:
    command = getattr(command, "loaded", command)
    if command.hidden:
        return
    yield words, command.help or ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from help_texts(inner, f"{words} {name}")
    if not hasattr(command, "commands"):
        yield from ((f"{words} {option.name}", getattr(option, "help", None) or "") for option in command.params)


def test_help_texts_name_things() -> None:
    found = {
        where: words[0] for where, text in help_texts(typer.main.get_command(app)) if (words := PRONOUNS.search(text))
    }
    assert found == {}


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda path: path.name)
def test_headings_name_things(path: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE)
    assert [heading for heading in headings if PRONOUNS.search(heading)] == []


def test_the_glossary_has_one_sentence_for_each_word() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/glossary.md").read_text(), flags=re.MULTILINE)
    words = [word for word, _ in rows if word != "word"]
    assert len(words) == len(set(words)) > 60
    for word, meaning in rows:
        assert word == "word" or re.fullmatch(r"[A-Z`].*[^.]\.", meaning), word

"""Every message that ends a command is explained on the page on troubleshooting, and what the page explains is said."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer

from error_messages import VALUE, messages, raised

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs/troubleshooting.md").read_text(), flags=re.MULTILINE)
ENTRIES = [words for row in ROWS for words in re.findall("`([^`]+)`", row)]
PATTERNS = {
    words: re.compile(".*".join(re.escape(part.strip()) for part in words.split("…")), re.DOTALL) for words in ENTRIES
}


@cache
def texts() -> list[str]:
    """Every text of the program, with a mark where a value is put in."""
    found = list(messages())
    # The parser of the command line says what is wrong with it in words of its own.
    parser = Path(typer.__file__).parent
    for path in [*(ROOT / "python/assay").rglob("*.py"), *parser.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(one.value) if isinstance(one, ast.Constant) else VALUE for one in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    # Messages of the compiled part that name places and values are made of pieces there.
    for path in (ROOT / "crates").glob("*/src/**/*.rs"):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8"))
        found += [re.sub(r"\\(.)", r"\1", text) for text in strings]
    return found


def test_every_message_that_ends_a_command_has_an_entry() -> None:
    assert len(messages()) > 1000
    bare = {
        place: message.replace(VALUE, "...")
        for message, place in messages().items()
        if not any(pattern.search(message) for pattern in PATTERNS.values())
    }
    assert not bare, "docs/troubleshooting.md has no entry for these"


def test_what_is_explained_is_said() -> None:
    assert [words for words, pattern in PATTERNS.items() if not any(map(pattern.search, texts()))] == []


def test_entries_say_more_than_common_words_and_stay_readable() -> None:
    assert [words for words in ENTRIES if len(re.findall("[A-Za-z]", words)) < 4] == []
    assert [row for row in ROWS if row.count("`") > 2 * 15] == []
    assert len(ROWS) < 130


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    raise UsageError(f"{path}: is no folder")', [f"{VALUE}: is no folder"]),
        ('def f():\n    raise FieldError("scale", "is odd")', ["scale: is odd"]),
        ('def f():\n    text = "one" if a else "two"\n    raise UsageError(text + b)', [f"one{VALUE}", f"two{VALUE}"]),
        ('def f():\n    raise refusal("why")', ["why"]),
        ('def f():\n    refusal("why")\n    log.warning("no end")', []),
    ],
)
def test_messages_are_found_in_sources(source: str, expected: list[str]) -> None:
    assert [text for text, _ in raised(ast.parse(source), {"UsageError", "FieldError", "refusal"})] == expected

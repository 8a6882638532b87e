"""Docstrings of Rust: each names its subject."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RIDDLES = re.compile(
    r"\b(so many|what is|what was|what are|of what|those that|those who|of those|as it is|one that|that of|whoever"
    r"|nobody|somebody)\b",
    flags=re.IGNORECASE,
)
"""Words that stand where a noun belongs."""
ENDS_WORDS = 6
"""Words at the beginning and the end of a docstring that are looked at."""
RIDDLES_MAX = 31
"""Docstrings with such words. The number only falls."""


def docstrings(source: str) -> list[str]:
    """First paragraphs of comments `///` and `//!`."""
    paragraphs = re.findall(r"(?:^[ ]*//[/!][ ][^#\n].*\n)+", source, flags=re.MULTILINE)
    return [" ".join(re.sub(r"//[/!]", "", paragraph).split()) for paragraph in paragraphs]


def is_riddle(docstring: str) -> bool:
    words = docstring.split()
    ends = (" ".join(words[:ENDS_WORDS]), " ".join(words[-ENDS_WORDS:]))
    return docstring.startswith("What ") or any(RIDDLES.search(end) for end in ends)


def test_docstrings_name_their_subject() -> None:
    sources = [path for path in ROOT.glob("crates/*/src/**/*.rs") if "tests" not in path.as_posix()]
    riddles = [(path.name, text) for path in sources for text in docstrings(path.read_text()) if is_riddle(text)]
    assert len(riddles) <= RIDDLES_MAX, riddles


def test_riddles_are_found() -> None:
    assert docstrings("/// One\n/// two.\n///\n/// # Errors\nfn a() {}\n    //! Three.\n") == ["One two.", "Three."]
    assert is_riddle("What a store holds.")
    assert is_riddle("Disks of so many pieces.")
    assert not is_riddle("Pieces of a disk.")

"""What the user says in a paper, in `paper.toml`: it stays between runs, and Assay never changes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.base.paths import plain
from assay.base.reading import nearest, read_table, validated
from assay.record.source import clean
from assay.report.files import replace_file

NAME = "paper.toml"

Units = Literal["both", "binary", "decimal"]


class Words(BaseModel):
    """The user's part of a paper; what is empty is left to Assay."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field("", max_length=300)
    subtitle: str = Field("", max_length=300)
    authors: list[str] = Field(default_factory=list, max_length=50)
    customer: str = Field("", max_length=300)
    audience: str = ""
    objectives: str = ""
    units: Units = "both"
    studies: list[str] = Field(default_factory=list)
    remarks: dict[str, str] = Field(default_factory=dict)


def read_words(folder: Path) -> Words | None:
    """The words of a folder; None where it has none yet.

    Raises
    ------
    UsageError
        A key is unknown or a value wrong.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    words = validated(Words, read_table(path, option="--paper"), source=str(path))
    # Paragraphs of TOML are cleaned one by one: their ends stay.
    return Words.model_validate({key: _cleaned(value) for key, value in words.model_dump().items()})


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return "\n".join(str(clean(line)) for line in value.replace("\r", "").split("\n"))
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value


def paragraphs(text: str) -> list[str]:
    r"""Paragraphs of a text, which blank lines divide.

    Examples
    --------
    >>> paragraphs("One\nline.\n\nTwo.")
    ['One line.', 'Two.']
    """
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return [part for part in parts if part]


def unknown_remarks(words: Words, sections: Iterable[str]) -> list[str]:
    """Lines on remarks whose section the paper does not have."""
    known = list(sections)
    lines = []
    for name in words.remarks:
        if name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant!r}?" if meant else f"it has {', '.join(known)}"
            lines.append(f"{NAME}: remarks.{clean(name)}: this paper has no such section; {hint}")
    return lines


TEMPLATE = """# What you say in this paper. Assay reads this file and never changes it; write the paper again with
#     {command}

title = ""            # unless given, the paper is named after its target
subtitle = ""
authors = []          # such as ["A. Engineer", "B. Auditor"]
customer = ""
audience = ""         # for whom it is; a sentence or more
objectives = ""       # what it shall decide; blank lines divide paragraphs
units = "both"        # of throughput: "both" is MiB/s with MB/s beside it, or "binary", or "decimal"
studies = []          # studies that it must have, such as ["raid-policy", "degraded"]; it says where one is missing

[remarks]             # your paragraphs, at the end of a section
{remarks}
"""


def write_words(folder: Path, sections: Iterable[tuple[str, str]], command: str) -> Path:
    """Write a file to fill in, where there is none.

    Raises
    ------
    OpenFailed, OutOfSpace
        It cannot be written.
    """
    known = list(sections)
    width = max((len(name) for name, _ in known), default=0)
    # No line of a comment may end within it.
    remarks = "\n".join(f'# {name:{width}} = ""   # {plain(title)}' for name, title in known)
    return replace_file(folder / NAME, TEMPLATE.format(remarks=remarks, command=plain(command)).encode())

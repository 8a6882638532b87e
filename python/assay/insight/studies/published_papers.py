"""Published studies that can be made again: their experiments as commands, and what they said.

`papers/` has a file for each. Facts are told in words of ours; what cannot be made again is listed with the reason.
"""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import nearest, read_text, table_of, validated

PLACE = "PLACE"
"""Stands in a command for the folder in which databases and files are made."""


class Experiment(Strict):
    """One experiment of a paper, and the command that makes it again."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    published: str
    """What the paper says, in words of ours."""
    command: str
    """The command, without the program's name."""
    on: Literal["model", "storage"] = "model"
    """Whether it asks a model, or loads a database or a file in a folder that has to be named."""
    differs: str = ""
    """What differs from the published setup."""

    def words(self, place: Path | None) -> list[str]:
        """The command's words; `place` is the folder for databases and files, `DIR` where none is named."""
        return [word.replace(PLACE, str(place or "DIR")) for word in shlex.split(self.command)]

    @property
    def shown(self) -> str:
        """The command as a user types it."""
        return " ".join(["assay", *self.words(None)])


class LeftOut(Strict):
    """A part of a paper that Assay does not make again."""

    what: str
    why: str


class PublishedPaper(Strict):
    """A published study."""

    name: str
    title: str
    year: int
    storage: str
    experiment: Annotated[tuple[Experiment, ...], Field(min_length=1)]
    left_out: tuple[LeftOut, ...] = ()


def paper_names() -> list[str]:
    """Names of the papers that can be made again."""
    entries = resources.files("assay.insight.studies").joinpath("papers").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def published_paper(name: str) -> PublishedPaper:
    """A paper by name.

    Raises
    ------
    UsageError
        There is no such paper; the nearest is named.
    """
    known = paper_names()
    if name not in known:
        meant = nearest(name, known)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"paper {name!r}: unknown; {hint}known: {', '.join(known)}")
    source = f"{name}.toml"
    path = Path(str(resources.files("assay.insight.studies").joinpath("papers", source)))
    paper = validated(PublishedPaper, {"name": name, **table_of(read_text(path, source), source)}, source)
    names = [experiment.name for experiment in paper.experiment]
    for one in names:
        if names.count(one) > 1:
            raise UsageError(f"{source}: two experiments are both {one!r}")
    return paper

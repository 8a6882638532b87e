"""Published studies: what each said, and the commands that make its experiments again.

`papers/` has a file for each, the one place of its title and its sentences: figures (`published.toml`) name it by its
`source`, studies name a sentence as `SOURCE/ID`. Facts are told in words of ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
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
    said: str = ""
    """Id of what the paper says of it; the experiment's name unless given."""
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
    source: str
    """Its short name, by which figures and studies cite it."""
    title: str
    year: int
    storage: str
    said: Mapping[str, str]
    """What it says, a sentence by id."""
    experiment: Annotated[tuple[Experiment, ...], Field(min_length=1)]
    left_out: tuple[LeftOut, ...] = ()

    def sentence_of(self, experiment: Experiment) -> str:
        """What the paper says of an experiment.

        Raises
        ------
        UsageError
            It says nothing of it.
        """
        key = experiment.said or experiment.name
        if key not in self.said:
            raise UsageError(f"paper {self.name}: says nothing named {key!r}; known: {', '.join(self.said)}")
        return self.said[key]


def paper_names() -> list[str]:
    """Names of the papers that can be made again."""
    entries = resources.files("assay.insight.calibration").joinpath("papers").iterdir()
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
    path = Path(str(resources.files("assay.insight.calibration").joinpath("papers", source)))
    paper = validated(PublishedPaper, {"name": name, **table_of(read_text(path, source), source)}, source)
    names = [experiment.name for experiment in paper.experiment]
    for one in names:
        if names.count(one) > 1:
            raise UsageError(f"{source}: two experiments are both {one!r}")
    for experiment in paper.experiment:
        paper.sentence_of(experiment)
    return paper


@cache
def papers_by_source() -> dict[str, PublishedPaper]:
    """All papers by their short names."""
    return {paper.source: paper for paper in map(published_paper, paper_names())}


@cache
def full_names() -> dict[str, str]:
    """Titles and years of the papers, by their short names."""
    return {source: f"{paper.title} ({paper.year})" for source, paper in papers_by_source().items()}


def sentence_named(name: str) -> tuple[str, str]:
    """Short name of a paper, and the sentence of it that `SOURCE/ID` names.

    Raises
    ------
    ValueError
        There is no such paper or sentence; those there are are listed.

    Examples
    --------
    >>> sentence_named("DVX/working-set")
    ('DVX', 'The hit rate of reads is 100 %.')
    """
    source, _, key = name.partition("/")
    known = [f"{source}/{key}" for source, paper in papers_by_source().items() for key in paper.said]
    if name not in known:
        raise ValueError(f"{name!r}: no published sentence; known: {', '.join(known)}")
    return source, papers_by_source()[source].said[key]

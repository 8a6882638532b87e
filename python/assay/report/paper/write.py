"""Writes a paper: `paper.html`, `paper.pdf`, `paper.md` with its figures, and `paper.toml` where there is none."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import OpenFailed, UsageError
from assay.base.paths import printable
from assay.report.files import refuse_foreign, replace_file
from assay.report.html import html_report
from assay.report.markdown import markdown_report
from assay.report.paper.assemble import drafts, mapped, paper
from assay.report.paper.linked import linked
from assay.report.paper.names import Names
from assay.report.paper.reproduction import Reproduction, found_here
from assay.report.paper.shown_units import in_units
from assay.report.paper.sources import read_sources
from assay.report.paper.texts import Texts
from assay.report.paper.words import Units, Words, read_words, unknown_remarks, write_words
from assay.report.pdf import pdf_report
from assay.report.render import render_figures, without_links

FORMATS = ("html", "pdf", "md")
FIGURES = "paper-figures"


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """What is asked of a paper.

    Attributes
    ----------
    runs
        Run folders, in the order in which it speaks of them.
    folder
        Where it is written, and where `paper.toml` is.
    formats
        Of `FORMATS`.
    template
        A folder of templates that take the place of those that come with Assay.
    anonymised, several_targets, short
        Whether names are replaced, runs may be of several targets, and recordings shorter than an hour.
    checks
        Files of findings of best practice.
    units
        Units of throughput; those of `paper.toml` unless given.
    command
        The command that writes it.
    reproduction
        The published study that the runs make again, if they do.
    """

    runs: Sequence[Path]
    folder: Path
    formats: Sequence[str] = FORMATS
    template: Path | None = None
    checks: Sequence[Path] = ()
    anonymised: bool = False
    several_targets: bool = False
    short: bool = False
    units: Units | None = None
    command: Sequence[str] = ("assay", "report", "--paper")
    reproduction: Reproduction | None = None


@dataclass
class Written:
    """Files that were written, and what there is to say of it."""

    files: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    """What each run found, in a sentence."""


def write_paper(asked: PaperOptions) -> Written:
    """Write a paper.

    Raises
    ------
    RunFolderError
        A run is none.
    UsageError
        Runs, words or templates are refused; nothing was written.
    OpenFailed, OutOfSpace
        A file cannot be written.
    """
    texts = Texts(asked.template)
    words = read_words(asked.folder)
    for kind in asked.formats if asked.folder.is_dir() else ():
        path = asked.folder / f"paper.{kind}"
        refuse_foreign(path, what=f"--output {printable(path)}")
    names = Names(hidden=asked.anonymised)
    sources = read_sources(
        asked.runs, names=names, several_targets=asked.several_targets, short=asked.short, checks=asked.checks
    )
    own = words or Words()
    command = shlex.join(names.command(asked.command))
    document = in_units(
        mapped(paper(sources, own, texts, command, asked.reproduction), names.text), asked.units or own.units
    )
    drawings = render_figures(linked(document))
    unlinked = {name: without_links(svg) for name, svg in drawings.items()}
    written = Written(found=[found_here(source) for source in sources])
    _make(asked.folder)
    if words is None:
        known = [(draft.name, draft.title) for draft in drafts(sources, own, command, asked.reproduction)]
        written.files.append(write_words(asked.folder, known, shlex.join(asked.command)))
    else:
        written.notices += unknown_remarks(words, [section.name for section in document.sections])
    if "html" in asked.formats:
        page = html_report(document, drawings, style=texts.style)
        written.files.append(replace_file(asked.folder / "paper.html", page.encode()))
    if "pdf" in asked.formats:
        written.files.append(replace_file(asked.folder / "paper.pdf", pdf_report(document, unlinked)))
    if "md" in asked.formats:
        _make(asked.folder / FIGURES)
        for name, svg in unlinked.items():
            replace_file(asked.folder / FIGURES / f"{name}.svg", svg.encode())
        text = markdown_report(document, FIGURES)
        written.files.append(replace_file(asked.folder / "paper.md", text.encode()))
    return written


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--output {printable(folder)}: is no folder; name another place") from error
    except OSError as error:
        raise OpenFailed(f"--output {printable(folder)}: cannot be made: {error.strerror}") from error

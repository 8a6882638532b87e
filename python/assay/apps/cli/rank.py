"""`assay rank`: where a result stands among reference figures and the user's own runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.taken import answer
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.document.terminal import Details
    from assay.insight.ranking.rank import FigureStanding

EXAMPLES = """
Examples:

`assay rank assay-results/RUN`

`assay rank RUN --references colleagues.toml --details`

`assay rank RUN --provisioned "model:aws-gp3?size=1TiB&iops=16000&throughput=500MiB/s"`
"""
NOT_REACHED = (
    "no point has random I/O with so many outstanding that it must reach these limits, or the volume bursts above them"
)
FIGURES_SHOWN = 4
"""Figures that are printed without --details."""


class ClassDocument(TypedDict):
    """A class of storage beside a figure."""

    storage_class: str
    title: str
    kind: str
    times: tuple[float, float]
    storages: list[str]
    bases: list[str]
    sources: list[str]
    states: list[str]


class StandingDocument(TypedDict):
    """Where a figure stands: among classes, and how many of the user's own runs are better."""

    load: str
    state: str
    metric: str
    value: float
    classes: list[ClassDocument]
    own_runs: int
    own_better: int


class RankDocument(TypedDict):
    """The JSON document of `assay rank`."""

    schema_version: int
    verb: str
    figures: list[StandingDocument]


def rank(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    references: Annotated[
        list[Path] | None, typer.Option("--references", help="A file of further reference figures.")
    ] = None,
    provisioned: Annotated[
        str | None,
        typer.Option("--provisioned", help="The cloud volume as bought: model:aws-gp3?size=1TiB&iops=16000."),
    ] = None,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Say where a run stands among drives, cloud volumes and arrays of each class, and your own runs."""
    del debug
    from assay.insight.history.kept import read_folders
    from assay.insight.history.trends import history_of
    from assay.insight.ranking.provisioned import provisioned_of_run, provisioned_reference
    from assay.insight.ranking.rank import standings
    from assay.insight.ranking.references import known_references, read_references
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder

    folder = RunFolder.open(run)
    others = [storage for path in references or [] for storage in read_references(path).storage]
    points = current_points(folder.points())
    spec = provisioned or provisioned_of_run(folder.manifest)
    if spec is not None and (bought := provisioned_reference(spec, points)) is not None:
        others.append(bought)
    elif provisioned is not None:
        print(f"note: --provisioned {printable(provisioned)}: {NOT_REACHED}", file=sys.stderr)
    history = history_of(read_folders([run.absolute().parent]))
    found = standings(points, [*known_references(), *others], history, str(folder.manifest.get("run_id")))
    answer(lambda: _document(found), lambda: _blocks(found), json=json, details=details)


def _document(found: Sequence[FigureStanding]) -> RankDocument:
    return {
        "schema_version": 1,
        "verb": "rank",
        "figures": [
            {
                "load": one.load,
                "state": one.state,
                "metric": one.figure.name,
                "value": one.value,
                "classes": [
                    {
                        "storage_class": known.storage_class,
                        "title": known.title,
                        "kind": known.kind,
                        "times": (known.low, known.high),
                        "storages": [*known.storages],
                        "bases": [*known.bases],
                        "sources": [*known.sources],
                        "states": [*known.states],
                    }
                    for known in one.classes
                ],
                "own_runs": one.own.runs if one.own else 0,
                "own_better": one.own.better if one.own else 0,
            }
            for one in found
        ],
    }


def _blocks(found: Sequence[FigureStanding]) -> list[Block | Details]:
    """A paragraph for each figure with its classes; sources and other figures as details."""
    from assay.document.elements import Bullets, Paragraph
    from assay.document.terminal import Details, notes

    if not any(one.classes for one in found):
        told = (
            "No reference figure is of the loads of this run: references have random I/O of 4 or 8 KiB, at 1, 4, 16,"
            " 64 or 512 outstanding."
        )
        blocks: list[Block | Details] = [Paragraph(told, strong=True)]
    else:
        blocks = []
    ordered = sorted(found, key=lambda one: (not one.classes, one.figure.name != "iops"))
    shown, others = ordered[:FIGURES_SHOWN], ordered[FIGURES_SHOWN:]
    blocks += [block for one in shown for block in _figure(one)]
    if others:
        rest = [block for one in others for block in _figure(one)]
        blocks.append(Details(f"{len(others)} more figures: --details prints them", rest))
    sources = dict.fromkeys(f"{source}" for one in found for known in one.classes for source in known.sources)
    if sources:
        blocks.append(Details(f"{len(sources)} sources: --details prints them", [Bullets(list(sources))]))
        blocks.append(
            notes(["a figure of a model is a prediction, and a data sheet says up to; states differ where told"])
        )
    return blocks


def _figure(one: FigureStanding) -> list[Block]:
    from assay.document.elements import Bullets, Paragraph
    from assay.insight.ranking.rank import class_words, own_words

    state = "" if one.state == "unknown" else f", {one.state}"
    lines = [class_words(one.figure, known) for known in sorted(one.classes, key=lambda known: known.low)]
    lines += [own_words(one)] if one.own else []
    return [
        Paragraph(f"{one.load}{state}: {one.figure.title} {one.figure.words(one.value)}", strong=True),
        Bullets(lines),
    ]

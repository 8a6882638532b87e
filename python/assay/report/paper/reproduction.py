"""What a paper that makes a published study again says first: each published finding beside the one made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.document.elements import Cell, Column, Table
from assay.document.references import see
from assay.insight.calibration.published_papers import Experiment, LeftOut, PublishedPaper
from assay.report.paper.measured import findings_of
from assay.report.paper.parts import Draft
from assay.report.paper.sources import PaperSource

NAME = "reproduction"
NO_ANSWER = "The run says nothing of it."


@dataclass(frozen=True)
class Reproduction:
    """A published study that was made again.

    Attributes
    ----------
    experiments
        Those that were made, in the order of the paper's runs.
    left_out
        What was not made, each with the reason.
    """

    paper: PublishedPaper
    experiments: Sequence[Experiment]
    left_out: Sequence[LeftOut]

    @property
    def title(self) -> str:
        """The paper's title, said to be made again."""
        return f"{self.paper.title} ({self.paper.year}), made again"


def found_here(source: PaperSource) -> str:
    """What a run found, in a sentence; of published figures how near those that were fitted to and the others are."""
    verdict, sentences = findings_of(source)
    count = 2 if (source.study or {}).get("published") else 1
    return verdict or " ".join(sentences[:count]) or NO_ANSWER


def reproduction(asked: Reproduction, sources: Sequence[PaperSource], sections: dict[str, str]) -> Draft:
    """The section of what was published and what was found; `sections` gives the section of each run by its number."""
    beside = Table(
        "published-and-found",
        "What was published, and what was found here.",
        [
            Column("Experiment", weight=1.1),
            Column("Published", weight=2.0),
            Column("Found here", weight=2.6),
            Column("Differs", weight=1.2),
            Column("Section", weight=0.8),
        ],
        [
            [
                Cell(one.title),
                Cell(asked.paper.sentence_of(one)),
                Cell(found_here(source)),
                Cell(one.differs or "as published" if one.on == "storage" else "a model"),
                Cell(see(sections[source.number])),
            ]
            for one, source in zip(asked.experiments, sources, strict=True)
        ],
    )
    missing = Table(
        "left-out",
        "What was not made again.",
        [Column("Experiment", weight=1.4), Column("Why", weight=3.0)],
        [[Cell(one.what), Cell(one.why)] for one in asked.left_out],
    )
    fields = {
        "storage": asked.paper.storage,
        "year": asked.paper.year,
        "made": len(asked.experiments),
        "left_out": len(asked.left_out),
    }
    shown = {"beside": [beside], "missing": [missing] if missing.rows else []}
    return Draft(NAME, "Published and found", NAME, fields, shown)

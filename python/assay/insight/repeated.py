"""What repeats found together: each figure's mean over runs of one setup, with the interval that the runs give it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

from assay.insight.compare_answers import answers_of, held_at
from assay.insight.differences import END_WORDS, ComparedSide, workload_text
from assay.insight.history.between_runs import known_value, points_by_load
from assay.record.figures import Figure
from assay.record.points import load_text
from assay.record.steady import geometric_mean_95
from assay.workloads.registry import figures_of

COLUMNS = ("workload", "load", "metric", "each run", "mean", "95 % interval")


class RepeatedDocument(TypedDict):
    """A figure over repeats, in the document of `--json`."""

    workload: str
    load: str
    metric: str
    unit: str
    values: list[float]
    mean: float
    interval_95: tuple[float, float] | None


@dataclass(frozen=True)
class RepeatedFigure:
    """A figure over the runs of one setup: its values, one a run."""

    workload: str
    load: str
    figure: Figure
    title: str
    values: list[float]

    def row(self) -> tuple[str, ...]:
        """The row of a table, in the columns of `COLUMNS`."""
        words = self.figure.words
        mean, interval = geometric_mean_95(self.values)
        ends = " to ".join(words(end) for end in interval) if interval else "-"
        return self.workload, self.load, self.title, ", ".join(map(words, self.values)), words(mean), ends

    def to_dict(self) -> RepeatedDocument:
        """The figure as the document has it."""
        mean, interval = geometric_mean_95(self.values)
        return {
            "workload": self.workload,
            "load": self.load,
            "metric": self.figure.name,
            "unit": self.figure.unit,
            "values": self.values,
            "mean": mean,
            "interval_95": interval,
        }


def repeated_figures(side: ComparedSide) -> list[RepeatedFigure]:
    """Figures that two runs or more have: what searches found, then points, without figures that follow from others."""
    return [*_of_answers(side), *_of_points(side)]


def _of_answers(side: ComparedSide) -> Iterator[RepeatedFigure]:
    for answers in answers_of(side).values():
        figures = figures_of(answers[0])
        for end, words in END_WORDS.items():
            values = [value for answer in answers if (value := held_at(figures[0], answer, end))] if figures else []
            if len(values) > 1:
                title = f"{figures[0].title} {words}"
                yield RepeatedFigure(
                    workload_text(answers[0]["workload"]), answers[0]["axis"], figures[0], title, values
                )


def _of_points(side: ComparedSide) -> Iterator[RepeatedFigure]:
    for runs in points_by_load(side).values():
        first = runs[0][0]
        for figure in figures_of(first):
            values = [value for points in runs if (value := known_value(figure, points)) is not None]
            if figure.compared and figure.follows(first) is None and len(values) > 1:
                where = workload_text(first["workload"]), load_text(first["load"])
                yield RepeatedFigure(*where, figure, figure.title, values)

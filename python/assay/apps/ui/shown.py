"""What answers hold, as pages get them in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from assay.run.rows import PointHead

if TYPE_CHECKING:
    from assay.insight.diagnosis.diagnose import CauseRecord, UnseenCause
    from assay.insight.diagnosis.verdict import DiagnosisVerdictRecord
    from assay.run.rows import FigureTitle


class RunHead(TypedDict):
    """What a page says of a run first."""

    run_id: str | None
    verb: str | None
    status: str | None
    error: str | None
    started_utc_ns: int | None
    ended_utc_ns: int | None
    is_recording: bool


class PartTitle(TypedDict):
    """A part of a run, by its name."""

    name: str
    title: str


class AnswerLine(TypedDict):
    """What a search found, in words; `marks` are what its points are of the answer, by their ids."""

    name: str
    part: str
    axis: str
    limited_by: str
    text: str
    marks: dict[str, str]


class ListedPoint(PointHead):
    """A point in a list, with the values of its figures by their names."""

    figures: dict[str, float]


class ShownVerdict(TypedDict):
    """A line of the verdict; `standing` is met, missed, unknown or no limit."""

    question: str
    limit: str | None
    standing: str
    meaning: str | None


class DrawnHistogram(TypedDict):
    """How many I/Os or transactions took how long: upper ends of the steps in ns, and counts."""

    name: str
    up_to_ns: list[float]
    counts: list[int]


class SecondsLine(TypedDict):
    """A figure of one side (reads, writes) in each batch of a point."""

    name: str
    values: list[float | None]


class SecondsShown(TypedDict):
    """A figure over the batches of a point; `metric` names it and its unit."""

    metric: str
    step_s: float
    lines: list[SecondsLine]


class SinglePoint(TypedDict):
    """The one point of a run of one point."""

    histograms: list[DrawnHistogram]
    seconds: list[SecondsShown]


class RunView(TypedDict):
    """A run on its page; titles of figures are by kind of workload.

    `lead` is the answer as the terminal tells it. `single` is there for a run of one point alone.
    """

    lead: list[BlockShown]
    single: SinglePoint | None
    run: RunHead
    parts: list[PartTitle]
    figures: dict[str, list[FigureTitle]]
    points: list[ListedPoint]
    answers: list[AnswerLine]
    verdict: list[ShownVerdict]
    notices: list[str]


class TonedText(TypedDict):
    """A text, and whether it is good or bad news."""

    text: str
    tone: str


class ParagraphShown(TonedText):
    """A paragraph of a report."""

    kind: str
    strong: bool


class HeadingShown(TypedDict):
    """A heading of a report."""

    kind: str
    text: str


class NoticesShown(TypedDict):
    """Notices of a report."""

    kind: str
    items: list[TonedText]


class TableShown(TypedDict):
    """A table of a report: titles of its columns, and its rows."""

    kind: str
    caption: str
    columns: list[str]
    rows: list[list[TonedText]]


BlockShown = ParagraphShown | HeadingShown | NoticesShown | TableShown


class SectionShown(TypedDict):
    """A section of a report."""

    title: str
    blocks: list[BlockShown]


class FindingsView(TypedDict):
    """What a report says first."""

    title: str
    facts: str
    sections: list[SectionShown]


class MatrixCell(TypedDict):
    """A cell of the matrix; minutes beyond its threshold."""

    tier: str
    host: str
    resource: str
    state: str
    words: str
    minutes: float


class MatrixWindow(TypedDict):
    """The matrix in a part of the time, seconds since 1970."""

    from_s: float
    to_s: float
    cells: list[MatrixCell]


class MatrixView(TypedDict):
    """The matrix over all time and in parts of it, and the causes."""

    resources: list[str]
    verdict: DiagnosisVerdictRecord
    cells: list[MatrixCell]
    windows: list[MatrixWindow]
    causes: list[CauseRecord]
    not_looked_for: list[UnseenCause]
    notices: list[str]


class ComparedView(TypedDict):
    """What changed from one run to another, in rows of texts."""

    sentence: str
    basis: str
    columns: list[str]
    answers: list[tuple[str, ...]]
    points: list[tuple[str, ...]]
    unmatched: list[str]

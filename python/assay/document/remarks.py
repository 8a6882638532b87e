"""What a workload says in the sections that all kinds share, and the words that a reader may not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.document.elements import FigureElement, Notice, Paragraph, Table

Word = tuple[str, str]
"""A word and its meaning."""

POINT: Word = ("point", "one workload at one load, held until steady or until its time was up, with its measurements")
OUTSTANDING: Word = ("out", "outstanding I/Os in total; in brackets queue depth x workers")
LATENCY: Word = ("latency", "from submission to completion; with a fixed rate, from the moment the I/O was due")
PERCENTILE: Word = ("p99", "99 % of the I/Os were at least as fast; p50 is the median")
BYTES: Word = (
    "MiB/s, MB/s",
    "1,048,576 and 1,000,000 bytes a second; KiB is 1,024 bytes; us is a millionth of a second",
)
INTERVAL: Word = (
    "95 % interval",
    "the range that would hold the answer in 19 of 20 repeats of the measurement",
)
QUEUE: Word = (
    "queue",
    "mean number of I/Os at the device; iowait: CPU idle while I/Os are outstanding; steal: CPU other guests took",
)
PRESSURE: Word = (
    "PSI",
    "pressure stall information: share of time in which some, or all, tasks waited for the resource",
)

WORDS = (POINT, PERCENTILE, BYTES, INTERVAL, QUEUE, PRESSURE)
"""Words of every report."""


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """What a workload says of a run in the sections that all kinds share.

    Attributes
    ----------
    headlines
        Sentences of the summary. One with a tone is a verdict on the data: bad news come before everything else, good
        news after the figures.
    limiting
        Sentences on what limits it.
    running
        Sentences on the load at which to run it.
    next_steps
        Sentences on what to do next.
    not_storage
        Names of limits whose miss is not the storage's fault in this run, each with the reason as a sentence.
    without_verdict
        Said in the summary where the run has no verdict lines.
    notices
        What a reader must know before believing the figures.
    study
        What a study of it has to say of its method.
    study_figures
        What a study of it shows beside the figures that are compared.
    study_tables
        Tables of its levels side by side.
    timing
        Sentences on how long what took.
    method
        Further paragraphs on how it was measured.
    gaps
        Sentences on what a reader could think was measured and was not.
    points
        Its points, where the table of reads and writes does not suit them.
    words
        The glossary.
    """

    headlines: list[Paragraph] = field(default_factory=list)
    limiting: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)
    not_storage: Mapping[str, str] = field(default_factory=dict)
    without_verdict: str | None = None
    notices: list[Notice] = field(default_factory=list)
    study: list[str] = field(default_factory=list)
    study_figures: list[FigureElement] = field(default_factory=list)
    study_tables: list[Table] = field(default_factory=list)
    timing: list[str] = field(default_factory=list)
    method: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    points: Table | None = None
    words: tuple[Word, ...] = WORDS

"""Answers that need the large libraries: `python -m assay.apps.ui.answers KIND`.

The question comes as JSON on standard input.

The answer goes to standard output, whole or not at all. What is wrong is one line on standard error.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.apps.ui.histories import contract, histories
from assay.apps.ui.lines import FigurePanel, FiguresOverTime, FiguresQuestion, PageQuestion, SeriesCatalogue, grouped
from assay.apps.ui.metrics import history_metrics
from assay.base.errors import AssayError, UsageError
from assay.base.paths import plain
from assay.record.judgement import UNDECIDED, WORDS, standing_word, verdict_of

if TYPE_CHECKING:
    from assay.apps.ui.shown import (
        AnswerLine,
        BlockShown,
        ComparedView,
        FindingsView,
        ListedPoint,
        MatrixCell,
        MatrixView,
        MatrixWindow,
        PartTitle,
        RunView,
        ShownVerdict,
        TonedText,
    )
    from assay.base.tables import Record
    from assay.document.elements import Block
    from assay.insight.diagnosis.matrix import CellOf
    from assay.insight.diagnosis.observed import Observations
    from assay.record.flight_window import CatalogueMetric
    from assay.record.rows import Rows
    from assay.record.shapes.point import Point
    from assay.record.types import Answer as SearchAnswer
    from assay.record.types import Manifest, Part, VerdictLine
    from assay.run.rows import FigureTitle

WINDOWS = 24
"""Steps of the slider over the matrix."""
ROWS_MAX = 60
"""Rows of a table that are shown of a report's first sections."""
PARTS_MAX = 200
SHOWN_SECTIONS = 2
ANSWER_BYTES_MAX = 64 * 2**20
WORDS_MAX = 300

Answer = Callable[[PageQuestion], object]


def view(asked: PageQuestion) -> RunView:
    """A run's points in rows, its answers, its verdict and its notices."""
    # Decodes histograms, which only this process may load the library for.
    from assay.apps.ui.single import single_point
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder
    from assay.report.sections.verdict import shown_lines
    from assay.run.rows import point_row

    folder = RunFolder.open(Path(asked["path"]))
    manifest = cast("Manifest", folder.manifest)
    unreadable = []
    try:
        points = current_points(folder.points())
    except AssayError as error:
        points, unreadable = [], [str(error)]
    figures: dict[str, list[FigureTitle]] = {}
    rows: list[ListedPoint] = []
    for point in points:
        row = point_row(point)
        titles = figures.setdefault(row["kind"], [])
        for figure in row["figures"]:
            if figure["name"] not in {one["name"] for one in titles}:
                titles.append({"name": figure["name"], "title": figure["title"], "unit": figure["unit"]})
        # Ten thousand points are some megabytes: their figures go without titles.
        rows.append({**row, "figures": {figure["name"]: figure["value"] for figure in row["figures"]}})
    return {
        "lead": _lead(manifest, points),
        "single": single_point(points[0]) if len(points) == 1 else None,
        "run": {
            "run_id": manifest.get("run_id"),
            "verb": manifest.get("verb"),
            "status": manifest.get("status"),
            "error": manifest.get("error"),
            "started_utc_ns": manifest.get("started_utc_ns"),
            "ended_utc_ns": manifest.get("ended_utc_ns"),
            "is_recording": "recording" in manifest,
        },
        "parts": [_part(one) for one in (manifest.get("parts") or [])[:PARTS_MAX]],
        "figures": figures,
        "points": rows,
        "answers": [_answer(one) for one in manifest.get("answers") or []],
        "verdict": [_verdict_line(line) for line in shown_lines(verdict_of(manifest))],
        "notices": [*unreadable, *map(str, manifest.get("notices") or [])],
    }


def _lead(manifest: Manifest, points: Sequence[Point]) -> list[BlockShown]:
    """The answer first: the largest load with its interval, what limits it, and what a limit misses."""
    from assay.report.answer import answer_of

    if "recording" in manifest:
        return []
    try:
        found = answer_of(cast("Record", manifest), cast("Sequence[Record]", points))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        # A run of before, or from elsewhere, lacks what an answer is made of; all else of it is shown.
        return []
    return [made for block in found if (made := _block(block)) is not None]


def _verdict_line(line: VerdictLine) -> ShownVerdict:
    return {
        "question": line["question"], "limit": line.get("limit"), "standing": standing_word(line),
        "meaning": line.get("meaning"),
    }  # fmt: skip


def _part(part: Part) -> PartTitle:
    return {"name": str(part.get("name") or ""), "title": str(part.get("title") or "")}


def _answer(answer: SearchAnswer) -> AnswerLine:
    from assay.record.answers import answer_marks, end_value
    from assay.workloads.registry import figures_of

    figures = figures_of(answer)
    value = end_value(answer.get("max"), figures[0]) if figures else None
    return {
        "name": str((answer.get("workload") or {}).get("name") or ""),
        "part": str(answer.get("part") or ""),
        "axis": str(answer.get("axis") or ""),
        "limited_by": str(answer.get("limited_by") or ""),
        "text": figures[0].words(value) if figures and value is not None else _without(answer),
        "marks": {str(point_id): mark for point_id, mark in answer_marks(answer).items() if point_id},
    }


def _without(answer: SearchAnswer) -> str:
    return WORDS[None] if answer.get("limited_by") in UNDECIDED else "no load meets the limits"


def findings(asked: PageQuestion) -> FindingsView:
    """What a run's report says first: how limits and a need stand, what limits it, what to do next."""
    from assay.report.assemble import assemble
    from assay.report.facts import load_facts

    document = assemble(load_facts(Path(asked["path"])))
    shown = [one for one in document.sections if one.name in ("summary", "diagnosis", "best-practice")]
    return {
        "title": document.title,
        "facts": document.facts_line,
        "sections": [
            {"title": one.title, "blocks": [made for block in one.blocks if (made := _block(block)) is not None]}
            for one in shown or document.sections[:SHOWN_SECTIONS]
        ],
    }


def _block(block: Block) -> BlockShown | None:
    """An element of a report without its figures, which the page draws itself."""
    if block.kind == "paragraph":
        return {"kind": "paragraph", "text": block.text, "strong": block.strong, "tone": block.tone}
    if block.kind == "heading":
        return {"kind": "heading", "text": block.text}
    if block.kind == "bullets":
        return {"kind": "notices", "items": [{"text": text, "tone": ""} for text in block.items]}
    if block.kind == "notices":
        return {"kind": "notices", "items": [{"text": one.text, "tone": one.tone} for one in block.items]}
    if block.kind == "table":
        rows: list[list[TonedText]] = [
            [{"text": cell.text, "tone": cell.tone} for cell, _ in row] for row in block.placed()[:ROWS_MAX]
        ]
        return {
            "kind": "table",
            "caption": block.caption,
            "columns": [column.title for column in block.columns],
            "rows": [row for row in rows if len(row) == len(block.columns)],
        }
    return None


def series(asked: PageQuestion) -> SeriesCatalogue | FiguresOverTime:
    """Figures over time of a run's series; without a question, what there is."""
    rows = _rows(Path(asked["path"]))
    if "question" not in asked:
        return _catalogue(rows)
    return _lines(rows, FiguresQuestion.model_validate(asked["question"], strict=False))


def _rows(path: Path) -> Rows:
    """A run's series on the clock of its load."""
    from assay.record.series import read_series

    recorded = read_series(path)
    rows = recorded.where(recorded.interval_ns > 0)
    virtual = rows.of(clock="virtual")
    return virtual if len(virtual) else rows


def _catalogue(rows: Rows) -> SeriesCatalogue:
    if not len(rows):
        return {"from_s": None, "to_s": None, "groups": []}
    keys = ("tier", "host", "source", "metric", "kind")
    groups: dict[tuple[str, str, str], list[CatalogueMetric]] = {}
    for (tier, host, source, metric, kind), own in sorted(rows.apart(*keys), key=lambda one: one[0]):
        entities = own.distinct("entity")
        groups.setdefault((tier, host, source), []).append({"metric": metric, "kind": kind, "entities": entities})
    return {
        "from_s": int((rows.t_ns - rows.interval_ns).min()) / 1e9,
        "to_s": int(rows.t_ns.max()) / 1e9,
        "clock": rows.at("clock", 0),
        "groups": [
            {"tier": tier, "host": host, "source": source, "metrics": metrics}
            for (tier, host, source), metrics in groups.items()
        ],
    }


def _lines(rows: Rows, asked: FiguresQuestion) -> FiguresOverTime:
    import numpy as np

    from assay.record.latency_buckets import is_highest
    from assay.record.rows import grouped as grouped_by

    firsts = rows.where(rows.groups("host", "source", "metric").first)
    asked.refuse_unknown(set(zip(*(firsts.texts[name].column() for name in ("host", "source", "metric")), strict=True)))
    step_ns = max(-(-(asked.to_ns - asked.from_ns) // asked.steps), 1)
    count = -(-(asked.to_ns - asked.from_ns) // step_ns)
    inside = rows.where((rows.t_ns > asked.from_ns) & (rows.t_ns <= asked.to_ns))
    panels: list[FigurePanel] = []
    for query in asked.queries:
        own = inside.of(host=query.host, source=query.source, metric=query.metric)
        if query.under:
            within = {name for name in own.distinct("entity") if f"{name}/".startswith(f"{query.under}/")}
            own = own.where(own.are("entity", *within))
        found = []
        for (entity, kind), part in own.apart("entity", "kind"):
            seconds = part.interval_ns / 1e9
            steps = np.minimum((part.t_ns - 1 - asked.from_ns) // step_ns, count - 1)
            each = grouped_by(steps)
            if is_highest(query.metric):
                shown = each.most(part.value)
            else:
                shown = each.sums(part.value if kind == "delta" else part.value * seconds) / each.sums(seconds)
            values: list[float | None] = [None] * count
            for step, value in zip(steps[each.first].tolist(), shown.tolist(), strict=True):
                values[step] = value
            found.append((entity, kind, values))
        panels.append({"lines": grouped(query, found)})
    return {"t": [round((asked.from_ns + (step + 1) * step_ns) / 1e9, 3) for step in range(count)], "panels": panels}


def matrix(asked: PageQuestion) -> MatrixView:
    """The matrix of tiers and resources over all time and in parts of it, and the causes."""
    from assay.insight.diagnosis.diagnose import diagnose
    from assay.insight.diagnosis.matrix import RESOURCES, matrix_of
    from assay.insight.diagnosis.observed import ObservedSource, unrecorded
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder

    path = Path(asked["path"])
    folder = RunFolder.open(path)
    source = ObservedSource(
        name=path.name,
        manifest=cast("Manifest", folder.manifest),
        points=current_points(folder.points()),
        series=_rows(path),
    )
    found = diagnose([source])
    observed = found.observed
    windows: list[MatrixWindow] = []
    with unrecorded():
        for begin, end in _windows(observed):
            cells = matrix_of(_cut(observed, begin, end))
            windows.append(
                {
                    "from_s": (observed.begin_ns + begin * observed.step_ns) / 1e9,
                    "to_s": (observed.begin_ns + end * observed.step_ns) / 1e9,
                    "cells": [_cell(cell) for cell in cells],
                }
            )
    record = found.record()
    return {
        "resources": list(RESOURCES),
        "verdict": record["verdict"],
        "cells": [_cell(cell) for cell in found.cells],
        "windows": windows,
        "causes": record["causes"],
        "not_looked_for": record["not_looked_for"],
        "notices": record["notices"],
    }


def _windows(observed: Observations) -> list[tuple[int, int]]:
    """Equal parts of the time, each long enough for a verdict."""
    from assay.insight.diagnosis.observed import SAMPLES_MIN

    count = max(min(WINDOWS, observed.steps // (2 * SAMPLES_MIN)), 1)
    edges = [round(observed.steps * place / count) for place in range(count + 1)]
    return [(begin, end) for begin, end in itertools.pairwise(edges) if end > begin]


def _cut(observed: Observations, begin: int, end: int) -> Observations:
    """What was observed in a part of the time."""
    from dataclasses import replace

    part = slice(begin, end)
    return replace(
        observed,
        begin_ns=observed.begin_ns + begin * observed.step_ns,
        steps=end - begin,
        counted=observed.counted[part],
        tracks=[track.having(track.values[part]) for track in observed.tracks],
        windows=(),
    )


def _cell(cell: CellOf) -> MatrixCell:
    return {
        "tier": cell.tier,
        "host": cell.host,
        "resource": cell.resource,
        "state": cell.state,
        "words": cell.words,
        "minutes": round(cell.minutes, 2),
    }


def compare(asked: PageQuestion) -> ComparedView:
    """What changed from one run to another."""
    from assay.insight.differences import COLUMNS
    from assay.insight.sides import read_sides

    found = read_sides([Path(path) for path in asked["paths"]]).compared()
    return {
        "sentence": found.sentence,
        "basis": found.basis,
        "columns": list(COLUMNS),
        "answers": found.answer_rows(),
        "points": found.rows(),
        "unmatched": list(found.unmatched),
    }


def comparison_page(asked: PageQuestion) -> str:
    """The page of a comparison, as `assay compare --html` writes it."""
    from assay.insight.sides import read_sides
    from assay.report.comparison import comparison_document
    from assay.report.html import html_report
    from assay.report.render import render_figures

    read = read_sides([Path(path) for path in asked["paths"]])
    document = comparison_document(read.compared(), read.names)
    return html_report(document, render_figures(document))


def report(asked: PageQuestion) -> str:
    """The report of a run as it stands, as a page."""
    from assay.report.assemble import assemble
    from assay.report.facts import load_facts
    from assay.report.html import html_report
    from assay.report.render import render_figures

    document = assemble(load_facts(Path(asked["path"])))
    return html_report(document, render_figures(document))


def table(asked: PageQuestion) -> str:
    """The points of a run as CSV, as `--export csv` writes them."""
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder
    from assay.report.exports import EXPORTS, WHERE

    folder = RunFolder.open(Path(asked["path"]))
    return EXPORTS["csv"](cast("Manifest", folder.manifest), current_points(folder.whole_points()))[WHERE["csv"]]


ANSWERS: Mapping[str, Answer] = {
    one.__name__: one
    for one in (
        view,
        findings,
        series,
        matrix,
        histories,
        contract,
        history_metrics,
        compare,
        comparison_page,
        report,
        table,
    )
}


def main(arguments: Sequence[str]) -> int:
    """Answer one question; the exit code."""
    with contextlib.suppress(OSError, ValueError):
        os.nice(int(os.environ.get("ASSAY_NICE", "0")))
    try:
        if len(arguments) != 1 or arguments[0] not in ANSWERS:
            raise UsageError(f"accepted: {', '.join(ANSWERS)}")
        answer = ANSWERS[arguments[0]](json.load(sys.stdin))
        text = answer if isinstance(answer, str) else json.dumps(answer, allow_nan=False, default=_plain)
        content = text.encode("utf-8", errors="backslashreplace")
        if len(content) > ANSWER_BYTES_MAX:
            raise UsageError(f"is larger than {ANSWER_BYTES_MAX >> 20} MiB, which no page shows; use `assay report`")
    except AssayError as error:
        print(_one_line(error), file=sys.stderr)
        return int(error.exit_code)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        # A folder from anywhere may hold anything; what it makes of the code is told, and ends here.
        print(f"cannot be shown: {type(error).__name__}: {_one_line(error)}", file=sys.stderr)
        return 3
    sys.stdout.buffer.write(content)
    return 0


def _one_line(error: Exception) -> str:
    return plain(" ".join(str(error).split()))[:WORDS_MAX]


def _plain(value: object) -> object:
    """Numbers of numpy as those of Python."""
    return value.item() if hasattr(value, "item") else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

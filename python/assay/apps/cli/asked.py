"""What programs ask of runs and recordings, and get as Markdown: nothing is measured, written or removed for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.apps.ui.runs import Runs
from assay.base.errors import UsageError
from assay.base.paths import printable

RUNS_MAX = 100
"""Runs of a list, the newest."""
POINTS_MAX = 200
TEXT_MAX = 100_000
"""Letters of an answer: more fills the memory of a model, and does not fit a message."""


class AskedRuns:
    """Runs and recordings below some folders, which are asked for by the numbers of a list: a number is never a path.

    Parameters
    ----------
    roots
        Folders that hold runs and recordings, or are one.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._runs = Runs(roots)

    def listed(self) -> str:
        """All runs and recordings, the newest first."""
        from assay.document.terminal import markdown, table

        rows = self._runs.rows()
        shown = [
            [row["id"], row["verb"], row["title"], row["status"], row["headline"] or row["error"], row["name"]]
            for row in rows[:RUNS_MAX]
        ]
        if not rows:
            return "There is no run and no recording."
        more = f"\n{len(rows) - RUNS_MAX} older runs are not listed." if len(rows) > RUNS_MAX else ""
        columns = ["run", "verb", "title", "status", "answer", "folder"]
        return _bounded(markdown([table("", columns, shown)]) + more)

    def shown(self, run: str) -> str:
        """What a run found, with its points and what a reader must know."""
        from assay.document.elements import Paragraph
        from assay.document.terminal import markdown, notes, table
        from assay.record.points import current_points
        from assay.record.run_folder import RunFolder
        from assay.report.answer import answer_of
        from assay.run.rows import point_row

        path = self._path(run)
        with RunFolder.open(path) as folder:
            manifest, points = folder.manifest, current_points(folder.points())
            rows = []
            for point in points[:POINTS_MAX]:
                row = point_row(point)
                figures = "; ".join(f"{one['title']} {one['text']}" for one in row["figures"])
                rows.append([row["id"], row["part"], row["name"], row["load"], figures, row["standing"]])
            blocks = [
                *answer_of(manifest, points),
                table("Points", ["point", "part", "workload", "load", "figures", "limits"], rows),
                notes(manifest.get("notices") or []),
                Paragraph(f"{len(points)} points; run folder: {printable(path)}"),
            ]
            return _bounded(markdown(blocks))

    def compared(self, runs: Sequence[str]) -> str:
        """What changed between runs, the reference first."""
        from assay.apps.cli.compare import comparison_blocks
        from assay.document.terminal import markdown
        from assay.insight.sides import read_sides

        if len(runs) < 2:
            raise UsageError("compare: give two runs or more, the reference first")
        read = read_sides([self._path(run) for run in runs])
        return _bounded(markdown(comparison_blocks(read.compared(), read.names)))

    def diagnosed(self, runs: Sequence[str]) -> str:
        """The bottleneck that runs and recordings show, its cause, and what would disprove it."""
        from assay.apps.cli.diagnose import diagnosis_blocks
        from assay.document.terminal import markdown
        from assay.insight.diagnosis.diagnose import diagnose
        from assay.insight.diagnosis.inputs import assumed_tiers, sources_of
        from assay.telemetry.importers.importer import Options

        if not runs:
            raise UsageError("diagnose: give a run or a recording")
        read = sources_of([self._path(run) for run in runs], Options())
        found = diagnose(read.sources, {})
        record = found.record()
        record["notices"] = [*read.notices, *record["notices"]]
        record["assumed"] = [*read.assumed, *assumed_tiers(found.observed)]
        return _bounded(markdown(diagnosis_blocks(found, record)))

    def _path(self, run: str) -> Path:
        place = self._runs.find(run)
        if place is None:
            raise UsageError(f"{run!r} is no run of the list; ask for the list first")
        return place.path


def _bounded(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}\n[{len(text) - TEXT_MAX:,} letters are left out]"

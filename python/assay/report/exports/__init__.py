"""Results in the formats of other tools; one file per format.

Every entry of `EXPORTS` makes texts from the manifest and the points; `save_export` writes them. So an export can be
tried without a folder, before anything is measured: `rehearse`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable
from assay.record import durable
from assay.record.folder import Folder
from assay.record.run_folder import SCHEMA_VERSION
from assay.record.types import Manifest, Point
from assay.report.exports.csv import csv_files
from assay.report.exports.fio_json import fio_json_files
from assay.report.exports.kinds import measures_io
from assay.report.exports.openmetrics import openmetrics_files

Export = Callable[[Manifest, Sequence[Point]], dict[str, str]]
"""`export(manifest, points)`: content by file name; a name may have one folder before it."""

EXPORTS: dict[str, Export] = {
    "csv": csv_files,
    "fio-json": fio_json_files,
    "openmetrics": openmetrics_files,
}
"""Formats by the names that `--export` takes."""

WHERE = {"csv": "points.csv", "fio-json": "fio.json", "openmetrics": "openmetrics.txt"}
"""The file of each format that every run has."""

_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,199}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_FAULTS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What code raises that meets a point of a shape it does not know."""


def save_export(name: str, manifest: Manifest, points: Sequence[Point], destination: Path) -> list[Path]:
    """Write a run in one format, each file whole or not at all.

    Parameters
    ----------
    name
        A key of `EXPORTS`.
    manifest, points
        The run (docs/results.md).
    destination
        Folder; made where it is missing.

    Returns
    -------
    list[Path]
        The files written.

    Raises
    ------
    RunFolderError
        A histogram of the run is damaged.
    AssayError
        The format cannot express a point; the message names the export and the file.
    OutOfSpace, IoFailed
        A file cannot be written; the message names it.
    """
    path = destination / WHERE[name]
    try:
        texts = EXPORTS[name](manifest, points)
    except _FAULTS as error:
        raise AssayError(
            f"--export {name}: {printable(path)} cannot be made of these points ({_reason(error)}); run.json and"
            " points.jsonl hold everything"
        ) from error
    written = []
    with _writing(path):
        destination.mkdir(parents=True, exist_ok=True)
        root = Folder.open(destination)
    for text_name, text in texts.items():
        path = destination / text_name
        # Names are made of counters and cleaned words; this is the second look.
        if not _NAME.fullmatch(text_name):
            raise AssayError(f"--export {name}: {printable(path)} is no name for a file")
        *folders, file = text_name.split("/")
        with _writing(path):
            folder = root.folder(folders[0], make=True) if folders else root
            folder.replace(file, text.encode("utf-8", errors="backslashreplace"))
        written.append(path)
    return written


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise durable.failure(error, f"cannot write {printable(path)}") from error


def rehearse(names: Sequence[str], points: Sequence[Point]) -> None:
    """Try exports before anything is measured.

    Parameters
    ----------
    names
        Keys of `EXPORTS`.
    points
        Points of the shapes that the plan will give (`assay.report.exports.rehearsal`).

    Raises
    ------
    UsageError
        A format cannot express one of them.
    """
    for name in names:
        try:
            EXPORTS[name]({"schema_version": SCHEMA_VERSION}, points)
        except _FAULTS as error:
            raise UsageError(
                f"--export {name}: cannot express what this plan measures ({_reason(error)}); leave it out"
            ) from error


def left_out(name: str, points: Sequence[Point]) -> int:
    """How many points a format leaves out because it has no words for their kind."""
    return sum(not measures_io(point) for point in points) if name == "fio-json" else 0


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"

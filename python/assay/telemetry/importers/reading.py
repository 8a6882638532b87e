"""Importing files: each is recognised, read once, and its rows handed on; what became of it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from assay.base.paths import printable
from assay.telemetry.importers.importer import Importer, Into, NotTaken, Options, TakenFile
from assay.telemetry.importers.opening import opened, share_read
from assay.telemetry.importers.registry import IMPORTERS, importer_of

if TYPE_CHECKING:
    import pyarrow as pa


def import_file(path: Path, options: Options, write: Callable[[Sequence[pa.RecordBatch]], None]) -> TakenFile:
    """Import one file.

    Parameters
    ----------
    write
        Takes rows of the series as they are read.

    Raises
    ------
    NotTaken
        The file cannot be read, its format is not known, or nothing in it can be used; the line names the file.
    """
    with opened(path) as (file, head):
        importer = importer_of(head)
        if importer is None:
            raise unknown_format(path, [one.title for one in IMPORTERS])
        return import_opened(path, file, importer, options, write)


def unknown_format(path: Path, known: Sequence[str]) -> NotTaken:
    """What is said of a file that no importer recognises; `known` are titles of formats."""
    return NotTaken(f"{printable(path)}: is of no format that is known here: {', '.join(known)}")


def import_opened(
    path: Path, file: TextIO, importer: Importer, options: Options, write: Callable[[Sequence[pa.RecordBatch]], None]
) -> TakenFile:
    """Import a file that is open at its beginning, and of the importer's format; see `import_file`."""
    into = Into(importer.name, options, write, share=lambda: share_read(file))
    try:
        importer.read(file, into)
        into.flush()
    except NotTaken as error:
        raise NotTaken(f"{printable(path)}: {error}") from None
    taken = into.taken
    if not taken.rows:
        raise NotTaken(f"{printable(path)}: {importer.title}: holds no sample that can be used{_why(into)}")
    if into.late_rows:
        taken.note(f"{into.late_rows:,} rows in all were left out for it")
    return taken


def _why(into: Into) -> str:
    """What explains that there is none."""
    if into.taken.notes:
        return f"; {into.taken.notes[-1]}"
    return "; a rate needs two samples" if into.taken.counters else ""

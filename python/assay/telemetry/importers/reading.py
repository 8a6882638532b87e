"""Importing files: each is recognised, read once, and its rows handed on; what became of it is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from assay.base.paths import printable
from assay.telemetry.importers.covered import Covered
from assay.telemetry.importers.importer import Importer, Into, NotTaken, Options
from assay.telemetry.importers.nearest import nearest
from assay.telemetry.importers.opening import opened, share_read
from assay.telemetry.importers.registry import IMPORTERS, importer_of
from assay.telemetry.importers.taken import TakenFile

if TYPE_CHECKING:
    from assay.record.rows import Rows


Write = Callable[[Sequence["Rows"]], None]


def import_file(path: Path, options: Options, write: Write) -> TakenFile:
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
            raise unknown_format(path, head, [one.title for one in IMPORTERS])
        return import_opened(path, file, importer, options, write)


def unknown_format(path: Path, head: str, known: Sequence[str]) -> NotTaken:
    """What is said of a file that no importer recognises; `known` are titles of formats."""
    near = nearest(head)
    if near is not None:
        return NotTaken(f"{printable(path)}: {near}")
    return NotTaken(f"{printable(path)}: is of no format that is known here: {', '.join(known)}")


def import_opened(
    path: Path,
    file: TextIO,
    importer: Importer,
    options: Options,
    write: Write,
    *,
    before: Covered | None = None,
    others: Sequence[TextIO] = (),
) -> TakenFile:
    """Import a file that is open at its beginning, and of the importer's format; see `import_file`.

    Parameters
    ----------
    before
        What files before this one hold; what this one does is added.
    others
        Files that belong to this one, as those of several threads of a run.
    """
    written_ns = os.fstat(file.fileno()).st_mtime_ns
    into = Into(
        importer.name,
        options,
        write,
        share=lambda: share_read(file),
        before=before,
        written_ns=written_ns,
        file_name=path.name,
    )
    try:
        importer.read(cast(TextIO, importer.joined([file, *others])) if others else file, into)
        into.flush()
    except NotTaken as error:
        raise NotTaken(f"{printable(path)}: {error}") from None
    taken = into.taken
    if not taken.rows:
        raise NotTaken(f"{printable(path)}: {importer.title}: holds no sample that can be used{_why(into)}")
    if into.late_rows:
        taken.note(f"{into.late_rows:,} rows in all were left out for it")
    if before is not None:
        before.close(printable(path), taken.format, into.covered)
    return taken


def _why(into: Into) -> str:
    """What explains that there is none."""
    taken = into.taken
    if taken.notes:
        return f"; {taken.notes[-1]}"
    if taken.unread:
        name, example = next(iter(taken.unread.items()))
        return f"; not understood: {name}, as {example!r}"
    return "; a rate needs two samples" if taken.counters or taken.ignored else ""

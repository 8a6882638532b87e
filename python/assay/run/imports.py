"""Files of other programs become a run folder: telemetry its series, results of measurements its points.

Such a run was not measured by Assay. Its manifest says in `imported` who did, and what was taken of each file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO, cast

from assay import _core
from assay.base.errors import RunFolderError, UsageError
from assay.base.paths import plain, printable
from assay.base.units import count_of
from assay.document.text import joined
from assay.record.run_folder import RunFolder
from assay.record.series_file import SeriesFile
from assay.record.shapes import check_manifest, check_point, check_whole
from assay.record.shapes.point import Point
from assay.run.verdict import verdict_lines
from assay.telemetry.importers.covered import Covered
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.opening import opened
from assay.telemetry.importers.reading import Write, import_opened, unknown_format
from assay.telemetry.importers.recording import lines_of, lines_of_names, recording_of
from assay.telemetry.importers.registry import IMPORTERS, importer_of
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.capabilities import Importing
from assay.workloads.imported import BYTES_MAX, ImportedRun, RunImporter
from assay.workloads.registry import workloads

POINTS_MAX = 10_000
"""Points of an imported run: reports and comparisons hold them all."""

PART = "imported"
"""Name of the only part of an imported run."""


@dataclass(kw_only=True)
class Imported:
    """What became of all files.

    Attributes
    ----------
    path
        The run folder.
    recording
        `recording` of its manifest (docs/import.md); None without telemetry.
    imported
        `imported` of its manifest; None without results of measurements.
    notices
        What a reader must know.
    """

    path: Path
    recording: dict[str, Any] | None
    imported: dict[str, Any] | None
    notices: list[str]

    def lines(self) -> list[str]:
        """What was taken and what was left out, for people."""
        found = lines_of(self.recording) if self.recording is not None else []
        for one in (self.imported or {}).get("files", []):
            measured = f"{one['program']} {one['version']}: {count_of(len(one['point_ids']), 'point')}"
            found.append(f"{one['path']}: results of {measured}")
            found += lines_of_names("figure", one["taken"], one["ignored"], one["not_understood"])
        return found


@dataclass(kw_only=True)
class _Files:
    """Files as they are read."""

    telemetry: list[tuple[Path, TakenFile]] = field(default_factory=list)
    runs: list[tuple[Path, ImportedRun]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: list[list[str]] = field(default_factory=list)
    alike: Counter[str] = field(default_factory=Counter)
    """How many points there are of a workload at a load."""


def import_files(
    files: Sequence[Path],
    *,
    into: str | os.PathLike[str],
    options: Options,
    command: Sequence[str],
    tell: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import files into one run folder.

    Parameters
    ----------
    into
        Folder of the results, in which the run folder is made.
    tell
        Called with a line for each file that begins.

    Raises
    ------
    UsageError
        A file cannot be imported, or the folder cannot be made. Nothing is left behind then.
    """
    _refuse_twice(files)
    manifest: dict[str, Any] = {
        "command": list(command),
        "build": _core.build_info(),
        "target": {"volumes": [], "databases": []},
        "parts": [],
    }
    is_new = not os.path.lexists(into)
    with RunFolder.create(into, "import", manifest) as folder:
        try:
            with SeriesFile(folder.path) as series:
                found = _read(files, series.write, options, tell)
            return _written(folder, found)
        except BaseException:
            _remove(folder)
            if is_new:
                with suppress(OSError):
                    os.rmdir(into)
            raise


def _refuse_twice(files: Sequence[Path]) -> None:
    seen = set()
    for path in files:
        real = os.path.realpath(path)
        if real in seen:
            raise UsageError(f"{printable(path)}: is given twice; give it once")
        seen.add(real)


def _read(files: Sequence[Path], write: Write, options: Options, tell: Callable[[str], None]) -> _Files:
    found = _Files()
    groups = _together(files)
    share = replace(options, values_max=options.values_max // len(groups))
    formats = [one for workload in workloads() if isinstance(workload, Importing) for one in workload.importers()]
    before = Covered()
    for path, *others in groups:
        tell(f"reading {', '.join(printable(one) for one in (path, *others))}")
        with ExitStack() as stack:
            file, head = stack.enter_context(opened(path))
            results = next((one for one in formats if one.recognises(head)), None)
            telemetry = importer_of(head) if results is None else None
            if results is not None:
                _add_run(found, path, _read_run(path, file, results, options))
            elif telemetry is not None:
                rest = [stack.enter_context(opened(one))[0] for one in others]
                taken = import_opened(path, file, telemetry, share, write, before=before, others=rest)
                if others:
                    taken.note(f"is read with {', '.join(printable(one) for one in others)} as one")
                found.telemetry.append((path, taken))
            else:
                raise unknown_format(path, head, [*(one.title for one in formats), *(one.title for one in IMPORTERS)])
    return found


def _together(files: Sequence[Path]) -> list[list[Path]]:
    """Files of one run in one list, where a program writes several for it."""
    groups: dict[object, list[Path]] = {}
    for path in files:
        with opened(path) as (_, head):
            importer = importer_of(head)
        name = importer.together(path.name) if importer is not None else None
        key = (importer.title, path.parent, name) if importer is not None and name is not None else path
        groups.setdefault(key, []).append(path)
    return list(groups.values())


def _read_run(path: Path, file: TextIO, importer: RunImporter, options: Options) -> ImportedRun:
    """Read a file of results whole, within bounds."""
    shown = printable(path)
    if os.fstat(file.fileno()).st_size > BYTES_MAX:
        raise NotTaken(f"{shown}: is larger than {BYTES_MAX >> 20} MiB, more than is read of a file of results")
    try:
        return read_results(file.read(BYTES_MAX), importer, options)
    except NotTaken as error:
        raise NotTaken(f"{shown}: {error}") from None


def read_results(text: str, importer: RunImporter, options: Options) -> ImportedRun:
    """Results of another program, whose points are as a run folder is read again.

    Raises
    ------
    NotTaken
        They cannot be used; the line does not name the file.
    """
    run = importer.read(text, options)
    try:
        for number, point in enumerate(run.points, 1):
            named = {"id": f"p{number:04d}", "key": "", "part": PART, "purpose": "grid", "limits": []}
            record = {**named, **point.as_point()}
            check_point(record, "its results")
            check_whole([record], "its results")
        check_manifest({"schema_version": 1, "target": {"volumes": run.volumes}}, "its results")
    except RunFolderError as error:
        # Values that no measurement has, in places that the importer does not look at.
        raise NotTaken(str(error).partition("; the folder")[0]) from None
    return run


def _add_run(found: _Files, path: Path, run: ImportedRun) -> None:
    """Give points their ids and keys; repeats of a workload at a load count up."""
    ids = []
    for point in run.points:
        record = point.as_point()
        number = len(found.points) + 1
        asked = json.dumps([record["workload"], record["load"]], sort_keys=True)
        same = found.alike[asked]
        found.alike[asked] += 1
        point_id = f"p{number:04d}"
        ids.append(point_id)
        found.points.append(
            {
                "id": point_id,
                "key": hashlib.sha256(f"{PART} {same} {asked}".encode("utf-8", "surrogatepass")).hexdigest(),
                "part": PART,
                "repeat": same,
                "purpose": "repeat" if same else "grid",
                "limits": [],
                "met": None,
                "imported": {
                    "program": run.program,
                    "version": run.version,
                    "file": printable(path),
                    "label": plain(point.label),
                },
                **record,
            }
        )
        if number > POINTS_MAX:
            raise UsageError(f"{printable(path)}: the files hold more than {POINTS_MAX:,} points; import fewer at once")
    for volume in run.volumes:
        found.volumes.setdefault(volume["path"], volume)
    found.runs.append((path, run))
    found.ids.append(ids)


def _written(folder: RunFolder, found: _Files) -> Imported:
    """Write points and manifest of the files that were read."""
    recording = recording_of(found.telemetry) if found.telemetry else None
    imported = _imported_of(found) if found.runs else None
    notices = list(recording["notices"]) if recording is not None else []
    changes: dict[str, Any] = {}
    if imported is not None:
        notices = [*imported["notices"], *notices]
        for point in found.points:
            folder.append_point(point)
        verdict = verdict_lines([cast(Point, point) for point in found.points], [])
        names = {run.hostname for _, run in found.runs}
        changes = {
            "imported": imported,
            "answers": [],
            "verdict": verdict,
            "target": {"volumes": list(found.volumes.values()), "databases": []},
            "parts": [
                {
                    "name": PART,
                    "title": f"Measured by {', '.join(imported['programs'])}",
                    "planned_s": None,
                    "spent_s": None,
                }
            ],
            **({"host": {"hostname": plain(names.pop() or "")}} if len(names) == 1 and None not in names else {}),
        }
    if recording is not None:
        changes["recording"] = recording
    folder.update(**changes, notices=notices, status="done", ended_utc_ns=time.time_ns())
    return Imported(path=folder.path, recording=recording, imported=imported, notices=notices)


def _imported_of(found: _Files) -> dict[str, Any]:
    """The manifest's `imported`: who measured, and what was taken of each file."""
    files = [
        {
            "path": printable(path),
            "format": run.taken.format,
            "program": run.program,
            "version": plain(run.version),
            "point_ids": ids,
            "taken": {plain(name): plain(what) for name, what in run.taken.counters.items()},
            "ignored": {plain(name): plain(reason) for name, reason in run.taken.ignored.items()},
            "not_understood": {plain(name): plain(example) for name, example in run.taken.unread.items()},
            "notes": [plain(note) for note in run.taken.notes],
        }
        for (path, run), ids in zip(found.runs, found.ids, strict=True)
    ]
    programs = list(dict.fromkeys(f"{one['program']} {one['version']}" for one in files))
    notices = [
        f"measured by {joined(programs)}, not by Assay: whether the load generator was the bottleneck, and whether"
        " points were steady, is known only as far as the files say"
    ]
    by_note: dict[str, list[str]] = {}
    for one in files:
        for note in one["notes"]:
            by_note.setdefault(note, []).append(str(one["path"]))
    notices += [f"in {joined(paths)}: {note}" for note, paths in by_note.items()]
    return {"programs": programs, "files": files, "notices": notices}


def _remove(folder: RunFolder) -> None:
    """Remove a folder that was not finished."""
    path = folder.path
    folder.close()
    shutil.rmtree(path, ignore_errors=True)


def refuse_without_telemetry(found: Imported, files: Sequence[Path]) -> None:
    """Refuse to diagnose files that hold results of measurements alone.

    Raises
    ------
    UsageError
        They do.
    """
    if found.recording is None:
        names = ", ".join(printable(path) for path in files)
        raise UsageError(
            f"{names}: holds results of a measurement and no telemetry; give what was recorded meanwhile as well, such"
            " as the output of iostat or sar"
        )

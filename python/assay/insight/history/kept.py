"""What was read of runs, kept between calls: a history of hundreds of runs is listed in a second.

The file lies in the user's cache (`assay.record.kept_file`), one for each set of folders. A run is read again when its
files have changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.insight.history.reading import PastRun, ReadRuns, in_order, read_runs, run_paths
from assay.record.kept_file import FileStamp, file_stamp, form_of, kept_path, load_kept, save_kept
from assay.record.run_folder import MANIFEST_NAME, POINTS_NAME

FORM = 1
"""Changes with what is kept of a run."""


@dataclass(frozen=True)
class KeptRun:
    """A run as it was read, and the state in which its files were."""

    manifest: FileStamp
    points: FileStamp
    run: PastRun


@dataclass(frozen=True)
class KeptRuns:
    """All runs of some folders, by their paths, and what wrote them."""

    form: str
    runs: dict[str, KeptRun]


def read_folders(folders: Sequence[Path]) -> ReadRuns:
    """The runs of some folders, read from the cache where they have not changed since."""
    return read_kept(run_paths(folders), folders)


def read_kept(paths: Sequence[Path], folders: Sequence[Path]) -> ReadRuns:
    """Some runs, read from the cache of the folders that they lie in where they have not changed since."""
    cache = _cache_of(folders)
    known = _load(cache)
    stamps = {path: (file_stamp(path / MANIFEST_NAME), file_stamp(path / POINTS_NAME)) for path in paths}
    fresh: dict[Path, KeptRun] = {}
    for path, stamp in stamps.items():
        kept = known.get(str(path))
        if kept is not None and (kept.manifest, kept.points) == stamp:
            fresh[path] = kept
    read = read_runs([path for path in paths if path not in fresh])
    if read.runs:
        made = {run.path: KeptRun(*stamps[Path(run.path)], run) for run in read.runs}
        unchanged = {str(path): kept for path, kept in fresh.items()}
        save_kept(cache, KeptRuns, KeptRuns(form_of(FORM), {**unchanged, **made}))
    runs = {run.run_id: run for run in [*(kept.run for kept in fresh.values()), *read.runs]}
    return ReadRuns(tuple(in_order([*runs.values()])), read.skipped)


def _cache_of(folders: Sequence[Path]) -> Path:
    return kept_path("history", [*map(os.path.abspath, folders), f"from {os.getcwd()}"])


def _load(cache: Path) -> dict[str, KeptRun]:
    kept = load_kept(cache, KeptRuns)
    return kept.runs if kept is not None and kept.form == form_of(FORM) else {}

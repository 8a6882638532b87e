"""What was read of runs, kept between calls: a history of hundreds of runs is listed in a second.

The file lies in the user's cache, one for each set of folders. A run is read again when its files have changed. What
cannot be read from the cache, or written to it, is no reason to fail.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import _core
from assay.base.errors import AssayError
from assay.insight.history.reading import PastRun, ReadRuns, in_order, read_runs, run_paths
from assay.record.folder import replace_file
from assay.record.run_folder import MANIFEST_NAME, POINTS_NAME

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORM = 1
"""Changes with what is kept of a run."""
CACHE_BYTES_MAX = 256 * 2**20

FileStamp = tuple[int, int, int]
"""Which content a file has: its inode, time and size."""


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
    stamps = {path: (_stamp(path / MANIFEST_NAME), _stamp(path / POINTS_NAME)) for path in paths}
    fresh: dict[Path, KeptRun] = {}
    for path, stamp in stamps.items():
        kept = known.get(str(path))
        if kept is not None and (kept.manifest, kept.points) == stamp:
            fresh[path] = kept
    read = read_runs([path for path in paths if path not in fresh])
    if read.runs:
        made = {run.path: KeptRun(*stamps[Path(run.path)], run) for run in read.runs}
        _save(cache, KeptRuns(_form(), {**{str(path): kept for path, kept in fresh.items()}, **made}))
    runs = {run.run_id: run for run in [*(kept.run for kept in fresh.values()), *read.runs]}
    return ReadRuns(tuple(in_order([*runs.values()])), read.skipped)


def _stamp(path: Path) -> FileStamp:
    with suppress(OSError, ValueError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_ino, found.st_mtime_ns, found.st_size
    return 0, 0, 0


def _cache_of(folders: Sequence[Path]) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    names = sorted({os.path.abspath(folder) for folder in folders} | {f"from {os.getcwd()}"})
    return root / "assay" / f"history-{hashlib.sha256(os.fsencode(chr(0).join(names))).hexdigest()[:16]}.json"


def _form() -> str:
    return f"{FORM} {_core.build_info()['version']} {_core.build_info()['commit']}"


def _adapter() -> TypeAdapter[KeptRuns]:
    from pydantic import TypeAdapter

    return TypeAdapter(KeptRuns)


def _load(cache: Path) -> dict[str, KeptRun]:
    try:
        with open(os.open(cache, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > CACHE_BYTES_MAX:
                return {}
            kept = _adapter().validate_json(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept.runs if kept.form == _form() else {}


def _save(cache: Path, kept: KeptRuns) -> None:
    with suppress(OSError, AssayError, ValueError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(cache, _adapter().dump_json(kept), 0o600)

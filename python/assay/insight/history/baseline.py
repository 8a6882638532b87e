"""What runs are compared with: copies of one run, or of the newest comparable ones, in a folder of their own.

A baseline is a folder `NAME` below a folder of baselines. It holds a copy of `run.json` and `points.jsonl` of each of
its runs, so that it outlives them and can be kept as an artefact. It is made beside the old one and put in its place.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import AssayError, IoFailed, UsageError
from assay.base.paths import printable
from assay.base.units import count_of
from assay.insight.history.reading import PastRun, past_run, read_runs, run_paths
from assay.record.folder import Folder
from assay.record.points import CUT_SHORT
from assay.record.repeats import is_run, sides_below
from assay.record.run_folder import MANIFEST_NAME, POINTS_NAME, RunFolder

BASELINES = Path("assay-baselines")
"""Folder of baselines, where none is named."""
DEFAULT_NAME = "baseline"
MARK = "assay-baseline"
"""File in a baseline by which Assay knows that it made the folder."""
FILE_BYTES_MAX = 256 * 2**20
LAST_MAX = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MEDIAN = re.compile(r"last:(\d{1,3})")


@dataclass(frozen=True)
class KeptBaseline:
    """A baseline: its name, its folder, and its runs in order of time."""

    name: str
    folder: Path
    runs: tuple[PastRun, ...]


def parse_last(text: str) -> int:
    """How many runs `--median last:5` takes.

    Raises
    ------
    UsageError
        It is something else.

    Examples
    --------
    >>> parse_last("last:5")
    5
    """
    match = _MEDIAN.fullmatch(text)
    if match is None or not 2 <= int(match[1]) <= LAST_MAX:
        raise UsageError(f"--median {printable(text)}: accepted: last:N, N from 2 to {LAST_MAX}, such as last:5")
    return int(match[1])


def newest_comparable(folders: Sequence[Path], count: int) -> list[Path]:
    """The newest run of some folders, and those before it that measured one of its loads on its target.

    A run itself stands for its folder, of which the newest runs that are comparable with it are meant.

    Raises
    ------
    UsageError
        There are fewer than `count`.
    """
    meant = {str(path.absolute()) for path in folders if is_run(path)}
    searched = [path.absolute().parent if is_run(path) else path for path in folders]
    runs = [run for run in read_runs(run_paths(searched)).runs if run.loads]
    lasts = [run for run in runs if str(Path(run.path).absolute()) in meant] or runs[-1:]
    keys = {load.key for run in lasts for load in run.loads}
    same = [run for run in runs if any(load.key in keys for load in run.loads)]
    if len(same) < count:
        where = ", ".join(printable(folder) for folder in searched)
        of = lasts[-1].title if lasts else "any run"
        raise UsageError(
            f"--median last:{count}: {where} has {count_of(len(same), 'comparable run')} of {of}; give fewer, or a"
            " run of another target and load"
        )
    return [Path(run.path) for run in same[-count:]]


def runs_given(paths: Sequence[Path]) -> list[Path]:
    """Run folders, and those of repeats below a folder.

    Raises
    ------
    UsageError
        One is neither.
    """
    found: list[Path] = []
    for path in paths:
        below = [path] if is_run(path) else [run for side in sides_below(path) for run in side]
        if not below:
            raise UsageError(f"{printable(path)}: has no {MANIFEST_NAME}, so it is not a run folder; name one")
        found += below
    return found


def set_baseline(runs: Sequence[Path], name: str, baselines: Path = BASELINES) -> KeptBaseline:
    """Keep copies of runs as a baseline; one of this name is replaced.

    Raises
    ------
    AssayError
        A run cannot be read, the name is no name, what has it is no baseline, or it cannot be written.
    """
    target = baseline_folder(name, baselines)
    if os.path.lexists(target) and not _is_baseline(target):
        raise UsageError(f"{printable(target)}: exists, and is not what assay baseline wrote; give another --name")
    known = tuple(past_run(run) for run in runs)
    if not any(run.loads for run in known) and not any(map(_has_points, runs)):
        raise UsageError("baseline set: the runs measured nothing that can be compared; give a run with points")
    part = baselines / f".{name}.{secrets.token_hex(4)}"
    try:
        part.mkdir(parents=True)
        (part / MARK).write_text("".join(f"{run.run_id}\n" for run in known))
        for number, run in enumerate(runs):
            _copied(run, part / f"{number:03d}-{printable(run.name)[:100]}")
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
    except OSError as error:
        raise IoFailed(f"{printable(target)}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return KeptBaseline(name, target, known)


def _has_points(run: Path) -> bool:
    """Whether a run measured anything, if only of its own load generator."""
    with RunFolder.open(run) as folder:
        return any(point.get("ended_by") not in CUT_SHORT for point in folder.points(lean=True))


def _copied(run: Path, to: Path) -> None:
    """Copy what a comparison reads of a run, without following links."""
    to.mkdir()
    source = Folder.open(run)
    try:
        for name in (MANIFEST_NAME, POINTS_NAME):
            (to / name).write_bytes(source.read(name, FILE_BYTES_MAX))
    finally:
        source.close()


def baseline_folder(name: str, baselines: Path = BASELINES) -> Path:
    """Folder of a baseline.

    Raises
    ------
    UsageError
        The name is no plain name of a file.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name {printable(name)}: accepted: letters, digits, '.', '_' and '-', such as main")
    return baselines / name


def open_baseline(name: str, baselines: Path = BASELINES) -> KeptBaseline:
    """A baseline that was kept.

    Parameters
    ----------
    name
        Its name, or the path of its folder.

    Raises
    ------
    UsageError
        There is none; the message says how to keep one.
    """
    folder = Path(name) if "/" in name else baseline_folder(name, baselines)
    if not _is_baseline(folder):
        raise UsageError(f"{printable(folder)}: there is no such baseline; keep one with assay baseline set RUN")
    runs = read_runs([path for side in sides_below(folder) for path in side])
    if runs.skipped:
        raise AssayError(f"{runs.skipped[0].path}: {runs.skipped[0].reason}")
    return KeptBaseline(folder.name, folder, runs.runs)


def kept_baselines(baselines: Path = BASELINES) -> list[KeptBaseline]:
    """All baselines of a folder, by name."""
    names = sorted(one.name for one in baselines.iterdir() if _is_baseline(one)) if baselines.is_dir() else []
    return [open_baseline(name, baselines) for name in names]


def _is_baseline(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and (folder / MARK).is_file()

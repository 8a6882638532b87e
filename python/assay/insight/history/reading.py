"""Runs as a history has them: of each its title, time, facts and the values that can be compared.

A folder may hold anything: what is no run, or is damaged, is left out with one line, and what is read is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from assay.base.errors import AssayError
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.insight.comparable import ComparableKey, RunKeys
from assay.insight.compare_answers import held_at
from assay.insight.differences import END_WORDS, VALUE_MIN, workload_text
from assay.insight.history.facts import RunFact, facts_of
from assay.record.figures import PERCENTILES, Figure, pooled
from assay.record.points import CUT_SHORT, current_points, load_text
from assay.record.repeats import is_run, runs_in
from assay.record.run_folder import MANIFEST_NAME, POINTS_NAME, RunFolder
from assay.record.shapes.point import Answer, Point
from assay.record.state import states_of
from assay.record.titles import run_title, target_title
from assay.record.types import Manifest
from assay.workloads.registry import figures_of

RUNS_MAX = 5_000
"""Newest runs that a history looks at: thirteen years of daily ones."""
MANIFEST_BYTES_MAX = 4 * 2**20
POINTS_BYTES_MAX = 256 * 2**20
"""A run whose files are larger has no part in a history."""
LETTERS_MAX = 200


@dataclass(frozen=True)
class PastValue:
    """A figure of one run: its name in documents, and its value in base units.

    Attributes
    ----------
    end
        Of an answer the load it was held at, as `END_WORDS` names it; empty of a point.
    """

    figure: str
    end: str
    value: float


@dataclass(frozen=True)
class PastLoad:
    """What one run measured of one load.

    Attributes
    ----------
    key
        What it is comparable with.
    kind
        Kind of the workload, whose figures the values are; None of runs of before that name none.
    workload, load
        In words.
    is_exact
        Whether it was measured on a virtual clock, on which nothing varies between runs but the seed.
    """

    key: ComparableKey
    kind: str | None
    workload: str
    load: str
    is_exact: bool
    values: tuple[PastValue, ...]


@dataclass(frozen=True)
class PastRun:
    """A run as its history needs it.

    Attributes
    ----------
    target
        The target in words.
    """

    path: str
    run_id: str
    title: str
    target: str
    started_utc_ns: int
    facts: tuple[RunFact, ...]
    loads: tuple[PastLoad, ...]


@dataclass(frozen=True)
class SkippedRun:
    """A run folder that has no part in the history, and why, in one line."""

    path: str
    reason: str


@dataclass(frozen=True)
class ReadRuns:
    """Runs in order of time, and the folders that were skipped."""

    runs: tuple[PastRun, ...]
    skipped: tuple[SkippedRun, ...]


def run_paths(folders: Sequence[Path]) -> list[Path]:
    """Every run folder directly in some folders, repeats too, each once, the newest `RUNS_MAX` by their names."""
    found = dict.fromkeys(
        path for folder in folders for path in [*([folder] if is_run(folder) else []), *runs_in(folder)]
    )
    # Names of runs begin with their time.
    return sorted(found, key=lambda path: path.name)[-RUNS_MAX:]


def read_runs(paths: Sequence[Path]) -> ReadRuns:
    """Read runs; one that cannot be read is skipped with one line."""
    runs: list[PastRun] = []
    skipped: list[SkippedRun] = []
    for path in paths:
        try:
            runs.append(past_run(path))
        except (AssayError, OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
            skipped.append(SkippedRun(printable(path), reason_of(error, path)))
    return ReadRuns(tuple(in_order(runs)), tuple(skipped))


def in_order(runs: Sequence[PastRun]) -> list[PastRun]:
    """Runs in order of time."""
    return sorted(runs, key=lambda run: (run.started_utc_ns, run.run_id))


def reason_of(error: Exception, path: Path) -> str:
    """Why a run is skipped, in one line without its path."""
    told = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, AssayError | OSError):
        told = f"it holds what no run has ({type(error).__name__})"
    return printable(told.removeprefix(printable(path)).lstrip("/: "))[:LETTERS_MAX]


def past_run(path: Path) -> PastRun:
    """A run as its history needs it.

    Raises
    ------
    AssayError
        It is no run, is damaged, or is larger than a history reads.
    """
    _refuse_large(path, MANIFEST_NAME, MANIFEST_BYTES_MAX)
    _refuse_large(path, POINTS_NAME, POINTS_BYTES_MAX)
    with RunFolder.open(path) as folder:
        manifest = cast(Manifest, folder.manifest)
        keys, points = RunKeys(manifest), current_points(folder.points(lean=True))
        pools = _pools(keys, points)
        if _has_repeats(pools):
            # Percentiles of repeats are merged from their histograms.
            points = current_points(folder.points())
            pools = _pools(keys, points)
    started = manifest.get("started_utc_ns")
    return PastRun(
        path=str(path),
        run_id=printable(str(manifest.get("run_id") or path.name))[:LETTERS_MAX],
        title=run_title(manifest),
        target=target_title(manifest)[:LETTERS_MAX],
        started_utc_ns=started if isinstance(started, int) else 0,
        facts=facts_of(manifest),
        loads=(*_of_answers(manifest, keys, points), *_of_points(keys, pools)),
    )


def _refuse_large(path: Path, name: str, most: int) -> None:
    try:
        size = os.lstat(path / name).st_size
    except FileNotFoundError:
        return
    if size > most:
        raise AssayError(f"its {name} is larger than {format_bytes(most)}, which a history does not read")


Pools = dict[ComparableKey, list[Point]]
"""Points of a run that are repeats of each other."""


def _pools(keys: RunKeys, points: Sequence[Point]) -> Pools:
    pools: Pools = {}
    for point in points:
        # A generator that was the bottleneck says nothing of the target.
        if point.get("ended_by") in CUT_SHORT or (point.get("generator") or {}).get("saturated"):
            continue
        key = keys.of_point(point) if "workload" in point and "load" in point else None
        if key is not None:
            pools.setdefault(key, []).append(point)
    return pools


def _has_repeats(pools: Pools) -> bool:
    return any(
        len(pool) > 1 and any(figure.statistic in PERCENTILES for figure in figures_of(pool[0]))
        for pool in pools.values()
    )


def _of_points(keys: RunKeys, pools: Pools) -> Iterator[PastLoad]:
    for key, pool in pools.items():
        first = pool[0]
        figures = [figure for figure in figures_of(first) if figure.compared and figure.follows(first) is None]
        held = [(figure, pooled(figure, pool)) for figure in figures]
        values = tuple(PastValue(figure.name, "", value) for figure, value in held if value and value >= VALUE_MIN)
        if values:
            yield PastLoad(
                key, first["workload"].get("kind"), _words(keys, first),
                load_text(first["load"]), first.get("clock") == "virtual", values,
            )  # fmt: skip


def _of_answers(manifest: Manifest, keys: RunKeys, points: Sequence[Point]) -> Iterator[PastLoad]:
    states = states_of(points)
    is_exact = {point.get("clock") for point in points} == {"virtual"}
    for answer in manifest.get("answers") or []:
        key, figures = keys.of_answer(answer, states), figures_of(answer)
        if key is None or not figures:
            continue
        values = tuple(_ends(figures[0], answer))
        if values:
            yield PastLoad(
                key, answer["workload"].get("kind"), _words(keys, answer),
                f"search over {answer['axis']}"[:LETTERS_MAX], is_exact, values,
            )  # fmt: skip


def _words(keys: RunKeys, measured: Point | Answer) -> str:
    """The workload of a point or answer, and the level of the study that it belongs to."""
    level = keys.level(measured.get("part"))
    return (workload_text(measured["workload"]) + (f", {level}" if level else ""))[:LETTERS_MAX]


def _ends(figure: Figure, answer: Answer) -> Iterator[PastValue]:
    for end, words in END_WORDS.items():
        value = held_at(figure, answer, end)
        if value is not None and value >= VALUE_MIN:
            yield PastValue(figure.name, words, value)

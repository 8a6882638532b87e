"""The runs of a comparison as they lie in folders: sides of repeats, and other runs of the same targets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from assay.base.errors import AssayError, UsageError
from assay.base.paths import printable
from assay.insight.comparable import states_apart, target_identity
from assay.insight.compare import compare_runs
from assay.insight.differences import (
    SMALLEST_SHARE,
    ComparedRun,
    ComparedSide,
    RunComparison,
    RunLike,
    on_virtual_clock,
)
from assay.record.points import current_points
from assay.record.repeats import runs_in, sides_below
from assay.record.run_folder import RunFolder
from assay.record.shapes.point import Point
from assay.record.titles import run_titles
from assay.record.types import Manifest

OTHER_RUNS_MAX = 100
"""Newest other runs of a folder that are looked at for a history."""


class SideName(NamedTuple):
    """What a side is called, and the folders of its runs."""

    title: str
    folders: str


@dataclass(frozen=True)
class ReadSides:
    """The sides of a comparison, as they are shown and as they are compared."""

    names: list[SideName]
    sides: list[ComparedSide]
    history: list[ComparedSide]

    def compared(
        self, *, smallest_share: float = SMALLEST_SHARE, paired: bool = False, any_state: bool = False
    ) -> RunComparison:
        """What differs.

        Parameters
        ----------
        any_state
            Compare runs whose targets were in different states, too.

        Raises
        ------
        UsageError
            The targets of two sides were in different states.
        """
        if not any_state:
            self.refuse_states()
        return compare_runs(self.sides, smallest_share=smallest_share, history=self.history, paired=paired)

    def refuse_states(self) -> None:
        """Refuse sides whose targets were in different states.

        Raises
        ------
        UsageError
            Two were.
        """
        found = states_apart(_points(side) for side in self.sides)
        if found is not None:
            raise UsageError(
                f"compare: one target was {found[0]}, another {found[1]}: the difference would be that of the states;"
                " precondition both (--precondition), or compare all the same with --any-state"
            )


def _points(side: ComparedSide) -> list[Point]:
    return [point for run in side.runs for point in run.points]


def read_sides(paths: Sequence[Path]) -> ReadSides:
    """The sides that run folders, and folders of repeats, are; and the history of their targets.

    Raises
    ------
    RunFolderError
        One is no run folder.
    """
    placed = sides_of([run for path in paths for side in sides_below(path) or [[path]] for run in side])
    folders = [[RunFolder.open(run) for run in side] for side in placed]
    sides = [ComparedSide(tuple(compared_run(folder) for folder in side)) for side in folders]
    titles = run_titles([side[0].manifest for side in folders])
    names = [_named(side, title) for side, title in zip(folders, titles, strict=True)]
    # Repeats tell what varies between runs; on a virtual clock nothing does.
    needs_history = all(len(side) == 1 for side in folders) and not on_virtual_clock(
        point for side in sides for run in side.runs for point in run.points
    )
    return ReadSides(names, sides, _history([folder for side in folders for folder in side]) if needs_history else [])


def sides_of(runs: Sequence[Path]) -> list[list[Path]]:
    """Runs that lie in one folder are repeats of one side, if others lie in another; else each is a side of its own.

    Examples
    --------
    >>> [len(side) for side in sides_of([Path("before/1"), Path("before/2"), Path("after/3"), Path("after/4")])]
    [2, 2]
    >>> [len(side) for side in sides_of([Path("results/1"), Path("results/2"), Path("results/3")])]
    [1, 1, 1]
    """
    sides: dict[Path, list[Path]] = {}
    for run in runs:
        sides.setdefault(run.absolute().parent, []).append(run)
    return list(sides.values()) if len(sides) > 1 else [[run] for run in runs]


def compared_run(folder: RunFolder) -> ComparedRun:
    """A run as it is compared.

    Raises
    ------
    RunFolderError
        A point lacks what comparing counts on.
    """
    return ComparedRun(folder.manifest, current_points(folder.whole_points()))


def _named(side: Sequence[RunFolder], title: str) -> SideName:
    """Runs by their title and folders, and who measured them where Assay did not."""
    by = dict.fromkeys(str(one) for run in side for one in (run.manifest.get("imported") or {}).get("programs") or [])
    told = [*([f"{len(side)} runs"] if len(side) > 1 else []), *([f"measured by {', '.join(by)}"] if by else [])]
    shown = f"{title} ({', '.join(told)})" if told else title
    return SideName(shown, ", ".join(printable(run.path) for run in side))


def _history(compared: Sequence[RunFolder]) -> list[ComparedSide]:
    """Other runs of the targets of the runs, from the folders in which these lie; those of one target together."""
    given = {folder.path.resolve() for folder in compared}
    wanted = {
        identity for folder in compared if (identity := target_identity(cast(Manifest, folder.manifest))) is not None
    }
    found: dict[str, list[RunLike]] = {}
    own = [point for folder in compared for point in folder.points()]
    for parent in dict.fromkeys(folder.path.absolute().parent for folder in compared):
        # Names of runs begin with their time.
        others = sorted(runs_in(parent), key=lambda run: run.name, reverse=True)
        for path in others[:OTHER_RUNS_MAX]:
            if path.resolve() in given:
                continue
            with suppress(AssayError):
                folder = RunFolder.open(path)
                identity = target_identity(cast(Manifest, folder.manifest))
                if identity is not None and identity in wanted:
                    run = compared_run(folder)
                    # What a drive's state makes of its figures is not what runs of one state vary by.
                    if states_apart([own, run.points]) is None:
                        found.setdefault(identity, []).append(run)
    return [ComparedSide(tuple(runs)) for runs in found.values()]

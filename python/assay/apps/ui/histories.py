"""Histories of the targets that the page shows, as `assay history` tells them; asked for in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from assay.apps.ui.lines import PageQuestion

if TYPE_CHECKING:
    from assay.insight.history.telling import TargetDocument


class ContractLeft(TypedDict):
    """What is left of a contract's minutes in breach in this period."""

    clause: str
    minutes: float


class TargetOverTime(TypedDict):
    """A target over its runs, and what is left of its contract; None where no contract is known."""

    history: TargetDocument
    contract: ContractLeft | None


class HistoriesView(TypedDict):
    """Targets over time, the one that ran last first; folders that were skipped, and why."""

    targets: list[TargetOverTime]
    skipped: list[str]


def histories(asked: PageQuestion) -> HistoriesView:
    """Every load on each target over time, where its level changed, and what else changed there."""
    from assay.insight.history.kept import read_kept
    from assay.insight.history.reading import RUNS_MAX
    from assay.insight.history.telling import history_document
    from assay.insight.history.trends import history_of

    # Names of runs begin with their time.
    paths = sorted((Path(path) for path in asked["paths"]), key=lambda path: path.name)[-RUNS_MAX:]
    told = history_document(history_of(read_kept(paths, sorted({path.parent for path in paths}))))
    return {
        "targets": [{"history": target, "contract": None} for target in told["targets"]],
        "skipped": [f"{Path(one['path']).name}: {one['reason']}" for one in told["skipped"]],
    }

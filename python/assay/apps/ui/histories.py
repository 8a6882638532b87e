"""Histories of the targets that the page shows, as `assay history` tells them; asked for in a process of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from assay.apps.ui.lines import PageQuestion

if TYPE_CHECKING:
    from assay.insight.contracts.this_month import ContractMonth
    from assay.insight.history.telling import TargetDocument


class TargetOverTime(TypedDict):
    """A target over its runs."""

    history: TargetDocument


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
        "targets": [{"history": target} for target in told["targets"]],
        "skipped": [f"{Path(one['path']).name}: {one['reason']}" for one in told["skipped"]],
    }


def contract(asked: PageQuestion) -> ContractMonth:
    """What is left this month of the contract of a recording."""
    from assay.insight.contracts.this_month import contract_this_month

    return contract_this_month(Path(asked["path"]), time.time_ns())

"""`assay history`: each load on each target over time, and where its level changed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.taken import answer
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import count_of

if TYPE_CHECKING:
    from assay.document.elements import Block, Table
    from assay.document.terminal import Details
    from assay.insight.contracts.this_month import ContractMonth
    from assay.insight.history.trends import (
        ChangedFigure,
        ChangeEvent,
        FigureTrend,
        LoadHistory,
        RunsHistory,
        TargetHistory,
    )

EXAMPLES = """
Examples:

`assay history`

`assay history /srv/results --target nvme0n1`

`assay history --json`
"""
COLUMNS = ("load", "figure", "runs", "now", "95 % interval", "trend")
LOADS_SHOWN = 6
EVENTS_SHOWN = 3
FIGURES_SHOWN = 3
SKIPPED_SHOWN = 3
"""What is printed of a target without --details."""
NEXT = ("assay baseline set --median last:5 (keep what later runs are compared with)",)


def history(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Folders that hold runs.", show_default="assay-results"),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Only targets that have this text in their title.")
    ] = None,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Show each load on each target over time: level, interval, changes, and what changed with them."""
    del debug
    from assay.insight.history.telling import history_document

    given = folders or [Path("assay-results")]
    contracts = [] if target is not None else contracts_in(given, time.time_ns())
    found = history_of_folders(given, target, alone=not contracts)
    answer(
        lambda: {**history_document(found), "contracts": contracts},
        lambda: [*history_blocks(found), *contract_blocks(contracts)], json=json, details=details,
        steps=NEXT if found.targets else (),
    )  # fmt: skip


def contracts_in(folders: Sequence[Path], now_ns: int) -> list[ContractMonth]:
    """What is left of the contracts of the recordings in some folders, in the month of a time."""
    from assay.insight.contracts.this_month import contract_this_month, recordings_with_contract

    present = [folder for folder in folders if folder.is_dir()]
    return [contract_this_month(recording, now_ns) for recording in recordings_with_contract(present)]


def contract_blocks(contracts: Sequence[ContractMonth]) -> Iterator[Block]:
    """A line for each contract, and one for each of its clauses."""
    from assay.document.elements import Bullets, Paragraph

    for one in contracts:
        title = f"{one['title'] or 'contract'} of {printable(one['recording'])}, this month"
        yield Paragraph(f"{title}: unknown: {one['why']}" if one["why"] else f"{title}:", tone="plain")
        if one["clauses"]:
            yield Bullets([clause["sentence"] for clause in one["clauses"]])


def history_of_folders(
    folders: Sequence[Path], target: str | None = None, *, alone: bool = True
) -> RunsHistory:  # fmt: skip
    """The history of the runs in some folders.

    Parameters
    ----------
    alone
        Whether nothing else is told of the folders, so that they must hold a run.

    Raises
    ------
    UsageError
        A folder is missing, holds no run, or no target has the text in its title.
    """
    from assay.insight.history.kept import read_folders
    from assay.insight.history.trends import history_of

    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{printable(folder)}: is no folder; give folders that hold runs")
    read = read_folders(folders)
    if alone and not read.runs and not read.skipped:
        where = ", ".join(printable(folder) for folder in folders)
        raise UsageError(f"{where}: holds no run; measure one first, or name a run folder")
    found = history_of(read)
    if target is None:
        return found
    from dataclasses import replace

    kept = tuple(one for one in found.targets if target in one.title)
    if not kept:
        known = "; ".join(dict.fromkeys(one.title for one in found.targets[:5])) or "none"
        raise UsageError(f"--target {printable(target)}: no target has it in its title; known: {known}")
    return replace(found, targets=kept, runs=sum(len(one.runs) for one in kept))


def history_blocks(found: RunsHistory) -> list[Block | Details]:
    """The sentence, a table for each target, its changes, and what was skipped."""
    from assay.document.elements import Paragraph
    from assay.document.terminal import Details
    from assay.insight.history.telling import history_sentence

    blocks: list[Block | Details] = [Paragraph(history_sentence(found), strong=True)]
    for target in found.targets:
        blocks += _target_blocks(target)
    lines = [Paragraph(f"skipped: {one.path}: {one.reason}", tone="quiet") for one in found.skipped]
    blocks += lines[:SKIPPED_SHOWN]
    if len(lines) > SKIPPED_SHOWN:
        more = lines[SKIPPED_SHOWN:]
        blocks.append(Details(f"{len(more)} more folders were skipped: --details says why", more))
    return blocks


def _target_blocks(target: TargetHistory) -> Iterator[Block | Details]:
    from assay.document.elements import Paragraph
    from assay.document.terminal import Details

    if not target.loads:
        yield Paragraph(f"{target.title}: no load was measured twice in the same way.")
        return
    rows = [(load, trend) for load in target.loads for trend in load.trends]
    firsts = [(load, load.trends[0]) for load in target.loads[:LOADS_SHOWN] if load.trends]
    yield _table(target.title, firsts)
    for event in target.events[:EVENTS_SHOWN]:
        yield from _event(target, event, event.changed[:FIGURES_SHOWN])
    if more := list(_more_of_events(target)):
        yield Details("more figures changed there: --details prints all", more)
    if others := [row for row in rows if row not in firsts]:
        yield Details(
            f"{count_of(len(others), 'more figure')}: --details prints all",
            [_table(f"{target.title}: more figures", others)],
        )


def _more_of_events(target: TargetHistory) -> Iterator[Block]:
    """Figures that are not shown of events that are, and events that are not."""
    from assay.document.elements import Bullets, Paragraph
    from assay.insight.history.telling import change_words, day_of

    for event in target.events[:EVENTS_SHOWN]:
        if more := event.changed[FIGURES_SHOWN:]:
            yield Paragraph(f"{day_of(event.run)}, more figures:")
            yield Bullets([change_words(one) for one in more])
    for event in target.events[EVENTS_SHOWN:]:
        yield from _event(target, event, event.changed)


def _event(target: TargetHistory, event: ChangeEvent, changed: Sequence[ChangedFigure]) -> list[Block]:
    """What happened with a run, and the figures that it changed most."""
    from assay.document.elements import Bullets, Paragraph
    from assay.insight.history.telling import change_words, event_words

    return [
        Paragraph(event_words(target, event), tone="bad" if event.worse else "plain"),
        Bullets([change_words(one) for one in changed]),
    ]


def _table(caption: str, figures: Sequence[tuple[LoadHistory, FigureTrend]]) -> Table:
    """A row for each figure of a load."""
    from assay.document.terminal import table
    from assay.insight.history.telling import interval_words, load_words, trend_words

    rows = [
        (
            load_words(load), trend.title, str(len(trend.values)), trend.figure.words(trend.now.value),
            interval_words(trend.figure, trend.now.interval_95), trend_words(trend),
        )
        for load, trend in figures
    ]  # fmt: skip
    return table(caption, COLUMNS, rows)

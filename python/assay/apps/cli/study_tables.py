"""What a study found, on the terminal: the sentences, and the published figures beside the model's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from assay.apps.cli.console import one_line

LEVELS_SHOWN = 40
"""More rows than this are left to the report and the JSON."""


def print_study(study: Mapping[str, Any]) -> None:
    """The findings of a study, before its verdict; nothing before the run has ended."""
    from rich.console import Console as RichConsole
    from rich.text import Text

    if "sentences" not in study:
        return
    console = RichConsole(highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(Text(one_line(f"{study['title']}: {study['question']}"), style="bold"))
    for sentence in study["sentences"]:
        console.print(Text(one_line(f"  {sentence}")))
    if study["published"]:
        _print_published(console, study["published"])
    elif len(study["results"]) <= LEVELS_SHOWN:
        _print_results(console, study)


def _print_published(console: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from assay.insight.studies.words import published_texts

    table = Table(title="Published figures", title_justify="left")
    for column in ("figure", "source", "published", "model", "error", "used for fitting"):
        table.add_column(column, overflow="fold", justify="right" if column in ("published", "model") else "left")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in published_texts(row)))
    console.print(table)


def _print_results(console: Any, study: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from assay.insight.studies.words import result_rows

    columns, rows = result_rows(study["results"])
    table = Table(title="Levels", title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)

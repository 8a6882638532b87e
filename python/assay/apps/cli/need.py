"""`--need` and `--need-from`: what is needed of the storage, for verbs that measure it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.base.errors import UsageError
from assay.workloads.options import TIME

if TYPE_CHECKING:
    from assay.record.shapes.need import AskedNeed

Need = Annotated[
    str | None,
    typer.Option(
        "--need",
        metavar="TEXT",
        help='Required load; Assay says whether the storage holds it: "5000 iops 8k 70/30 read.p99<2ms".',
        rich_help_panel=TIME,
    ),
]
NeedFrom = Annotated[
    Path | None,
    typer.Option(
        "--need-from",
        metavar="PATH",
        help="Required load from a recording, a run at a given rate, or a need of `assay size` in TOML.",
        rich_help_panel=TIME,
    ),
]


def asked_need(need: str | None, need_from: Path | None) -> AskedNeed | None:
    """What is needed; None where nothing is said.

    Raises
    ------
    UsageError
        Both are given, the text is not understood, or the path says nothing of a load.
    """
    if need is not None and need_from is not None:
        raise UsageError("--need and --need-from exclude each other")
    if need is None and need_from is None:
        return None
    # What sizing needs is not loaded where nothing is needed.
    from assay.insight.sizing.load import load_of_path, load_of_text

    if need_from is not None:
        return load_of_path(need_from)
    assert need is not None
    return load_of_text(need)

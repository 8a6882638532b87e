"""One small file of a run's figures without names, addresses and times, which a collection of references accepts.

It is made of numbers and of words that Assay chooses: nothing of the run's texts goes into it. It is never sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import get_args

from assay.base.errors import UsageError
from assay.base.tables import Record
from assay.insight.ranking.references import FIGURES_MAX, Metric, parse_references
from assay.record.figures import value_of
from assay.record.points import CUT_SHORT
from assay.record.shapes.point import Point
from assay.record.state import NAMES, state_of
from assay.workloads.registry import figures_of

SHARED_CLASS = "shared"


def shared_text(points: Sequence[Point], started_utc_ns: int, storage_class: str = SHARED_CLASS) -> str:
    """The file as text.

    Parameters
    ----------
    started_utc_ns
        Of the run, of which the month is told.
    storage_class
        The class of the storage as the user names it.

    Raises
    ------
    UsageError
        The run has no figure that a reference may have, or the class has no plain name.
    """
    by_state: dict[tuple[str, bool], list[str]] = {}
    for point in points:
        name = str(state_of({**point}).get("name"))
        told = (name if name in NAMES else "unknown", point.get("clock") == "virtual")
        by_state.setdefault(told, []).extend(_figures(point))
    known = {state: rows[:FIGURES_MAX] for state, rows in by_state.items() if rows}
    if not known:
        raise UsageError(
            "--share: the run has no figure of plain I/O at a number of outstanding I/Os; nothing is shared"
        )
    month = datetime.fromtimestamp(started_utc_ns / 1e9, UTC) if 0 < started_utc_ns < 1 << 62 else datetime.now(UTC)
    lines = ["schema_version = 1", f'as_of = "{month:%Y-%m}"']
    of_class = "" if storage_class == SHARED_CLASS else f", class {storage_class}"
    for (state, is_model), rows in known.items():
        title = f"{'a model' if is_model else 'storage'} that a user shared{of_class}"
        lines += [
            "", "[[storage]]", 'of = "storage of a user"', f"storage_class = {json.dumps(storage_class)}",
            f"title = {json.dumps(title)}",
            f'basis = "{"model" if is_model else "shared"}"', 'source = "assay report --share"',
            f'state = "{state}"', "figure = [", *rows, "]",
        ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    # What the collection would refuse is refused here.
    parse_references(text, "--share")
    return text


def _figures(point: Point) -> Iterator[str]:
    """Figures of a point as rows; none of one that says nothing of the storage."""
    workload: Record = {**point["workload"]}
    outstanding, block = point["load"].get("outstanding"), workload.get("block_bytes")
    shares = [share for key in ("read_share", "random_share") if isinstance(share := workload.get(key), int | float)]
    is_plain = isinstance(block, int) and len(shares) == 2
    saturated = (point.get("generator") or {}).get("saturated")
    if not is_plain or not outstanding or saturated or point.get("ended_by") in CUT_SHORT:
        return
    for figure in figures_of(point):
        value = value_of(figure, point)
        if figure.name in get_args(Metric) and value:
            yield (
                f'  {{ metric = "{figure.name}", value = {value:.4g}, block_bytes = {block},'
                f" read_share = {float(shares[0]):.3g}, random_share = {float(shares[1]):.3g},"
                f" outstanding = {outstanding} }},"
            ).replace("e+", "e")

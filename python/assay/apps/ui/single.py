"""The one point of a run of one point: its latency histogram and its seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.apps.ui.shown import DrawnHistogram, SecondsLine, SecondsShown, SinglePoint
from assay.record.histograms import histogram_of

SIDES = ("read", "write", "total")
STEPS_A_DOUBLING = 4
"""Steps of a histogram as it is drawn: a bar for each fourth of a doubling of the latency."""
HISTOGRAMS_MAX = 8
BATCHES_MAX = 20_000
TEXT_MAX = 100


def single_point(point: Mapping[str, Any]) -> SinglePoint:
    """What is shown of a point that stands alone.

    Raises
    ------
    RunFolderError
        A histogram of it is damaged.
    """
    return {"histograms": list(_histograms(point)), "seconds": _seconds(point.get("batches"))}


def _histograms(point: Mapping[str, Any]) -> Iterator[DrawnHistogram]:
    """Reads and writes, or the transactions of a kind that has some."""
    sides: Mapping[str, object] = {side: point.get(side) for side in SIDES[:2]}
    if not any(_has_histogram(one) for one in sides.values()):
        known = (one.get("by_transaction") for one in point.values() if isinstance(one, Mapping))
        sides = next((one for one in known if isinstance(one, Mapping)), {"total": point.get("total")})
    for name, one in list(sides.items())[:HISTOGRAMS_MAX]:
        found = histogram_of(one) if isinstance(one, Mapping) else None
        if found is not None:
            yield drawn(str(name)[:TEXT_MAX], found.bins())


def _has_histogram(side: object) -> bool:
    return isinstance(side, Mapping) and bool(side.get("histogram"))


def drawn(name: str, bins: list[tuple[int, int]]) -> DrawnHistogram:
    """A histogram in steps of a fourth of a doubling; every count is in the step of its latency.

    Examples
    --------
    >>> drawn("read", [(1000, 5), (1010, 1), (2000, 2)])["counts"]
    [6, 0, 0, 0, 2]
    """
    edges = [bins[0][0] * 2 ** (1 / (2 * STEPS_A_DOUBLING))] if bins else []
    while edges and edges[-1] < bins[-1][0]:
        edges.append(edges[-1] * 2 ** (1 / STEPS_A_DOUBLING))
    counts = [0] * len(edges)
    place = 0
    for value, count in bins:
        while value > edges[place]:
            place += 1
        counts[place] += count
    return {"name": name, "up_to_ns": [round(edge, 1) for edge in edges], "counts": counts}


def _seconds(batches: object) -> list[SecondsShown]:
    """Figures of a point in its batches, those of one name together."""
    if not isinstance(batches, Mapping) or not isinstance(batches.get("seconds"), int | float):
        return []
    found: dict[str, list[SecondsLine]] = {}
    for side in SIDES:
        own = batches.get(side)
        for metric, values in own.items() if isinstance(own, Mapping) else ():
            if isinstance(values, list) and len(values) > 1:
                found.setdefault(str(metric)[:TEXT_MAX], []).append({"name": side, "values": values[:BATCHES_MAX]})
    return [{"metric": metric, "step_s": float(batches["seconds"]), "lines": lines} for metric, lines in found.items()]

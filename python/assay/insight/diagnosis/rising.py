"""What leaves its threshold first as load rises."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from assay.insight.diagnosis.matrix import CellOf
from assay.insight.diagnosis.observed import Flags, Observations
from assay.record.ranks import rank_correlation


class RisingCell(TypedDict):
    """The measure of a cell as load rises: the first load beyond its threshold, and Spearman's rank correlation."""

    tier: str
    host: str
    resource: str
    what: str
    first_load: float | None
    correlation_with_latency: float | None


class RisingLoad(TypedDict):
    """How many points were measured as load rose, and what cells did meanwhile."""

    points: int
    cells: list[RisingCell]


def first_to_saturate(observed: Observations, cells: list[CellOf]) -> RisingLoad | None:
    """Which cell leaves its threshold first as load rises, and how each goes with latency.

    Returns
    -------
    RisingLoad or None
        The first load and the rank correlation of each cell's leading measure with the mean latency of the points;
        None with fewer than four loads.
    """
    loads: list[tuple[float, float, Flags]] = []
    for window in observed.windows:
        asked = window.point.get("load") or {}
        sizes = (asked.get("outstanding"), asked.get("users"), asked.get("rate"), asked.get("streams"))
        load = next((size for size in sizes if size is not None), None)
        latency = window.latency_ns
        if load is not None and latency is not None:
            loads.append((float(load), latency, window.steps))
    if len({load for load, _, _ in loads}) < 4:
        return None
    loads.sort(key=lambda one: one[0])
    found: list[RisingCell] = []
    for cell in cells:
        for one in cell.judged:
            values = [float(np.nanmean(one.measure.values[steps])) for _, _, steps in loads]
            known = [place for place, value in enumerate(values) if np.isfinite(value)]
            if len(known) < 4 or one.measure.text.endswith(("reads", "writes")):
                continue
            bound = one.measure.threshold
            beyond = [loads[place][0] for place in known
                      if (values[place] < bound.value if bound.below else values[place] >= bound.value)]  # fmt: skip
            found.append(
                {
                    "tier": cell.tier, "host": cell.host, "resource": cell.resource, "what": one.measure.text,
                    "first_load": min(beyond, default=None),
                    "correlation_with_latency": _spearman([values[p] for p in known], [loads[p][1] for p in known]),
                }
            )  # fmt: skip
    found.sort(
        key=lambda one: (
            one["first_load"] is None,
            one["first_load"] or 0.0,
            -abs(one["correlation_with_latency"] or 0),
        )
    )
    return {"points": len(loads), "cells": found[:20]}


def _spearman(left: list[float], right: list[float]) -> float | None:
    """Spearman's rank correlation; None where one side does not vary."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return rank_correlation(left, right)

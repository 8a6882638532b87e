"""What leaves its threshold first as load rises."""

from __future__ import annotations

import json
from typing import TypedDict

import numpy as np

from assay.base.tables import Record
from assay.insight.diagnosis.matrix import CellOf
from assay.insight.diagnosis.observed import Flags, Observations
from assay.record.ranks import rank_correlation

AXES = ("outstanding", "users", "rate", "streams")
LOADS_MIN = 4
"""Loads of one workload from which an order is told."""


class RisingCell(TypedDict):
    """The measure of a cell as load rises: the first load beyond its threshold, and Spearman's rank correlation."""

    tier: str
    host: str
    resource: str
    what: str
    first_load: float | None
    correlation_with_latency: float | None


class RisingLoad(TypedDict):
    """How many points of one workload were measured as its load rose on an axis, and what cells did meanwhile."""

    axis: str
    points: int
    cells: list[RisingCell]


def first_to_saturate(observed: Observations, cells: list[CellOf]) -> RisingLoad | None:
    """Which cell leaves its threshold first as load rises, and how each goes with latency.

    Returns
    -------
    RisingLoad or None
        The first load and the rank correlation of each cell's leading measure with the mean latency of the points, for
        the workload with most loads; None where none has four. Loads of different workloads are in no order.
    """
    by_workload: dict[tuple[str, str], list[tuple[float, float, Flags]]] = {}
    for window in observed.windows:
        asked: Record = window.point.get("load") or {}
        axis = next((name for name in AXES if asked.get(name) is not None), None)
        latency = window.latency_ns
        if axis is not None and latency is not None:
            workload = json.dumps(window.point.get("workload"), sort_keys=True, default=str)
            by_workload.setdefault((workload, axis), []).append((float(asked[axis]), latency, window.steps))
    counts = {key: len({load for load, _, _ in loads}) for key, loads in by_workload.items()}
    key = max(counts, key=lambda one: counts[one], default=None)
    if key is None or counts[key] < LOADS_MIN:
        return None
    loads = by_workload[key]
    loads.sort(key=lambda one: one[0])
    found: list[RisingCell] = []
    for cell in cells:
        for one in cell.judged:
            values = [float(np.nanmean(one.measure.values[steps])) for _, _, steps in loads]
            known = [place for place, value in enumerate(values) if np.isfinite(value)]
            if len(known) < LOADS_MIN or one.measure.text.endswith(("reads", "writes")):
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
    return {"axis": key[1], "points": len(loads), "cells": found[:20]}


def _spearman(left: list[float], right: list[float]) -> float | None:
    """Spearman's rank correlation; None where one side does not vary."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return rank_correlation(left, right)

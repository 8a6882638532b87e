"""Figures of what lies under a database: its storage, and the processors of its host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from assay.record.common_figures import COMMON_FIGURES
from assay.record.figures import Figure
from assay.record.shapes.point import Point
from assay.workloads.databases.shapes import Storage


def under(role: str, figure: Figure) -> Figure:
    """A figure of the storage of a role; devices count, and have no batches."""

    def beneath(point: Point) -> Point:
        """A role has the directions of a point."""
        return cast(Point, (point.get("roles") or {}).get(role) or {})

    return replace(
        figure,
        value=lambda point: figure.value(beneath(point)),
        batches=lambda _point: (),
        record=lambda point: figure.record(beneath(point)),
        limit="",
    )


CPU_BUSY_SHARE = 0.8
"""From here on processors are the limit, as the presets' `cpu<80%` has it (the method's acceptance limits)."""


def cpu_of_server(storage_of: Callable[[Point], Storage]) -> Figure:
    """The server's share of its host; what the load itself takes does not count against it.

    Parameters
    ----------
    storage_of
        Gives a point's figures of `assay.workloads.databases.storage`; empty where there are none.
    """

    def value(point: Point) -> float | None:
        return storage_of(point).get("server_cpu_share")

    return replace(
        COMMON_FIGURES["cpu_share"],
        name="server_cpu_share",
        value=value,
        scopes=lambda point, _role: [("server", value(point), None)],
    )

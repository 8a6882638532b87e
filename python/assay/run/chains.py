"""The order in which the parts of a run follow each other, and chains of parts that go on with each other's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.record.shapes.point import Point
from assay.workloads.capabilities import Foreseen
from assay.workloads.plan import AnyPlan, Part
from assay.workloads.registry import workload_of


def in_order(parts: Sequence[Part[Any]], study: Mapping[str, Any] | None) -> list[Part[Any]]:
    """Parts as they run: in the order that a study has drawn, else as they are listed."""
    if study is None:
        return list(parts)
    by_name = {part.name: part for part in parts}
    return [by_name[name] for name in study["order"]]


def chains_of(ordered: Sequence[Part[Any]]) -> list[list[Part[Any]]]:
    """Parts in the order they run; those that continue are with the one they continue."""
    chains: list[list[Part[Any]]] = []
    for part in ordered:
        if part.continues:
            chains[-1].append(part)
        else:
            chains.append([part])
    return chains


def points_least(plan: AnyPlan) -> int | None:
    """Number of points of a finished part; None if not known in advance."""
    workload = workload_of(plan)
    return workload.points_least(plan) if isinstance(workload, Foreseen) else None


def forget_unfinished(
    ordered: Sequence[Part[Any]], finished: dict[str, Point], *, is_virtual: Callable[[Part[Any]], bool]
) -> None:
    """Take the points of a chain out of `finished` unless all of it is: the state between its parts is not kept.

    Nor is that of a model between the points of a part that first brings it into a state.

    Parameters
    ----------
    ordered
        Parts in the order they run.
    finished
        Finished points by key.
    is_virtual
        Whether a part runs on a model.
    """
    counts = Counter(point["part"] for point in finished.values())
    for chain in chains_of(ordered):
        whole = all(_is_done(part, counts[part.name]) for part in chain)
        by_state = any(workload_of(part.plan).changes_state(part.plan) and is_virtual(part) for part in chain)
        if by_state or (len(chain) > 1 and not whole):
            names = {part.name for part in chain}
            for key in [key for key, point in finished.items() if point["part"] in names]:
                del finished[key]


def _is_done(part: Part[Any], points: int) -> bool:
    """Whether a part has so many points as it has when it is done."""
    least = points_least(part.plan)
    return least is not None and points >= least

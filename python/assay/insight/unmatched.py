"""Loads that one run has and another has not, in lines: what two of the same name differ in, and many together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.base.units import count_of
from assay.insight.differences import run_letter, workload_text
from assay.record.points import load_text
from assay.record.shapes.point import Point

SINGLY_MAX = 4
"""Loads of one kind that have a line each; more have one together."""
NAMES_MAX = 3
"""Workloads, or facts that differ, that a line names."""


def unmatched_lines(a: Sequence[Point], b: Sequence[Point], letter: str) -> list[str]:
    """Lines on what cannot be compared.

    Parameters
    ----------
    a, b
        A point of each load that only the first run has, and of each that only the other has.
    letter
        Letter of the other run.
    """
    first, alone_a, alone_b, told = run_letter(0), list(a), list(b), []
    for point in a:
        twin = next((other for other in alone_b if _name(other) == _name(point)), None)
        if twin is not None:
            told.append(f"{_name(point)}: {_differing(point, twin, first, letter)}")
            alone_a.remove(point)
            alone_b.remove(twin)
    return [
        *told,
        *_by_kind(alone_a, f"in {first}, not in {letter}"),
        *_by_kind(alone_b, f"in {letter}, not in {first}"),
    ]


def _name(point: Point) -> str:
    return f"{workload_text(point['workload'])}, {load_text(point['load'])}"


def _differing(point: Point, other: Point, a: str, b: str) -> str:
    """What two points of the same name differ in, which makes them two loads."""
    facts: list[Mapping[str, object]] = [{**one["workload"], **one["load"]} for one in (point, other)]
    names = [name for name in {**facts[0], **facts[1]} if name != "name" and facts[0].get(name) != facts[1].get(name)]
    told = [f"{name.replace('_', ' ')} {_short(facts[0].get(name))} in {a}, {_short(facts[1].get(name))} in {b}"
            for name in names[:NAMES_MAX]]  # fmt: skip
    return "; ".join([*told, *([f"{len(names) - NAMES_MAX} more differ"] if len(names) > NAMES_MAX else [])])


def _short(value: object) -> str:
    """A fact; a long one as what it is made of has no room in a line."""
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else "other"


def _by_kind(points: Sequence[Point], where: str) -> list[str]:
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(str(point["workload"].get("kind")), []).append(point)
    lines = []
    for found in kinds.values():
        if len(found) <= SINGLY_MAX:
            lines += [f"{_name(point)}: {where}" for point in found]
            continue
        names = list(dict.fromkeys(workload_text(point["workload"]) for point in found))
        more = f" and {count_of(len(names) - NAMES_MAX, 'more workload')}" if len(names) > NAMES_MAX else ""
        lines.append(f"{count_of(len(found), 'load')} of {', '.join(names[:NAMES_MAX])}{more}: {where}")
    return lines

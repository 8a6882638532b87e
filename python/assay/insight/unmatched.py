"""Loads that one run has and another has not, in lines: what two of the same name differ in, and many together."""

from __future__ import annotations

import itertools
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
LETTERS_MAX = 40
"""Letters of a fact that a line shows."""


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
    told = []
    for name in names[:NAMES_MAX]:
        first, second = _apart(*(_text(one.get(name)) for one in facts))
        told.append(f"{name.replace('_', ' ')} {first} in {a}, {second} in {b}")
    return "; ".join([*told, *([f"{len(names) - NAMES_MAX} more differ"] if len(names) > NAMES_MAX else [])])


def _text(value: object) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def _apart(first: str, second: str) -> tuple[str, str]:
    """Cut the texts of a fact, where they are long, to the part from shortly before their first difference.

    Examples
    --------
    >>> _apart("/srv/databases/sales/of/the/year/2025/one", "/srv/databases/sales/of/the/year/2026")
    ('...e/year/2025/one', '/srv/databases/sales/of/the/year/2026')
    """
    equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    begin = max(sum(1 for _ in equal) - LETTERS_MAX // 4, 0)

    def cut(text: str) -> str:
        part = text[begin:]
        tail = part if len(part) <= LETTERS_MAX else f"{part[:LETTERS_MAX]}..."
        return text if len(text) <= LETTERS_MAX else f"...{tail}" if begin else tail

    return cut(first), cut(second)


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

"""Figures of a study as matrices: two factors down and over, a matrix for each combination of the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from assay.base.tables import Record
from assay.document.text import DASH
from assay.insight.studies.result import study_figures
from assay.insight.studies.words import capital, common_figures, figure_text, full_name_of
from assay.record.shapes.study import Result


class FigureGrid(NamedTuple):
    """A matrix: its caption, the heads of its columns, and its rows, each with its head first."""

    caption: str
    columns: list[str]
    rows: list[list[str]]


def grids_of(study: Record) -> list[FigureGrid]:
    """The compared figure of every level, or else the first; none where a study has one factor or other cases.

    Nor has a study that has several workloads a level. The first factor goes down and the second over.
    """
    factors, results = study["factors"], study.get("results") or []
    varied = [factor for factor in factors if len(factor["levels"]) > 1]
    if len(varied) < 2 or not results:
        return []
    names = [factor["name"] for factor in varied]
    found: dict[tuple[str | None, ...], Result] = {
        tuple(one["levels"].get(name) for name in names): one for one in results
    }
    sizes = [len(factor["levels"]) for factor in varied]
    if not len(found) == len(results) == math.prod(sizes):
        return []
    compared = study_figures().get(str((study.get("comparison") or {}).get("figure")))
    is_held = compared is not None and all(compared.study in one["values"] for one in results if one["values"])
    first = compared if compared is not None and is_held else common_figures(results)[0]
    down, over, *others = varied
    grids = []
    for fixed in itertools.product(*(factor["levels"] for factor in others)):
        keys = tuple(level["key"] for level in fixed)
        rows = []
        for row in down["levels"]:
            cells = [_cell(found[row["key"], column["key"], *keys], first.study, first.unit)
                     for column in over["levels"]]  # fmt: skip
            rows.append([row["label"], *cells])
        where = "".join(f", {level['label']}" for level in fixed)
        caption = f"{capital(full_name_of(first.study, results))}{where}"
        grids.append(FigureGrid(caption, [down["title"], *(column["label"] for column in over["levels"])], rows))
    return grids


def _cell(result: Result, figure: str, unit: str) -> str:
    held = result["values"].get(figure)
    return DASH if held is None or result["reason"] else figure_text(held["value"], unit)


def has_only_loads(factors: Sequence[Record]) -> bool:
    """Whether a study varies loads alone, so that a matrix says it all."""
    return all(factor.get("of") == "activity" for factor in factors)

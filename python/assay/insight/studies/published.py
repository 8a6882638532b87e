"""Published figures beside what a model gives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from assay.insight.studies.result import StudyResult, ratio_95
from assay.record.shapes.manifest import Part, PublishedBeside
from assay.record.shapes.study import PublishedFigure, PublishedOrder, Study


class _Titled(PublishedBeside):
    title: str


def published_findings(study: Study, parts: Sequence[Part], results: Sequence[StudyResult]) -> list[PublishedFigure]:
    """One row for each published figure with a value, and one for each published order.

    Parameters
    ----------
    study
        The manifest's `study`; its `orders` are the published orders.
    parts
        The manifest's `parts`; those with `published` stand beside a figure.
    results
        What the model gave.

    Returns
    -------
    list of dict
        `error_share` is the model's figure over the published one, less 1.
    """
    # Repeats of a point have one result, under the name of the first.
    by_part = {result.part: result for result in results}
    told: dict[str, _Titled] = {}
    for part in parts:
        if published := part.get("published"):
            told.setdefault(published["id"], {**published, "title": str(part["title"])})
    rows: list[PublishedFigure] = []
    for point_id, point in told.items():
        if point["value"] is None:
            continue
        result = by_part.get(point_id)
        held = result.values.get(point["figure"]) if result is not None else None
        value, interval = held if held is not None else (None, None)
        band = result.band_90 if result is not None and point["figure"] in result.answered[:1] else None
        if point["ratio_of"] is not None:
            other = by_part.get(point["ratio_of"])
            over = other.values.get(point["figure"]) if other is not None else None
            interval = ratio_95(over, held)
            value = over[0] / held[0] if over and held and held[0] else None
            band = None
        rows.append(
            {
                "kind": "ratio" if point["ratio_of"] is not None else "figure",
                "id": point_id,
                "title": point["title"],
                "source": point["source"],
                "unit": "ratio" if point["ratio_of"] is not None else point["figure"],
                "published": point["value"],
                "model": value,
                "interval_95": list(interval) if interval else None,
                "band_90": list(band) if band else None,
                "error_share": value / point["value"] - 1 if value is not None else None,
                "fit": point["fit"],
                "reason": result.reason if result is not None else "not run",
                "note": point["note"],
            }
        )
    return rows + [_order_row(order, told, by_part) for order in study.get("orders") or []]


def _order_row(
    order: PublishedOrder, told: Mapping[str, _Titled], by_part: Mapping[str, StudyResult]
) -> PublishedFigure:
    held = [
        by_part[point_id].values.get(told[point_id]["figure"])
        for point_id in order["points"]
        if point_id in by_part and point_id in told
    ]
    values = [value[0] for value in held if value is not None]
    whole = len(values) == len(order["points"])
    return {
        "kind": "order",
        "id": order["id"],
        "title": order["title"],
        "source": order["source"],
        "unit": "order",
        "published": None,
        "model": None,
        "model_text": ", ".join(f"{value:,.0f}" for value in values),
        "interval_95": None,
        "band_90": None,
        "error_share": None,
        "holds": all(later < sooner for sooner, later in itertools.pairwise(values)) if whole else None,
        "fit": False,
        "reason": "" if whole else "not all of its points have a figure",
        "note": order["note"],
    }

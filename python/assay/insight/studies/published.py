"""Published figures beside what a model gives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from assay.insight.studies.result import StudyResult, ratio_95, unit_of
from assay.record.shapes.manifest import Part, PublishedBeside
from assay.record.shapes.study import PublishedFigure, PublishedOrder, Study


def published_findings(study: Study, parts: Sequence[Part], results: Sequence[StudyResult]) -> list[PublishedFigure]:
    """One row for each published figure with a value, and one for each published order.

    Parameters
    ----------
    study
        The manifest's `study`; its `orders` are the published orders.
    parts
        The manifest's `parts`; those with `published` stand beside a figure, and beside more of the same run.
    results
        What the model gave.

    Returns
    -------
    list of dict
        `error_share` is the model's figure over the published one, less 1; over the nearer end of a published range,
        and 0 within it.
    """
    # Repeats of a point have one result, under the name of the first.
    by_part = {result.part: result for result in results}
    beside: dict[str, PublishedBeside] = {}
    run_of: dict[str, str] = {}
    for part in parts:
        if published := part.get("published"):
            titled: PublishedBeside = {**published, "title": str(published.get("title") or part["title"])}
            for one in (titled, *(published.get("also") or [])):
                beside.setdefault(one["id"], one)
                run_of.setdefault(one["id"], published["id"])
    # By id of a figure: the result of its run.
    found = {point_id: by_part[name] for point_id, name in run_of.items() if name in by_part}
    rows = [_figure_row(study, one, found) for one in beside.values() if one["value"] is not None]
    rows += [_order_row(order, beside, found) for order in study.get("orders") or []]
    sources = list(dict.fromkeys(row["source"] for row in rows))
    return sorted(rows, key=lambda row: sources.index(row["source"]))


def _figure_row(study: Study, one: PublishedBeside, found: Mapping[str, StudyResult]) -> PublishedFigure:
    result, figure = found.get(one["id"]), one["figure"]
    held = result.values.get(figure) if result is not None else None
    value, interval = held if held is not None else (None, None)
    band = result.band_90 if result is not None and figure in result.answered[:1] else None
    unit = "bytes" if figure == "usable_bytes" else unit_of(figure)
    if figure == "usable_bytes" and result is not None:
        value = float(study["capacities"][result.part]["usable_bytes"])
    if one["ratio_of"] is not None:
        other = found.get(one["ratio_of"])
        over = other.values.get(figure) if other is not None else None
        interval, band, unit = ratio_95(over, held), None, "ratio"
        value = over[0] / held[0] if over and held and held[0] else None
    published, within = one["value"], one.get("within")
    bound = min(max(value, within[0]), within[1]) if within and value is not None else published
    return {
        "kind": "ratio" if unit == "ratio" else "figure",
        "id": one["id"],
        "title": str(one["title"]),
        "source": one["source"],
        "unit": unit,
        "published": published,
        "within": within,
        "model": value,
        "interval_95": list(interval) if interval else None,
        "band_90": list(band) if band else None,
        "error_share": value / bound - 1 if value is not None and bound else None,
        "fit": one["fit"],
        "reason": result.reason if result is not None else "not run",
        "note": one["note"],
    }


def _order_row(
    order: PublishedOrder, told: Mapping[str, PublishedBeside], by_part: Mapping[str, StudyResult]
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

"""Progress of a point on all hosts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.base.progress import Gauge, Moment

ADDING = frozenset({"iops", "bytes_per_s"})
"""Units of gauges that add up over hosts; of others the highest is shown."""


def moment_of_all(moments: Sequence[Moment]) -> Moment | None:
    """Progress of a point on all hosts together; the slowest tells how far it is."""
    if not moments:
        return None
    first = max(moments, key=lambda one: one.left_s or 0.0)
    values: dict[str, list[float]] = {}
    for gauge in (one for moment in moments for one in moment.all_gauges):
        values.setdefault(gauge.name, []).extend(() if gauge.value is None else (gauge.value,))
    return replace(
        first,
        what=f"{first.what}, {len(moments)} hosts",
        gauges=[_of_all(gauge, values.get(gauge.name, ())) for gauge in first.gauges],
        percentiles=[_of_all(gauge, values.get(gauge.name, ())) for gauge in first.percentiles],
        hosts=[host for moment in moments for host in moment.hosts],
        errors=(sum(moment.errors[0] for moment in moments), first.errors[1]),
    )


def _of_all(gauge: Gauge, values: Sequence[float]) -> Gauge:
    total = (sum(values) if gauge.unit in ADDING else max(values)) if values else None
    return replace(gauge, value=total)

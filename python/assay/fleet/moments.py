"""Progress of a point on all hosts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.base.progress import Moment

ADDING = frozenset({"iops", "bytes_per_s"})
"""Units of gauges that add up over hosts; of others the highest is shown."""


def moment_of_all(moments: Sequence[Moment]) -> Moment | None:
    """Progress of a point on all hosts together; the slowest tells how far it is."""
    if not moments:
        return None
    first = max(moments, key=lambda one: one.left_s or 0.0)
    gauges = []
    for gauge in first.gauges:
        values = [
            one.value for moment in moments for one in moment.gauges if one.name == gauge.name and one.value is not None
        ]
        total = (sum(values) if gauge.unit in ADDING else max(values)) if values else None
        gauges.append(replace(gauge, value=total))
    return replace(
        first,
        what=f"{first.what}, {len(moments)} hosts",
        gauges=gauges,
        errors=(sum(moment.errors[0] for moment in moments), first.errors[1]),
    )

"""A need as a trace of I/Os has it: the rates of its busiest hours, its mix, and what it touched."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from assay.base.errors import UsageError
from assay.base.units import count_of, format_bytes, format_duration
from assay.insight.sizing.measured import LEAST_S, WEEK_HOURS, MeasuredDemand, VolumeDemand
from assay.record.shapes.sizing import Coverage
from assay.traces.character.places import EXTENT_BITS
from assay.traces.character.whole import TraceCharacter, characterise
from assay.traces.file import read_trace
from assay.workloads.seen import block_of

HOUR_S = 3600.0


def need_of_trace(path: Path, percentile: float, busiest: int, *, short: bool = False) -> MeasuredDemand:
    """What a trace says of the load.

    Raises
    ------
    UsageError
        It is damaged, holds no I/O, or is shorter than an hour.
    """
    found = characterise(read_trace(path))
    moved = found.counts["reads"] + found.counts["writes"]
    if not moved or found.skew is None:
        raise UsageError(f"--from {path.name}: holds no I/O that reads or writes")
    if found.seconds < LEAST_S and not short:
        raise UsageError(
            f"--from {path.name}: covers {format_duration(found.seconds)} and has no busiest hours; capture an hour at"
            " least, or give --short"
        )
    iops, bytes_per_s = _rates(found, percentile, busiest)
    data = VolumeDemand(
        name="data", role="data", iops=iops, bytes_per_s=bytes_per_s, read_share=found.counts["reads"] / moved,
        block_bytes=block_of((found.read_bytes + found.write_bytes) / moved),
    )  # fmt: skip
    size_bytes = found.skew.extents << EXTENT_BITS
    return MeasuredDemand(
        source=path.name,
        percentile=percentile,
        volumes=[data],
        roles={"data": data},
        size_bytes=size_bytes,
        coverage=_coverage(found, busiest),
        notices=[
            f"the data are taken to be the extents of 1 MiB that the trace touched, {format_bytes(size_bytes)}; state"
            " the size of the database in a need where there is more",
            "a trace does not say which I/Os are the log's: its writes count as data",
        ],
    )


def _rates(found: TraceCharacter, percentile: float, busiest: int) -> tuple[float, float]:
    """I/Os and bytes a second at a percentile of the busiest hours' steps."""
    columns, step_s = found.over_time.columns, found.over_time.step_ns / 1e9
    # The last step is cut off where the trace ends.
    whole = max(found.span_ns // found.over_time.step_ns, 1)
    ios = (columns["reads"] + columns["writes"])[:whole]
    moved = (columns["read_bytes"] + columns["write_bytes"])[:whole]
    chosen = np.argsort(-ios, kind="stable")[: max(math.ceil(busiest * HOUR_S / step_s), 1)]
    length_s = min(step_s, found.seconds)
    return (float(np.quantile(ios[chosen], percentile)) / length_s,
            float(np.quantile(moved[chosen], percentile)) / length_s)  # fmt: skip


def _coverage(found: TraceCharacter, busiest: int) -> Coverage:
    """How much of a week a trace covers."""
    hours = min(math.ceil(found.seconds / HOUR_S), WEEK_HOURS)
    days = min(math.ceil(found.seconds / HOUR_S / 24), 7)
    step = format_duration(found.over_time.step_ns / 1e9)
    taken = count_of(min(busiest, hours), "busiest hour")
    text = (
        f"covers {format_duration(found.seconds)}: {count_of(hours, 'hour')} of the {WEEK_HOURS} of a week; the demand"
        f" is of the {taken}, in intervals of {step}"
    )
    if hours < WEEK_HOURS:
        text += f"; what happens in the other {WEEK_HOURS - hours} is not known"
    return {"seconds": found.seconds, "hours_of_week": hours, "share": hours / WEEK_HOURS, "days": days, "text": text}

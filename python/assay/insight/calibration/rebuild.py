"""How long a modelled array takes to rebuild a lost disk."""

from __future__ import annotations

from assay.run.simulate import simulate
from assay.targets.arrays.model.configuration import Configuration
from assay.workloads.io.plan import load_plan

MEASURED_S = 20


def rebuild_hours(configuration: Configuration) -> float:
    """Hours until the whole of a lost disk is on a spare, while hosts ask for next to nothing.

    The rate is that of the first rows, where platters are fastest, scaled to the mean over them.

    Raises
    ------
    UsageError
        The policy does not outlive a lost disk.
    """
    array = configuration.with_options({"state": "rebuilding"})
    plan = load_plan(
        {
            "name": "rebuild",
            "timing": {"warmup_s": 2, "duration_s": MEASURED_S},
            "activity": [{"rate": 10.0}],
        },
        source="rebuild",
    )
    points, _ = simulate(array, plan)
    point = points[0]
    told, warmup_s, measured_s = point["array"], point["warmup_s"], point["measured_s"]
    assert told is not None
    assert warmup_s is not None
    assert measured_s is not None
    rebuilt_bytes = told["rebuilt_bytes"] or 0.0
    disk_bytes = array.value("disk.capacity")
    if not rebuilt_bytes:
        # All of it was rebuilt during the warm-up: the disk is tiny.
        return warmup_s / 3600
    rate = rebuilt_bytes / measured_s * mean_over_outer(array)
    return float(disk_bytes / rate / 3600)


def mean_over_outer(array: Configuration) -> float:
    """Mean transfer rate of a disk as a share of that of its outermost tracks.

    The rate falls linearly with the stroke, and a track takes one revolution wherever it is: over the whole disk, bytes
    by time are the mean of both ends (crates/array-model/src/disk/zones.rs).
    """
    if array.model.disk_kind != "mechanical":
        return 1.0
    return float((1 + array.value("disk.rate_inner") / array.value("disk.rate_outer")) / 2)

"""Limits of a cloud's volumes and machines, of which the cloud itself says how near they are.

Metrics of CloudWatch and Azure as they are imported, counters of EBS volumes, and those of modelled volumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.observed import Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion, Threshold


class ToldLimit(NamedTuple):
    """What a cloud says of a device's limit."""

    track: Track
    text: str
    bound: Threshold


SOURCES = ("block", "array", "model")
_METRICS = (
    ("iops_consumed_share", "IOPS used of its limit", at.CONSUMED),
    ("bandwidth_consumed_share", "bandwidth used of its limit", at.CONSUMED),
    ("burst_balance_share", "burst credit left", at.BURST_EMPTY),
    ("bandwidth_balance_share", "bandwidth burst credit left", at.BURST_EMPTY),
    ("iops_exceeded_share", "asked for more IOPS than its limit", at.EXCEEDED),
    ("bandwidth_exceeded_share", "asked for more bandwidth than its limit", at.EXCEEDED),
)


def told_limits(observed: Observations, host: str | None = None) -> Iterator[ToldLimit]:
    """All that was recorded of limits."""
    for metric, text, bound in _METRICS:
        for track in observed.find(metric, source=SOURCES, host=host):
            yield ToldLimit(track, text, bound)


def at_told_limit(observed: Observations) -> Iterator[Suspicion | None]:
    """Devices of which the cloud says that they are at their limit; late I/Os or a queue confirm it."""
    devices: dict[tuple[str, str], list[ToldLimit]] = {}
    for one in told_limits(observed):
        devices.setdefault((one.track.host, one.track.entity), []).append(one)
    for (_, name), limits in devices.items():
        signals = CauseSignals(observed)
        for one in limits:
            signals.add("limit", f"{name}: {one.text}", one.track, one.bound, required=True, strong=True)
        own = limits[0].track
        for side, bound in (("read_", at.READ_LATENCY), ("write_", at.WRITE_LATENCY), ("", at.READ_LATENCY)):
            signals.add(
                "latency", f"{name}: {side[:-1] or 'I/O'}s take", observed.of(own, f"{side}latency_mean_ns"), bound
            )
        signals.add("queue", f"{name}: I/Os queue", observed.of(own, "queue_mean_count"), at.QUEUE)
        yield signals.agree(
            "throughput-limit",
            resource="disk",
            advice=f"Raise the limit of {name}: a larger volume or another type, more provisioned IOPS or bandwidth, a"
            " larger machine if the limit is the machine's; or ask for less. Until then it is held at its baseline.",
            against=["I/Os are early at that time: then no more is asked for than it may do."],
            explains=("slow-disk", "slow-writes", "log-flush"),
            confirm="latency and queue of the volume at that time",
        )

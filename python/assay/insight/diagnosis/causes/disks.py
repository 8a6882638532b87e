"""Disks that are too slow for their load."""

from __future__ import annotations

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.evidence import add_pressure, devices, is_disk, serves_one
from assay.insight.diagnosis.observed import Observations
from assay.insight.diagnosis.signals import CauseSignals, Suspicion


def slow_disk(observed: Observations) -> list[Suspicion]:
    """Devices, or disks of a model, that answer late while I/Os queue at them."""
    found = []
    for queue in devices(observed, "queue_mean_count"):
        signals = CauseSignals(observed)
        for side, threshold in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY)):
            for track in observed.latencies("block", side):
                if (track.entity, track.host) == (queue.entity, queue.host):
                    signals.add("latency", f"{queue.entity}: {side}s take", track, threshold)
        for track in observed.find("latency_mean_ns", source="block", entity=queue.entity, host=queue.host):
            signals.add("latency", f"{queue.entity}: I/Os take", track, at.READ_LATENCY)
        signals.add("queue", f"{queue.entity}: I/Os queue", queue, at.QUEUE)
        add_pressure(signals, queue.host)
        for track in observed.find("device_latency_mean_ns", source="block", entity=queue.entity, host=queue.host):
            signals.add("latency", f"{queue.entity}: the device itself takes (DAVG)", track, at.READ_LATENCY)
        found.append(_slow(signals, queue.entity))
    found.append(_slow(_of_model(observed), "the array's disks"))
    return those(*found)


def _of_model(observed: Observations) -> CauseSignals:
    signals = CauseSignals(observed)
    disks = observed.find("busy_share", source="model", where=is_disk)
    working = [disk for disk in disks if serves_one(observed, disk)]
    mean = observed.mean_of(working)
    if mean is not None:
        signals.add("utilisation", "disks of the array are busy", mean, at.DISK_BUSY, required=True)
    for side, threshold in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY)):
        for track in observed.latencies("assay", side):
            signals.add("latency", f"{track.entity}: {side}s take", track, threshold)
    return signals


def _slow(signals: CauseSignals, entity: str) -> Suspicion | None:
    return signals.agree(
        "slow-disk",
        resource="disk",
        needs=("latency",),
        advice=f"Spread the load of {entity} over more or faster disks, or lower it; assay profile finds what it"
        " holds.",
        against=["The same I/Os are fast while others are quiet: then it is a neighbour, a backup or a checkpoint."],
    )


CAUSES = (
    Cause(
        name="slow-disk",
        title="Disks are too slow for the load",
        needs="latencies and queues of devices",
        sources=("block", "model"),
        find=slow_disk,
    ),
)

"""Arrays: RAID sets that lack a disk, and write caches without room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.causes.served import KNOWN_S, lacks_a_disk
from assay.insight.diagnosis.evidence import disk_of, is_disk, works
from assay.insight.diagnosis.observed import Flags, Numbers, Observations, Track
from assay.insight.diagnosis.signals import WINDOW_S, CauseSignals, Suspicion


def degraded_raid(observed: Observations) -> list[Suspicion]:
    """RAID sets that lack a disk: what says so, and what the load shows of it."""
    served = [_degraded(signals, what, within_s=KNOWN_S) for signals, what in lacks_a_disk(observed)]
    return those(*_degraded_models(observed), *served, *_degraded_arrays(observed))


def _degraded(signals: CauseSignals, what: str, *, within_s: float = WINDOW_S) -> Suspicion | None:
    return signals.agree(
        "degraded-raid",
        resource="disk",
        advice=f"Replace {what} and let it rebuild; until then size for what the degraded set holds.",
        against=["All disks are there, and reads are spread evenly over them."],
        explains=("slow-disk", "throttled-queue"),
        within_s=within_s,
    )


def _degraded_models(observed: Observations) -> list[Suspicion | None]:
    state = next(
        (
            str((array.get("options") or {}).get("state"))
            for source in observed.sources
            if (array := (source.manifest.get("target") or {}).get("array"))
            and (array.get("options") or {}).get("state") in ("degraded", "rebuilding")
        ),
        None,
    )
    found = []
    members = dict.fromkeys(
        one.entity.split("/")[0] for one in observed.tracks if one.source == "model" and is_disk(one)
    )
    for member in members:
        signals = CauseSignals(observed)
        if state is not None:
            signals.add_where("state", f"{member}: is said to be {state}", observed.counted.copy(), entity=member)
        for track in observed.find("rebuilt_bytes", source="model", entity=member):
            signals.add("rebuild", f"{member}: rebuilds", track, at.REBUILDS)
        disks = observed.find("read_ios_count", source="model", where=disk_of(member))
        silent = _silent(observed, disks)
        if silent is not None:
            signals.add_where(
                "silent", f"{member}: of its disks one does nothing, and is no spare", silent, entity=member
            )
        burdened = _burdened(disks)
        if burdened is not None:
            signals.add(
                "imbalance", f"{member}: the busiest disk reads more than the median one", burdened, at.HALF_MORE
            )
        found.append(_degraded(signals, f"the disk of {member}"))
    return found


def _spares(observed: Observations) -> int | None:
    for source in observed.sources:
        array = (source.manifest.get("target") or {}).get("array") or {}
        told = ((array.get("parameters") or {}).get("disks.spares") or {}).get("value")
        if told is not None:
            return int(told)
    return None


def _silent(observed: Observations, disks: Sequence[Track]) -> Flags | None:
    """Steps in which more disks do nothing than there are spares."""
    spares = _spares(observed)
    if not disks or spares is None:
        return None
    stacked = np.array([disk.values for disk in disks])
    idle = np.array([not works(disk) for disk in disks])
    working = int((~idle).sum())
    if int(idle.sum()) <= spares or not working:
        return None
    return np.asarray(np.isfinite(stacked).any(axis=0))


def _burdened(disks: Sequence[Track]) -> Numbers | None:
    """Reads of the busiest disk over those of the median disk that works."""
    stacked = np.array([disk.values for disk in disks if works(disk)])
    if len(stacked) < 4:
        return None
    totals = np.nanmean(stacked, axis=1)
    busiest = stacked[int(np.argmax(totals))]
    middle = np.nanmedian(stacked, axis=0)
    return np.where(middle > 0, busiest / middle, np.nan)


def _degraded_arrays(observed: Observations) -> list[Suspicion | None]:
    """Linux md: what the kernel says of the array, and one member that does nothing."""
    found = []
    for track in observed.find("degraded_count", source="raid"):
        signals = CauseSignals(observed)
        signals.add("state", f"{track.entity}: disks are missing", track, at.MISSING)
        for speed in observed.find("rebuilt_bytes", source="raid", entity=track.entity, host=track.host):
            signals.add("rebuild", f"{track.entity}: rebuilds", speed, at.REBUILDS)
        for latency in (*observed.latencies("block", "read"), *observed.latencies("block", "write")):
            if latency.entity == track.entity:
                signals.add("latency", f"{track.entity}: I/Os take", latency, at.READ_LATENCY)
        found.append(_degraded(signals, f"the disk of {track.entity}"))
    return found


def full_cache(observed: Observations) -> list[Suspicion]:
    """Write caches without room: writes wait until the disks have taken older ones."""
    found = []
    for waited in observed.find("writes_waited_count", source="model"):
        signals = CauseSignals(observed)
        writes = observed.sum_of(observed.find("write_ios_count", source="assay"))
        if writes is not None:
            share = np.where(writes > 0, np.minimum(waited.values / writes, 1.0), np.nan)
            signals.add(
                "waiting", f"{waited.entity}: writes wait for room in the cache", share, at.WAITED, required=True
            )
        own = observed.find("busy_share", source="model", where=disk_of(waited.entity))
        disks = observed.mean_of([one for one in own if works(one)])
        if disks is not None:
            signals.add(
                "destaging", f"{waited.entity}: its disks are busy with what the cache gives them", disks, at.DISK_BUSY
            )
        for track in observed.latencies("assay", "write"):
            signals.add(
                "latency",
                f"{track.entity}: writes take, of a cache that should take them at once",
                track,
                at.LOG_LATENCY,
            )
        found.append(
            signals.agree(
                "full-cache",
                resource="memory",
                advice="Give the array more cache or more disks to write to, a RAID policy with fewer I/Os a write,"
                " or lower the rate of writes; a larger cache alone only delays it where writes go on.",
                against=["Writes come in bursts that the cache swallows: then it is full for moments only."],
                explains=("slow-disk", "log-flush", "throttled-queue"),
            )
        )
    found += _page_cache(observed)
    return those(*found)


def _page_cache(observed: Observations) -> list[Suspicion | None]:
    """The kernel's own write cache: dirty pages at their limit, and writers that stand still."""
    found = []
    for dirty in observed.find("dirty_bytes", source="host", entity="memory"):
        signals = CauseSignals(observed)
        available = observed.of(dirty, "available_bytes")
        if available is None:
            continue
        share = dirty.values / available.values
        signals.add(
            "dirty",
            f"{dirty.host}: dirty pages, as a share of what memory is available",
            share,
            at.DIRTY,
            required=True,
        )
        for track in observed.find("full_share", source="host", entity="psi-io", host=dirty.host):
            signals.add("pressure", f"{dirty.host}: all tasks wait for I/O", track, at.IO_PRESSURE)
        found.append(
            signals.agree(
                "full-cache",
                resource="memory",
                advice="Lower vm.dirty_background_bytes so that writing begins earlier, or write less at a time.",
                against=["Dirty pages stay below vm.dirty_ratio when writers stand still."],
                explains=("slow-disk",),
            )
        )
    return found


CAUSES = (
    Cause(
        name="degraded-raid",
        title="A RAID set lacks a disk",
        needs="the state of the array: a model, a served array, or Linux md",
        sources=("model", "array", "raid"),
        find=degraded_raid,
    ),
    Cause(
        name="full-cache",
        title="The write cache is full",
        needs="a model's cache, or dirty pages of the host",
        sources=("model", "host"),
        find=full_cache,
    ),
)

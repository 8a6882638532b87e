"""Disks: too slow for their load, standing still, at a limit, or slow to write alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from assay.base.units import format_latency
from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.causes.told_limits import at_told_limit
from assay.insight.diagnosis.evidence import MIB, add_pressure, devices, is_disk, serves_one
from assay.insight.diagnosis.observed import SAMPLES_MIN, Flags, Numbers, Observations, Track
from assay.insight.diagnosis.recurrence import recurrence_of
from assay.insight.diagnosis.signals import CauseSignals, Suspicion, Threshold

ALMOST_NONE = 0.05
"""Share of a device's usual I/Os a second up to which almost none complete."""

STILL_S = 2.0
"""Length from which a standstill counts: shorter ones are a slow I/O."""

BACKLOG = 2.0
"""Multiple of the usual queue, and least queue, from which more is asked for than the device does."""

UNLOADED = 0.25
"""Share of a late latency below which a device is early while less is asked for: a slow disk is always late."""

SIDES = (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY), ("", at.READ_LATENCY))


def bound_of(track: Track, side: str, bound: Threshold) -> Threshold:
    """The threshold of a latency: that of a log where the device holds a log alone."""
    if track.role == "log" and side != "read":
        return at.LOG_LATENCY
    return bound


def block_devices(observed: Observations) -> list[Track]:
    """One track of each device with I/Os, whatever of it was recorded."""
    metrics = ("queue_mean_count", "read_ios_count", "write_ios_count", "ios_count", "latency_mean_ns",
               "read_latency_mean_ns", "write_latency_mean_ns", "device_latency_mean_ns")  # fmt: skip
    found: dict[tuple[str, str], Track] = {}
    for metric in metrics:
        for track in devices(observed, metric):
            found.setdefault((track.host, track.entity), track)
    return list(found.values())


def storage_devices(observed: Observations) -> list[Track]:
    """One track of each block device, NFS mount, virtual disk of a guest, and volume of a served array."""
    found: dict[tuple[str, str], Track] = {}
    for side, _ in SIDES:
        for track in observed.latencies(("nfs", "guest", "array"), side):
            found.setdefault((track.host, track.entity), track)
    return [*block_devices(observed), *found.values()]


def late(observed: Observations, device: Track) -> Iterator[tuple[str, Track, Threshold]]:
    """Latencies of a device by their side, and the threshold of each."""
    for side, bound in SIDES:
        for track in observed.latencies(device.source, side):
            if (track.entity, track.host) == (device.entity, device.host):
                yield side, track, bound_of(track, side, bound)


def slow_disk(observed: Observations) -> list[Suspicion]:
    """Devices, NFS mounts, or disks of a model, that answer late; a queue, pressure or utilisation confirms it."""
    found = []
    for device in storage_devices(observed):
        signals = CauseSignals(observed)
        own = observed.of(device, "device_latency_mean_ns")
        for side, track, bound in late(observed, device):
            words = f"{device.entity}: {side or 'I/O'}s take"
            # Where the device itself is in time, I/Os wait above it.
            where = None if own is None else ~(own.values < bound.value)
            signals.add("latency", words, track, bound, strong=True, where=where)
        queue = observed.of(device, "queue_mean_count")
        if queue is not None:
            signals.add("queue", f"{device.entity}: I/Os queue", queue, at.QUEUE)
        busy = observed.of(device, "busy_share")
        if busy is not None:
            signals.add("utilisation", f"{device.entity}: is busy", busy, at.DISK_BUSY)
        if device.source == "array":
            _add_disks(signals, "array")
        add_pressure(signals, device.host)
        for track in observed.find(
            "device_latency_mean_ns", source=device.source, entity=device.entity, host=device.host
        ):
            signals.add("latency", f"{device.entity}: the device itself takes", track, at.READ_LATENCY, strong=True)
        found.append(_slow(signals, device.entity, device.source, _split(observed, device, own)))
    found.append(_slow(_of_model(observed), "the array's disks"))
    return those(*found)


def _split(observed: Observations, device: Track, own: Track | None) -> list[str]:
    """Where late I/Os of a device spent their time, if both parts are known."""
    above = observed.of(device, "queue_latency_mean_ns")
    if own is None or above is None:
        return []
    late_steps = own.values >= at.READ_LATENCY.value
    if not late_steps.any():
        return []
    device_ns, queue_ns = (float(np.nanmean(one.values[late_steps])) for one in (own, above))
    return [
        f"{device.entity}: {format_latency(device_ns)} in the device, {format_latency(queue_ns)} in the queue above it"
    ]


def _of_model(observed: Observations) -> CauseSignals:
    signals = CauseSignals(observed)
    _add_disks(signals, "model", required=True)
    for side, threshold in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY)):
        for track in observed.latencies("assay", side):
            signals.add("latency", f"{track.entity}: {side}s take", track, threshold)
    return signals


def _add_disks(signals: CauseSignals, source: str, *, required: bool = False) -> None:
    observed = signals.observed
    disks = observed.find("busy_share", source=source, where=is_disk)
    mean = observed.mean_of([disk for disk in disks if serves_one(observed, disk)])
    if mean is not None:
        signals.add("utilisation", "disks of the array are busy", mean, at.DISK_BUSY, required=required)


ALL_DISKS = "_Total"
"""Windows' sum of all disks: it does not say which of them is late."""

_OF_DISK = (
    "Look for errors of {0} (kernel log, SMART, the array's events) if few I/Os take long; else spread its load over"
    " more or faster disks, or lower it; assay profile finds what it holds."
)
_OF_ALL = (
    "Record each disk (PhysicalDisk(*)): {0} is the sum of all disks, and does not say which is late. Then look for"
    " errors of that disk, or spread its load."
)
_ADVICE = {
    "nfs": "Compare the round trip of {0} with the whole time (nfsiostat: avg RTT, avg exe): the first is the network"
    " and the server, the rest waits in the client; then examine the server's own disks.",
    "array": "Lower the load on {0}, or spread it over more or faster disks or another RAID policy; a larger cache of"
    " the array or of the database keeps reads from the disks.",
    "guest": "Compare {0} with the hypervisor's devices (esxtop: DAVG, KAVG): late devices are slow storage; else look"
    " at limits of the virtual disk, its queue and snapshots.",
}
"""What to do about what is slow, by its source."""
_CONFIRM = {
    "nfs": "how the round trip and the whole time of an I/O differ (nfsiostat)",
    "array": "how busy the disks of the array are",
    "guest": "the latencies and the queue of the hypervisor's devices (esxtop: DAVG, KAVG, QUED)",
}
_CONFIRM_DISK = "the queue and the utilisation of the device (assay record, iostat -x; Windows: Avg. Disk Queue Length)"


def _slow(signals: CauseSignals, entity: str, source: str = "block", notes: Sequence[str] = ()) -> Suspicion | None:
    advice = _OF_ALL if entity == ALL_DISKS else _ADVICE.get(source, _OF_DISK)
    return signals.agree(
        "slow-disk",
        resource="disk",
        needs=("latency",),
        advice=advice.format(entity),
        against=["The same I/Os are fast while others are quiet: then it is a neighbour, a backup or a checkpoint."],
        confirm=_CONFIRM.get(source, _CONFIRM_DISK),
        notes=notes,
    )


def outstanding(observed: Observations, host: str | None = None) -> list[Track]:
    """I/Os outstanding at each device: the mean, and the number at the moment of a sample.

    Windows adds to the mean when an I/O completes, so that an I/O that hangs is in the number of the moment alone. A
    device that lies on others may hang by itself (replication, multipath), and theirs are idle.
    """
    return [
        track
        for metric in ("queue_mean_count", "queue_now_count")
        for track in observed.find(metric, source="block", host=host)
    ]


def still(observed: Observations, queue: Track) -> Flags:
    """Steps in which I/Os are outstanding at a device and (almost) none completes.

    By Little's law outstanding I/Os over completions is the time of an I/O. It is a second or longer; completions are
    none, or a twentieth of what the device usually does; and this lasts for two seconds at least.
    """
    none = np.zeros(observed.steps, dtype=bool)
    done = observed.ios_per_s(queue)
    if done is None:
        return none
    rate = np.nan_to_num(done)
    usual = float(np.median(rate[rate > 0])) if (rate > 0).any() else 0.0
    few = np.maximum(ALMOST_NONE * usual, 0.5 / observed.step_s)
    # A step without a row of completions, where the device has rows at other times, tells nothing.
    held = (queue.values >= at.OUTSTANDING.value) & np.isfinite(done) & (rate <= few)
    held &= queue.values >= rate * (at.STANDSTILL.value / 1e9)
    busy = observed.of(queue, "busy_share")
    if busy is not None and queue.metric == "queue_mean_count":
        held &= ~(busy.values < at.DISK_BUSY.value)
    told = recurrence_of(observed, held & observed.counted)
    if told is None or told.longest_s < STILL_S:
        return none
    return np.asarray(held & observed.counted)


def stands_still(observed: Observations) -> list[Suspicion]:
    """Devices at which I/Os hang: outstanding, with (almost) none completed."""
    found = []
    for queue in outstanding(observed):
        held = still(observed, queue)
        told = recurrence_of(observed, held)
        if told is None:
            continue
        signals, name = CauseSignals(observed), queue.entity
        signals.add("outstanding", f"{name}: I/Os are outstanding", queue, at.OUTSTANDING, where=held, required=True,
                    strong=True)  # fmt: skip
        done = observed.ios_per_s(queue)
        words = f"{name}: (almost) none completes"
        signals.add_where("completions", words, held, values=done, host=queue.host, entity=name, strong=True)
        busy = observed.of(queue, "busy_share")
        if busy is not None:
            signals.add("utilisation", f"{name}: is busy all the same", busy, at.DISK_BUSY, where=held)
        add_pressure(signals, queue.host)
        found.append(
            signals.agree(
                "device-stands-still",
                resource="disk",
                advice=f"Read the kernel log and the array's events of these moments (time-outs, resets, path changes,"
                f" firmware, a snapshot, a frozen volume), and look at what {name} lies on: cable, path, controller,"
                " the cloud's volume.",
                against=["The counters were not read meanwhile: then rows are missing, and other devices stop too."],
                explains=("slow-disk", "slow-writes", "log-flush", "throughput-limit", "unrecorded-storage"),
                notes=[f"{name} stands still {told.words}; the longest time is {told.longest_s:.3g} s"],
                always=True,
            )
        )
    return those(*found)


def slow_writes(observed: Observations) -> list[Suspicion]:
    """Devices whose writes are late while their reads are not: a write cache that is off, full or written through."""
    found = []
    for device in block_devices(observed):
        own = {side: track for side, track, _ in late(observed, device)}
        if "read" not in own or "write" not in own:
            continue
        reads, writes = own["read"], own["write"]
        signals, bound = CauseSignals(observed), bound_of(writes, "write", at.WRITE_LATENCY)
        early = reads.values < at.READ_LATENCY.value
        signals.add("latency", f"{device.entity}: writes take", writes, bound, where=early, required=True)
        ratio = writes.values / np.maximum(reads.values, 1.0)
        signals.add("sides", f"{device.entity}: a write takes this much longer than a read", ratio, at.SIDES,
                    entity=device.entity, host=device.host, where=early, required=True)  # fmt: skip
        queue = observed.of(device, "queue_mean_count")
        if queue is not None:
            signals.add("queue", f"{device.entity}: I/Os queue", queue, at.QUEUE)
        found.append(
            signals.agree(
                "slow-writes",
                resource="disk",
                advice=f"See whether the write cache of {device.entity} is on and protected (battery or flash of the"
                " controller, write-through, mode of the array, volatile cache of the drive, a synchronous mirror).",
                against=["Writes are as late with the cache on: then the disks take no more (RAID 5, a full cache)."],
                explains=("slow-disk",),
            )
        )
    return those(*found)


def throughput_limit(observed: Observations) -> list[Suspicion]:
    """Devices at a limit that is told, or whose throughput has a flat top while their queue grows."""
    found = those(*at_told_limit(observed))
    for queue in devices(observed, "queue_mean_count"):
        moved = observed.sum_of([one for side in ("read", "write") if (one := observed.of(queue, f"{side}_bytes"))])
        for values, unit in ((moved, "bytes"), (observed.ios_per_s(queue), "ios")):
            limited = _limited(observed, queue, values, unit) if values is not None else None
            if limited is not None:
                found.append(limited)
                break
    return found


def _limited(observed: Observations, queue: Track, values: Numbers, unit: str) -> Suspicion | None:
    """A flat top of a device's bytes or I/Os a second."""
    known = np.isfinite(values) & np.isfinite(queue.values) & observed.counted
    if known.sum() < 4 * SAMPLES_MIN or not np.nanmax(values[known]) > 0:
        return None
    top = float(np.quantile(values[known], 0.95))
    at_top = known & (values >= at.AT_LIMIT.value * top)
    below = known & (values < 0.8 * top)
    # Without steps below the top nothing tells a limit from a disk that is always at its end.
    if at_top.sum() < SAMPLES_MIN or below.sum() < SAMPLES_MIN or values[known].max() > top / at.AT_LIMIT.value:
        return None
    usual = max(float(np.median(queue.values[below])), 1.0)
    done = observed.ios_per_s(queue)
    if done is None:
        return None
    waits = queue.values / np.maximum(done, 1.0)
    signals, name = CauseSignals(observed), queue.entity
    ios = top if unit == "ios" else float(np.nanmedian(done[at_top]))
    shown = f"{top / MIB:,.0f} MiB/s, {ios:,.0f} I/Os/s" if unit == "bytes" else f"{ios:,.0f} I/Os/s"
    signals.add("throughput", f"{name}: a flat top at {shown}; share of it", values / top, at.AT_LIMIT,
                entity=name, host=queue.host, required=True)  # fmt: skip
    signals.add("queue", f"{name}: the queue grows to this multiple of the usual one", queue.values / usual, at.TWICE,
                entity=name, host=queue.host, where=at_top & (queue.values >= BACKLOG), required=True,
                strong=True)  # fmt: skip
    if float(np.median(waits[below])) > UNLOADED * float(np.median(waits[at_top])):
        return None
    signals.add_where("early", f"{name}: I/Os are early while less is asked for", at_top, entity=name, host=queue.host)
    return signals.agree(
        "throughput-limit",
        resource="disk",
        advice=f"Look up what {name} may do: IOPS and bandwidth of the cloud volume and of the machine's type, a limit"
        " set on the array or control group (QoS, io.max), the rate of its path; raise it, or ask for less.",
        against=["The same device does more with larger or fewer I/Os at once: then it is no limit but a slow disk."],
        explains=("slow-disk", "slow-writes"),
    )


def unrecorded_storage(observed: Observations) -> list[Suspicion]:
    """Hosts whose processors wait for I/O that no recorded device has."""
    found = []
    for host in observed.hosts:
        waited = unexplained_iowait(observed, host)
        if waited is None:
            continue
        signals = CauseSignals(observed)
        signals.add("iowait", f"{host}: processors wait for I/O", waited, at.IOWAIT, host=host, entity="cpu",
                    required=True, strong=True)  # fmt: skip
        own = devices(observed, "busy_share", host) or devices(observed, "queue_mean_count", host)
        busiest = observed.largest_of(own)
        if busiest is not None:
            signals.add("devices", f"{host}: the busiest recorded device is busy", np.minimum(busiest, 1.0),
                        at.DEVICE_IDLE, host=host)  # fmt: skip
        add_pressure(signals, host)
        found.append(
            signals.agree(
                "unrecorded-storage",
                resource="disk",
                advice=f"Record what {host} waits for: network file systems (nfsiostat, mountstats), and all devices"
                " (iostat -x without a list, multipath and iSCSI ones too); pidstat -d names the program that waits.",
                against=["All devices and network file systems of the host are in the recording, and are early."],
                confirm="the devices and network file systems of the host",
            )
        )
    return those(*found)


def unexplained_iowait(observed: Observations, host: str) -> Numbers | None:
    """The iowait share of a host where no recorded device is busy, late or queued; 0 elsewhere; None if unknown."""
    tracks = observed.find("iowait_share", source="host", entity="cpu", host=host)
    if not tracks:
        return None
    busy = np.zeros(observed.steps, dtype=bool)
    for metric in ("busy_share", "queue_mean_count"):
        for track in [*devices(observed, metric, host), *observed.find(metric, source="nfs", host=host)]:
            busy |= track.above(at.DEVICE_IDLE.value)
    for side, bound in SIDES:
        for track in observed.latencies(("block", "nfs"), side):
            if track.host == host:
                busy |= track.above(bound.value)
    return np.where(busy, 0.0, tracks[0].values)


CAUSES = (
    Cause(
        name="device-stands-still",
        title="A device stands still",
        needs="queues and I/Os of devices",
        sources=("block",),
        find=stands_still,
    ),
    Cause(
        name="slow-disk",
        title="Disks are too slow for the load",
        needs="latencies and queues of devices",
        sources=("block", "nfs", "guest", "array", "model"),
        find=slow_disk,
    ),
    Cause(
        name="slow-writes",
        title="Writes are slow while reads are not",
        needs="latencies of reads and writes of devices",
        sources=("block",),
        find=slow_writes,
    ),
    Cause(
        name="throughput-limit",
        title="A device is at its bandwidth or IOPS limit",
        needs="what a cloud says of limits, or twenty steps or more of I/Os, bytes and queues",
        sources=("block",),
        find=throughput_limit,
    ),
    Cause(
        name="unrecorded-storage",
        title="Processors wait for storage that was not recorded",
        needs="iowait of the host",
        sources=("host",),
        find=unrecorded_storage,
    ),
)

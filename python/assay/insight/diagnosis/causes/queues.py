"""The way of an I/O: split into pieces, or held back above the storage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.base.units import parse_bytes
from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.causes.database import servers, waits
from assay.insight.diagnosis.evidence import FLAT, add_pressure, devices, in_flight, is_disk, is_link, works
from assay.insight.diagnosis.observed import DATABASES, Numbers, Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion
from assay.record.shapes.access import accesses_of

QUEUE_SMALL = 4.0
"""A queue that never exceeds so few is one that a program or a driver holds."""

ONE_EACH = 1.5
"""I/Os under way for each session that waits, below which it has one at a time."""

COOL = 0.70
"""Nothing is hot below this share of its time."""


def split_io(observed: Observations) -> list[Suspicion]:
    """I/Os of a program that reach the device in pieces."""
    found = []
    for side in ("read", "write"):
        for volume in observed.find(f"{side}_ios_count", source="assay"):
            own = devices(observed, f"{side}_ios_count", volume.host)
            volumes = observed.find(f"{side}_ios_count", source="assay", host=volume.host)
            if len(own) == 1 and len(volumes) == 1:
                found.append(_split(observed, volume, own[0], side))
    found.append(_split_by_initiator(observed))
    return those(*found)


def _split(observed: Observations, volume: Track, device: Track, side: str) -> Suspicion | None:
    signals = CauseSignals(observed)
    asked, done = observed.of(volume, f"{side}_bytes"), observed.of(device, f"{side}_bytes")
    if asked is None or done is None:
        return None
    ratio = np.where(volume.values * observed.step_s >= 5, device.values / volume.values, np.nan)
    bytes_ratio = done.values / asked.values
    asked_size, size = asked.values / volume.values, done.values / device.values
    alike = (bytes_ratio >= 0.8) & (bytes_ratio <= 1.25)
    words = f"{device.entity}: {side}s of the device for one of the program"
    signals.add("count", words, ratio, at.SPLIT, entity=device.entity, required=True, where=alike)
    limit = _largest_io(observed, device.entity)
    if limit is not None:
        signals.add_where(
            "limit",
            f"{device.entity}: an I/O may have {limit / 1024:,.0f} KiB, and {side}s are larger",
            (asked_size > limit * 1.05) & (size <= limit * 1.05),
            entity=device.entity,
        )
    else:
        signals.add_where(
            "size", f"{device.entity}: the mean {side} is less than two thirds of what was asked for",
            size < asked_size / at.SPLIT.value, entity=device.entity,
        )  # fmt: skip
    return signals.agree(
        "split-io",
        resource="disk",
        advice=f"Raise the largest I/O of {device.entity} (max_sectors_kb up to max_hw_sectors_kb; the initiator's"
        " largest transfer), or align partition and stripe.",
        against=["Merged again below, pieces cost little: with the limit raised throughput stays as it is."],
        explains=("slow-disk", "throttled-queue"),
    )


def _largest_io(observed: Observations, device: str) -> float | None:
    for source in observed.sources:
        for volume in (source.manifest.get("target") or {}).get("volumes") or []:
            queue = volume.get("queue") or {}
            if volume.get("device") in (device, f"/dev/{device}") and (largest := queue.get("max_io_bytes")):
                return float(largest)
    return None


def _split_by_initiator(observed: Observations) -> Suspicion | None:
    """On a model: blocks are larger than what the initiator sends at once."""
    signals = CauseSignals(observed)
    limit = _largest_transfer(observed)
    if limit is None:
        return None
    larger = np.zeros(observed.steps, dtype=bool)
    pieces = np.full(observed.steps, np.nan)
    for window in observed.windows:
        block = accesses_of(window.point).get("block_bytes")
        # Of several sizes none is the one that is cut.
        if isinstance(block, int) and block > limit:
            larger |= window.steps
            pieces[window.steps] = block / limit
    signals.add("count", "pieces that the initiator makes of a block", pieces, at.SPLIT, required=True, where=larger)
    disks = observed.find("read_ios_count", source="model", where=is_disk)
    asked = observed.sum_of(observed.find("read_ios_count", source="assay"))
    done = observed.sum_of(disks)
    if asked is not None and done is not None:
        signals.add(
            "disks", "reads at the disks for one of the load", np.where(asked > 0, done / asked, np.nan), at.SPLIT
        )
    return signals.agree(
        "split-io",
        resource="disk",
        advice=f"Let the initiator send {limit / 1024:,.0f} KiB and more at once (MaxTransferLength, max_sectors_kb).",
        against=["With larger transfers throughput stays as it is."],
        explains=("slow-disk", "throttled-queue"),
    )


def _largest_transfer(observed: Observations) -> float | None:
    for source in observed.sources:
        array = (source.manifest.get("target") or {}).get("array") or {}
        told = (array.get("options") or {}).get("max_transfer")
        if told and str(told) != "none":
            return float(parse_bytes(str(told)))
    return None


def throttled_queue(observed: Observations) -> list[Suspicion]:
    """Little's law: I/Os wait above storage that has nothing to do, or are sent one at a time."""
    return those(
        *_in_kernel(observed),
        *_in_block_queue(observed),
        _above_array(observed),
        *_above_device(observed),
        *_few_at_a_time(observed),
        _few_asked_for(observed),
    )


def _throttled(signals: CauseSignals, needs: Sequence[str], notes: Sequence[str] = ()) -> Suspicion | None:
    return signals.agree(
        "throttled-queue",
        resource="disk",
        needs=needs,
        advice="Raise the queue depth: of the HBA or initiator (module parameter, node.session.queue_depth), of the"
        " device (nr_requests), or what the program keeps outstanding (effective_io_concurrency,"
        " innodb_read_io_threads).",
        against=["With more I/Os outstanding throughput stays, and latency rises: then storage is the limit."],
        notes=notes,
    )


def _in_kernel(observed: Observations) -> list[Suspicion | None]:
    """A hypervisor's view: commands wait in its kernel."""
    found = []
    for track in observed.find("kernel_latency_mean_ns", source="block"):
        signals = CauseSignals(observed)
        signals.add("kernel", f"{track.entity}: I/Os wait in the hypervisor's kernel (KAVG)", track, at.KERNEL_LATENCY)
        waiting = observed.of(track, "queue_waiting_count")
        if waiting is not None:
            signals.add("queued", f"{track.entity}: commands wait for room in the queue (QUED)", waiting, at.QUEUED)
        own = observed.of(track, "device_latency_mean_ns")
        if own is not None:
            ratio = (track.values + own.values) / own.values
            signals.add(
                "littles-law", f"{track.entity}: latency of the guest over the device's", ratio, at.ABOVE_DEVICE
            )
        found.append(_throttled(signals, ("kernel",)))
    return found


def _in_block_queue(observed: Observations) -> list[Suspicion | None]:
    """A host's own view (`record --latencies`): I/Os wait in its block layer for a device that answers in time."""
    found = []
    for track in observed.find("queue_latency_mean_ns", source="block"):
        own = observed.of(track, "device_latency_mean_ns")
        if own is None or observed.of(track, "kernel_latency_mean_ns") is not None:
            continue
        signals = CauseSignals(observed)
        in_time = own.values < at.READ_LATENCY.value
        words = f"{track.entity}: I/Os wait above the device, in this host's block layer"
        signals.add("kernel", words, track, at.KERNEL_LATENCY, where=in_time)
        ratio = (track.values + own.values) / own.values
        words = f"{track.entity}: time of an I/O over the device's own"
        signals.add("littles-law", words, ratio, at.ABOVE_DEVICE, where=in_time)
        found.append(_throttled(signals, ("kernel", "littles-law")))
    return found


def _outstanding(observed: Observations) -> Numbers | None:
    """I/Os under way as the load sees them: what points asked for, else throughput times latency (Little 1961)."""
    values = np.full(observed.steps, np.nan)
    for window in observed.windows:
        asked = (window.point.get("load") or {}).get("outstanding")
        if asked is not None:
            values[window.steps] = float(asked)
    if np.isfinite(values).any():
        return values
    return in_flight(observed, "assay")


def _above_array(observed: Observations) -> Suspicion | None:
    """On a model: far more is outstanding at hosts than the array has, and nothing in it is hot."""
    if not observed.is_model:
        return None
    signals = CauseSignals(observed)
    outstanding = _outstanding(observed)
    disks = observed.find("queue_mean_count", source="model", where=is_disk)
    within = observed.sum_of(disks)
    busy = observed.find("busy_share", source="model")
    links = observed.largest_of([*filter(is_link, busy), *observed.find("cpu_busy_share", source="model")])
    spindles = observed.mean_of([one for one in busy if is_disk(one) and works(one)])
    if outstanding is None or within is None or links is None or spindles is None:
        return None
    hottest = np.fmax(links, spindles)
    ratio = outstanding / np.maximum(within, 1.0)
    signals.add("littles-law", "I/Os outstanding at the hosts for one at the disks", ratio, at.ABOVE_DEVICE)
    worst = observed.largest_of([*observed.latencies("assay", "read"), *observed.latencies("assay", "write")])
    cool = hottest < COOL
    signals.add("latency", "I/Os take long while nothing in the array is hot", worst, at.READ_LATENCY, where=cool)
    return _throttled(signals, ("littles-law", "latency"))


def _above_device(observed: Observations) -> list[Suspicion | None]:
    """On devices: the load waits longer than the device takes."""
    volumes = [
        *observed.find("read_latency_mean_ns", source="assay"),
        *observed.find("write_latency_mean_ns", source="assay"),
    ]
    found = []
    for track in volumes:
        side = track.metric.split("_", 1)[0]
        own = [one for one in observed.latencies("block", side) if one.host == track.host]
        if len(own) != 1:
            # Of several devices none is known to be this volume's.
            continue
        signals = CauseSignals(observed)
        ratio = track.values / own[0].values
        signals.add(
            "littles-law",
            f"{track.entity}: {side}s take this much longer than at {own[0].entity}",
            ratio,
            at.ABOVE_DEVICE,
        )
        signals.add("latency", f"{track.entity}: {side}s take", track, at.READ_LATENCY)
        queue = observed.of(own[0], "queue_mean_count")
        outstanding = _outstanding(observed)
        if queue is not None and outstanding is not None:
            above = outstanding / np.maximum(queue.values, 1.0)
            signals.add("queue", f"I/Os outstanding for one at {own[0].entity}", above, at.ABOVE_DEVICE)
        found.append(_throttled(signals, ("littles-law", "queue")))
    return found


def _few_at_a_time(observed: Observations) -> list[Suspicion | None]:
    """A device that is never idle and never has more than a few I/Os, while tasks wait for it and it is not slow."""
    found = []
    for queue in devices(observed, "queue_mean_count"):
        known = queue.values[np.isfinite(queue.values)]
        middle = float(np.median(known))
        low, high = np.quantile(known, [0.05, 0.95])
        if not 0.5 <= middle <= QUEUE_SMALL or (high - low) / 2 > FLAT * middle:
            continue
        signals = CauseSignals(observed)
        signals.add_where(
            "littles-law",
            f"{queue.entity}: throughput times latency stays at {middle:.2g} I/Os, whatever the moment",
            np.abs(queue.values - middle) <= FLAT * middle,
        )
        add_pressure(signals, queue.host)
        for track in observed.find("iowait_share", source="host", entity="cpu", host=queue.host):
            signals.add(
                "iowait", f"{queue.host}: processors have nothing to do but wait for I/O", track, at.IO_PRESSURE
            )
        if any(np.nanmean(one.values) >= at.READ_LATENCY.value for side in ("read", "write")
               for one in observed.latencies("block", side) if one.entity == queue.entity):  # fmt: skip
            continue
        found.append(_throttled(signals, ("littles-law", "pressure")))
    return found


def _few_asked_for(observed: Observations) -> Suspicion | None:
    """A load that keeps few I/Os outstanding at all its points, where storage is early and processors idle."""
    asked = {(window.point.get("load") or {}).get("outstanding") for window in observed.windows}
    [few, *others] = asked or {None}
    if others or few is None or few > QUEUE_SMALL:
        return None
    signals = CauseSignals(observed)
    under_way = in_flight(observed, "assay")
    if under_way is None:
        return None
    words = f"the load keeps {few:g} outstanding, which are under way all the time"
    signals.add("littles-law", f"{words}: share of them that is", under_way / few, at.UNDER_WAY, required=True)
    late = [*observed.latencies("assay", "read"), *observed.latencies("assay", "write")]
    worst, busy = observed.largest_of(late), [one for host in observed.hosts if (one := observed.cpu_busy(host))]
    hottest = observed.largest_of([*busy, *observed.find("busy_share", source="model", where=is_link)])
    if worst is not None:
        cool = np.ones(observed.steps, dtype=bool) if hottest is None else np.nan_to_num(hottest) < COOL
        early = np.nan_to_num(worst, nan=np.inf) < at.READ_LATENCY.value / 2
        signals.add_where("headroom", "I/Os are early, and nothing else is hot", cool & early, required=True)
    return _throttled(signals, ("littles-law", "headroom"))


def reads_one_by_one(observed: Observations) -> list[Suspicion]:
    """Sessions that wait for I/Os which storage answers in time: each has about one under way."""
    found = []
    latencies = observed.latencies(("block", "nfs", "guest", "array"), "read")
    worst = observed.largest_of(latencies)
    in_time = None if worst is None else np.isfinite(worst) & (np.nan_to_num(worst) < at.READ_LATENCY.value)
    outstanding = next((one for source in ("array", "block") if (one := in_flight(observed, source)) is not None), None)
    for host, source in servers(observed):
        for track in waits(observed, host, source, "io"):
            active = observed.of(track, "sessions_active_count")
            if in_time is None or outstanding is None or active is None:
                continue
            signals = CauseSignals(observed)
            signals.add("waits", f"{track.entity}: sessions wait for I/O", track, at.WAITS, required=True)
            signals.add_where("latency", "storage answers their reads in time", in_time, host=host)
            waiting = np.maximum(np.nan_to_num(active.values * track.values), 1.0)
            few = np.nan_to_num(outstanding, nan=np.inf) < ONE_EACH * waiting
            words = "about one I/O is under way for each session that waits"
            signals.add_where("queue", words, few, host=host, entity=track.entity)
            found.append(
                signals.agree(
                    "reads-one-by-one",
                    resource="disk",
                    needs=("waits", "latency", "queue"),
                    advice="Have more I/Os under way for each query (PostgreSQL: effective_io_concurrency, io_method,"
                    " io_combine_limit; read-ahead of the device), or run more queries at once; faster storage shortens"
                    " each read alone, more disks do not.",
                    against=["With more I/Os outstanding the same storage gives no more bytes a second."],
                )
            )
    return those(*found)


CAUSES = (
    Cause(
        name="reads-one-by-one",
        title="Queries read one block after another",
        needs="waits of sessions, and latencies of storage",
        sources=DATABASES,
        find=reads_one_by_one,
    ),
    Cause(
        name="split-io",
        title="I/Os are split",
        needs="I/Os of the load and of its one device",
        sources=("block", "model"),
        find=split_io,
    ),
    Cause(
        name="throttled-queue",
        title="I/Os are held back above the storage",
        needs="queues and latencies of devices, better with those of the load",
        sources=("block", "model"),
        find=throttled_queue,
    ),
)

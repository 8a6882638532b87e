"""What the cells of the matrix ask: the measures of each tier, their values and their thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.disks import late, outstanding, still, storage_devices, unexplained_iowait
from assay.insight.diagnosis.causes.drives import DRIVE_ERRORS, THROTTLE_SOURCES
from assay.insight.diagnosis.causes.memory import hit_share, memory_of
from assay.insight.diagnosis.causes.processors import GUEST_SHARES, fullest_core, guest_tracks
from assay.insight.diagnosis.causes.told_limits import told_limits
from assay.insight.diagnosis.evidence import devices, is_disk, is_link, serves_one, smooth
from assay.insight.diagnosis.observed import DATABASES, Numbers, Observations, Track
from assay.insight.diagnosis.signals import Threshold
from assay.insight.diagnosis.stalls import throughputs

USE_STEPS = 15
"""Steps over which the use of a guest's processors is a mean."""


class CellMeasure(NamedTuple):
    """One measure of a cell: what USE calls it, its words, its values and its bound."""

    aspect: str
    text: str
    values: Numbers
    threshold: Threshold
    entity: str
    is_outage: bool = False
    """Whether any step beyond the threshold is bad, however short: an outage is no matter of degree."""


def tier_of_host(observed: Observations, host: str) -> str:
    """Tier of a host's own processors, memory and network: as the user says, else by what it does."""
    if host in observed.tiers:
        return observed.tiers[host]
    sources = {track.source for track in observed.tracks if track.host == host}
    if "guest" in sources:
        return "hypervisor"
    if sources & set(DATABASES):
        return "database"
    return "client"


def measures_of(observed: Observations, host: str) -> Iterator[tuple[str, str, CellMeasure]]:
    """Tier, resource and measure of all that was recorded of a host."""
    tier = tier_of_host(observed, host)
    for resource, measure in _of_host(observed, host):
        yield tier, resource, measure
    for resource, measure in _of_databases(observed, host):
        yield observed.tiers.get(host, "database"), resource, measure
    for resource, measure in _of_storage(observed, host):
        yield "storage", resource, measure
    for resource, measure in _of_models(observed, host):
        yield "storage", resource, measure
    for resource, measure in _of_load(observed, host):
        yield observed.tiers.get(host, "client"), resource, measure
    for resource, tier, measure in _of_applications(observed, host):
        yield tier, resource, measure
    for metric, threshold, of, text in GUEST_SHARES:
        for track in guest_tracks(observed, metric, host):
            is_use = of == "utilisation"
            # A guest may use all it has for a while: what counts is that it has none left.
            values = smooth(track.values, over=USE_STEPS) if is_use else track.values
            aspect = "utilisation" if is_use else "saturation"
            yield "hypervisor", "cpu", CellMeasure(aspect, f"{track.entity} {text}", values, threshold, track.entity)


def _of_host(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    busy = observed.cpu_busy(host)
    if busy is not None:
        yield "cpu", CellMeasure("utilisation", "busy", busy.values, at.CPU_BUSY, "cpu")
    for entity, resource, threshold, text in (
        ("psi-cpu", "cpu", at.CPU_PRESSURE, "tasks wait"),
        ("psi-memory", "memory", at.MEMORY_PRESSURE, "tasks wait"),
        ("psi-io", "disk", at.IO_PRESSURE, "tasks wait"),
    ):
        for track in observed.find("some_share", source="host", entity=entity, host=host):
            yield resource, CellMeasure("saturation", text, track.values, threshold, entity)
    fullest = fullest_core(observed, host)
    if fullest is not None and busy is not None:
        # Where all are busy that says it; one full processor counts beside idle ones.
        beside = np.where(busy.values < at.CORES_IDLE.value, fullest, np.where(np.isfinite(fullest), 0.0, np.nan))
        yield "cpu", CellMeasure("utilisation", "fullest processor beside idle ones", beside, at.CORE_FULL, "cpu")
    waited = unexplained_iowait(observed, host)
    if waited is not None:
        words = "processors wait for I/O of no recorded device"
        yield "disk", CellMeasure("saturation", words, waited, at.IOWAIT, "cpu")
    waiting = observed.waiting_per_cpu(host)
    if waiting is not None:
        yield "cpu", CellMeasure("saturation", "waiting per processor", waiting, at.CPU_WAITING, "cpu")
    for track in observed.find("steal_share", source="host", entity="cpu", host=host):
        yield "cpu", CellMeasure("saturation", "withheld by the hypervisor", track.values, at.CPU_STEAL, "cpu")
    total = memory_of(observed, host)
    for track in observed.find("available_bytes", source="host", entity="memory", host=host):
        if total:
            yield "memory", CellMeasure("utilisation", "available", track.values / total, at.MEMORY_AVAILABLE, "memory")
    for metric in ("pages_in_count", "pages_out_count"):
        for track in observed.find(metric, source="host", host=host):
            yield (
                "memory",
                CellMeasure(
                    "saturation", metric.removesuffix("_count").replace("_", " "), track.values, at.PAGING, "memory"
                ),
            )
    for track in observed.find("busy_share", source="net", host=host):
        yield "network", CellMeasure("utilisation", f"{track.entity} busy", track.values, at.NET_BUSY, track.entity)
    for track in observed.find("rate_bits_per_s", source="net", host=host):
        moved = observed.largest_of(
            [one for m in ("in_bytes", "out_bytes") if (one := observed.of(track, m)) is not None]
        )
        if moved is not None and not observed.of(track, "busy_share"):
            share = np.where(track.values > 0, moved * 8 / track.values, np.nan)
            yield "network", CellMeasure("utilisation", f"{track.entity} busy", share, at.NET_BUSY, track.entity)
    for metric in ("retransmit_share", "storage_retransmit_share"):
        for track in observed.find(metric, source="net", host=host):
            yield (
                "network",
                CellMeasure("errors", f"{track.entity} sent again", track.values, at.RETRANSMITS, track.entity),
            )
    for metric in ("in_dropped_count", "out_dropped_count", "in_errors_count", "out_errors_count"):
        for track in observed.find(metric, source="net", host=host):
            said = metric.removesuffix("_count").replace("_", " ")
            yield "network", CellMeasure("errors", f"{track.entity} {said}", track.values, at.DROPS, track.entity)


def _of_databases(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    for requests in observed.find("page_requests_count", source=DATABASES, host=host):
        hits = hit_share(observed, requests)
        if hits is not None and hits.count:
            yield (
                "memory",
                CellMeasure("utilisation", f"{requests.entity} cache hits", hits.values, at.HIT_SHARE, requests.entity),
            )
    for track in observed.find("page_life_ns", source="mssql", host=host):
        yield "memory", CellMeasure("saturation", "page life", track.values, at.PAGE_LIFE, track.entity)
    for kind, resource in (("io", "disk"), ("log", "disk"), ("lwlock", "memory"), ("client", "network")):
        if kind == "client":
            # A server that waits for its client is not short of anything.
            continue
        for track in observed.find(f"waits_{kind}_share", source=DATABASES, host=host):
            yield (
                resource,
                CellMeasure("saturation", f"sessions wait for {_EVENTS[kind]}", track.values, at.WAITS, track.entity),
            )
    for track in observed.find("log_flush_latency_mean_ns", source=DATABASES, host=host):
        yield "disk", CellMeasure("saturation", "log flush", track.values, at.LOG_LATENCY, track.entity)
    for track in observed.find("read_latency_mean_ns", source=DATABASES, host=host):
        yield "disk", CellMeasure("saturation", f"{track.entity} reads", track.values, at.READ_LATENCY, track.entity)
    for track in observed.find("deadlocks_count", source=DATABASES, host=host):
        yield "memory", CellMeasure("errors", f"{track.entity} deadlocks", track.values, at.DROPS, track.entity)


_EVENTS = {"io": "I/O", "log": "the log", "lwlock": "latches"}


def _of_storage(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    for device in storage_devices(observed):
        if device.host != host:
            continue
        for side, track, bound in late(observed, device):
            yield (
                "disk",
                CellMeasure("saturation", f"{track.entity} {side or 'I/O'}s", track.values, bound, track.entity),
            )
    for told in told_limits(observed, host):
        words = f"{told.track.entity} {told.text}"
        yield "disk", CellMeasure("saturation", words, told.track.values, told.bound, told.track.entity)
    for track in observed.latencies("block", "flush"):
        if track.host == host:
            bound = at.LOG_LATENCY if "log" in track.role else at.FLUSH_LATENCY
            yield "disk", CellMeasure("saturation", f"{track.entity} flushes", track.values, bound, track.entity)
    for track in devices(observed, "queue_mean_count"):
        if track.host == host:
            # A queue alone is no fault: flash needs one. It counts where the device is late as well.
            beside = _late(observed, track)
            if beside is not None:
                words = f"{track.entity} queue while late"
                yield "disk", CellMeasure("utilisation", words, beside, at.QUEUE, track.entity)
    for track in outstanding(observed, host):
        hung = np.where(still(observed, track), track.values, np.where(np.isfinite(track.values), 0.0, np.nan))
        words = f"{track.entity} outstanding while none completes"
        yield "disk", CellMeasure("errors", words, hung, at.OUTSTANDING, track.entity, is_outage=True)
    for track in (
        one for source in THROTTLE_SOURCES for one in observed.find("throttled_share", source=source, host=host)
    ):
        yield "disk", CellMeasure("saturation", f"{track.entity} throttles", track.values, at.THROTTLED, track.entity)
    for metric, words in DRIVE_ERRORS:
        for track in observed.find(metric, source="drive", host=host):
            text = f"{track.entity} {words}"
            yield "disk", CellMeasure("errors", text, track.values, at.DRIVE_FAILS, track.entity, is_outage=True)
    for track in observed.find("busy_share", source="nfs", host=host):
        yield "disk", CellMeasure("utilisation", f"{track.entity} busy", track.values, at.DISK_BUSY, track.entity)


def _late(observed: Observations, queue: Track) -> Numbers | None:
    """The queue where I/Os are late, 0 where they are not."""
    own = [one.values / bound.value for _, one, bound in late(observed, queue)]
    if not own:
        return None
    worst = np.fmax.reduce(own)
    return np.where(np.isfinite(worst), np.where(worst >= 1.0, queue.values, 0.0), np.nan)


def _of_models(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    """Disks, cache, controllers and links of an array, modelled or served, each of its own."""
    for track in observed.find("busy_share", source=("model", "array"), host=host):
        if is_disk(track) and serves_one(observed, track):
            yield "disk", CellMeasure("utilisation", f"{track.entity} busy", track.values, at.DISK_BUSY, track.entity)
        elif is_link(track):
            yield (
                "network",
                CellMeasure("utilisation", f"{track.entity} busy", track.values, at.LINK_BUSY, track.entity),
            )
    for track in observed.find("retransmit_share", source="model", host=host):
        yield "network", CellMeasure("errors", f"{track.entity} sent again", track.values, at.RETRANSMITS, track.entity)
    for track in observed.find("cpu_busy_share", source="model", host=host):
        yield (
            "cpu",
            CellMeasure("utilisation", f"{track.entity} controller busy", track.values, at.CPU_BUSY, track.entity),
        )
    writes = observed.sum_of(observed.find("write_ios_count", source="assay", host=host))
    for track in observed.find("writes_waited_count", source="model", host=host):
        if writes is not None:
            share = np.where(writes > 0, np.minimum(track.values / writes, 1.0), np.nan)
            yield (
                "memory",
                CellMeasure("saturation", f"{track.entity} writes wait for cache", share, at.WAITED, track.entity),
            )


def _of_load(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    """What the load sees of storage: its latencies against the method's limits."""
    for side, threshold in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY)):
        for track in observed.latencies("assay", side):
            if track.host == host:
                yield (
                    "disk",
                    CellMeasure("saturation", f"{track.entity} {side}s", track.values, threshold, track.entity),
                )
    for track in observed.find("error_count", source="assay", host=host):
        yield "disk", CellMeasure("errors", f"{track.entity} errors", track.values, at.DROPS, track.entity)
    lag = np.full(observed.steps, np.nan)
    for window in observed.windows:
        generator = window.point.get("generator") or {}
        if (share := generator.get("fullest_worker_share")) is not None:
            lag[window.steps] = share
    if np.isfinite(lag).any() and host == observed.hosts[0]:
        yield "cpu", CellMeasure("utilisation", "fullest worker", lag, at.GUEST_BUSY, "generator")


def _of_applications(observed: Observations, host: str) -> Iterator[tuple[str, str, CellMeasure]]:
    """What users see: transactions that take long, and throughput that stalls."""
    for one in throughputs(observed):
        if one.host != host:
            continue
        tier = observed.tiers.get(host, one.tier)
        if one.latency_ns is not None:
            words = f"{one.source} transactions"
            yield "response", tier, CellMeasure("saturation", words, one.latency_ns, at.RESPONSE, one.source)
        share = np.where(one.stalls, one.share, np.where(np.isfinite(one.rate), 1.0, np.nan))
        words = f"{one.source} throughput, share of the usual"
        yield "response", tier, CellMeasure("errors", words, share, at.STALLED, one.source, is_outage=True)

"""Memory: too little of it for the host, or for a database's cache."""

from __future__ import annotations

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.hit_curve import cache_words
from assay.insight.diagnosis.observed import DATABASES, Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion

REQUESTS_MIN = 100.0
"""Page requests a second below which a hit ratio says nothing."""


def memory_pressure(observed: Observations) -> list[Suspicion]:
    """Hosts and servers that wait for memory."""
    found = []
    for host in observed.hosts:
        signals = CauseSignals(observed)
        for track in observed.find("some_share", source="host", entity="psi-memory", host=host):
            signals.add("pressure", f"{host}: tasks wait for memory", track, at.MEMORY_PRESSURE, strong=True)
        total = memory_of(observed, host)
        for track in observed.find("available_bytes", source="host", entity="memory", host=host):
            if total:
                signals.add(
                    "available", f"{host}: memory is available", track.values / total, at.MEMORY_AVAILABLE, host=host
                )
        for metric in ("pages_in_count", "pages_out_count"):
            for track in observed.find(metric, source="host", host=host):
                signals.add("paging", f"{host}: pages move to and from disk", track, at.PAGING)
        for track in observed.find("major_faults_count", source="host", host=host):
            signals.add("paging", f"{host}: programs wait for their pages", track, at.MAJOR_FAULTS)
        for track in observed.find("refaults_count", source="host", host=host):
            signals.add("refaults", f"{host}: pages are wanted again soon after they were given up", track, at.PAGING)
        for metric, threshold, of, text in (
            ("memory_grants_waiting_count", at.GRANTS_WAITING, "grants", "queries wait for memory"),
            ("free_list_stalls_count", at.FREE_LIST_STALLS, "stalls", "requests wait for a free page"),
            ("lazy_writes_count", at.LAZY_WRITES, "lazy-writes", "pages are written to make room"),
            ("page_life_ns", at.PAGE_LIFE, "page-life", "a page stays in the cache"),
        ):
            for track in observed.find(metric, source="mssql", host=host):
                signals.add(of, f"{host}: {text}", track, threshold)
        found.append(
            signals.agree(
                "memory-pressure",
                resource="memory",
                advice=f"Give {host} more memory, or limit what its databases and queries may take; reads that this"
                " causes look like a slow disk.",
                against=["Memory becomes free, and waits for I/O stay as they are."],
                explains=("cache-too-small", "slow-disk", "host-cpu", "throttled-queue", "noisy-neighbour"),
                confirm="available memory and paging of the host",
            )
        )
    return those(*found)


def memory_of(observed: Observations, host: str) -> float | None:
    """Memory of a host: that of its control group where it is less."""
    tracks = observed.find("total_bytes", source="host", entity="memory", host=host)
    if tracks:
        return float(np.nanmax(tracks[0].values))
    told = observed.fact(host, "memory_bytes")
    return float(told) if told else None


def hit_share(observed: Observations, requests: Track) -> Track | None:
    """Share of page requests that the cache answered."""
    reads = observed.of(requests, "page_reads_count")
    if reads is None:
        return None
    values = np.where(requests.values >= REQUESTS_MIN, 1.0 - reads.values / requests.values, np.nan)
    return requests.having(np.clip(values, 0.0, 1.0), "hit_share")


def cache_too_small(observed: Observations) -> list[Suspicion]:
    """Databases whose cache misses while sessions wait for reads."""
    found = []
    for requests in observed.find("page_requests_count", source=DATABASES):
        signals = CauseSignals(observed)
        hits = hit_share(observed, requests)
        if hits is not None and hits.count:
            signals.add("hits", f"{requests.entity}: the cache answers", hits, at.HIT_SHARE)
        for track in observed.find("buffer_hit_share", source=requests.source, host=requests.host):
            signals.add("hits", f"{requests.entity}: the cache answers", track, at.HIT_SHARE)
        for track in observed.find("waits_io_share", source=requests.source, host=requests.host):
            signals.add("waits", f"{track.entity}: sessions wait for reads", track, at.WAITS)
        for track in observed.find("page_life_ns", source="mssql", host=requests.host):
            signals.add("page-life", f"{track.entity}: a page stays in the cache", track, at.PAGE_LIFE)
        for track in observed.find("page_wait_time_ns", source="mssql", host=requests.host):
            signals.add("waits", f"{track.entity}: sessions wait for pages", track.values / 1e9, at.WAITS)
        _from_devices(signals, observed, requests)
        notes = cache_words(observed, requests)
        found.append(
            signals.agree(
                "cache-too-small",
                resource="memory",
                needs=("hits",),
                advice=f"Give the cache of {requests.entity} more memory, or read less: {notes[0]}" if notes
                else f"Give the cache of {requests.entity} more memory, or find the queries that read most.",
                against=["The data all fit into the cache: then it is being filled, and the misses end by themselves."],
                explains=("slow-disk", "throttled-queue"),
                notes=notes,
            )
        )  # fmt: skip
    return those(*found)


def _from_devices(signals: CauseSignals, observed: Observations, requests: Track) -> None:
    """Reads of the database reach the devices: they are not answered by the page cache of the kernel."""
    reads = observed.find("read_bytes", source="block", host=requests.host)
    if not reads:
        return
    own = observed.sum_of(observed.find("read_bytes", source=requests.source, host=requests.host))
    total = observed.sum_of(reads)
    if own is None or total is None:
        return
    share = np.where(own >= 1e6, np.minimum(total / own, 1.0), np.nan)
    signals.add("devices", f"{requests.entity}: reads that come from devices", share, at.FROM_DEVICES)


CAUSES = (
    Cause(
        name="memory-pressure",
        sources=("host", "mssql"),
        title="Memory is short",
        needs="memory and pressure of the host, or memory counters of SQL Server",
        find=memory_pressure,
    ),
    Cause(
        name="cache-too-small",
        sources=DATABASES,
        title="The buffer cache is too small",
        needs="page requests, reads and waits of a database",
        find=cache_too_small,
    ),
)

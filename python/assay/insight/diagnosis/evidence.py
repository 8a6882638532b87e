"""What several causes look at: devices and disks, I/Os under way, pressure, response times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.observed import (
    DATABASES,
    SAMPLES_MIN,
    SECOND_NS,
    Flags,
    Numbers,
    Observations,
    Track,
    summed,
)
from assay.insight.diagnosis.signals import CauseSignals
from assay.insight.recording import is_stacked

MIB = float(2**20)

FLAT = 0.10
"""Half the distance between the 5th and 95th percentile, as a share of the median: a queue that does not move."""

SERVICE_MIN_S = 1e-3
"""Time of a disk for an I/O from which it turns: flash takes a tenth of it, and many I/Os at once."""


def devices(observed: Observations, metric: str, host: str | None = None) -> list[Track]:
    """Tracks of physical block devices; for a host that recorded only stacked ones (dm, md), those."""
    found = observed.find(metric, source="block", host=host)
    below = {track.host for track in observed.tracks if track.source == "block" and not is_stacked(track.entity)}
    return [track for track in found if not is_stacked(track.entity) or track.host not in below]


def device_bytes(observed: Observations, host: str) -> Numbers | None:
    """Bytes a second of a host's devices, both directions together."""
    return observed.sum_of([one for metric in ("read_bytes", "write_bytes") for one in devices(observed, metric, host)])


def is_disk(track: Track) -> bool:
    """Whether a track is of a disk of a modelled array."""
    return "/disk" in track.entity


def disk_of(member: str) -> Callable[[Track], bool]:
    """Whether a track is of a disk of one member."""
    return lambda track: track.entity.startswith(f"{member}/disk")


def is_link(track: Track) -> bool:
    """Whether a track is of a port of a modelled array or its hosts."""
    return "/port" in track.entity


def works(track: Track) -> bool:
    """Whether something ever did anything."""
    return bool(np.nan_to_num(np.nanmax(track.values)) > 0)


def add_pressure(signals: CauseSignals, host: str) -> None:
    """Tasks of a host that wait for I/O."""
    for track in signals.observed.find("some_share", source="host", entity="psi-io", host=host):
        signals.add("pressure", f"{host}: tasks wait for I/O", track, at.IO_PRESSURE)


def serves_one(observed: Observations, busy: Track) -> bool:
    """Whether a disk of a model serves one I/O at a time, as rotating disks do: of others a busy share says nothing."""
    ios = observed.ios_per_s(busy)
    if ios is None or not np.nansum(ios) > 0:
        return False
    return float(np.nansum(busy.values) / np.nansum(ios)) >= SERVICE_MIN_S


def in_flight(observed: Observations, source: str) -> Numbers | None:
    """Throughput times latency, over all entities of a source."""
    parts = []
    for side in ("read", "write"):
        for latency in observed.find(f"{side}_latency_mean_ns", source=source):
            ios = observed.of(latency, f"{side}_ios_count")
            if ios is not None:
                parts.append(ios.values * latency.values / SECOND_NS)
    return summed(parts) if parts else None


def smooth(values: Numbers, over: int = 5) -> Numbers:
    """Mean over neighbouring steps, of what is known of them.

    What is seen at one moment of each step jumps (sessions that wait), and so does what is rare.
    """
    over = max(min(over, values.size // 2), 1)
    known = np.isfinite(values)
    kernel = np.ones(over)
    counts = np.convolve(known, kernel, mode="same")
    sums = np.convolve(np.where(known, values, 0.0), kernel, mode="same")
    return np.where(known, sums / np.maximum(counts, 1), np.nan)


def transactions(observed: Observations, metric: str = "latency_mean_ns") -> list[Track]:
    """Latencies of what an application asks of its database: those beside which it counts what was committed."""
    return observed.find(
        metric,
        where=lambda one: one.tier in ("application", "client") and observed.of(one, "committed_count") is not None,
    )


def response_times(observed: Observations, host: str) -> list[tuple[str, Numbers]]:
    """Latencies of what is examined: transactions, Assay's own I/Os, those that databases time."""
    found = []
    of_sources: dict[str, list[Track]] = {}
    for track in transactions(observed):
        of_sources.setdefault(track.source, []).append(track)
    for own in of_sources.values():
        found.append(("transactions take", _mean_by_count(observed, own)))
    for side in ("read", "write"):
        for track in observed.find(f"{side}_latency_mean_ns", source=("assay", *DATABASES), host=host):
            found.append((f"{track.entity}: {side}s take", track.values))
    for track in observed.find("log_flush_latency_mean_ns", host=host):
        found.append((f"{track.entity}: log flushes take", track.values))
    return found


def _mean_by_count(observed: Observations, own: Sequence[Track]) -> Numbers:
    """Mean latency of transactions, weighted by how many were committed."""
    counts = [observed.of(track, "committed_count") for track in own]
    stacked = np.array([track.values for track in own])
    weights = np.array([np.zeros(observed.steps) if one is None else np.nan_to_num(one.values) for one in counts])
    known = np.isfinite(stacked) & (weights > 0)
    total = np.where(known, weights, 0.0).sum(axis=0)
    return np.asarray(np.where(known, stacked * weights, 0.0).sum(axis=0) / total)


def add_slower(signals: CauseSignals, host: str, active: Flags, when: str) -> None:
    """Response times while something is at work, as multiples of those at other times."""
    for text, values in response_times(signals.observed, host):
        known = np.isfinite(values)
        if (active & known).sum() < SAMPLES_MIN or (~active & known).sum() < SAMPLES_MIN:
            continue
        usual = float(np.median(values[~active & known]))
        if usual > 0:
            words = f"{text} this much longer than usual while {when}"
            signals.add("latency", words, values / usual, at.HALF_MORE, where=active)

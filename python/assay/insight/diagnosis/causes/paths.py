"""Paths to storage: one of several that is lost, or slower than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from assay.document.text import joined
from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.observed import Flags, Numbers, Observations, Track, summed
from assay.insight.diagnosis.signals import CauseSignals, Suspicion


def slow_path(observed: Observations) -> list[Suspicion]:
    """One path of several that is slower than its siblings."""
    found = []
    paths: dict[tuple[str, str], list[Track]] = {}
    for side in ("read", "write"):
        for track in observed.latencies("path", side):
            paths.setdefault((track.host, track.entity.split("/")[0] + side), []).append(track)
    for siblings in paths.values():
        found.append(_slowest(observed, siblings, "I/Os over it take this much longer than over the others"))
    ports: dict[tuple[str, str], list[Track]] = {}
    for track in observed.find("busy_share", source="model", where=lambda one: one.entity.startswith("host")):
        carried = _carried(observed, track)
        if carried is not None:
            ports.setdefault((track.host, track.entity.split("/")[0]), []).append(carried)
    for siblings in ports.values():
        found.append(_slowest(observed, siblings, "a byte over it takes this much longer than over the others"))
    return those(*found)


def lost_path(observed: Observations) -> list[Suspicion]:
    """Paths of multipath devices that the kernel does not use, because their port, session or link is gone."""
    failed = observed.find("paths_failed_count", source="multipath")
    return those(*(_lost(observed, [one for one in failed if one.host == host]) for host in observed.hosts))


def _lost(observed: Observations, maps: Sequence[Track]) -> Suspicion | None:
    """What a host lost: a cable, port or portal takes a path of several multipath devices away at once."""
    signals = CauseSignals(observed)
    lost_steps: dict[str, int] = {}
    for failed in maps:
        words = f"{failed.entity}: paths that do not run"
        signals.add("failed", words, failed, at.PATH_LOST, required=True, strong=True)
        states = _paths_of(observed, failed, "failed_share", "multipath")
        for path in states:
            # Of a longer step it is the share.
            down, words = np.nan_to_num(path.values) > 0, f"{path.entity}: does not run"
            if signals.add_where("failed", words, down, entity=path.entity, host=path.host, strong=True):
                lost_steps[path.entity] = int(down.sum())
        for name, silent in _silent(observed, failed):
            words = f"{name}: no I/Os while other paths have some"
            # Under little load paths that run are silent, too.
            if states and name not in lost_steps:
                continue
            if signals.add_where("silent", words, silent, entity=name, host=failed.host):
                lost_steps[name] = max(lost_steps.get(name, 0), int(silent.sum()))
    names = sorted(lost_steps, key=lambda name: -lost_steps[name])
    named = joined(names) or "the paths of " + joined(sorted({failed.entity for failed in maps}))
    return signals.agree(
        "lost-path",
        resource="network",
        advice=f"Look at the port, cable, switch and session of {named}, and at the kernel's log of that time;"
        " `multipath -ll` says whether it is back.",
        against=["The path was taken out on purpose."],
        explains=("slow-path", "slow-disk", "drive-errors", "device-stands-still", "throttled-queue", "log-flush"),
        confirm="which path it was: `multipath -ll`, and I/Os of each path beside each other",
        always=True,
    )


def siblings_of_lost(observed: Observations, disk: str, host: str) -> list[str]:
    """Disks by which a multipath device goes on, where a disk is a path of it that was lost; else none."""
    lost = observed.find(
        "failed_share",
        source="multipath",
        host=host,
        where=lambda track: track.entity.endswith(f"/{disk}") and bool((track.values > 0).any()),
    )
    return [
        other.entity.rpartition("/")[2]
        for path in lost
        for other in observed.find("failed_share", source="multipath", host=host)
        if other.entity != path.entity and other.entity.rpartition("/")[0] == path.entity.rpartition("/")[0]
    ]


def _silent(observed: Observations, failed: Track) -> Iterator[tuple[str, Flags]]:
    """Steps in which a path of a multipath device has no I/Os although others of it have, while one is lost."""
    paths = {
        track.entity: ios
        for track in _paths_of(observed, failed, "read_ios_count", "path")
        if (ios := observed.ios_per_s(track)) is not None
    }
    for name, own in paths.items():
        others = summed([ios for other, ios in paths.items() if other != name])
        yield name, (own == 0) & (others > 0) & failed.above(at.PATH_LOST.value)


def _paths_of(observed: Observations, device: Track, metric: str, source: str) -> list[Track]:
    """A metric of each path of a multipath device."""
    start = f"{device.entity}/"
    return observed.find(metric, source=source, host=device.host, where=lambda track: track.entity.startswith(start))


def _carried(observed: Observations, busy: Track) -> Track | None:
    """Time that a port takes for a byte."""
    parts = [track for metric in ("in_bytes", "out_bytes") if (track := observed.of(busy, metric)) is not None]
    total = observed.largest_of(parts)
    if total is None:
        return None
    values = np.where(total > 0, busy.values / total, np.nan)
    return busy.having(values, "time_per_byte")


def _slowest(observed: Observations, siblings: Sequence[Track], text: str) -> Suspicion | None:
    if len(siblings) < 2:
        return None
    means = [float(np.nanmean(track.values)) for track in siblings]
    slowest = siblings[int(np.argmax(means))]
    others = observed.mean_of([track for track in siblings if track is not slowest])
    assert others is not None
    signals = CauseSignals(observed)
    ratio = slowest.values / others
    signals.add("speed", f"{slowest.entity}: {text}", ratio, at.TWICE, entity=slowest.entity, required=True)
    busy = observed.of(slowest, "busy_share")
    if busy is not None:
        signals.add("utilisation", f"{slowest.entity}: is busy", busy, at.LINK_BUSY)
    for metric in ("retransmit_share", "storage_retransmit_share"):
        track = observed.of(slowest, metric)
        if track is not None:
            signals.add("loss", f"{slowest.entity}: segments are sent again", track, at.RETRANSMITS)
    map_name = slowest.entity.split("/")[0]
    for track in observed.find("paths_failed_count", source="multipath", entity=map_name, host=slowest.host):
        signals.add("failed", f"{map_name}: paths have failed", track, at.QUEUED)
    shares = _shares(observed, siblings, slowest)
    if shares is not None:
        signals.add("share", f"{slowest.entity}: is sent no less than the others", shares, at.EVEN)
    return signals.agree(
        "slow-path",
        resource="network",
        advice=f"Look at the cable, port and switch of {slowest.entity}; until it is mended take it out, or let"
        " multipath choose by least queue depth instead of round robin.",
        against=["All paths are as slow when this one is taken out."],
        explains=("slow-disk", "throttled-queue"),
    )


def _shares(observed: Observations, siblings: Sequence[Track], slowest: Track) -> Numbers | None:
    """What a path carries over the mean of all: I/Os, or bytes of ports."""
    loads = []
    for track in siblings:
        ios = observed.ios_per_s(track)
        parts = [one.values for metric in ("in_bytes", "out_bytes") if (one := observed.of(track, metric)) is not None]
        load = ios if ios is not None else np.nansum(parts, axis=0) if parts else None
        if load is None:
            return None
        loads.append(load)
    mean = np.mean(loads, axis=0)
    own = loads[list(siblings).index(slowest)]
    return np.where(mean > 0, own / mean, np.nan)


CAUSES = (
    Cause(
        name="lost-path",
        title="A path is lost",
        needs="states of multipath devices, and I/Os of each path",
        sources=("multipath",),
        find=lost_path,
    ),
    Cause(
        name="slow-path",
        title="One path is slow",
        needs="latencies of each path, or the ports of a model",
        sources=("path", "model"),
        find=slow_path,
    ),
)

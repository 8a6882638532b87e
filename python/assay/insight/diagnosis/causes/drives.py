"""Drives that hold themselves back to cool down, and drives that are reset or have errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.causes.disks import late
from assay.insight.diagnosis.causes.paths import siblings_of_lost
from assay.insight.diagnosis.observed import SAMPLES_MIN, Flags, Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion

DRIVE_ERRORS = (
    ("resets_count", "is reset, or does not answer in time (kernel's log)"),
    ("io_errors_count", "I/Os fail (kernel's log)"),
    ("media_errors_count", "has media errors"),
)
"""What no drive does that is well, and its words."""
PATH_ERRORS = ("resets_count", "io_errors_count")
"""Of these, what a path that is lost looks like, too."""
THROTTLE_SOURCES = ("drive", "array", "model")
"""Drives of this host, of served arrays and of models tell when they throttle."""


def throttles(observed: Observations) -> list[Suspicion]:
    """Drives that say that they hold their power back, or are above their warning temperature and slower than else."""
    return those(*(_throttles(observed, name, host) for name, host in _drives(observed)))


def _drives(observed: Observations) -> Iterator[tuple[str, str]]:
    metrics = ("throttled_share", "temperature_of_warning_share", *(metric for metric, _ in DRIVE_ERRORS))
    found = [
        track for metric in metrics for source in THROTTLE_SOURCES for track in observed.find(metric, source=source)
    ]
    yield from dict.fromkeys((track.entity, track.host) for track in found)


def _throttles(observed: Observations, name: str, host: str) -> Suspicion | None:
    signals = CauseSignals(observed)
    active = np.zeros(observed.steps, dtype=bool)
    for metric, words, bound in (
        ("throttled_share", f"{name}: holds its power back to cool down", at.THROTTLED),
        ("temperature_of_warning_share", f"{name}: temperature, of that at which it warns", at.HOT),
    ):
        found = [
            track for one in THROTTLE_SOURCES for track in observed.find(metric, source=one, entity=name, host=host)
        ]
        for track in found:
            is_told = metric == "throttled_share"
            signals.add("throttling" if is_told else "temperature", words, track, bound, strong=is_told)
            active |= track.above(bound.value)
    if not active.any():
        return None
    _add_effects(signals, name, host, active)
    temperatures = observed.find("temperature_celsius", source="drive", entity=name, host=host)
    notes = [f"{name}: up to {np.nanmax(track.values):.0f} degrees" for track in temperatures]
    told = any(signal.of == "throttling" for signal in signals.found)
    return signals.agree(
        "drive-throttles",
        resource="disk",
        needs=("throttling" if told else "temperature",),
        advice=f"Cool {name}: see its heat sink, the air past it, fans and filters, and what lies beside it; another"
        " slot or a drive of a larger form. Until then spread its load over more drives.",
        against=["It is as slow when cool, after minutes without load."],
        explains=("slow-disk", "slow-writes", "log-flush", "throughput-limit", "burst-decline"),
        notes=notes,
        confirm="latency and throughput of the drive at that time, beside those when it is cool",
    )


def _add_effects(signals: CauseSignals, name: str, host: str, active: Flags) -> None:
    """Late I/Os of the drive, and fewer of them than while it is cool."""
    observed = signals.observed
    for track in _blocks(observed, name, host):
        for side, latency, bound in late(observed, track):
            signals.add("latency", f"{name}: {side or 'I/O'}s take", latency, bound)
        done = observed.ios_per_s(track)
        if done is None:
            continue
        cool = done[~active & (done > 0)]
        if cool.size >= SAMPLES_MIN:
            words = f"{name}: I/Os per second, as a multiple of those when it is cool"
            signals.add("throughput", words, done / float(np.median(cool)), at.DECLINE, where=active, entity=name)


def _blocks(observed: Observations, name: str, host: str) -> list[Track]:
    """One track of the block device of a drive, if it was recorded."""
    metrics = ("read_ios_count", "write_ios_count", "ios_count", "latency_mean_ns")
    found = (observed.find(metric, source="block", entity=name, host=host) for metric in metrics)
    return next((tracks[:1] for tracks in found if tracks), [])


def fails(observed: Observations) -> list[Suspicion]:
    """Drives that the kernel resets, whose I/Os fail, or that have media errors: once is enough.

    What happens on one path alone of a multipath device, while that path is being lost, is the path's.
    """
    found = []
    for name, host in _drives(observed):
        signals, seen = CauseSignals(observed), np.zeros(observed.steps, dtype=bool)
        others = siblings_of_lost(observed, name, host)
        for metric, words in DRIVE_ERRORS:
            for track in observed.find(metric, source="drive", entity=name, host=host):
                held = track.values > 0
                if others and metric in PATH_ERRORS:
                    held &= _any_above_zero(observed, metric, others, host)
                seen |= held
                signals.add_where(metric, f"{name}: {words}", held, entity=name, host=host, strong=True)
        for track in observed.find("error_log_entries_count", source="drive", entity=name, host=host):
            signals.add_where("error-log", f"{name}: logs errors", track.values > 0, entity=name, host=host)
        if not seen.any():
            continue
        _add_effects(signals, name, host, seen)
        found.append(
            signals.agree(
                "drive-errors",
                resource="disk",
                advice=f"Read the kernel's log (dmesg) and the error log of {name} (nvme error-log, smartctl -x). Media"
                " errors: replace it, and check the database's pages. Resets and time-outs: firmware, cable, slot,"
                " power states of the link (nvme_core.default_ps_max_latency_us, pcie_aspm).",
                against=["Somebody reset or formatted it by hand at that time."],
                explains=("device-stands-still", "slow-disk", "slow-writes", "log-flush", "throughput-limit"),
                always=True,
                confirm="the kernel's log and the error log of the drive",
            )
        )
    return those(*found)


def _any_above_zero(observed: Observations, metric: str, names: Sequence[str], host: str) -> Flags:
    """Steps in which a metric of any of some drives is above zero."""
    tracks = observed.find(metric, source="drive", host=host, where=lambda track: track.entity in names)
    return np.any([track.values > 0 for track in tracks], axis=0) if tracks else np.zeros(observed.steps, dtype=bool)


CAUSES = (
    Cause(
        name="drive-errors",
        title="A drive is reset or has errors",
        needs="health of drives, and the kernel's log",
        sources=("drive",),
        find=fails,
    ),
    Cause(
        name="drive-throttles",
        title="A drive throttles to cool down",
        needs="throttling or temperature of drives",
        sources=("drive",),
        find=throttles,
    ),
)

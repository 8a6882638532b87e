"""Processors: of a host, of a guest, and of the load generator itself."""

from __future__ import annotations

from typing import Literal

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.observed import Numbers, Observations, Track, summed
from assay.insight.diagnosis.signals import CauseSignals, Suspicion

WORKER_OWN = 0.25
"""A worker of the generator that computes less of its time is not what fills the processors."""


def host_cpu(observed: Observations) -> list[Suspicion]:
    """Hosts whose processors are busy while work waits for them, that of a load generator included."""
    found = []
    held_up = () if _generator_computes(observed) else ("generator-saturated",)
    for host in observed.hosts:
        signals = CauseSignals(observed)
        signals.add("utilisation", f"{host}: processors are busy", observed.cpu_busy(host), at.CPU_BUSY, required=True,
                    strong=True)  # fmt: skip
        _add_waiting(signals, host)
        found.append(
            signals.agree(
                "host-cpu",
                resource="cpu",
                advice=f"Find what uses the processors of {host} (top, pidstat), move it or give it a share; then"
                " measure again before storage is changed.",
                against=[
                    "Storage faster or slower at the same load changes throughput: then processors are not the limit."
                ],
                explains=("latch-wait", "throttled-queue", "checkpoint-storm", *held_up),
                confirm="tasks that wait for a processor (run queue, pressure)",
            )
        )
    return those(*found)


def _add_waiting(signals: CauseSignals, host: str) -> None:
    """Tasks of a host that wait for a processor: the time they do, and how many."""
    for track in signals.observed.find("some_share", source="host", entity="psi-cpu", host=host):
        signals.add("saturation", f"{host}: tasks wait for a processor", track, at.CPU_PRESSURE)
    waiting = signals.observed.waiting_per_cpu(host)
    signals.add("saturation", f"{host}: tasks wait for each processor", waiting, at.CPU_WAITING)


GUEST_SHARES = (
    ("used_share", at.GUEST_BUSY, "utilisation", "uses its processors"),
    ("ready_share", at.CPU_STEAL, "withheld", "is ready and gets no processor"),
    ("costop_share", at.CPU_COSTOP, "costop", "is stopped until its other processors run"),
    ("limited_share", at.CPU_COSTOP, "limit", "is held back by its limit"),
)
"""What a hypervisor says of a guest: the metric, its threshold, the signal that it is, and its words."""


def guest_tracks(observed: Observations, metric: str, host: str) -> list[Track]:
    """Tracks of guests; one full virtual processor of several is no guest that has used all, so their mean counts."""
    found = observed.find(metric, source="guest", host=host)
    names = {track.entity for track in found}
    return [
        one for one in found if metric != "used_share" or one.entity.split(":vmx-vcpu")[0] not in names - {one.entity}
    ]


def guest_cpu(observed: Observations) -> list[Suspicion]:
    """Guests that lack processors: they use all they have, or the hypervisor withholds them."""
    found = []
    for host in observed.hosts:
        signals = CauseSignals(observed)
        for track in observed.find("steal_share", source="host", entity="cpu", host=host):
            signals.add("withheld", f"{host}: the hypervisor gives processor time to others", track, at.CPU_STEAL,
                        required=True, strong=True)  # fmt: skip
        _add_waiting(signals, host)
        found.append(_of_guest(signals, host))
    for guest in dict.fromkeys((one.host, one.entity) for one in observed.tracks if one.source == "guest"):
        host, name = guest
        signals = CauseSignals(observed)
        for metric, threshold, of, text in GUEST_SHARES:
            for track in guest_tracks(observed, metric, host):
                if track.entity == name:
                    signals.add(of, f"{name}: {text}", track, threshold, strong=of == "withheld")
        for track in observed.find("busy_share", source="host", entity="cpu", host=host):
            signals.add("host", f"{host}: processors of the hypervisor are busy", track, at.CPU_BUSY)
        found.append(_of_guest(signals, name))
    return those(*found)


def _of_guest(signals: CauseSignals, name: str) -> Suspicion | None:
    return signals.agree(
        "guest-cpu",
        resource="cpu",
        advice=f"Give {name} more virtual processors, or fewer neighbours on its hypervisor; reserve what a database"
        " needs.",
        against=["The hypervisor shows idle processors and no ready time while the guest waits."],
        explains=("host-cpu", "latch-wait", "throttled-queue"),
        confirm="tasks that wait in the guest (run queue, pressure), or esxtop of the hypervisor",
    )


def single_core(observed: Observations) -> list[Suspicion]:
    """Hosts of which one processor is full while others idle: one thread, or interrupts that one processor serves."""
    found = []
    for host in observed.hosts:
        fullest, whole = fullest_core(observed, host), observed.cpu_busy(host)
        if fullest is None or whole is None:
            continue
        signals = CauseSignals(observed)
        signals.add("core", f"{host}: the fullest processor is busy", fullest, at.CORE_FULL, host=host, required=True)
        words = f"{host}: all processors together are busy"
        signals.add("others", words, whole, at.CORES_IDLE, host=host, required=True)
        found.append(
            signals.agree(
                "single-core",
                resource="cpu",
                advice=f"Find what fills one processor of {host} (top -H, pidstat -t, mpstat -P ALL for interrupts):"
                " let the program use more threads, or spread the interrupts of adapters over processors.",
                against=["The full processor changes from moment to moment, and no thread has all of its time."],
                explains=("throttled-queue",),
            )
        )
    return those(*found)


def fullest_core(observed: Observations, host: str) -> Numbers | None:
    """Busy share of the fullest of a host's processors; None where they were not recorded one by one."""
    own: dict[str, list[Track]] = {}
    for track in observed.tracks:
        if track.host == host and track.source == "host" and track.entity.startswith("cpu/"):
            own.setdefault(track.entity, []).append(track)
    if len(own) < 2:
        return None
    parts = (
        [one for one in tracks if one.metric == "busy_share"]
        or [one for one in tracks if one.metric in ("user_share", "nice_share", "system_share", "interrupt_share")]
        for tracks in own.values()
    )
    busy = [summed([one.values for one in tracks]) for tracks in parts if tracks]
    return np.clip(np.fmax.reduce(busy), 0.0, 1.0) if busy else None


def _generator_computes(observed: Observations) -> bool:
    """Whether a worker of the load generator itself uses much of a processor; unknown is taken for yes."""
    shares = [(window.point.get("generator") or {}).get("fullest_worker_share") for window in observed.windows]
    return any(share is None or share >= WORKER_OWN for share in shares)


def _of_generator(observed: Observations, name: Literal["fullest_worker_share", "schedule_lag_p99_ns"]) -> Numbers:
    """A figure of the load generator in the steps of each point, NaN where there is none."""
    figures = np.full(observed.steps, np.nan)
    for window in observed.windows:
        figure = (window.point.get("generator") or {}).get(name)
        if figure is not None:
            figures[window.steps] = float(figure)
    return figures


def generator_saturated(observed: Observations) -> list[Suspicion]:
    """Points at which the load generator was the limit; where others held it up, they are the cause (host-cpu)."""
    signals, computes = CauseSignals(observed), _generator_computes(observed)
    flagged = np.zeros(observed.steps, dtype=bool)
    reasons: list[str] = []
    for window in observed.windows:
        generator = window.point.get("generator") or {}
        if generator.get("saturated"):
            flagged |= window.steps
            if generator.get("reason"):
                reasons.append(str(generator["reason"]))
    signals.add_where("generator", "points are marked: the generator was the limit", flagged, required=True)
    for host in observed.hosts:
        busy = observed.cpu_busy(host)
        if busy is not None and computes:
            signals.add("cpu", f"{host}: processors are busy", busy, at.CPU_BUSY)
    signals.add("worker", "the fullest worker is busy", _of_generator(observed, "fullest_worker_share"), at.GUEST_BUSY)
    storage = observed.find("queue_mean_count", source="block")
    if storage:
        signals.add_where(
            "storage",
            "devices have almost nothing to do",
            np.nan_to_num(observed.largest_of(storage), nan=np.inf) < 1.0,  # type: ignore[arg-type]
        )
    late = _of_generator(observed, "schedule_lag_p99_ns")
    signals.add("schedule", "requests leave later than intended", late, at.WRITE_LATENCY)
    return those(
        signals.agree(
            "generator-saturated",
            resource="cpu",
            advice="Run the generator on more processors or another host (--workers, --threads); figures of these"
            " points are no answer.",
            against=["More workers or another client give the same throughput."],
            explains=("throttled-queue", "latch-wait", *(("host-cpu", "guest-cpu") if computes else ())),
            notes=list(dict.fromkeys(reasons))[:2],
        )
    )


CAUSES = (
    Cause(
        name="host-cpu",
        sources=("host",),
        title="Processors of the host are the limit",
        needs="processors and pressure of the host",
        find=host_cpu,
    ),
    Cause(
        name="guest-cpu",
        sources=("host", "guest"),
        title="A guest lacks processors",
        needs="steal time of the guest, or esxtop of its hypervisor",
        find=guest_cpu,
    ),
    Cause(
        name="single-core",
        sources=("host",),
        title="One processor is full beside idle ones",
        needs="each processor of the host by itself",
        find=single_core,
    ),
    Cause(
        name="generator-saturated",
        sources=("assay",),
        title="The load generator is the limit",
        needs="points of a run",
        find=generator_saturated,
    ),
)

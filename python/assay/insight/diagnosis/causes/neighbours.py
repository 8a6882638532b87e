"""What storage gives: less than it did, or to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.causes.told_limits import ToldLimit, told_limits
from assay.insight.diagnosis.evidence import FLAT, MIB, add_pressure, add_slower, device_bytes, devices, in_flight
from assay.insight.diagnosis.observed import DATABASES, SAMPLES_MIN, Numbers, Observations
from assay.insight.diagnosis.signals import HOLD_SHARE, CauseSignals, Suspicion


def noisy_neighbour(observed: Observations) -> list[Suspicion]:
    """I/O of others on the devices of what is examined."""
    found = []
    for host in observed.hosts:
        own = _own_bytes(observed, host)
        total = device_bytes(observed, host)
        if own is None or total is None:
            continue
        foreign = np.where(total >= MIB, np.clip(1.0 - own / total, 0.0, 1.0), np.nan)
        signals = CauseSignals(observed)
        signals.add("bytes", f"{host}: bytes of the devices that others move", foreign, at.FOREIGN, required=True)
        active = foreign >= at.FOREIGN.value
        add_slower(signals, host, active, "others are at work")
        add_pressure(signals, host)
        for late in (*observed.latencies("block", "read"), *observed.latencies("block", "write")):
            if late.host == host:
                signals.add("latency", f"{late.entity}: I/Os of the device take", late, at.READ_LATENCY)
        names = _others(observed, host)
        found.append(
            signals.agree(
                "noisy-neighbour",
                resource="disk",
                advice="Move it to other storage or another time, or give it a limit (io.max of its control group)"
                + (f": {', '.join(names)}." if names else "."),
                against=["Latency stays when the others stop."],
                explains=("slow-disk", "log-flush", "throttled-queue", "burst-decline"),
            )
        )
    return those(*found)


def _own_bytes(observed: Observations, host: str) -> Numbers | None:
    """Bytes a second of databases and of Assay's load on a host."""
    tracks = [
        *(one for metric in ("read_bytes", "write_bytes") for one in observed.find(metric, source="assay", host=host)),
        *(
            one
            for metric in ("read_bytes", "written_bytes", "log_bytes", "checkpoint_written_bytes", "temp_bytes")
            for one in observed.find(metric, source=DATABASES, host=host)
            if metric != "checkpoint_written_bytes" or not observed.find("written_bytes", source=DATABASES, host=host)
        ),
    ]
    return observed.sum_of(tracks)


def _others(observed: Observations, host: str) -> list[str]:
    """Programs with most bytes that are no database and not Assay."""
    totals: dict[str, float] = {}
    for metric in ("read_bytes", "write_bytes"):
        for track in observed.find(metric, source="process", host=host):
            totals[track.entity] = totals.get(track.entity, 0.0) + float(np.nanmean(track.values))
    own = ("postgres", "mariadbd", "mysqld", "sqlservr", "assay")
    names = sorted((name for name in totals if not name.startswith(own)), key=lambda name: -totals[name])
    return [name for name in names if totals[name] >= MIB][:3]


def burst_decline(observed: Observations) -> list[Suspicion]:
    """Throughput that falls to a plateau while as much is asked for."""
    found = []
    groups = [
        ("assay", observed.find("read_ios_count", source="assay") + observed.find("write_ios_count", source="assay"))
    ]
    groups += [(queue.entity, [one for side in ("read", "write") if (one := observed.of(queue, f"{side}_ios_count"))])
               for queue in devices(observed, "queue_mean_count")]  # fmt: skip
    told = list(told_limits(observed))
    limited = {one.track.entity: one.track for one in told}
    # Volumes that say themselves how they stand come first: a queue is not needed there.
    for name, track in limited.items():
        rate = observed.ios_per_s(track)
        found.append(None if rate is None else _declined(observed, name, rate, told))
    if any(found):
        return those(*found)
    found = []
    for name, tracks in groups:
        total = observed.sum_of(tracks)
        if total is not None:
            found.append(_declined(observed, "the load" if name == "assay" else name, total, told))
    return those(*found[:1] if found and found[0] is not None else found)


def _declined(observed: Observations, name: str, rate: Numbers, told: Sequence[ToldLimit] = ()) -> Suspicion | None:
    """Where a series of rates falls once and stays down; certain where a limit says so itself."""
    loads = {str(window.point.get("load")) + str(window.point.get("workload")) for window in observed.windows}
    known = np.flatnonzero(np.isfinite(rate) & observed.counted)
    if len(loads) > 1 or known.size < 4 * SAMPLES_MIN:
        return None
    values = rate[known]
    place = _step(values)
    if place is None:
        return None
    before, after = values[:place], values[place:]
    level = float(np.median(before))
    signals = CauseSignals(observed)
    is_after = np.zeros(observed.steps, dtype=bool)
    is_after[known[place:]] = True
    signals.add(
        "throughput", f"{name}: I/Os per second, as a multiple of before", rate / level, at.DECLINE, where=is_after
    )
    # Credits that were there before, or a limit that was not met then; one that never changes says nothing of the fall.
    is_told = False
    for one in told:
        if name in (one.track.entity, "the load"):
            held = one.bound.holds(one.track)
            if held[known[place:]].mean() >= HOLD_SHARE and (one.bound.below or not held[known[:place]].all()):
                is_told |= signals.add("limit", f"{one.track.entity}: {one.text}", one.track, one.bound, where=is_after)
    low, high = np.quantile(after, [0.1, 0.9])
    if (high - low) / 2 <= FLAT * float(np.median(after)):
        signals.add_where(
            "plateau", f"{name}: stays at {np.median(after):,.0f} I/Os/s, as a limit does", is_after, entity=name
        )
    queue = in_flight(observed, "assay")
    if queue is None:
        own = devices(observed, "queue_mean_count")
        queue = own[0].values if len(own) == 1 else None
    if queue is not None:
        asked_before, asked_after = np.nanmedian(queue[known[:place]]), np.nanmedian(queue[known[place:]])
        if asked_after >= 0.8 * asked_before:
            signals.add_where("queue", f"{name}: as many I/Os are outstanding as before ({asked_after:.3g})", is_after)
    return signals.agree(
        "burst-decline",
        resource="disk",
        certain=is_told,
        needs=("throughput", "limit") if is_told else ("throughput", "plateau", "queue"),
        advice="Look at the volume's burst credits or rate limit (cloud, io.max, QoS of the array), and at the"
        " drive's temperature and its cache of fast cells; size for the plateau, not for the burst.",
        against=["The program asked for less from then on, or for other I/Os (size, randomness)."],
        explains=("slow-disk", "throttled-queue", "throughput-limit"),
    )


def _step(values: Numbers) -> int | None:
    """Where the mean changes once: the split with the least squares left over; None where it explains too little.

    A single change of the mean of a normal series (Hinkley 1970, "Inference about the change-point", Biometrika 57).
    """
    count = values.size
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    places = np.arange(2 * SAMPLES_MIN, count - 2 * SAMPLES_MIN + 1)
    if not places.size:
        return None
    left = squares[places - 1] - sums[places - 1] ** 2 / places
    right_sum = sums[-1] - sums[places - 1]
    right = squares[-1] - squares[places - 1] - right_sum**2 / (count - places)
    best = int(places[int(np.argmin(left + right))])
    whole = float(squares[-1] - sums[-1] ** 2 / count)
    explained = 1.0 - float((left + right).min()) / whole if whole > 0 else 0.0
    return best if explained >= 0.7 else None


CAUSES = (
    Cause(
        name="noisy-neighbour",
        title="Others use the same storage",
        needs="devices, and the bytes of the database or load examined",
        sources=("block",),
        find=noisy_neighbour,
    ),
    Cause(
        name="burst-decline",
        title="Throughput fell to a lower limit",
        needs="twenty steps or more of I/Os and queues",
        sources=("assay", "block", "array", "model"),
        find=burst_decline,
    ),
)

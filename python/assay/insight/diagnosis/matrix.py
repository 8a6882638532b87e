"""The performance analysis matrix: tiers by resources, and in each cell utilisation, saturation and errors.

The matrix is the method's; what a cell asks of a resource is Gregg's USE ("Thinking Methodically about Performance",
ACM Queue 10-12, 2012). A cell is hot where a measure stays beyond its threshold for half of the worst ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.memory import hit_share, memory_of
from assay.insight.diagnosis.evidence import devices, is_disk, is_link, serves_one
from assay.insight.diagnosis.observed import DATABASES, SAMPLES_MIN, Flags, Numbers, Observations, Track
from assay.insight.diagnosis.signals import HOLD_SHARE, Threshold, value_text, worst_share

TIERS = ("client", "application", "database", "hypervisor", "storage")
RESOURCES = ("cpu", "memory", "network", "disk")

HOT, WARM, COOL, FEW, NONE = "hot", "warm", "ok", "too few samples", "no data"
"""States of a cell: beyond a threshold for long, for moments, never, and what is not known."""

WARM_SHARE = 0.1
"""Share of the worst ten minutes from which a cell is warm: single steps are no finding."""


class MeasureRecord(TypedDict):
    """A measure of a cell for scripts: values in `unit`, minutes beyond its threshold, shares."""

    aspect: str
    what: str
    entity: str
    p95: float
    worst: float
    unit: str
    threshold: float
    bad_when: str
    source: str
    minutes_exceeded: float
    worst_window_share: float
    samples: int
    state: str


class CellRecord(TypedDict):
    """A cell for scripts: the leading measure of each aspect, and all of them."""

    tier: str
    host: str
    resource: str
    state: str
    utilisation: MeasureRecord | None
    saturation: MeasureRecord | None
    errors: MeasureRecord | None
    minutes_exceeded: float
    measures: list[MeasureRecord]


class RisingCell(TypedDict):
    """The measure of a cell as load rises: the first load beyond its threshold, and Spearman's rank correlation."""

    tier: str
    host: str
    resource: str
    what: str
    first_load: float | None
    correlation_with_latency: float | None


class RisingLoad(TypedDict):
    """How many points were measured as load rose, and what cells did meanwhile."""

    points: int
    cells: list[RisingCell]


class CellMeasure(NamedTuple):
    """One measure of a cell: what USE calls it, its words, its values and its bound."""

    aspect: str
    text: str
    values: Numbers
    threshold: Threshold
    entity: str


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A measure over all time.

    Attributes
    ----------
    p95, worst
        95th percentile, and the most extreme value, in the threshold's unit.
    minutes
        For how long it was beyond its threshold.
    share
        Of the worst ten minutes in which it was.
    """

    measure: CellMeasure
    samples: int
    p95: float
    worst: float
    minutes: float
    share: float

    @property
    def state(self) -> str:
        """State of the cell as far as this measure says."""
        if self.samples < SAMPLES_MIN:
            return FEW
        return HOT if self.share >= HOLD_SHARE else WARM if self.share >= WARM_SHARE else COOL

    def record(self) -> MeasureRecord:
        """For scripts."""
        threshold = self.measure.threshold
        return {
            "aspect": self.measure.aspect,
            "what": self.measure.text,
            "entity": self.measure.entity,
            "p95": self.p95,
            "worst": self.worst,
            "unit": threshold.unit,
            "threshold": threshold.value,
            "bad_when": "below" if threshold.below else "at or above",
            "source": threshold.source,
            "minutes_exceeded": round(self.minutes, 3),
            "worst_window_share": round(self.share, 4),
            "samples": self.samples,
            "state": self.state,
        }


@dataclass(frozen=True, kw_only=True)
class CellOf:
    """One cell of the matrix."""

    tier: str
    host: str
    resource: str
    judged: list[Judged]

    @property
    def state(self) -> str:
        """The worst of its measures."""
        states = [one.state for one in self.judged]
        return next((state for state in (HOT, WARM, COOL, FEW) if state in states), NONE)

    @property
    def leading(self) -> Judged | None:
        """The measure that decides."""
        return max(self.judged, key=lambda one: (one.share, _distance(one)), default=None)

    @property
    def minutes(self) -> float:
        """For how long the measure was beyond its threshold that was so longest."""
        return max((one.minutes for one in self.judged), default=0.0)

    @property
    def words(self) -> str:
        """The measure that decides, in a few words."""
        one = self.leading
        if one is None:
            return "not recorded"
        return f"{one.measure.text} {value_text(one.p95, one.measure.threshold.unit)}"

    def record(self) -> CellRecord:
        """For scripts: the leading measure of each aspect, and all of them."""
        return {
            "tier": self.tier,
            "host": self.host,
            "resource": self.resource,
            "state": self.state,
            "utilisation": self._leading_of("utilisation"),
            "saturation": self._leading_of("saturation"),
            "errors": self._leading_of("errors"),
            "minutes_exceeded": round(self.minutes, 3),
            "measures": [one.record() for one in self.judged],
        }

    def _leading_of(self, aspect: str) -> MeasureRecord | None:
        own = [one for one in self.judged if one.measure.aspect == aspect]
        best = max(own, key=lambda one: (one.share, _distance(one)), default=None)
        return best.record() if best is not None else None


def _distance(one: Judged) -> float:
    """How near a measure comes to its threshold."""
    bound = one.measure.threshold
    if bound.below:
        return bound.value / one.worst if one.worst > 0 else float("inf")
    return one.p95 / bound.value if bound.value > 0 else one.p95


def matrix_of(observed: Observations) -> list[CellOf]:
    """All cells of all hosts, tier after tier; cells without data among them."""
    rows: dict[tuple[str, str], dict[str, list[Judged]]] = {}
    for host in observed.hosts:
        for tier, resource, measure in _measures(observed, host):
            own = rows.setdefault((tier, host), {name: [] for name in RESOURCES})
            judged = _judge(observed, measure)
            if judged is not None:
                own[resource].append(judged)
    known = [tier for tier, _ in rows]
    order = [*(tier for tier in dict.fromkeys(observed.tiers.values()) if tier not in TIERS), *TIERS]
    for tier in TIERS:
        if tier not in known:
            rows[tier, ""] = {name: [] for name in RESOURCES}
    ordered = sorted(rows, key=lambda key: (order.index(key[0]) if key[0] in order else 0, key[1]))
    return [
        CellOf(tier=tier, host=host, resource=name, judged=rows[tier, host][name])
        for tier, host in ordered
        for name in RESOURCES
    ]


def _judge(observed: Observations, measure: CellMeasure) -> Judged | None:
    known = measure.values[np.isfinite(measure.values) & observed.counted]
    if not known.size:
        return None
    below = measure.threshold.below
    beyond = (measure.values < measure.threshold.value) if below else (measure.values >= measure.threshold.value)
    beyond = beyond & observed.counted & np.isfinite(measure.values)
    return Judged(
        measure=measure,
        samples=int(known.size),
        p95=float(np.quantile(known, 0.05 if below else 0.95)),
        worst=float(known.min() if below else known.max()),
        minutes=observed.minutes(beyond),
        share=worst_share(observed, beyond),
    )


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


def _measures(observed: Observations, host: str) -> Iterator[tuple[str, str, CellMeasure]]:
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
    for metric, text, threshold in (
        ("ready_share", "ready without a processor", at.CPU_STEAL),
        ("costop_share", "stopped for its other processors", at.CPU_COSTOP),
    ):
        for track in observed.find(metric, source="guest", host=host):
            yield (
                "hypervisor",
                "cpu",
                CellMeasure("saturation", f"{track.entity} {text}", track.values, threshold, track.entity),
            )


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
    for side, threshold in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY)):
        for track in observed.latencies("block", side):
            if track.host == host:
                bound = at.LOG_LATENCY if side == "write" and track.role == "log" else threshold
                yield "disk", CellMeasure("saturation", f"{track.entity} {side}s", track.values, bound, track.entity)
    for track in devices(observed, "queue_mean_count"):
        if track.host == host:
            # A queue alone is no fault: flash needs one. It counts where the device is late as well.
            late = _late(observed, track)
            if late is not None:
                yield (
                    "disk",
                    CellMeasure("utilisation", f"{track.entity} queue while late", late, at.QUEUE, track.entity),
                )
    for track in observed.find("busy_share", source="nfs", host=host):
        yield "disk", CellMeasure("utilisation", f"{track.entity} busy", track.values, at.DISK_BUSY, track.entity)


def _late(observed: Observations, queue: Track) -> Numbers | None:
    """The queue where I/Os are late, 0 where they are not."""
    own = [
        one.values / bound.value
        for side, bound in (("read", at.READ_LATENCY), ("write", at.WRITE_LATENCY))
        for one in observed.latencies("block", side)
        if (one.entity, one.host) == (queue.entity, queue.host)
    ]
    if not own:
        return None
    worst = np.fmax.reduce(own)
    return np.where(np.isfinite(worst), np.where(worst >= 1.0, queue.values, 0.0), np.nan)


def _of_models(observed: Observations, host: str) -> Iterator[tuple[str, CellMeasure]]:
    """Disks, cache, controllers and links of a modelled array, each of its own."""
    for track in observed.find("busy_share", source="model", host=host):
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


def first_to_saturate(observed: Observations, cells: list[CellOf]) -> RisingLoad | None:
    """Which cell leaves its threshold first as load rises, and how each goes with latency.

    Returns
    -------
    RisingLoad or None
        The first load and the rank correlation of each cell's leading measure with the mean latency of the points;
        None with fewer than four loads.
    """
    loads: list[tuple[float, float, Flags]] = []
    for window in observed.windows:
        asked = window.point.get("load") or {}
        sizes = (asked.get("outstanding"), asked.get("users"), asked.get("rate"), asked.get("streams"))
        load = next((size for size in sizes if size is not None), None)
        latency = window.latency_ns
        if load is not None and latency is not None:
            loads.append((float(load), latency, window.steps))
    if len({load for load, _, _ in loads}) < 4:
        return None
    loads.sort(key=lambda one: one[0])
    found: list[RisingCell] = []
    for cell in cells:
        for one in cell.judged:
            values = [float(np.nanmean(one.measure.values[steps])) for _, _, steps in loads]
            known = [place for place, value in enumerate(values) if np.isfinite(value)]
            if len(known) < 4 or one.measure.text.endswith(("reads", "writes")):
                continue
            bound = one.measure.threshold
            beyond = [loads[place][0] for place in known
                      if (values[place] < bound.value if bound.below else values[place] >= bound.value)]  # fmt: skip
            found.append(
                {
                    "tier": cell.tier, "host": cell.host, "resource": cell.resource, "what": one.measure.text,
                    "first_load": min(beyond, default=None),
                    "correlation_with_latency": _spearman([values[p] for p in known], [loads[p][1] for p in known]),
                }
            )  # fmt: skip
    found.sort(
        key=lambda one: (
            one["first_load"] is None,
            one["first_load"] or 0.0,
            -abs(one["correlation_with_latency"] or 0),
        )
    )
    return {"points": len(loads), "cells": found[:20]}


def _spearman(left: list[float], right: list[float]) -> float | None:
    """Spearman's rank correlation; None where one side does not vary."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    from scipy import stats

    return float(stats.spearmanr(left, right).statistic)

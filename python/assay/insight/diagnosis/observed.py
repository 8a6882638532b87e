"""What was observed, on one clock: every metric of every host as an array over equal steps of time.

Runs, recordings and imported files have the same tall table of series, so that they are merged before anything is
judged. A step is as long as the usual interval of the slowest host; what is recorded more rarely counts for each step
that its interval covers. Deltas become rates per second. Where nothing was recorded a step has no value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from assay.insight.diagnosis.few_ios import pooled
from assay.record.rows import Rows, joined_rows
from assay.record.types import Manifest, Point

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SECOND_NS = 10**9

SAMPLES_MIN = 5
"""Steps with a value below which nothing is said of a metric, and steps for which signals must hold together."""

STEPS_MAX = 20_000
"""Steps of all time: five and a half hours by the second; of longer times steps are longer."""


_PACE = ("host", "block", "model", "assay", "net", "guest", "pgbench")
"""Sources whose interval decides the length of a step; others are recorded as often, or more rarely on purpose."""

DATABASES = ("postgresql", "mariadb", "mysql", "mssql", "duckdb")
"""Sources of collectors of databases."""


@contextmanager
def unrecorded() -> Iterator[None]:
    """Let arithmetic go past steps without a value: NaN stands for them, and numpy warns of each."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@dataclass(frozen=True, eq=False)
class Track:
    """One metric of one entity over all steps.

    Attributes
    ----------
    values
        Of gauges the mean in the step, of deltas the rate per second; NaN where nothing was recorded.
    """

    host: str
    tier: str
    source: str
    entity: str
    role: str
    metric: str
    values: Numbers

    def having(self, values: Numbers, metric: str | None = None) -> Track:
        """The same with other values, of another metric if one is named."""
        return replace(self, values=values, metric=metric or self.metric)

    @property
    def count(self) -> int:
        """Steps with a value."""
        return int(np.isfinite(self.values).sum())

    def above(self, threshold: float) -> Flags:
        """Steps in which the value reaches a threshold; false where there is none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.values >= threshold)

    def below(self, threshold: float) -> Flags:
        """Steps in which the value is under a threshold; false where there is none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.values < threshold)


@dataclass(frozen=True, kw_only=True)
class ObservedSource:
    """One run, recording or imported file: its manifest, its points and its series."""

    name: str
    manifest: Manifest
    points: Sequence[Point] = ()
    series: Rows | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PointWindow:
    """A point of a run on the steps: what was asked, and what came of it."""

    point: Point
    steps: Flags

    @property
    def latency_ns(self) -> float | None:
        """Mean latency of all I/Os, weighted by their count; None where it was not measured."""
        total, weight = 0.0, 0.0
        for told in (self.point.get("read"), self.point.get("write")):
            mean, count = (told["latency_ns"].get("mean"), told["count"]) if told else (None, 0)
            if mean is not None and count:
                total, weight = total + mean * count, weight + count
        return total / weight if weight else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Observations:
    """All that is known, on one clock.

    Attributes
    ----------
    begin_ns, step_ns, steps
        The clock: its beginning, the length of a step and how many there are.
    counted
        Steps that count: of runs those in which a point was measured, warm-up left out.
    tracks
        Every metric of every entity.
    windows
        The points of runs.
    tiers
        Tier of a host, where the user gave it.
    """

    sources: Sequence[ObservedSource]
    begin_ns: int
    step_ns: int
    steps: int
    counted: Flags
    tracks: Sequence[Track]
    windows: Sequence[PointWindow] = ()
    tiers: Mapping[str, str] = field(default_factory=dict)

    @property
    def step_s(self) -> float:
        """Length of a step in seconds."""
        return self.step_ns / SECOND_NS

    @property
    def is_model(self) -> bool:
        """Whether the storage is a model."""
        return any(track.source == "model" for track in self.tracks)

    @cached_property
    def hosts(self) -> list[str]:
        """Names of all hosts."""
        return list(dict.fromkeys(track.host for track in self.tracks))

    @cached_property
    def _by_metric(self) -> Mapping[str, list[Track]]:
        found: dict[str, list[Track]] = {}
        for track in self.tracks:
            found.setdefault(track.metric, []).append(track)
        return found

    def find(
        self,
        metric: str,
        *,
        source: str | Iterable[str] | None = None,
        entity: str | None = None,
        host: str | None = None,
        where: Callable[[Track], bool] = lambda _: True,
    ) -> list[Track]:
        """Tracks of a metric that have enough values."""
        sources = None if source is None else {source} if isinstance(source, str) else set(source)
        return [
            track
            for track in self._by_metric.get(metric, [])
            if (sources is None or track.source in sources)
            and (entity is None or track.entity == entity)
            and (host is None or track.host == host)
            and where(track)
            and track.count >= SAMPLES_MIN
        ]

    def steps_of(self, seconds: float) -> int:
        """How many steps so many seconds are, one at least."""
        return max(round(seconds / self.step_s), 1)

    def of(self, like: Track, metric: str) -> Track | None:
        """Another metric of the same entity."""
        found = self.find(metric, source=like.source, entity=like.entity, host=like.host)
        return found[0] if found else None

    def sum_of(self, tracks: Sequence[Track]) -> Numbers | None:
        """Sum at each step of what was recorded; None without tracks."""
        return summed([track.values for track in tracks]) if tracks else None

    def mean_of(self, tracks: Sequence[Track]) -> Numbers | None:
        """Mean at each step of what was recorded; None without tracks."""
        return np.asarray(np.nanmean([track.values for track in tracks], axis=0)) if tracks else None

    def largest_of(self, tracks: Sequence[Track]) -> Numbers | None:
        """Largest value at each step; None without tracks."""
        if not tracks:
            return None
        return np.asarray(np.fmax.reduce([track.values for track in tracks]))

    def ios_per_s(self, like: Track) -> Numbers | None:
        """I/Os per second of the entity of a track, reads and writes together."""
        metrics = ("read_ios_count", "write_ios_count", "ios_count")
        found = [track for metric in metrics if (track := self.of(like, metric)) is not None]
        return self.sum_of(found)

    def latencies(self, source: str | Iterable[str], side: str) -> list[Track]:
        """Mean latencies of reads, writes, flushes, or of all I/Os (`side` empty); few I/Os are pooled (`pooled`)."""
        asked = ((source,) if isinstance(source, str) else tuple(source), side)
        if asked not in self._latencies:
            self._latencies[asked] = self._pooled(*asked)
        return self._latencies[asked]

    @cached_property
    def _latencies(self) -> dict[tuple[tuple[str, ...], str], list[Track]]:
        """Latencies that were asked for: each cause asks for those of all devices."""
        return {}

    def _pooled(self, sources: tuple[str, ...], side: str) -> list[Track]:
        kind = f"{side}_" if side else ""
        found = []
        for track in self.find(f"{kind}latency_mean_ns", source=sources):
            ios = self.of(track, f"{side}_ios_count") if side else self.ios_per_s(track)
            if ios is None:
                found.append(track)
                continue
            rate = ios.values if isinstance(ios, Track) else ios
            queue = self.of(track, "queue_mean_count")
            kept = track.having(pooled(track.values, rate, None if queue is None else queue.values, self.step_s))
            if kept.count >= SAMPLES_MIN:
                found.append(kept)
        return found

    def cpu_busy(self, host: str) -> Track | None:
        """Share of all processors of a host that is at work; None where it was not recorded."""
        own = [
            track for track in self.tracks if track.host == host and track.source == "host" and track.entity == "cpu"
        ]
        parts = [track for track in own if track.metric in ("user_share", "system_share", "interrupt_share")]
        whole = next((track for track in own if track.metric == "busy_share"), None)
        if whole is None and not any(track.metric == "user_share" for track in parts):
            return None
        # Perfmon's privileged time holds that of interrupts, sar's and ours of system do not exist apart.
        values = whole.values if whole is not None else summed([one.values for one in parts])
        first = whole or parts[0]
        made = Track(host, first.tier, "host", "cpu", "", "busy_share", np.clip(values, 0.0, 1.0))
        return made if made.count >= SAMPLES_MIN else None

    def waiting_per_cpu(self, host: str) -> Numbers | None:
        """Tasks that wait for each processor of a host; None where either number was not recorded."""
        waiting = self.find("waiting_count", source="host", entity="cpu", host=host)
        cpus = self.fact(host, "cpu_count") or self._cpus(host)
        return waiting[0].values / cpus if waiting and cpus else None

    def _cpus(self, host: str) -> float | None:
        """Processors of a host, as it was recorded; None where it was not."""
        tracks = self.find("cpu_count", source="host", host=host)
        if tracks:
            return float(np.nanmax(tracks[0].values))
        own = {track.entity for track in self.tracks if track.host == host and track.entity.startswith("cpu/")}
        return float(len(own)) or None

    def fact(self, host: str, name: Literal["cpu_count", "memory_bytes"]) -> int | None:
        """A fact of a host from the manifests, such as `cpu_count`; None where it is not known."""
        for source in self.sources:
            facts = source.manifest.get("host") or {}
            if facts.get("hostname") == host and (fact := facts.get(name)) is not None:
                return fact
        return None

    def minutes(self, steps: Flags) -> float:
        """Minutes that these steps last."""
        return float(steps.sum()) * self.step_s / 60.0


def observe(sources: Sequence[ObservedSource], tiers: Mapping[str, str] | None = None) -> Observations:
    """Put all on one clock.

    Parameters
    ----------
    sources
        What was recorded; virtual time of models and wall time are not mixed: of a run on a model its own counts.
    tiers
        Tier by host.
    """
    recorded = [_rows_of(source.series) for source in sources if source.series is not None]
    recorded = [rows for rows in recorded if len(rows)]
    if not recorded:
        none = np.zeros(0, dtype=bool)
        return Observations(
            sources=sources, begin_ns=0, step_ns=SECOND_NS, steps=0, counted=none, tracks=(), tiers=tiers or {}
        )
    rows = joined_rows(recorded)
    begin_ns, end_ns = int((rows.t_ns - rows.interval_ns).min()), int(rows.t_ns.max())
    step_ns = _step_of(rows, end_ns - begin_ns)
    steps = max(-(-(end_ns - begin_ns) // step_ns), 1)
    tracks = _tracks(rows, begin_ns, step_ns, steps)
    windows = _windows(sources, begin_ns, step_ns, steps)
    counted = np.any([window.steps for window in windows], axis=0) if windows else np.ones(steps, dtype=bool)
    cut = [one.having(np.where(counted, one.values, np.nan)) for one in tracks]
    return Observations(
        sources=sources,
        begin_ns=begin_ns,
        step_ns=step_ns,
        steps=steps,
        counted=counted,
        tracks=cut,
        windows=windows,
        tiers=tiers or {},
    )


def _rows_of(rows: Rows) -> Rows:
    """Rows with an interval, on the clock of the load."""
    has_interval = rows.interval_ns > 0
    of_model = has_interval & rows.are("clock", "virtual")
    return rows.where(of_model if of_model.any() else has_interval)


def _step_of(rows: Rows, span_ns: int) -> int:
    """Length of a step: the longest usual interval of a source that sets the pace."""
    paced = rows.where(rows.are("source", *_PACE))
    usual = [np.median(own.interval_ns) for _, own in (paced if len(paced) else rows).apart("host", "source")]
    longest = float(max(usual, default=SECOND_NS))
    # A second, and a jitter of some thousandths must not make two samples of one step.
    wanted = max(round(longest / 1e8) * 10**8, SECOND_NS)
    return max(wanted, -(-span_ns // STEPS_MAX))


def _tracks(rows: Rows, begin_ns: int, step_ns: int, steps: int) -> list[Track]:
    tracks = []
    for key, own in rows.apart("host", "tier", "source", "entity", "role", "metric", "kind"):
        host, tier, source, entity, role, metric, kind = key
        values = own.value / (own.interval_ns / SECOND_NS) if kind == "delta" else own.value
        gridded = _on_steps(own.t_ns - begin_ns, own.interval_ns, values, step_ns, steps)
        tracks.append(Track(host, tier, source, entity, role, metric, gridded))
    return tracks


def _on_steps(
    ends_ns: npt.NDArray[np.int64], interval_ns: npt.NDArray[np.int64], values: Numbers, step_ns: int, steps: int
) -> Numbers:
    """Mean of the values in each step, weighted by their intervals."""
    middle = np.clip((ends_ns - interval_ns // 2) // step_ns, 0, steps - 1)
    is_short = interval_ns < 1.5 * step_ns
    short = middle[is_short]
    # Of nothing, `bincount` gives whole numbers.
    total = np.bincount(short, (values * interval_ns)[is_short], minlength=steps).astype(np.float64)
    weight = np.bincount(short, interval_ns[is_short], minlength=steps).astype(np.float64)
    for end_ns, length_ns, value in zip(ends_ns[~is_short], interval_ns[~is_short], values[~is_short], strict=True):
        covered = slice(max(int((end_ns - length_ns) // step_ns), 0), max(int(-(-end_ns // step_ns)), 1))
        total[covered] += value * step_ns
        weight[covered] += step_ns
    return np.asarray(np.divide(total, weight, out=np.full(steps, np.nan), where=weight > 0))


def _windows(sources: Sequence[ObservedSource], begin_ns: int, step_ns: int, steps: int) -> list[PointWindow]:
    """Points that tell when they were measured."""
    found = []
    middles_ns = begin_ns + (np.arange(steps) + 0.5) * step_ns
    for source in sources:
        for point in source.points:
            start, end = point.get("measured_from_utc_ns"), point.get("measured_to_utc_ns")
            if start is None or end is None:
                continue
            inside = (middles_ns >= start) & (middles_ns <= end)
            if inside.any():
                found.append(PointWindow(point=point, steps=inside))
    return found


def summed(arrays: Sequence[Numbers]) -> Numbers:
    """Sum of what is known at each step; NaN where nothing is."""
    stacked = np.array(arrays)
    known = np.isfinite(stacked).any(axis=0)
    return np.where(known, np.nansum(stacked, axis=0), np.nan)

"""Asks a model whether it holds a demand: one simulation a phase and state, none twice."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from assay import _core
from assay.base.errors import Interrupted
from assay.base.progress import Shown, Silent
from assay.base.units import format_share, format_years
from assay.insight.calibration.rebuild import rebuild_hours
from assay.insight.sizing.allowance import REBUILD_IOS, Allowance
from assay.insight.sizing.demand import LOG, PeakDemand, PeakStream, activities_of
from assay.insight.sizing.group_ladder import PORT_BUSY_MOST
from assay.insight.sizing.ladder import Ladder, LadderStep, Pool, RejectionReason
from assay.insight.sizing.need import Need
from assay.record.shapes.point import Direction, Point, Sides
from assay.run.simulate import simulate_load
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.options import model_target_text
from assay.targets.arrays.model.reliability import assess_question
from assay.targets.arrays.model.reliability_question import TRIALS_MIN, ReliabilityOptions, question_of

WARMUP_S = 4.0
WARM_KEPT = 16
"""How many warm caches are kept: an array's states, and loads of other rates, begin with the same."""
WINDOW_IOS = 20_000
WINDOW_S = (2.0, 10.0)
"""I/Os in the window of a simulation, and the least and most seconds that takes."""
SUSTAINED_SHARE = 0.97
"""Below this share of its rate a stream is not held; the rest is the chance of random arrivals in a short window."""
FEWEST_IOS = 20
"""Of arrivals at equal distances that are fewer in a window, one more or less says nothing of the rate."""
HOPELESS_TIMES = 1.25
HOPELESS_NOISE = 10.0
HOPELESS_AFTER_S = 6.0
"""A simulation is broken off whose reads or writes take so many times the largest limit in the mean of a second, after
so many seconds, and more where few I/Os make it uncertain: some I/O misses its limit, and a cache that fills makes it
worse."""


@dataclass(frozen=True)
class Seen:
    """What a model did under a phase: the latency of each stream and what it held of its rate.

    Attributes
    ----------
    broken_off_s
        The mean latency at which it was broken off as hopeless.
    write_amplification
        Bytes that its flash programmed for each byte written, copies and parity included; None where there is none.
    """

    streams: tuple[StreamSeen, ...] = ()
    fullest_port_share: float = 0.0
    disk_busy_share: float | None = None
    broken_off_s: float | None = None
    write_amplification: float | None = None


@dataclass(frozen=True)
class StreamSeen:
    """Mean latencies of a stream in seconds, None where it had no such I/O, and its share of the rate asked for."""

    read_s: float | None
    write_s: float | None
    held_share: float


Value = TypeVar("Value")


class _Answers(Generic[Value]):
    """Answers by their question, each asked once even where two searches ask at the same moment."""

    def __init__(self) -> None:
        self._found: dict[str, Value] = {}
        self._asked: set[str] = set()
        self._changed = threading.Condition()

    def questions(self) -> frozenset[str]:
        """Questions that are answered by now."""
        with self._changed:
            return frozenset(self._found)

    def of(self, question: str, ask: Callable[[], Value]) -> Value:
        """The answer; who asks while another does waits for it, and asks again if that failed."""
        with self._changed:
            self._changed.wait_for(lambda: question not in self._asked)
            if question in self._found:
                return self._found[question]
            self._asked.add(question)
        try:
            found = ask()
            with self._changed:
                self._found[question] = found
        finally:
            with self._changed:
                self._asked.discard(question)
                self._changed.notify_all()
        return found


@dataclass
class Judge:
    """Answers questions about one need's candidates, and remembers what it was asked.

    Attributes
    ----------
    window_ios
        I/Os in the window of a simulation.
    interrupt
        Ends simulations when it is set.
    allowance
        Simulated I/Os that may be asked for; None for any number.
    """

    window_ios: int = WINDOW_IOS
    interrupt: threading.Event = field(default_factory=threading.Event)
    allowance: Allowance | None = None
    _seen: _Answers[Seen] = field(default_factory=_Answers)
    _rebuilds: _Answers[float] = field(default_factory=_Answers)
    _losses: _Answers[float] = field(default_factory=_Answers)
    _warm: OrderedDict[str, _core.WarmCaches] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def simulations(self) -> int:
        """How many were run."""
        return len(self.known())

    def within(self, allowance: Allowance) -> Judge:
        """The same judge, with the same memory, for a search that may ask for so much."""
        limited = copy.copy(self)
        limited.allowance = allowance
        return limited

    def known(self) -> frozenset[str]:
        """Questions that are answered by now."""
        return self._seen.questions() | self._rebuilds.questions()

    def reasons(self, need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand) -> list[RejectionReason]:
        """Why a size does not hold a demand: all that arithmetic finds, or the first that a model shows."""
        loaded = demand.times(1 + need.head_room)
        found = list(ladder.static_reasons(need, step, demand, loaded))
        if found:
            return found
        hours = self.rebuild_h(need, ladder, step, demand)
        if hours is not None and hours * 3600 > need.limits.rebuild:
            share = hours * 3600 / need.limits.rebuild
            allowed = f"{need.limits.rebuild / 3600:g} h are allowed"
            return [RejectionReason("rebuild window", f"a rebuild takes {hours:.1f} h, and {allowed}", share)]
        if need.limits.loss is not None:
            loss = self.loss(need, ladder, step, demand)
            if loss is None:
                return [RejectionReason("loss", "how likely its provider loses a volume is not in the model")]
            if loss > need.limits.loss:
                text = (
                    f"data are lost within {format_years(need.service_years)} with a probability of"
                    f" {format_share(loss, 2)}, and"
                    f" {format_share(need.limits.loss, 2)} are allowed"
                )
                return [RejectionReason("loss", text, loss / need.limits.loss)]
        for state in ladder.states:
            if state != "healthy" and not getattr(need.rules, state):
                continue
            found = self.state_reasons(need, ladder, step, loaded if state == "healthy" else demand, state)
            if found:
                return found
        return []

    def state_reasons(
        self,
        need: Need,
        ladder: Ladder,
        step: LadderStep,
        demand: PeakDemand,
        state: str = "healthy",
        *,
        seed: int | None = None,
    ) -> list[RejectionReason]:
        """Why a size in a state misses the limits under a load, by simulation."""
        for pool, phase in questions(ladder, step, demand):
            array = ladder.configuration(need, step, demand, pool, state=state)
            found = _reasons(phase, self.seen(array, phase, seed=seed), state)
            if found:
                return found
        return []

    def seen(self, array: Configuration, phase: Sequence[PeakStream], *, seed: int | None = None) -> Seen:
        """What a model does under a phase.

        Raises
        ------
        Interrupted
            `interrupt` was set.
        GaveUp
            The allowance does not reach.
        """
        limits = [limit for one in phase for limit in (one.read_limit_s, one.write_limit_s) if limit is not None]
        worst_s = max(limits, default=math.inf)
        key = json.dumps([array.plan(), activities_of(phase), worst_s, seed], sort_keys=True)
        if self.allowance is not None:
            self.allowance.take_simulation(key, array, phase, WARMUP_S + self._window_s(phase))
        return self._seen.of(key, lambda: self._simulate(array, phase, worst_s, seed))

    def _simulate(self, array: Configuration, phase: Sequence[PeakStream], worst_s: float, seed: int | None) -> Seen:
        watch = _Watch(_hopeless_s(phase, worst_s), WARMUP_S + self._window_s(phase), self.interrupt)
        try:
            point = simulate_load(
                array,
                activities_of(phase),
                warmup_s=WARMUP_S,
                duration_s=self._window_s(phase),
                seed=seed,
                interrupt=watch.broken,
                warm=self._warm_caches(array, phase),
                display=watch,
            )
        except Interrupted:
            if self.interrupt.is_set():
                raise
            return Seen(broken_off_s=watch.seen_ns / 1e9)
        activities: Sequence[Sides | Point] = (point["activities"] or []) if len(phase) > 1 else [point]
        told = point.get("array") or {}
        return Seen(
            streams=tuple(_stream_seen(one, own) for one, own in zip(phase, activities, strict=True)),
            fullest_port_share=told.get("fullest_port_busy_share") or 0.0,
            disk_busy_share=told.get("disk_busy_share"),
            write_amplification=told.get("write_amplification"),
        )

    def _window_s(self, phase: Sequence[PeakStream]) -> float:
        """Seconds of the window of a simulation."""
        return min(max(self.window_ios / sum(one.rate for one in phase), WINDOW_S[0]), WINDOW_S[1])

    def _warm_caches(self, array: Configuration, phase: Sequence[PeakStream]) -> _core.WarmCaches:
        if not any(one.random_share for one in phase):
            return _core.WarmCaches()  # streams leave nothing that comes back
        accesses = [{**activity, "rate": None} for activity in activities_of(phase)]
        key = f"{array.with_options({'state': None}).target_text} {accesses}"
        with self._lock:
            found = self._warm.pop(key, None) or _core.WarmCaches()
            self._warm[key] = found
            if len(self._warm) > WARM_KEPT:
                self._warm.popitem(last=False)
        return found

    def write_amplification(self, need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand) -> float | None:
        """What the flash of a size programs for each byte written at a demand, in the phase that writes most."""
        found: list[tuple[float, float]] = []
        for pool, phase in questions(ladder, step, demand):
            written = sum(one.bytes_per_s * (1 - one.read_share) for one in phase)
            if written and pool.member.model.disk_kind == "solid-state":
                told = self.seen(ladder.configuration(need, step, demand, pool), phase).write_amplification
                found += [(written, told)] if told is not None else []
        return max(found)[1] if found else None

    def rebuild_h(self, need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand) -> float | None:
        """Hours until a lost disk is rebuilt, the longest of the pools; those of one member, however many there are.

        None of a cloud, whose disks nobody sees.
        """
        if not ladder.disks(step):
            return None
        return max(self._pool_rebuild_h(need, ladder, step, demand, pool) for pool in ladder.pools(step, demand))

    def _pool_rebuild_h(self, need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, pool: Pool) -> float:
        key = pool.member.target_text
        if self.allowance is not None:
            self.allowance.take_once(key, REBUILD_IOS)
        return self._rebuilds.of(key, lambda: rebuild_hours(self._alone(need, ladder, step, demand, pool)))

    @staticmethod
    def _alone(need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, pool: Pool) -> Configuration:
        """One member of a pool, with its part of what is asked."""
        member = replace(pool, members=1, asked_bytes=pool.asked_bytes // pool.members)
        lighter = replace(demand, log_bytes=demand.log_bytes // pool.members)
        return ladder.configuration(need, step, lighter, member)

    def loss(self, need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand) -> float | None:
        """Probability that any member loses data within the service life (docs/reliability.md); None of a cloud."""
        hours = self.rebuild_h(need, ladder, step, demand)
        if hours is None:
            return None
        kept = 1.0
        for pool in ladder.pools(step, demand):
            kept *= (1 - self._member_loss(need, pool, hours)) ** pool.members
        return 1 - kept

    def _member_loss(self, need: Need, pool: Pool, hours: float) -> float:
        key = f"{pool.member.target_text} {hours} {need.service_years}"
        return self._losses.of(key, lambda: _loss_of(need, pool, hours))


def _loss_of(need: Need, pool: Pool, hours: float) -> float:
    of_members = {
        key: pool.member.options[key] for key in ("raid", "drive", "disks.count") if key in pool.member.options
    }
    asked = ReliabilityOptions(
        array=model_target_text(pool.member.model.origin, of_members), rebuild_h=hours, years=need.service_years,
        trials=TRIALS_MIN,
    )  # fmt: skip
    answer = assess_question(question_of(asked), _core.reliability)
    laid_out = pool.member.member_plan["raid"]["policy"]
    usual = next(one for one in answer["policies"] if one["policy"] == laid_out)
    return float(usual["closed"]["loss_probability"])


def questions(ladder: Ladder, step: LadderStep, demand: PeakDemand) -> Iterator[tuple[Pool, tuple[PeakStream, ...]]]:
    """What must be asked of a size: each pool under the streams of each phase that are its own."""
    pools = ladder.pools(step, demand)
    for phase in demand.phases:
        for pool in pools:
            if own := pool.own(phase, pools):
                yield pool, own


def _hopeless_s(phase: Sequence[PeakStream], worst_s: float) -> dict[str, float]:
    """Mean latency of each direction at which a phase is hopeless; none where a stream may take any time."""
    found = {}
    for gauge, limits, rate in (
        ("read_latency_ns", [one.read_limit_s for one in phase if one.read_share > 0],
         sum(one.rate * one.read_share for one in phase)),
        ("write_latency_ns", [one.write_limit_s for one in phase if one.read_share < 1],
         sum(one.rate * (1 - one.read_share) for one in phase)),
    ):  # fmt: skip
        if limits and None not in limits:
            found[gauge] = worst_s * (HOPELESS_TIMES + HOPELESS_NOISE / rate**0.5)
    return found


class _Watch(Silent):
    """Sees the latency of a simulation as it goes, and breaks off what is hopeless."""

    def __init__(self, hopeless_s: Mapping[str, float], longest_s: float, interrupt: threading.Event) -> None:
        self.broken = threading.Event()
        self.seen_ns = 0.0
        self._hopeless_s, self._longest_s, self._interrupt = hopeless_s, longest_s, interrupt

    def point(self, progress: Shown) -> None:
        """Look at the latest second."""
        moment = progress.moment
        passed_s = self._longest_s - moment.left_s if moment is not None and moment.left_s is not None else 0.0
        if moment is not None and passed_s >= HOPELESS_AFTER_S and not self.broken.is_set():
            for gauge in moment.gauges:
                hopeless_s = self._hopeless_s.get(gauge.name, math.inf)
                if gauge.value is not None and gauge.value > hopeless_s * 1e9:
                    self.seen_ns = gauge.value
                    self.broken.set()
        if self._interrupt.is_set():
            self.broken.set()


def _stream_seen(stream: PeakStream, told: Sides | Point) -> StreamSeen:
    def mean_s(side: Direction | None) -> float | None:
        mean_ns = side["latency_ns"].get("mean") if side else None
        return None if mean_ns is None else mean_ns / 1e9

    total = told.get("total")
    held = total["iops"] / stream.rate if total else 0.0
    return StreamSeen(read_s=mean_s(told.get("read")), write_s=mean_s(told.get("write")), held_share=held)


_KINDS = {"healthy": "IOPS", "degraded": "degraded", "rebuilding": "rebuilding"}
_WHILE = {"healthy": "", "degraded": " with a disk lost", "rebuilding": " during a rebuild"}


def _reasons(phase: Sequence[PeakStream], seen: Seen, state: str) -> list[RejectionReason]:
    kind, meanwhile = _KINDS[state], _WHILE[state]
    iops = sum(one.rate for one in phase)
    if seen.broken_off_s is not None:
        limit_s = max(limit for one in phase for limit in (one.read_limit_s, one.write_limit_s) if limit is not None)
        text = f"I/Os take {seen.broken_off_s * 1e3:.1f} ms{meanwhile} at {iops:,.0f} IOPS, and ever longer"
        return [RejectionReason(kind, f"{text}; {limit_s * 1e3:g} ms are allowed", seen.broken_off_s / limit_s)]
    found = []
    for one, told in zip(phase, seen.streams, strict=True):
        for side, value, limit in (
            ("read", told.read_s, one.read_limit_s), ("write", told.write_s, one.write_limit_s)
        ):  # fmt: skip
            if value is not None and limit is not None and value > limit:
                own = "log latency" if one.kind == LOG and state == "healthy" else kind
                text = (
                    f"{'log writes' if one.kind == LOG else f'{side}s of {one.name}'} take {value * 1e3:.1f} ms"
                    f"{meanwhile} at {iops:,.0f} IOPS, above {limit * 1e3:g} ms"
                )
                found.append(RejectionReason(own, text, value / limit))
        noise = 3 / max(one.rate * WINDOW_S[0], 1) ** 0.5 if one.random_share else 0.0
        is_told = one.random_share > 0 or one.rate * WINDOW_S[0] >= FEWEST_IOS
        if is_told and told.held_share < SUSTAINED_SHARE - noise:
            text = f"{one.name} reach {format_share(told.held_share)} of {one.rate:,.0f} IOPS{meanwhile}"
            found.append(RejectionReason(kind, text, 1 / max(told.held_share, 0.01)))
    if found and seen.fullest_port_share >= PORT_BUSY_MOST and state == "healthy":
        worst = max(found, key=lambda one: one.share)
        return [
            RejectionReason(
                "port rate", f"its ports are {format_share(seen.fullest_port_share)} busy: {worst.text}", worst.share
            )
        ]
    return found

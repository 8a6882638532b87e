"""A trace as what a model is calibrated with: stretches of it that differ, each replayed on the model in its own times.

The latencies of a trace are measurements of the array that it was recorded on. I/Os are looked at in stretches of one
number of I/Os; those stretches that differ most in rate, share of reads, size and I/Os under way become observations.
Each is replayed from where its I/Os were issued to the device, so that the time in the host's queue, which no model of
an array has, counts neither in the trace nor in the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import format_bytes, format_duration
from assay.insight.calibration.observations import FEWEST_IOS, MEASURED_MIN, Observation, point_figures
from assay.record.rows import Integers, TextColumn
from assay.run.simulate import simulate_replay
from assay.traces.file import Trace, TraceWriter, read_trace
from assay.traces.head import TracedDevice, TraceHead
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios, joined_ios
from assay.workloads.io.plan import load_plan
from assay.workloads.replay.plan import ReplayPlan, ReplayTiming

if TYPE_CHECKING:
    from assay.targets.arrays.model.configuration import Configuration

STRETCH_MOST, STRETCH_LEAST = 8000, 800
"""I/Os of a stretch: enough for a mean, few enough for some hundred simulations."""
STRETCHES_MAX = 12
"""Stretches that are replayed."""
STRETCHES_WANTED = 4 * STRETCHES_MAX
"""A short trace has shorter stretches, so that there is a choice among them."""
WARMUP_SHARE = 0.25
"""Part of a stretch that brings the model's queues to where they were."""
SAME_SPREAD = 0.1
"""Stretches whose logarithms of rate, size and depth, and shares of reads, differ by less are of one kind."""
BATCHES = 10
"""Parts of a stretch whose means tell how well its own is known."""
DEVICES_MAX = 512
SIDES = (("read_ns", IoFlag.READ), ("write_ns", IoFlag.WRITE))


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Consecutive I/Os of a trace.

    Attributes
    ----------
    begin_ns, end_ns
        When the first and the last were asked for.
    iops, size_bytes, depth
        Rate, mean size, and I/Os under way on average.
    read_share, random_share
        Shares of I/Os: those that read, and those that begin where no I/O shortly before ended.
    """

    begin_ns: int
    end_ns: int
    ios: int
    iops: float
    read_share: float
    random_share: float
    size_bytes: float
    depth: float

    @property
    def place(self) -> tuple[float, ...]:
        """Where it lies among others: what decides latencies, in logarithms where a ratio counts."""
        return (math.log(self.iops), 2 * self.read_share, math.log(self.size_bytes), math.log(max(self.depth, 1e-3)))


@dataclass(frozen=True, kw_only=True)
class TracedObservation(Observation):
    """A stretch of a trace; `plan` says in short what it asks, `replayed` replays it."""

    replayed: ReplayPlan

    def predicted(self, values: Mapping[str, float]) -> dict[str, float]:
        """The same figures of the model with parameters set, in base units."""
        point = simulate_replay(self.configuration.with_values(values), self.replayed)
        found = point_figures(point, fewest=1)
        return {name: found.get(name, math.nan) for name in self.figures}


def observations_of_trace(path: Path, structure: Configuration, folder: Path) -> list[Observation]:
    """Stretches of a trace that differ, as if `structure` had had its devices as volumes.

    Parameters
    ----------
    folder
        Where the stretches are kept while the model is fitted.

    Raises
    ------
    UsageError
        The trace is damaged, tells no latencies, or holds too few I/Os.
    """
    trace = read_trace(path)
    source = f"--from {printable(path)}"
    if trace.head.times == "none":
        raise UsageError(f"{source}: the trace tells no latencies; record one, or import one that does")
    sizes = _device_sizes(trace, source)
    placed = structure.with_options({"fill": None, "volumes": str(len(sizes)), "volume_size": f"{max(sizes)}"})
    chosen = _chosen(_stretches(trace))
    if not chosen:
        raise UsageError(f"{source}: no {STRETCH_LEAST:,} I/Os in a row whose latencies the trace tells; record longer")
    made = (_observation(trace, one, placed, folder / f"{number}.trace") for number, one in enumerate(chosen))
    found = [each for each in made if each is not None]
    if not found:
        raise UsageError(f"{source}: no stretch with {FEWEST_IOS} reads or writes whose latencies the trace tells")
    return found


def _device_sizes(trace: Trace, source: str) -> list[int]:
    """Bytes that each device of a trace reaches to, or has, in whole MiB."""
    reach: dict[str, int] = {}
    for ios in trace.batches():
        ends = ios.place_bytes + ios.size_bytes
        for number, device in enumerate(ios.device.texts):
            most = int(ends[ios.device.numbers == number].max(initial=0))
            reach[device] = max(reach.get(device, 0), most)
        if len(reach) > DEVICES_MAX:
            raise UsageError(f"{source}: the trace has more than {DEVICES_MAX} devices, too many for one array")
    for told in trace.head.devices:
        if told.size_bytes and told.name in reach:
            reach[told.name] = max(reach[told.name], told.size_bytes)
    return [max(-(-size // 2**20), 1) * 2**20 for size in reach.values()]


# Stretches


def _stretches(trace: Trace) -> list[Stretch]:
    """Cut a trace into stretches of one number of I/Os, none across a pause in which the source was not looked at."""
    total = sum(span.ios for span in trace.spans)
    length = min(max(total // STRETCHES_WANTED, STRETCH_LEAST), STRETCH_MOST)
    windows = trace.end.windows if trace.end is not None else ()
    found = []
    for ios in trace.batches():
        told = ios.where(_usable(ios))
        for begin in range(0, len(told) - length + 1, length):
            one = told.where(slice(begin, begin + length))
            if len(windows) < 2 or any(first <= one.t_ns[0] and one.t_ns[-1] < last for first, last in windows):
                found.append(_stretch(one))
    return [one for one in found if one is not None]


def _usable(ios: Ios) -> np.ndarray:
    moving = (ios.has(IoFlag.READ) | ios.has(IoFlag.WRITE)) & ~ios.has(IoFlag.DISCARD) & ~ios.has(IoFlag.FAILED)
    return np.asarray(moving & (ios.size_bytes > 0) & (ios.device_ns > 0))


def _stretch(ios: Ios) -> Stretch | None:
    span_ns = int(ios.t_ns[-1] - ios.t_ns[0])
    if span_ns <= 0:
        return None
    ends = ios.place_bytes + ios.size_bytes
    goes_on = np.zeros(len(ios), bool)
    for number in np.unique(ios.device.numbers):
        own = np.flatnonzero(ios.device.numbers == number)
        goes_on[own[1:]] = ios.place_bytes[own[1:]] == ends[own[:-1]]
    return Stretch(
        begin_ns=int(ios.t_ns[0]), end_ns=int(ios.t_ns[-1]) + 1, ios=len(ios), iops=len(ios) / span_ns * 1e9,
        read_share=float(ios.has(IoFlag.READ).mean()), random_share=1 - float(goes_on.mean()),
        size_bytes=float(ios.size_bytes.mean()), depth=float(ios.device_ns.sum()) / span_ns,
    )  # fmt: skip


def _chosen(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Choose stretches that differ: groups are halved where they are widest, and each gives its middle.

    Examples
    --------
    >>> from dataclasses import replace
    >>> one = Stretch(begin_ns=0, end_ns=9, ios=9, iops=10, read_share=1, random_share=1, size_bytes=4096, depth=1)
    >>> found = _chosen([one, replace(one, iops=1000), replace(one, iops=1010), one])
    >>> sorted(each.iops > 100 for each in found)
    [False, True]
    """
    groups = [list(stretches)] if stretches else []
    while len(groups) < STRETCHES_MAX:
        widths = [np.ptp(np.array([one.place for one in group]), axis=0) for group in groups]
        widest = max(range(len(groups)), key=lambda number: float(widths[number].max()), default=-1)
        if widest < 0 or float(widths[widest].max()) < SAME_SPREAD:
            break
        axis = int(widths[widest].argmax())
        group = sorted(groups[widest], key=lambda one: one.place[axis])
        groups[widest : widest + 1] = [group[: len(group) // 2], group[len(group) // 2 :]]
    return sorted((_middle(group) for group in groups), key=lambda one: one.begin_ns)


def _middle(group: Sequence[Stretch]) -> Stretch:
    places = np.array([one.place for one in group])
    return group[int(np.abs(places - np.median(places, axis=0)).sum(axis=1).argmin())]


# Observations


def _observation(trace: Trace, stretch: Stretch, placed: Configuration, path: Path) -> Observation | None:
    ios = joined_ios(list(trace.batches(stretch.begin_ns, stretch.end_ns)))
    ios = _issued(ios.where(_usable(ios)))
    begin_ns = int(ios.t_ns[0])
    warm_ns = round((int(ios.t_ns[-1]) - begin_ns) * WARMUP_SHARE)
    figures, noise = _measured(ios.where(ios.t_ns >= begin_ns + warm_ns))
    if not {name for name, _ in SIDES} & figures.keys():
        return None
    devices = tuple(
        TracedDevice(name=name, size_bytes=size)
        for name, (_, size) in zip(ios.device.texts, placed.volumes, strict=False)
    )
    with TraceWriter(path, TraceHead(source=trace.head.source, times="whole", devices=devices)) as kept:
        kept.write(_since(ios, begin_ns))
    activity = {
        "block_bytes": max(round(stretch.size_bytes / 512), 1) * 512, "read_share": round(stretch.read_share, 4),
        "random_share": round(stretch.random_share, 4), "rate": stretch.iops,
    }  # fmt: skip
    return TracedObservation(
        label=_label(stretch),
        configuration=placed,
        plan=load_plan({"name": "stretch", "activity": [activity]}, source="stretch"),
        figures=figures,
        noise_share=noise,
        replayed=ReplayPlan.model_validate(
            {"traces": [{"path": str(path)}], "fit": "fold", "timing": ReplayTiming(warmup_s=warm_ns / 1e9)}
        ),
    )


def _issued(ios: Ios) -> Ios:
    """The I/Os as the device got them: asked for when they were issued, in that order."""
    issued_ns = ios.t_ns + np.maximum(ios.queue_ns, 0)
    order = np.argsort(issued_ns, kind="stable")
    found = ios.where(order)
    return Ios(
        issued_ns[order], np.full(len(found), UNKNOWN_NS), found.device_ns, found.place_bytes, found.size_bytes,
        found.flags, found.device, found.process,
    )  # fmt: skip


def _since(ios: Ios, begin_ns: int) -> Ios:
    nobody = TextColumn(np.zeros(len(ios), np.int32), [""])
    return Ios(ios.t_ns - begin_ns, ios.queue_ns, ios.device_ns, ios.place_bytes, ios.size_bytes, ios.flags, ios.device,
               nobody)  # fmt: skip


def _measured(ios: Ios) -> tuple[dict[str, float], float]:
    """Rate and mean latencies, each over enough I/Os, and how well the latencies are known."""
    span_ns = max(int(ios.t_ns[-1] - ios.t_ns[0]), 1)
    figures = {"iops": len(ios) / span_ns * 1e9}
    noises = [MEASURED_MIN]
    for name, flag in SIDES:
        latency_ns: Integers = ios.device_ns[ios.has(flag)]
        if len(latency_ns) >= FEWEST_IOS:
            figures[name] = float(latency_ns.mean())
            means = np.array([part.mean() for part in np.array_split(latency_ns, BATCHES)])
            noises.append(float(means.std(ddof=1)) / math.sqrt(BATCHES) / figures[name])
    return figures, max(noises)


def _label(stretch: Stretch) -> str:
    begins = format_duration(stretch.begin_ns / 1e9)
    return (
        f"from {begins}: {stretch.iops:,.0f}/s, {stretch.read_share:.0%} reads,"
        f" {format_bytes(round(stretch.size_bytes / 512) * 512)}, {stretch.depth:.1f} under way"
    )

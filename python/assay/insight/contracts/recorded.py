"""What a recording says of promised storage: steps of a minute or a quarter hour, in order, a few days in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import RunFolderError, UsageError
from assay.base.paths import printable
from assay.insight.contracts.contract import PromisedStorage
from assay.insight.contracts.times import IoTimes
from assay.insight.recording import is_stacked
from assay.record.flight import rolled_of
from assay.record.flight_reading import RecordingReader, Rolls, Samples
from assay.record.flight_segments import MINUTE_NS, ROLLED_NS, TIME_MAX_NS, SampleLayout, floor_ns
from assay.record.flight_window import catalogue, span
from assay.record.latency_buckets import BUCKETS
from assay.record.rolled import ZERO, Rolled, bucket_of

DAY_NS = 24 * 60 * MINUTE_NS
CHUNK_NS = 2 * DAY_NS
"""What is in memory at once."""
SPAN_MAX_NS = 20 * 366 * DAY_NS

_BUCKET = re.compile(r"(read|write)_device_bucket([0-9]{2})_count")
_WAITING = bucket_of(0.5)
"""First bucket of a mean queue in which an I/O was outstanding half of the time or longer."""
_SOURCES = ("block", "volume", "raid", "drive")
DIRECTIONS = ("read", "write")


@dataclass(slots=True)
class DeviceStep:
    """What one device did in a step.

    Attributes
    ----------
    ios, moved
        I/Os and bytes by direction.
    times
        Of I/Os in the device, where they were recorded.
    counters
        As of the kernel's counters, in which time in the queue is included.
    stalled_ns
        Time in which I/Os were outstanding and none ended: its least and its most.
    """

    covered_ns: int = 0
    ios: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0.0))
    moved: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0.0))
    times: dict[str, IoTimes] = field(default_factory=lambda: {side: IoTimes() for side in DIRECTIONS})
    counters: dict[str, IoTimes] = field(default_factory=lambda: {side: IoTimes() for side in DIRECTIONS})
    stalled_ns: tuple[float, float] = (0.0, 0.0)
    idle: Rolled | None = None
    queue: Rolled | None = None

    def close(self) -> None:
        """Find the time in which the device stood still, of the intervals without I/O and those with a queue.

        Both counts are known, and not which intervals they share: their sum beyond all intervals is the least of it,
        the smaller of both the most.
        """
        if self.idle is None or self.queue is None or not self.idle.intervals:
            return
        intervals = self.idle.intervals
        silent = self.idle.histogram.get(ZERO, 0)
        waiting = sum(count for bucket, count in self.queue.histogram.items() if bucket >= _WAITING)
        each_ns = self.idle.covered_ns / intervals
        low, high = self.stalled_ns
        self.stalled_ns = (
            low + each_ns * max(silent + waiting - max(intervals, self.queue.intervals), 0),
            high + each_ns * min(silent, waiting),
        )
        self.idle = self.queue = None


@dataclass(slots=True)
class RecordedStep:
    """A minute, or a quarter hour where minutes are not kept: all of the promised devices together.

    Attributes
    ----------
    begin_ns, length_ns
        When it begins, and the time that it stands for.
    is_coarse
        Whether only the quarter hour is kept.
    rebuilt_bytes
        Of md RAID.
    errors
        I/Os that failed and media errors of drives.
    """

    begin_ns: int
    length_ns: int
    is_coarse: bool
    devices: dict[str, DeviceStep] = field(default_factory=dict)
    rebuilt_bytes: float = 0.0
    errors: float = 0.0

    @property
    def covered_ns(self) -> int:
        """Time that was recorded: of the device that has the most."""
        return min(max((one.covered_ns for one in self.devices.values()), default=0), self.length_ns)

    def ios(self, *sides: str) -> float:
        """I/Os of directions."""
        return sum(one.ios[side] for one in self.devices.values() for side in sides)

    def moved(self, *sides: str) -> float:
        """Bytes of directions."""
        return sum(one.moved[side] for one in self.devices.values() for side in sides)

    def times(self, side: str) -> IoTimes:
        """Times of a direction's I/Os in all devices."""
        found = IoTimes()
        for one in self.devices.values():
            found.add(one.times[side])
        return found

    def counters(self, side: str) -> IoTimes:
        """Sums of a direction's times as the kernel's counters have them."""
        found = IoTimes()
        for one in self.devices.values():
            found.add(one.counters[side])
        return found

    @property
    def stalled_ns(self) -> tuple[float, float]:
        """Time in which a device stood still: its least and its most."""
        low = max((one.stalled_ns[0] for one in self.devices.values()), default=0.0)
        high = sum(one.stalled_ns[1] for one in self.devices.values())
        return min(low, self.covered_ns), min(high, self.covered_ns)


@dataclass(frozen=True)
class JudgedDevices:
    """The devices of a recording that a contract is about."""

    host: str
    devices: tuple[str, ...]


def judged_devices(folder: Path, storage: PromisedStorage) -> JudgedDevices:
    """Find the devices of a contract in a recording: those that it names, those of its role, else all.

    Raises
    ------
    UsageError
        The recording has no such device or host, or several hosts and the contract names none.
    RunFolderError
        No file can be read.
    """
    layouts = [one for one in catalogue(folder) if one.source == "block"]
    hosts = sorted({one.host for one in layouts})
    if not hosts:
        raise UsageError(f"{printable(folder)}: no device was recorded; a contract is judged by what devices did")
    if storage.host is None and len(hosts) > 1:
        raise UsageError(f"{printable(folder)}: holds the hosts {', '.join(hosts[:8])}; say which: [storage] host")
    host = storage.host or hosts[0]
    if host not in hosts:
        raise UsageError(f"{printable(folder)}: host {host!r} was not recorded; there is {', '.join(hosts[:8])}")
    roles: dict[str, set[str]] = {}
    for layout in layouts:
        if layout.host == host:
            for one in layout.series:
                roles.setdefault(one.entity, set()).update(one.role.split("+"))
    return JudgedDevices(host, _chosen(folder, storage, roles))


def _chosen(folder: Path, storage: PromisedStorage, roles: dict[str, set[str]]) -> tuple[str, ...]:
    if storage.devices:
        lacking = [name for name in storage.devices if name not in roles]
        if lacking:
            raise UsageError(
                f"{printable(folder)}: device {lacking[0]!r} was not recorded; there is {', '.join(sorted(roles)[:8])}"
            )
        return storage.devices
    role = storage.role or "data"
    found = sorted(name for name, own in roles.items() if role in own)
    if storage.role is not None and not found:
        raise UsageError(f"{printable(folder)}: no device has the role {role!r}; record with --volume {role}=PATH")
    return tuple(found or sorted(name for name in roles if not is_stacked(name)) or sorted(roles))


class RecordedSteps:
    """Steps of a recording in the order of time.

    Parameters
    ----------
    folder
        Folder of the recording.
    judged
        The devices.
    mounts
        File systems whose sizes are wanted.
    since_ns, until_ns
        Beginning and end of the days that are wanted, UTC; all where they are not given.

    Raises
    ------
    RunFolderError
        No file can be read, or its times are further apart than a recording's can be.
    """

    def __init__(
        self, folder: Path, judged: JudgedDevices, mounts: Sequence[str] = (), *, since_ns: int = 0,
        until_ns: int = TIME_MAX_NS,
    ) -> None:  # fmt: skip
        self._folder, self._judged, self._mounts = folder, judged, frozenset(mounts)
        self.unread: dict[str, None] = {}
        """What could not be read, a sentence each."""
        self.sizes: dict[str, float] = {}
        """Least size of each file system, bytes."""
        self._plans: dict[int, tuple[SampleLayout, list[_Place]]] = {}
        self.begin_ns, self.end_ns = span(folder)
        self.begin_ns, self.end_ns = max(self.begin_ns, since_ns), min(self.end_ns, until_ns)
        if self.end_ns - self.begin_ns > SPAN_MAX_NS:
            raise RunFolderError(f"{printable(folder)}: holds times that are more than 20 years apart")

    def __iter__(self) -> Iterator[RecordedStep]:
        """Yield the steps, chunk by chunk."""
        at = self.begin_ns // DAY_NS * DAY_NS
        while at < self.end_ns:
            yield from self._chunk(at, min(at + CHUNK_NS, -(-self.end_ns // DAY_NS) * DAY_NS))
            at += CHUNK_NS

    def _chunk(self, from_ns: int, to_ns: int) -> list[RecordedStep]:
        reading = RecordingReader(self._folder, since_ns=from_ns, until_ns=to_ns, takes=self._takes)
        steps: dict[tuple[int, bool], RecordedStep] = {}
        for part in reading.parts((1, 0, 2)):
            if isinstance(part, Rolls):
                self._add(steps, part, part.t_ns, part.values)
            else:
                self._add_samples(steps, part)
        self.unread |= dict.fromkeys(reading.unread)
        found = sorted(steps.values(), key=lambda one: one.begin_ns)
        for step in found:
            for device in step.devices.values():
                device.close()
        return found

    def _add_samples(self, steps: dict[tuple[int, bool], RecordedStep], part: Samples) -> None:
        if part.times and (values := rolled_of(part)):
            self._add(steps, part, part.times[-1][0], values)

    def _takes(self, layout: SampleLayout) -> bool:
        return layout.host == self._judged.host and layout.source in _SOURCES

    def _add(
        self, steps: dict[tuple[int, bool], RecordedStep], part: Samples | Rolls, t_ns: int,
        values: Sequence[Rolled | None],
    ) -> None:  # fmt: skip
        is_coarse = isinstance(part, Rolls) and part.level == 2
        length_ns = ROLLED_NS[2] if is_coarse else MINUTE_NS
        begin_ns = floor_ns(t_ns, length_ns)
        step = None
        for place in self._plan(part.layout):
            value = values[place.at] if place.at < len(values) else None
            if value is None:
                continue
            if step is None:
                key = (begin_ns, is_coarse)
                step = steps.get(key)
                if step is None:
                    step = steps[key] = RecordedStep(begin_ns, length_ns, is_coarse)
            place.take(step, place, value)

    def _plan(self, layout: SampleLayout) -> list[_Place]:
        """Places of a layout that are taken; a layout that is kept keeps its identity."""
        kept = self._plans.get(id(layout))
        if kept is None:
            if len(self._plans) > 1000:
                self._plans.clear()
            found = [place for at, _ in enumerate(layout.series) if (place := self._place(layout, at)) is not None]
            kept = self._plans[id(layout)] = (layout, found)
        return kept[1]

    def _place(self, layout: SampleLayout, at: int) -> _Place | None:
        one = layout.series[at]
        if layout.source == "block":
            if one.entity not in self._judged.devices:
                return None
            if match := _BUCKET.fullmatch(one.metric):
                return _Place(at, one.entity, match[1], min(int(match[2]), BUCKETS - 1), _take_bucket)
            side, _, rest = one.metric.partition("_")
            take = _OF_SIDES.get(rest) if side in DIRECTIONS else _OF_DEVICES.get(one.metric)
            return None if take is None else _Place(at, one.entity, side, 0, take)
        if layout.source == "volume":
            wanted = one.entity in self._mounts and one.metric == "size_bytes"
            return _Place(at, one.entity, "", 0, self._take_size) if wanted else None
        if layout.source == "raid":
            return _Place(at, one.entity, "", 0, _take_rebuilt) if one.metric == "rebuilt_bytes" else None
        is_error = one.entity in self._judged.devices and one.metric in ("io_errors_count", "media_errors_count")
        return _Place(at, one.entity, "", 0, _take_errors) if is_error else None

    def _take_size(self, step: RecordedStep, place: _Place, value: Rolled) -> None:
        del step
        self.sizes[place.entity] = min(self.sizes.get(place.entity, value.least), value.least)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of a layout, and what is made of its values."""

    at: int
    entity: str
    side: str
    bucket: int
    take: Callable[[RecordedStep, _Place, Rolled], None]


def _device(step: RecordedStep, place: _Place) -> DeviceStep:
    found = step.devices.get(place.entity)
    if found is None:
        found = step.devices[place.entity] = DeviceStep()
    return found


def _take_bucket(step: RecordedStep, place: _Place, value: Rolled) -> None:
    if value.value > 0:
        counts = _device(step, place).times[place.side].counts
        counts[place.bucket] = counts.get(place.bucket, 0.0) + value.value


def _take_ios(step: RecordedStep, place: _Place, value: Rolled) -> None:
    _device(step, place).ios[place.side] += max(value.value, 0.0)


def _take_bytes(step: RecordedStep, place: _Place, value: Rolled) -> None:
    _device(step, place).moved[place.side] += max(value.value, 0.0)


def _take_mean(step: RecordedStep, place: _Place, value: Rolled) -> None:
    times = _device(step, place).times[place.side]
    times.timed += max(value.weight, 0.0)
    times.sum_ns += max(value.weight * value.value, 0.0)


def _take_max(step: RecordedStep, place: _Place, value: Rolled) -> None:
    times = _device(step, place).times[place.side]
    times.max_ns = max(times.max_ns, value.most)


def _take_counter(step: RecordedStep, place: _Place, value: Rolled) -> None:
    times = _device(step, place).counters[place.side]
    times.timed += max(value.weight, 0.0)
    times.sum_ns += max(value.weight * value.value, 0.0)


def _take_idle(step: RecordedStep, place: _Place, value: Rolled) -> None:
    device = _device(step, place)
    if device.idle is not None:
        # Samples that are in no minute yet come one by one.
        device.close()
    device.covered_ns += value.covered_ns
    device.idle = value


def _take_queue(step: RecordedStep, place: _Place, value: Rolled) -> None:
    device = _device(step, place)
    if device.queue is not None:
        device.close()
    device.queue = value


def _take_rebuilt(step: RecordedStep, place: _Place, value: Rolled) -> None:
    del place
    step.rebuilt_bytes += max(value.value, 0.0)


def _take_errors(step: RecordedStep, place: _Place, value: Rolled) -> None:
    del place
    step.errors += max(value.value, 0.0)


_Take = Callable[[RecordedStep, _Place, Rolled], None]

_OF_SIDES: dict[str, _Take] = {
    "ios_count": _take_ios,
    "bytes": _take_bytes,
    "device_latency_mean_ns": _take_mean,
    "device_latency_max_ns": _take_max,
    "latency_mean_ns": _take_counter,
}
_OF_DEVICES: dict[str, _Take] = {"ios_count": _take_idle, "queue_mean_count": _take_queue}

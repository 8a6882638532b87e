"""Served arrays while a point is measured: the script of faults begins with the load, and what happened is told.

`at` of an event counts from the first transaction or I/O of a point, its warm-up included.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from assay.base.errors import AssayError, Interrupted, IoFailed, UsageError
from assay.record.phases import Rates, dip_of, phases_of
from assay.record.shapes.point import ServedEvent, ServedPoint, ServedVolume
from assay.targets.arrays.live.events import Event
from assay.targets.arrays.live.process import ServedArray
from assay.targets.arrays.live.status import ArrayStatus

OVERDRIVEN_SHARE = 0.05
"""More overdriven seconds of those with I/Os mark a point."""

SECOND_NS = 10**9
POWER = ("cut-power", "restore")
WHOLE = ("healthy", "at baseline", "throttled")
"""States of an array that has all its disks: a volume without credits is at its baseline, a hot drive throttles."""
LOOK_S = 0.5
"""How often a rebuild is looked at that is waited for."""


class VolumeCounters(TypedDict):
    """I/Os of a volume since it is shown: numbers of them, bytes, and nanoseconds by the model."""

    reads: int
    read_bytes: int
    read_ns: int
    writes: int
    write_bytes: int
    write_ns: int


class CountedVolume(TypedDict):
    """A volume and its counters."""

    name: str
    served: VolumeCounters


class ArrayCounters(TypedDict):
    """What the compiled server answers to `counters`; `happened` counts the events so far."""

    at_ns: int
    state: str
    happened: int
    volumes: list[CountedVolume]


@dataclass(kw_only=True)
class PowerCut:
    """A power cut of array and host under a load.

    Attributes
    ----------
    at_utc_ns, back_utc_ns
        When nothing was acknowledged any more, and when all was back; None until then.
    error
        Why it did not come back.
    """

    at_utc_ns: int
    back_utc_ns: int | None = None
    error: AssayError | None = None


class Powered(Protocol):
    """A target whose arrays carry file systems: with their power the host's memory of them goes."""

    @property
    def served(self) -> Sequence[ServedArray]:
        """Its arrays."""
        ...

    def lose_power(self) -> None:
        """All of it loses power."""
        ...

    def regain_power(self) -> None:
        """All of it has power again."""
        ...


class PointWatch:
    """Arrays under one point.

    Parameters
    ----------
    target
        What they are served for.
    events
        What shall happen to the first of them.
    """

    def __init__(self, target: Any, events: Sequence[Event]) -> None:
        self._arrays: Sequence[ServedArray] = target.served if target is not None else ()
        self._powered: Powered | None = target if any(array.mounted for array in self._arrays) else None
        at_host = [event for event in events if self._powered and event.command["command"] in POWER]
        self._events = [event for event in events if event not in at_host]
        self._at_host = at_host
        self.cuts: list[PowerCut] = []
        self._began: list[ArrayCounters] = []
        self._began_ns = 0

    def make_whole(self, show: Callable[[str], None], interrupt: threading.Event) -> None:
        """Put new disks into empty slots and wait for their rebuilds, so that every level of a study begins alike.

        Raises
        ------
        Interrupted
            It was, while waiting.
        AssayError
            An array is gone.
        """
        for array in self._arrays:
            while (state := _counters(array)["state"]) not in WHOLE:
                show(f"waiting until {array.spec.name} is whole again: {state}")
                if state == "no power":
                    array.ask({"command": "restore"})
                elif state == "degraded":
                    array.ask({"command": "insert"})
                if interrupt.wait(LOOK_S):
                    raise Interrupted("interrupted while an array was rebuilt")

    def begin(self) -> None:
        """The load begins.

        Raises
        ------
        AssayError
            An array is gone.
        """
        if self._began:
            return
        self._began = [_counters(array) for array in self._arrays]
        self._began_ns = time.time_ns()
        if self._events:
            self._arrays[0].ask({"command": "script", "events": [event.for_server() for event in self._events]})

    def look(self) -> None:
        """Cut the power and bring it back where that is due.

        Raises
        ------
        AssayError
            It cannot be cut here, or something did not come back.
        """
        while self._began and self._at_host and time.time_ns() >= self._began_ns + self._at_host[0].at_ns:
            event = self._at_host.pop(0)
            self._switch(on=event.command["command"] == "restore")

    def _switch(self, *, on: bool) -> None:
        assert self._powered is not None
        is_cut = bool(self.cuts) and self.cuts[-1].back_utc_ns is None
        if on != is_cut:
            raise UsageError(f"events: the power is {'on' if on else 'cut'} already at that time")
        if not on:
            self._powered.lose_power()
            self.cuts.append(PowerCut(at_utc_ns=time.time_ns()))
            return
        try:
            self._powered.regain_power()
        except AssayError as error:
            self.cuts[-1].error = error
            raise IoFailed(f"after the power cut: {error}") from error
        self.cuts[-1].back_utc_ns = time.time_ns()

    def end(self) -> None:
        """The load is over: what has not happened yet does not happen any more, and the power is back.

        Raises
        ------
        AssayError
            Something did not come back.
        """
        if self.cuts and self.cuts[-1].back_utc_ns is None and self.cuts[-1].error is None:
            self._switch(on=True)
        if self._began and self._events:
            with contextlib.suppress(AssayError):
                self._arrays[0].ask({"command": "end-script"})

    def lost_volume(self) -> AssayError | None:
        """The error that names volumes whose file systems were unmounted meanwhile; None where all are there."""
        return next((lost for array in self._arrays if (lost := array.lost_volume()) is not None), None)

    def told(self, rates: Rates | None) -> list[ServedPoint]:
        """What each array did since the load began (docs/results.md, Point: `served`).

        Parameters
        ----------
        rates
            What the load came to over time, where it tells that.

        Raises
        ------
        AssayError
            An array is gone.
        """
        found = []
        for array, before in zip(self._arrays, self._began, strict=False):
            served = _told(array, before, array.ask({"command": "status"}), self._began_ns)
            after = _counters(array)
            served["volumes"] = _volumes(array, before, after, (after["at_ns"] - before["at_ns"]) / SECOND_NS)
            if rates is not None:
                served |= {"phases": phases_of(served, rates), "dip": dip_of(served, rates)}
            found.append(served)
        return found


def _counters(array: ServedArray) -> ArrayCounters:
    counters: ArrayCounters = array.ask({"command": "counters"})
    return counters


def _told(array: ServedArray, before: ArrayCounters, status: ArrayStatus, began_ns: int) -> ServedPoint:
    seconds = [second for second in status["seconds"] if second["at_s"] * SECOND_NS >= before["at_ns"] - SECOND_NS]
    count = sum(second["reads"] + second["writes"] for second in seconds)
    overdriven = sum(second["overdriven"] for second in seconds)
    happened: list[ServedEvent] = [
        {"t_ns": event["t_ns"], "what": event["what"], "state": event["state"]}
        for event in status["events"][before["happened"] :]
    ]
    return {
        "folder": str(array.folder),
        "durability": status["cache"],
        "state": before["state"],
        "from_utc_ns": began_ns,
        "to_utc_ns": time.time_ns(),
        "events": happened,
        "lateness": {
            "ios": count,
            "mean_ns": sum(second["late_ns"] for second in seconds) / count if count else None,
            "late_1ms": sum(second["late"] for second in seconds),
            "p99_ns": status["lateness"]["p99_ns"],
            "busy_s": len(seconds),
            "overdriven_s": overdriven,
            "overdriven": overdriven > OVERDRIVEN_SHARE * len(seconds),
            "scheduling": status["scheduling"],
        },
        "lost_chunks": _lost(status),
    }


def _lost(status: ArrayStatus) -> int:
    """Chunks of members, or blocks of a pool, whose data are lost."""
    if "pool" in status:
        return int(status["pool"]["lost_blocks"])
    return sum(member["lost_chunks"] for member in status["members"])


def _volumes(array: ServedArray, before: ArrayCounters, after: ArrayCounters, seconds: float) -> list[ServedVolume]:
    """What each volume was asked for since the load began, and how long it took by the model."""
    roles = {name: role for name, role, _ in array.spec.volumes()}
    found: list[ServedVolume] = []
    for old, new in zip(before["volumes"], after["volumes"], strict=True):
        was, now = old["served"], new["served"]
        reads, writes = now["reads"] - was["reads"], now["writes"] - was["writes"]
        found.append(
            {
                "name": new["name"],
                "role": roles[new["name"]],
                "read_iops": reads / seconds,
                "read_bytes_per_s": (now["read_bytes"] - was["read_bytes"]) / seconds,
                "read_latency_mean_ns": (now["read_ns"] - was["read_ns"]) / reads if reads else None,
                "write_iops": writes / seconds,
                "write_bytes_per_s": (now["write_bytes"] - was["write_bytes"]) / seconds,
                "write_latency_mean_ns": (now["write_ns"] - was["write_ns"]) / writes if writes else None,
            }
        )
    return found


class UnderLoad:
    """The arrays under a load, for the measurement that says when it begins and that it goes on."""

    def __init__(self) -> None:
        self._watch = PointWatch(None, ())

    def take(self, watch: PointWatch) -> None:
        """Watch another point."""
        self._watch = watch

    def begin(self) -> None:
        """Take note that the first transactions or I/Os are under way."""
        self._watch.begin()

    def look(self) -> None:
        """Look at the arrays; a measurement calls it again and again."""
        self._watch.look()

    @property
    def cuts(self) -> list[PowerCut]:
        """Power cuts of the point so far."""
        return self._watch.cuts

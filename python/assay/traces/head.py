"""What a trace says of itself: at its begin, where it is from; at its end, what it holds and what was lost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

NAME_MAX = 255
DEVICES_MAX = 65_536
Name = Annotated[str, Field(max_length=NAME_MAX)]
Natural = Annotated[int, Field(ge=0, lt=2**63)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TracedDevice(_Told):
    """A device that I/Os of the trace went to; its size is None where it is unknown."""

    name: Name
    size_bytes: Natural | None = None


class TraceHead(_Told):
    """Where a trace is from, and what its columns mean.

    Attributes
    ----------
    source
        What made it: `ftrace`, or the format that it was imported from.
    origin_utc_ns
        When the trace began, or None where its source does not tell.
    devices
        The devices that it holds I/Os of.
    times
        What is told of an I/O's time: `split` into queue and device, as a `whole`, or `none`.
    layer
        Which I/Os it holds: as they were `queued` above the scheduler, or as they were `issued` to the device, merged
        and split.
    resolution_ns
        How finely the source tells times.
    notes
        What a reader must know, a sentence each.
    """

    version: Literal[1] = 1
    source: Name
    origin_utc_ns: Natural | None = None
    devices: Annotated[tuple[TracedDevice, ...], Field(max_length=DEVICES_MAX)] = ()
    times: Literal["split", "whole", "none"] = "none"
    layer: Literal["queued", "issued"] = "issued"
    resolution_ns: Natural = 100
    notes: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=100)] = ()


class TraceSpan(_Told):
    """A batch of I/Os in the file: where it begins, how many it holds, and from when to when these were asked for."""

    at_bytes: Natural
    ios: Natural
    begin_ns: Natural
    end_ns: Natural


class TraceEnd(_Told):
    """What a trace that was closed says of its whole.

    Attributes
    ----------
    ios
        The I/Os that it holds.
    lost_events
        Events that the source dropped before they could be read; None where it does not count them.
    windows
        From when to when the source was looked at; one window but for samples.
    spans
        The batches in the file, in order.
    devices, notes
        What became known of these after the head was written; `read_trace` adds them to the head.
    """

    ios: Natural
    lost_events: Natural | None = None
    windows: Annotated[tuple[tuple[Natural, Natural], ...], Field(max_length=1_000_000)] = ()
    spans: Annotated[tuple[TraceSpan, ...], Field(max_length=1_000_000)] = ()
    devices: Annotated[tuple[TracedDevice, ...], Field(max_length=DEVICES_MAX)] = ()
    notes: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=100)] = ()

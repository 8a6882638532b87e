"""The replay (docs/replay.md): what `assay replay` runs, as a plan in TOML or JSON."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from assay.base.fields import FieldValueError, Seconds, Strict
from assay.base.units import parse_duration
from assay.traces.window import window_of
from assay.workloads.io.activities import DEEPEST_QUEUE
from assay.workloads.options import BACKEND, TIME, Option
from assay.workloads.plan import AnyPlan, SearchPlan

REPLAY = "Replay"
"""Group of options."""

SPEED_MAX = 1000.0
TRACES_MAX = 64

Pace = Literal["timed", "closed", "think"]
Fit = Literal["keep", "fold", "scale", "volume"]


class ReplayedTrace(Strict):
    """A trace, and when it begins after the first."""

    path: Annotated[str, Field(min_length=1, max_length=4096)]
    at_s: Seconds = 0.0


def _traces(value: Any) -> Any:
    """Traces from `PATH` or `PATH@30s`, as options take them."""
    return [_trace(one) if isinstance(one, str) else one for one in value] if isinstance(value, list | tuple) else value


def _trace(text: str) -> dict[str, object]:
    path, at, offset = text.rpartition("@")
    if not at:
        return {"path": text}
    try:
        return {"path": path, "at_s": parse_duration(offset) / 1e9}
    except ValueError:
        return {"path": text}


def _window(text: str) -> str:
    window_of(text)
    return text


class ReplayTiming(Strict):
    """How long the first part lasts that is not measured, and when the target is given up."""

    warmup_s: Annotated[
        Seconds, Option("--warmup", "Replay the first part of the trace without measuring it.", TIME)
    ] = 0.0
    io_timeout_s: Annotated[
        Seconds,
        Field(gt=0),
        Option("--io-timeout", "An I/O outstanding longer than this ends the run (30s).", TIME),
    ] = 30.0


class ReplaySearch(SearchPlan):
    """The search of a plan, for the speed."""

    axes: ClassVar = {"none": (1.0, 1.0), "speed": (0.25, 256.0)}
    axis: Annotated[
        Literal["none", "speed"], Option("--search", "Find the fastest speed within the limits: speed or none.", TIME)
    ] = "none"


class ReplayPlan(AnyPlan):
    """A plan.

    Attributes
    ----------
    traces
        Traces that are laid over each other.
    pace
        What decides when an I/O begins: its time, the I/Os outstanding, or the end of the I/O before and a pause.
    host
        The place of this host among all that the I/Os are dealt to, and their number.
    """

    kind: Literal["replay"] = "replay"
    title: str = "Replay"
    backend: Annotated[Literal["auto", "io-uring", "threads"], BACKEND] = "auto"
    size: str | None = None
    traces: Annotated[tuple[ReplayedTrace, ...], BeforeValidator(_traces), Field(min_length=1, max_length=TRACES_MAX)]
    pace: Annotated[
        Pace,
        Option("--closed", "Keep the number of I/Os outstanding, not the times.", REPLAY, values=("closed",)),
        Option(
            "--think", "Keep the pause between an I/O's end and the next, not the times.", REPLAY, values=("think",)
        ),
    ] = "timed"
    speed: Annotated[
        float, Field(gt=0, le=SPEED_MAX), Option("--speed", "Times as fast as the trace was recorded.", REPLAY)
    ] = 1.0
    window: Annotated[
        str,
        BeforeValidator(lambda text: _window(text) if isinstance(text, str) and text else text),
        Option("--window", "Part of the trace: busiest:10m, 5m-15m, or 10:00-10:10 (UTC).", REPLAY),
    ] = ""
    fit: Annotated[
        Fit,
        Option(
            "--map",
            "Places on a target of another size: {choices}; volume gives each traced device a volume of its own.",
            REPLAY,
        ),
    ] = "keep"
    queue_depth: Annotated[
        Annotated[int, Field(ge=1, le=DEEPEST_QUEUE)] | None,
        Option("--queue-depth", "Most I/Os outstanding per trace and volume; with --closed, always as many.", REPLAY),
    ] = None
    timing: ReplayTiming = ReplayTiming()
    search: ReplaySearch = ReplaySearch()
    host: tuple[int, int] = (0, 1)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.pace == "closed" and (self.speed != 1 or self.search.axis == "speed"):
            field = "speed" if self.speed != 1 else "search"
            raise FieldValueError(field, "a closed replay keeps no times that a speed could change")
        if self.search.axis == "speed" and self.speed != 1:
            raise FieldValueError("speed", "the search chooses it; give --start and --end instead")
        return self

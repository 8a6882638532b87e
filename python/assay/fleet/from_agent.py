"""What an agent says: by itself, and in answer to a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AliasChoices, Discriminator, Field, TypeAdapter, model_validator

from assay.base.progress import Gauge, HostLoad, Moment
from assay.fleet.messages import (
    LINES_MAX,
    FileName,
    Lines,
    Name,
    Probe,
    Record,
    Span,
    WireMessage,
    Words,
    check_told,
    of_kind,
    valid,
)
from assay.fleet.wire import Message, NotAMessage
from assay.record.shapes.manifest import Host
from assay.record.shapes.manifest import Target as TargetShape
from assay.record.shapes.terms import Count, MaybeAmount, MaybeCount

REST_MAX_S = 86_400.0
STEPS_MAX = 1000


# What an agent says


class Pong(WireMessage):
    """An agent is there; what time it is on its host."""

    pong: Probe
    utc_ns: Count


class ShownGauge(WireMessage):
    """A figure of the point that is being measured."""

    name: Words
    title: Words
    value: float | None
    unit: Words
    limit: Words = ""


class ShownHost(WireMessage):
    """What a host does: its processors, and the busy shares of the target's devices."""

    cpu_share: float | None
    devices: Annotated[list[Annotated[tuple[Words, float], Field(strict=False)]], Field(max_length=100)]

    def load(self, name: str) -> HostLoad:
        """The same of the host of this name."""
        return HostLoad(name=name, cpu_share=self.cpu_share, devices=self.devices)


class ShownMoment(WireMessage):
    """The progress of a point on a host."""

    part: Words
    what: Words
    phase: Words
    left_s: MaybeAmount = None
    is_most: bool = False
    done_share: float | None = None
    gauges: Annotated[list[ShownGauge], Field(max_length=100)]
    percentiles: Annotated[list[ShownGauge], Field(max_length=100)]
    errors: tuple[Count, Words] = Field(strict=False)
    waiting: Words = ""

    def moment(self, hosts: Sequence[HostLoad]) -> Moment:
        """The same for a display, with what hosts do."""
        gauges, percentiles = ([Gauge(**dict(gauge)) for gauge in each] for each in (self.gauges, self.percentiles))
        return Moment(**dict(self) | {"gauges": gauges, "percentiles": percentiles, "hosts": hosts})


class Shows(WireMessage):
    """What an agent would show, had it a display."""

    shows: Literal["progress", "tell"]
    text: Words
    moment: ShownMoment | None
    host: ShownHost | None = None


class Keeps(WireMessage):
    """What a workload would keep in the manifest, had it a run folder."""

    manifest: Record


class Meets(WireMessage):
    """An agent waits for the others: to begin, or to know the window in which all ran."""

    at: Literal["begin", "window"]
    window: Span | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.at == "window") != (self.window is not None):
            raise ValueError("a window is told where one is asked for")
        return self


class KeepsFile(WireMessage):
    """A file of a part, whose content lies behind the message."""

    file: FileName


class Replies(WireMessage):
    """The answer to a command: a value, or what went wrong."""

    re: Count
    value: Any = Field(default=None, validation_alias=AliasChoices("is"))
    error: Annotated[list[Words], Field(min_length=2, max_length=2)] | None = None


FromAgent = Pong | Shows | Keeps | Meets | KeepsFile | Replies
_FROM_AGENT: Mapping[str, TypeAdapter[Any]] = {
    "pong": TypeAdapter(Pong),
    "shows": TypeAdapter(Shows),
    "manifest": TypeAdapter(Keeps),
    "at": TypeAdapter(Meets),
    "file": TypeAdapter(KeepsFile),
    "re": TypeAdapter(Replies),
}


def from_agent(message: Message, behind: bytes) -> FromAgent:
    """What an agent says.

    Raises
    ------
    NotAMessage
        An agent says no such thing.
    """
    found: FromAgent = of_kind(_FROM_AGENT, message)
    if behind and not isinstance(found, Replies | KeepsFile):
        raise NotAMessage("bytes behind a message that has none")
    return found


# What an agent answers, by the command


class Hello(WireMessage):
    """Who an agent is."""

    version: Words
    hostname: Words
    machine: Annotated[str, Field(pattern=r"\A[0-9a-f]{1,64}\z")] | None
    host: Record

    @property
    def host_facts(self) -> Host:
        """What is known of the host; `answer_to` has checked it."""
        return cast(Host, self.host)


class _Told(WireMessage):
    facts: Record

    @property
    def target_facts(self) -> TargetShape:
        """What is known of the target; `answer_to` has checked it."""
        return cast(TargetShape, self.facts)


class TargetFacts(_Told):
    """Facts of a target."""


class ChosenPart(WireMessage):
    """A part in words, and as `--dry-run --json` has it."""

    lines: Lines
    document: Record


class HostShare(_Told):
    """The share of a host of the target."""

    identities: dict[str, Annotated[list[str], Field(min_length=1, max_length=16)]]
    lines: Lines
    document: Record
    is_virtual: bool
    layout_bytes: MaybeCount
    sizes: dict[str, Count]
    notices: Lines
    is_databases: bool
    parts: dict[str, ChosenPart]


class PlannedLoad(WireMessage):
    """A load as a point will have it."""

    workload: Record
    load: Record


class AskOf(WireMessage):
    """What a host measures at its part of a load."""

    ask: Count
    key: Record
    asked: PlannedLoad


class _Step(WireMessage):
    rest_s: Annotated[float, Field(ge=0, le=REST_MAX_S)]


class Done(_Step):
    """The part is at its end."""

    kind: Literal["done"]


class AxisOf(WireMessage):
    """What a search varies."""

    name: Name
    start: Annotated[float, Field(gt=0, le=1e15)]
    end: Annotated[float, Field(gt=0, le=1e15)]
    whole: bool
    resolution_share: Annotated[float, Field(gt=0, le=10)]
    plateau_share: Annotated[float, Field(ge=0, le=10)]
    stops_at_plateau: bool
    steps: Annotated[list[Annotated[float, Field(gt=0, le=1e15)]], Field(max_length=STEPS_MAX)]
    falls: bool


class Searches(_Step):
    """A search is next."""

    kind: Literal["search"]
    axis: AxisOf
    workload: Record
    repeats: Annotated[int, Field(ge=1, le=1000)]


class KeepsPoint(_Step, AskOf):
    """A point that came by itself is to be kept."""

    kind: Literal["keep"]
    repeat: Count
    judged: bool
    held: bool


class Measures(_Step, AskOf):
    """A load is to be measured."""

    kind: Literal["measure"]


HostStep = Done | Searches | KeepsPoint | Measures


class Figures(WireMessage):
    """What a host measured."""

    figures: Record
    error: Annotated[list[Words], Field(min_length=2, max_length=2)] | None
    virtual_ns: Count


class PartClosed(WireMessage):
    """What there is to say of a part at its end."""

    told: Record | None
    notices: Lines
    facts: Record | None
    virtual_ns: Count

    @property
    def target_facts(self) -> TargetShape | None:
        """What is known of the target; `answer_to` has checked it."""
        return None if self.facts is None else cast(TargetShape, self.facts)


class Left(_Told):
    """What there is to say of a target that was left."""

    notices: Lines


_ANSWERS: Mapping[str, TypeAdapter[Any]] = {
    "hello": TypeAdapter(Hello),
    "choose": TypeAdapter(HostShare),
    **dict.fromkeys(("examine", "prepare"), TypeAdapter(TargetFacts)),
    "step": TypeAdapter(Annotated[HostStep, Discriminator("kind")]),
    "ask": TypeAdapter(AskOf),
    **dict.fromkeys(("measure", "keep"), TypeAdapter(Figures)),
    "close": TypeAdapter(PartClosed),
    "leave": TypeAdapter(Left),
    "permissions": TypeAdapter(Annotated[list[Name], Field(max_length=LINES_MAX)]),
}
_NOTHING: TypeAdapter[None] = TypeAdapter(None)


def answer_to(do: str, value: object) -> Any:
    """What an agent answers to a command.

    Raises
    ------
    NotAMessage
        It is no answer to this one.
    """
    found = valid(_ANSWERS.get(do, _NOTHING), value)
    if isinstance(found, (TargetFacts, HostShare, PartClosed, Left)) and found.facts is not None:
        check_told({"target": found.facts})
    if isinstance(found, Hello):
        check_told({"host": found.host})
    return found

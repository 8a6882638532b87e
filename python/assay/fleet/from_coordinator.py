"""What the coordinator says: what agents are to do, and what they were waiting for.

The types say what no coordinator gets of an agent: it asks no further hosts and writes no journal, and a part has no
target but the run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, TypeAdapter, model_validator

from assay.base.command_line import PREFIX
from assay.fleet.links import HOSTS_MAX
from assay.fleet.messages import (
    Name,
    Probe,
    Record,
    Records,
    Span,
    WireMessage,
    Words,
    check_measured,
    check_told,
    of_kind,
)
from assay.fleet.wire import Message, NotAMessage
from assay.record.shapes.terms import Amount, Count, MaybeAmount, PointId

PARTS_MAX = 10_000
RunId = Annotated[str, Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,199}\z")]
SecretWord = Annotated[str, Field(pattern=rf"\A{PREFIX}[0-9]{{1,9}}\z")]


# What the coordinator says


class Ping(WireMessage):
    """Is an agent there; which question about its clock."""

    ping: Probe


class Interrupt(WireMessage):
    """An agent ends what it does."""

    interrupt: Literal[True]


class Begin(WireMessage):
    """When all begin, by the agent's clock."""

    begin_utc_ns: Count


class HostWindow(WireMessage):
    """The window in which all ran, by the agent's clock."""

    window: Span


class Refused(WireMessage):
    """Why there is no such window."""

    refused: Words


class Stop(WireMessage):
    """Another host did not go on."""

    stop: Literal[True]


class HostsTogether(WireMessage):
    """What all hosts were waiting for."""

    together: Begin | HostWindow | Refused | Stop


class Command(WireMessage):
    """An agent is to do something, and to answer."""

    number: Count


class SayHello(Command):
    """Say who is there."""

    do: Literal["hello"]


class EndAgent(Command):
    """Leave everything, and end."""

    do: Literal["end"]


class Secrets(Command):
    """Know passwords, by the words that stand for them."""

    do: Literal["secrets"]
    words: dict[SecretWord, str]
    typed: str | None


class ShareOf(WireMessage):
    """The place of a host among all."""

    place: Annotated[int, Field(ge=0, lt=HOSTS_MAX)]
    hosts: Annotated[int, Field(ge=1, le=HOSTS_MAX)]
    shared: bool

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if self.place >= self.hosts:
            raise ValueError("a place among the hosts is expected")
        return self


class RequestOf(WireMessage):
    """What is asked of the target of one host: an agent asks no further hosts, and writes no journal."""

    paths: list[Name]
    volumes: list[Name]
    size: Name | None
    cache_size: Name | None
    size_most_bytes: Count
    create: bool
    yes_writes: Name | None
    database: bool
    numbered: bool
    dry_run: bool
    hosts: Annotated[list[str], Field(max_length=0)]
    cluster: None
    shared: Literal[False]
    crash_journal: None
    after_crash: None


class PartOf(WireMessage):
    """A part, which has no target of its own and nothing beside it: those are one host's."""

    name: Name
    title: str | None
    planned_s: MaybeAmount
    spent_s: None
    plan: Record
    optional: bool = False
    published: Record | None = None


class Choose(Command):
    """Examine a share of the target; nothing is written."""

    do: Literal["choose"]
    request: RequestOf
    overwrite: list[Name]
    yes_destroy: list[Name]
    parts: Annotated[list[PartOf], Field(min_length=1, max_length=PARTS_MAX)]
    share: ShareOf
    sizes: dict[str, Count]


class Again(Command):
    """Refuse a target that is not that of the run."""

    do: Literal["again"]
    run: RunId
    volumes: Records


class BeginRun(Command):
    """Take the id of the run."""

    do: Literal["begin_run"]
    run: RunId


class Examine(Command):
    """Open the target, and refuse what cannot be done with it."""

    do: Literal["examine"]
    part: Name
    manifest: Record


class Prepare(Command):
    """Make the target ready."""

    do: Literal["prepare"]
    part: Name


class Open(Command):
    """Begin a part."""

    do: Literal["open"]
    part: Name
    manifest: Record
    finished: Records
    keeps_series: bool
    for_study: bool
    epoch_ns: Count


class TakeStep(Command):
    """Go on to the next thing to measure, with what came of the last one."""

    do: Literal["step"]
    outcome: Record | None
    points: Records


class AskAt(Command):
    """Say what is measured at a part of a load."""

    do: Literal["ask"]
    load: Annotated[Amount, Field(gt=0)]


class MeasurePoint(Command):
    """Measure a load with the others."""

    do: Literal["measure"]
    ask: Count
    repeat: Count
    point_id: PointId


class KeepPoint(Command):
    """Give the figures of a point that came by itself."""

    do: Literal["keep"]
    point_id: PointId


class Kept(Command):
    """Know of a point that was kept."""

    do: Literal["kept"]
    point: Record


class Close(Command):
    """End a part."""

    do: Literal["close"]


class Leave(Command):
    """Leave the target until another part needs it."""

    do: Literal["leave"]


class Settle(Command):
    """Say in the target's marks that the run has ended."""

    do: Literal["settle"]


class Permissions(Command):
    """Say which options the command to go on has to repeat."""

    do: Literal["permissions"]
    yes_destroy: list[Name]


AnyCommand = Annotated[
    SayHello | EndAgent | Secrets | Choose | Again | BeginRun | Examine | Prepare | Open | TakeStep | AskAt
    | MeasurePoint | KeepPoint | Kept | Close | Leave | Settle | Permissions,
    Discriminator("do"),
]  # fmt: skip
FromCoordinator = Ping | Interrupt | HostsTogether | Command
_FROM_COORDINATOR: Mapping[str, TypeAdapter[Any]] = {
    "ping": TypeAdapter(Ping),
    "interrupt": TypeAdapter(Interrupt),
    "together": TypeAdapter(HostsTogether),
    "do": TypeAdapter(AnyCommand),
}


def from_coordinator(message: Message, behind: bytes) -> FromCoordinator:
    """What the coordinator says.

    Raises
    ------
    NotAMessage
        The coordinator says no such thing.
    """
    if behind:
        raise NotAMessage("bytes behind a message that has none")
    found: FromCoordinator = of_kind(_FROM_COORDINATOR, message)
    if isinstance(found, (Examine, Open)):
        check_told(found.manifest)
    if isinstance(found, Again):
        check_told({"target": {"volumes": found.volumes}})
    points: list[Record] = []
    if isinstance(found, Open):
        points = found.finished
    elif isinstance(found, TakeStep):
        points = found.points
    elif isinstance(found, Kept):
        points = [found.point]
    for point in points:
        if not isinstance(point.get("key"), str):
            raise NotAMessage("point: key: a text is expected")
        check_measured(point)
    return found

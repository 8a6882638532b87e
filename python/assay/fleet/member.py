"""An agent as the coordinator knows it, and what is heard of it: its messages, taken off its pipe one by one."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from assay.base.progress import Moment
from assay.fleet.from_agent import Hello, KeepsFile, Pong, Replies, Shows, from_agent
from assay.fleet.links import Link
from assay.fleet.stand_ins import FILES_BYTES_MAX, FILES_MAX
from assay.fleet.wire import FROM_AGENT_BYTES_MAX, NotAMessage, Receiver, Sender

SHOWN_MAX, SHOWN_A_SECOND = 1000, 20
"""Texts that an agent may have shown; it shows two a second."""
WAITING_MAX = 64
"""Messages of one agent that wait to be taken; it waits with more."""


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """How far a host's clock is ahead of this one's.

    Attributes
    ----------
    offset_ns
        By the fastest of `ROUND_TRIPS`.
    error_ns
        Half of that round trip: the offset is no farther off.
    """

    offset_ns: int
    error_ns: int


@dataclass(kw_only=True)
class Member:
    """An agent, as the coordinator knows it.

    Attributes
    ----------
    place
        Its number.
    name
        Of its host, as it was given.
    last, moment
        What it showed last, in words and as figures.
    heard_s
        When it said something last; None until it has greeted, which may take long.
    lost
        Why it is no member any more.
    owes
        Number of the command that it has not answered.
    probe
        Question about its clock that it has not answered.
    room
        For messages that wait to be taken.
    """

    place: int
    name: str
    link: Link
    sender: Sender = field(init=False)
    facts: Hello | None = None
    clock: ClockOffset = field(default_factory=lambda: ClockOffset(offset_ns=0, error_ns=0))
    heard_s: float | None = None
    last: str = ""
    moment: Moment | None = None
    lost: str | None = None
    owes: int | None = None
    probe: list[int] | None = None
    pongs: queue.SimpleQueue[tuple[Any, int, int]] = field(default_factory=queue.SimpleQueue)
    room: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(WAITING_MAX))

    def __post_init__(self) -> None:
        self.sender = Sender(self.link.write)

    @property
    def hostname(self) -> str | None:
        """As the host calls itself."""
        return None if self.facts is None else self.facts.hostname


@dataclass(frozen=True)
class Ended:
    """Why nothing more comes of an agent; unknown where its pipe ended."""

    why: str | None = None


GREETS = object()
Inbox = queue.SimpleQueue[tuple[Member, Any, bytes]]


def listen(member: Member, inbox: Inbox) -> None:
    """Take what an agent sends; whatever that is, it is this agent's, and the end of it is told."""
    ended = Ended()
    try:
        _Listener(member, inbox).run()
    except NotAMessage as error:
        ended = Ended(f"its agent sends what none of Assay does: {error}")
    except Exception as error:
        ended = Ended(f"its agent sends what cannot be read ({type(error).__name__})")
    inbox.put((member, ended, b""))


class _Listener:
    """Takes messages off one agent's pipe, each at its time."""

    def __init__(self, member: Member, inbox: Inbox) -> None:
        self._member, self._inbox = member, inbox
        self._receiver = Receiver(self._read, FROM_AGENT_BYTES_MAX)
        self._files, self._file_bytes, self._shown = 0, 0, 0
        self._begun_s = time.monotonic()

    def _read(self, size: int) -> bytes:
        data = self._member.link.read(size)
        if self._member.heard_s is not None:
            # A large message may be long on its way.
            self._member.heard_s = time.monotonic()
        return data

    def run(self) -> None:
        """Listen until the pipe ends."""
        if not self._receiver.greeting():
            return
        self._member.heard_s = time.monotonic()
        self._pass_on(GREETS, b"")
        while (received := self._receiver.receive()) is not None:
            message = from_agent(*received)
            if isinstance(message, Pong):
                self._hear_clock(message)
                continue
            if isinstance(message, Replies):
                self._refuse_unasked(message)
            elif isinstance(message, KeepsFile):
                self._count(received[1])
            elif isinstance(message, Shows):
                self._refuse_flood()
            self._pass_on(message, received[1])

    def _hear_clock(self, message: Pong) -> None:
        """Note what an agent says of its clock at once."""
        if message.pong is not None and message.pong == self._member.probe:
            self._member.probe = None
            self._member.pongs.put((message.pong, message.utc_ns, time.time_ns()))

    def _refuse_unasked(self, message: Replies) -> None:
        owed, self._member.owes = self._member.owes, None
        if message.re != owed:
            raise NotAMessage("an answer that nobody asked for")
        self._files = self._file_bytes = 0

    def _count(self, content: bytes) -> None:
        self._files, self._file_bytes = self._files + 1, self._file_bytes + len(content)
        if self._files > FILES_MAX or self._file_bytes > FILES_BYTES_MAX:
            raise NotAMessage("more files than a part has")

    def _refuse_flood(self) -> None:
        self._shown += 1
        if self._shown > SHOWN_MAX + SHOWN_A_SECOND * (time.monotonic() - self._begun_s):
            raise NotAMessage("more to be shown than could be read")

    def _pass_on(self, message: object, behind: bytes) -> None:
        while not self._member.room.acquire(timeout=1.0):
            if self._member.lost is not None:
                return
            # It is waited for here, not there.
            self._member.heard_s = time.monotonic()
        self._inbox.put((self._member, message, behind))

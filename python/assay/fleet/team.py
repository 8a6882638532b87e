"""The agents of a run, all asked at once: replies, clocks, failures."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from assay.base.errors import AssayError, Interrupted, IoFailed, error_named
from assay.base.progress import SILENT, Display, ProgressStep
from assay.fleet.from_agent import FromAgent, Hello, Meets, Replies, Shows, answer_to
from assay.fleet.links import Link
from assay.fleet.member import GREETS, ClockOffset, Ended, Inbox, Member, listen
from assay.fleet.moments import moment_of_all
from assay.fleet.wire import Message, NotAMessage

HANG_S = 20.0
"""An agent that says nothing for so long, not even that it is there, is given up."""
BEAT_S = 1.0
GREETING_S = 60.0
"""How long an agent takes to begin, with its interpreter on a cold disk."""
END_S = 90.0
"""How long agents that were told to stop may take for it: as long as an I/O may stay away, and then some."""
ROUND_TRIPS = 30
PROBERS = 16
UNREADABLE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""What comes of values that have the right form and make no sense together."""


class HostLost(IoFailed):
    """An agent died, hangs, or is cut off."""


@dataclass(kw_only=True)
class Reply:
    """What a host answered: a value with rows of a series."""

    value: Any = None
    rows: bytes = b""


Told = Callable[[Member, FromAgent, bytes], None]
"""Takes what an agent says without being asked, and the bytes behind it.

It raises `NotAMessage` where this is not the time for it; the agent is given up.
"""


class Team:
    """The agents of one run.

    Parameters
    ----------
    links
        A pipe to each, by name.
    """

    def __init__(self, links: Sequence[tuple[str, Link]]) -> None:
        self.members = [Member(place=place, name=name, link=link) for place, (name, link) in enumerate(links)]
        self._inbox: Inbox = queue.SimpleQueue()
        self._number = 0
        self._beat_s = 0.0
        self.is_ended = False
        self._has_begun = False
        self._finalizer = weakref.finalize(self, _end_all, [member.link for member in self.members])
        for member in self.members:
            listener = threading.Thread(
                target=listen, args=(member, self._inbox), name=f"assay-{member.name}", daemon=True
            )
            listener.start()

    @property
    def alive(self) -> list[Member]:
        """Members that are not lost."""
        return [] if self.is_ended else [member for member in self.members if member.lost is None]

    # Asking

    def ask(
        self,
        do: str,
        arguments: Callable[[Member], Mapping[str, object]] | Mapping[str, object] | None = None,
        *,
        interrupt: threading.Event | None = None,
        display: Display = SILENT,
        told: Told | None = None,
        longest_s: float | None = None,
    ) -> dict[str, Reply]:
        """Have all hosts do something at once; gives what each answered, by name.

        Parameters
        ----------
        do, arguments
            A command, and what it gets.
        interrupt
            Passed on when it is set; agents then end what they do.
        display
            Shows what they show.
        told
            Takes what else they say.
        longest_s
            How long the slowest may take.

        Raises
        ------
        HostLost
            An agent died, hangs or is cut off; the others were told to stop, and did.
        AssayError
            One could not do it; it says which.
        """
        self._number += 1
        self._has_begun = self._has_begun or do not in ("hello", "secrets")
        asking = _Asking(team=self, do=do, interrupt=interrupt, display=display, told=told)
        members = self.alive
        for member in members:
            given = arguments(member) if callable(arguments) else arguments or {}
            member.owes = self._number
            self._send(member, {"do": do, "number": self._number, **given})
        return asking.run(members, self._inbox, longest_s)

    def _send(self, member: Member, message: Message) -> None:
        if member.lost is None:
            # That an agent is gone is seen where its pipe ends.
            with contextlib.suppress(OSError, ValueError):
                member.sender.send(message)

    def tell(self, message: Message) -> None:
        """Tell all agents something that they answer in nothing."""
        for member in self.alive:
            self._send(member, message)

    def beat(self) -> None:
        """Ask all whether they are there, once a second."""
        now = time.monotonic()
        if now - self._beat_s >= BEAT_S:
            self._beat_s = now
            self.tell({"ping": None})

    def hung(self, members: Sequence[Member]) -> list[Member]:
        """Members that have said nothing for longer than `HANG_S`."""
        since_s = time.monotonic() - HANG_S
        return [one for one in members if one.lost is None and one.heard_s is not None and one.heard_s < since_s]

    def lose(self, member: Member, why: str) -> None:
        """Go on without an agent; it is killed, where it still is."""
        if member.lost is None:
            member.lost = why
            member.link.end(kill=True)

    # Clocks

    def measure_clocks(self) -> dict[str, ClockOffset]:
        """How far the clocks of all hosts are ahead, by the fastest of many round trips."""
        members = self.alive
        if not members:
            return {}
        with ThreadPoolExecutor(min(len(members), PROBERS), thread_name_prefix="assay-clock") as pool:
            clocks = dict(zip([member.name for member in members], pool.map(self._clock, members), strict=True))
        for member in members:
            member.clock = clocks[member.name]
        return clocks

    def _clock(self, member: Member) -> ClockOffset:
        best: ClockOffset | None = None
        for trip in range(ROUND_TRIPS):
            member.probe = [self._number, trip]
            sent_ns = time.time_ns()
            self._send(member, {"ping": member.probe})
            deadline = time.monotonic() + HANG_S
            while time.monotonic() < deadline and member.lost is None:
                with contextlib.suppress(queue.Empty):
                    about, there_ns, back_ns = member.pongs.get(timeout=0.5)
                    if about == [self._number, trip]:
                        error_ns = (back_ns - sent_ns + 1) // 2
                        if best is None or error_ns < best.error_ns:
                            best = ClockOffset(offset_ns=there_ns - (sent_ns + back_ns) // 2, error_ns=error_ns)
                        break
            else:
                # Whoever asks for something next is told that it is gone.
                break
        return best or member.clock

    def end(self) -> None:
        """End all agents; harmless when done twice."""
        if self.is_ended:
            return
        if self._has_begun:
            with contextlib.suppress(AssayError):
                self.ask("end", longest_s=END_S)
        self.is_ended = True
        self._finalizer()


def _end_all(links: Sequence[Link]) -> None:
    """End what is still there, also where the interpreter ends and begins no threads any more."""
    enders = [threading.Thread(target=link.end, daemon=True) for link in links]
    try:
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()
    except RuntimeError:
        for link in links:
            link.end()


@dataclass(kw_only=True)
class _Asking:
    """One question to all, until all have answered."""

    team: Team
    do: str
    interrupt: threading.Event | None
    display: Display
    told: Told | None
    replies: dict[str, Reply] = field(default_factory=dict)
    failures: list[tuple[Member, AssayError]] = field(default_factory=list)
    passed_on: bool = False
    deadline_s: float | None = None

    def run(self, members: Sequence[Member], inbox: Inbox, longest_s: float | None) -> dict[str, Reply]:
        waiting = {member.name: member for member in members}
        self.deadline_s = None if longest_s is None else time.monotonic() + longest_s
        for member in self.team.members:
            if member.lost is not None and member.name in waiting:
                waiting.pop(member.name)
        while waiting:
            self._look(waiting)
            try:
                member, message, behind = inbox.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(message, Ended):
                if member.lost is None:
                    why = message.why or f"its agent ended ({member.link.why_ended()})"
                    self._lose(member, why, waiting)
                continue
            member.room.release()
            if member.lost is None:
                self._hear(member, message, behind, waiting)
        self._raise()
        # In the order of the hosts, whoever was first to answer: keys of points are made of them.
        return {member.name: self.replies[member.name] for member in members if member.name in self.replies}

    def _hear(self, member: Member, message: Any, behind: bytes, waiting: dict[str, Member]) -> None:
        """Take a message of an agent; what is wrong with it is that agent's."""
        try:
            if isinstance(message, Replies):
                self._take(member, message, behind)
                waiting.pop(member.name, None)
            elif isinstance(message, Shows):
                self._show(member, message)
            elif self.told is not None and message is not GREETS:
                self.told(member, message, behind)
            elif isinstance(message, Meets):
                raise NotAMessage("a question to the other hosts, with no point under way")
        except NotAMessage as error:
            self._lose(member, f"its agent sends what none of Assay does: {error}", waiting)
        except UNREADABLE as error:
            self._lose(member, f"its agent sends what makes no sense ({type(error).__name__})", waiting)

    def _look(self, waiting: dict[str, Member]) -> None:
        self.team.beat()
        for member in self.team.hung(list(waiting.values())):
            self._lose(member, f"its agent has not answered for {HANG_S:.0f} s", waiting)
        if self.interrupt is not None and self.interrupt.is_set() and not self.passed_on:
            self.passed_on = True
            self.team.tell({"interrupt": True})
            self._stop_within(END_S)
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            for member in list(waiting.values()):
                self._lose(member, "its agent did not come to an end", waiting)

    def _stop_within(self, seconds: float) -> None:
        deadline_s = time.monotonic() + seconds
        self.deadline_s = deadline_s if self.deadline_s is None else min(self.deadline_s, deadline_s)

    def _lose(self, member: Member, why: str, waiting: dict[str, Member]) -> None:
        if member.lost is None:
            had = f"; until then: {member.last}" if member.last else ""
            self.team.lose(member, why)
            # One that has answered is missed as well: what follows would be without it.
            self._fail(member, HostLost(f"host {member.name}: {why}{had}"))
        waiting.pop(member.name, None)

    def _take(self, member: Member, message: Replies, rows: bytes) -> None:
        if message.error is not None:
            name, text = message.error
            self._fail(member, error_named(name)(f"host {member.name}: {text}"))
        else:
            self.replies[member.name] = Reply(value=answer_to(self.do, message.value), rows=rows)

    def _fail(self, member: Member, error: AssayError) -> None:
        """One host's failure ends what the others do: a sum without it would be wrong."""
        first = not self.failures
        self.failures.append((member, error))
        if first:
            self.team.tell({"together": {"stop": True}})
            self.team.tell({"interrupt": True})
            self._stop_within(END_S)

    def _show(self, member: Member, message: Shows) -> None:
        text = f"{member.name}: {message.text}"
        if message.shows == "tell":
            self.display.tell(text)
            return
        member.last = message.text
        hosts = [] if message.host is None else [message.host.load(member.name)]
        member.moment = None if message.moment is None else message.moment.moment(hosts)
        moments = [one.moment for one in self.team.alive if one.moment is not None]
        self.display.point(ProgressStep(line=text, moment=moment_of_all(moments)))

    def _raise(self) -> None:
        """The failure that all others follow from."""
        if not self.failures:
            return
        asked = self.interrupt is not None and self.interrupt.is_set() and self.passed_on
        order = sorted(
            self.failures, key=lambda one: (isinstance(one[1], Interrupted), not isinstance(one[1], HostLost))
        )
        member, error = order[0]
        if asked and isinstance(error, Interrupted):
            raise Interrupted(str(error).removeprefix(f"host {member.name}: "))
        if isinstance(error, Interrupted):
            # The first of all failures: it was ended there, and the others only followed.
            member, error = self.failures[0]
            had = f"; until then: {member.last}" if member.last else ""
            self.team.lose(member, "its agent was ended there")
            raise HostLost(f"host {member.name}: its agent was ended there{had}")
        raise error


def greet(team: Team) -> None:
    """Say hello to all agents, and refuse those that are not of this version.

    Raises
    ------
    AssayError
        An agent does not begin, or is another version's.
    """
    from assay import _core
    from assay.base.errors import RefusedTarget

    replies = team.ask("hello", longest_s=GREETING_S)
    own = _core.build_info()["version"]
    for member in team.members:
        facts: Hello = replies[member.name].value
        member.facts = facts
        if facts.version != own:
            raise RefusedTarget(
                f"host {member.name}: has Assay {facts.version}, and this is {own}; install the same there"
            )

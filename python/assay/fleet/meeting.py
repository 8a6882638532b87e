"""Where hosts meet: they begin at one time, and know the window in which all of them ran."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.fleet.from_agent import Meets
from assay.fleet.member import Member
from assay.fleet.wire import Message, NotAMessage

BEGIN_AFTER_NS = 50_000_000
"""All begin so much, and four round trips, after the slowest is ready."""
WINDOW_OFF_NS = 5_000_000_000
"""How far a window may lie outside of the time from the beginning until now, by clocks that are not quite alike."""


@dataclass(kw_only=True)
class Meeting:
    """Agrees on a start and on the window in which all ran, as agents ask for them."""

    members: Sequence[Member]
    send: Any
    begins: set[str] = field(default_factory=set)
    windows: dict[str, tuple[int, int]] = field(default_factory=dict)
    began_ns: int = 0

    def hear(self, member: Member, message: Meets) -> None:
        """Take what an agent asks for; answer all once all have asked.

        Raises
        ------
        NotAMessage
            The agent asks twice, or for a window before all have begun or of another time.
        """
        if message.window is None:
            if member.name in self.begins:
                raise NotAMessage("a second beginning of one point")
            self.begins.add(member.name)
            if len(self.begins) == len(self.members):
                self._begin()
            return
        if member.name in self.windows or len(self.begins) < len(self.members):
            raise NotAMessage("a window out of its order")
        first, last = (at_ns - member.clock.offset_ns for at_ns in message.window)
        if not self.began_ns - WINDOW_OFF_NS <= first <= last <= time.time_ns() + WINDOW_OFF_NS:
            # All would be told that they did not run at the same time, and none which of them is wrong.
            raise NotAMessage("a window out of its time")
        self.windows[member.name] = first, last
        if len(self.windows) == len(self.members):
            self._meet()

    def _begin(self) -> None:
        slowest_ns = max(member.clock.error_ns for member in self.members)
        at_ns = time.time_ns() + BEGIN_AFTER_NS + 8 * slowest_ns
        self.began_ns = at_ns
        for member in self.members:
            self._answer(member, {"begin_utc_ns": at_ns + member.clock.offset_ns})

    def _meet(self) -> None:
        first = max(begin for begin, _ in self.windows.values())
        last = min(end for _, end in self.windows.values())
        for member in self.members:
            if last <= first:
                refused = "hosts did not run at the same time: there is no window in which all of them did"
                self._answer(member, {"refused": refused})
            else:
                offset_ns = member.clock.offset_ns
                self._answer(member, {"window": [first + offset_ns, last + offset_ns]})

    def _answer(self, member: Member, answer: Message) -> None:
        try:
            self.send(member, {"together": answer})
        except (OSError, ValueError):
            # That it is gone is seen where its pipe ends.
            return
